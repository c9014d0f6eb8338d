"""`m3gen bench search`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.replay import spaces


@pytest.fixture
def made(tmp_path: Path) -> Path:
    return spaces.write(tmp_path, "one")


def test_a_table_and_what_it_means(run: Run, made: Path):
    ran = run("bench", "search", "--spaces", made, "--samplers", "random,local", "--repeats", 2, "--jobs", 1)
    assert ran.status == 0
    assert "made-one" in ran.out
    assert {line.split()[0] for line in ran.out.splitlines() if line} >= {"random", "local"}
    assert "evaluations 10 to 100" in ran.out


def test_the_same_for_machines(run: Run, made: Path):
    ran = run("bench", "search", "--spaces", made, "--samplers", "random", "--repeats", 1, "--jobs", 1, "--json")
    (cell,) = ran.object["cells"]
    assert (cell["space"], cell["sampler"], cell["runs"], cell["error"]) == ("made-one", "random", 1, None)
    assert ran.object["samplers"][0]["score"] == cell["score"]


def test_bad_input_is_one_line(run: Run, made: Path, tmp_path: Path):
    broken = tmp_path / "broken.json"
    broken.write_text('{"rows": [')
    assert "broken.json is not JSON" in run("bench", "search", "--spaces", broken).line
    assert "did you mean tpe" in run("bench", "search", "--spaces", made, "--samplers", "tpee").line
    assert "too small" in run("bench", "search", "--spaces", made, "--budget", 3).line
    assert "--spaces FILE" in run("bench", "search").line
