"""`m3gen targets`."""

from __future__ import annotations

from m3gen.targets import ARCHITECTURES, DEVICES
from tests.cli.conftest import Run


def test_all_of_them(run: Run) -> None:
    ran = run("targets")
    assert ran.status == 0
    assert all(name in ran.out for name in DEVICES)


def test_all_of_them_as_an_object(run: Run) -> None:
    found = run("targets", "--json").object
    assert [one["name"] for one in found["devices"]] == list(DEVICES)
    assert [one["name"] for one in found["architectures"]] == list(ARCHITECTURES)


def test_one_device_by_an_alias_in_full(run: Run) -> None:
    ran = run("targets", "mi300x_oam")
    assert ran.out.startswith("MI300X (also MI300X_OAM")
    assert "\ngfx942: amd" in ran.out
    longest = max(DEVICES["MI300X"].architecture.sources.values(), key=len)
    assert f"{longest}\n" in ran.out  # no address is broken over lines
    found = run("targets", "MI300X", "--json").object
    assert [one["name"] for one in found["devices"]] == ["MI300X"]
    assert [one["name"] for one in found["architectures"]] == ["gfx942"]


def test_one_architecture(run: Run) -> None:
    assert run("targets", "sm90").out.startswith("sm_90: nvidia")
    assert run("targets", "sm90", "--json").object["devices"] == []


def test_an_unknown_name(run: Run) -> None:
    assert "nearest MI3" in run("targets", "MI30").line
