"""The catalogue as tables and as data."""

from __future__ import annotations

import json
from dataclasses import fields

import pytest

from m3gen.report import catalogue, machine
from m3gen.targets import ARCHITECTURES, DEVICES
from tests.report.rows import printed


@pytest.mark.parametrize("width", [80, 120])
def test_all_devices_fit_with_nothing_cut(width: int) -> None:
    text = printed(catalogue.devices(DEVICES.values()), width)
    assert "…" not in text
    for one in DEVICES.values():
        assert any(line.split()[:3] == [one.name, one.arch, str(one.compute_units)] for line in text.splitlines())


@pytest.mark.parametrize("name", list(DEVICES))
def test_a_sheet_gives_every_number_and_its_source(name: str) -> None:
    one = DEVICES[name]
    text = printed(catalogue.sheets([one], [one.architecture]), 1000)
    for part in (one, one.architecture):
        for field in fields(part):
            if source := part.sources.get(field.name):
                line = next(line for line in text.splitlines() if line.split()[:1] == [field.name])
                number = line.split()[-1]
                assert f"{number} {source}" in text


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("memory_bytes", 192 << 30, "192 GiB"),
        ("memory_bytes_per_s", 5.3e12, "5.30 TB/s"),
        ("clock_hz", 2.1e9, "2.10 GHz"),
        ("shared_bytes_per_clock", 128, "128"),
        ("last_level_bytes", 0, "0"),
        ("matrix_flops_per_clock", {"bf16": 2048}, "bf16 2,048"),
        ("fp8", "e4m3fn", "e4m3fn"),
    ],
)
def test_quantities_have_the_unit_of_their_name(name: str, value: object, text: str) -> None:
    assert catalogue.quantity(name, value) == text


def test_devices_and_architectures_are_plain_data() -> None:
    for one in DEVICES.values():
        assert json.loads(machine.dumps(catalogue.device_object(one)))["arch"] == one.arch
    for architecture in ARCHITECTURES.values():
        found = json.loads(machine.dumps(catalogue.architecture_object(architecture)))
        assert found["vendor"] in ("amd", "nvidia")
