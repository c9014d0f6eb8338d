"""`m3gen tune --executor ray` up to the session. `.ci/ray` runs this; without Ray it is skipped."""

from __future__ import annotations

import pytest

from m3gen.search.ray_executor import RayExecutor
from tests.cli import fakes
from tests.cli.conftest import Run

pytest.importorskip("ray", reason="Ray is not installed: pip install ray")


def test_a_cluster_is_started_for_the_run_and_nothing_else_is_printed(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, _ = fakes.install(monkeypatch, fakes.all_won)
    ran = run("tune", "--arch", "gfx942", "--executor", "ray", "--jobs", "2", "--ordered", "--json", "--no-export")
    executor = session.options["executor"]
    assert isinstance(executor, RayExecutor)
    assert executor.slots == 2
    assert session.options["ordered"] is True
    assert ran.object["ended"]
