"""`m3gen validate`, with a compiler that answers at once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from m3gen.cli import work
from m3gen.compiler.request import CompileRequest
from m3gen.evaluate.points import shipped
from m3gen.evaluate.predict import TERMS
from m3gen.evaluate.timing import TIMINGS
from m3gen.targets import Vendor
from tests.cli.conftest import Run
from tests.evaluate.compiled import Answers, compiled, failing


class FakePool:
    """In the place of `work.compiled`; `fails` names an op that does not compile."""

    def __init__(self, fails: str = "") -> None:
        self.asked: list[CompileRequest] = []
        self.handlers: list[str] = []
        self._fails = fails

    def __call__(
        self, requests: Sequence[CompileRequest], jobs: int, done: Any, handler: str = work.JUDGE
    ) -> Answers:
        self.asked += requests
        self.handlers.append(handler)
        for number in range(len(requests)):
            done(number + 1)
        return failing(requests, lambda one: one.op == self._fails) if self._fails else compiled(requests)


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> FakePool:
    found = FakePool()
    monkeypatch.setattr(work, "compiled", found)
    return found


def points(tmp_path: Path, published_us: float, **changes: Any) -> Path:
    term = {"op": "index_score", "tp": 4, "rows": 64, "context": 8192}
    one = {"id": "mine", "group": "score", "device": "MI300X", "published_us": published_us, "terms": [term]}
    head = {"format": 1, "source": "https://example.org", "licence": "CC0", "what": "a score"}
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({**head, "points": [{**one, **changes}]}))
    return path


def test_every_shipped_point_in_the_report(run: Run, pool: FakePool) -> None:
    ran = run("validate")
    assert ran.status == 0
    assert all(point.id in ran.out for point in shipped().points)
    assert f"predicted by {TIMINGS[Vendor.AMD].version}" in ran.out
    assert "Orders: the slower over the faster" in ran.out
    assert "Ablation" not in ran.out


def test_everything_as_an_object(run: Run, pool: FakePool) -> None:
    found = run("validate", "--json").object
    known = shipped()
    assert [one["id"] for one in found["points"]] == [one.id for one in known.points]
    assert [one["id"] for one in found["choices"]] == [one.id for one in known.choices]
    assert len(found["orders"]) == len(known.orders)
    judged = [one for one in found["points"] if not one["context_only"]]
    assert sum(group["points"] for group in found["groups"]) == len(judged)
    assert found["missed"] == [one["id"] for one in judged if not one["within_tolerance"]]
    assert set(found["points"][0]["terms"]) == set(TERMS)


def test_one_architecture(run: Run, pool: FakePool) -> None:
    found = run("validate", "--arch", "gfx942", "--json").object
    assert {one["device"] for one in found["points"]} == {"MI300X"}
    assert {one.problems[0].arch for one in pool.asked} == {"gfx942"}


def test_strict_tells_by_the_status(run: Run, pool: FakePool, tmp_path: Path) -> None:
    path = points(tmp_path, 1.0)
    predicted = run("validate", "--points", path, "--json").object["points"][0]["predicted_us"]
    assert run("validate", "--points", path, "--strict").status == 1
    assert run("validate", "--points", path).status == 0
    assert run("validate", "--points", points(tmp_path, predicted), "--strict").status == 0
    assert run("validate", "--points", points(tmp_path, 1.0, context_only="open"), "--strict").status == 0


def test_a_kernel_that_does_not_compile(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "compiled", FakePool("index_score"))
    ran = run("validate", "--points", points(tmp_path, 20.0), "--strict")
    assert ran.status == 1
    assert "failed" in ran.out
    found = run("validate", "--points", points(tmp_path, 20.0), "--json").object
    assert found["points"][0]["reason"] == "index_score: compile: no such layout"


def test_the_page(run: Run, pool: FakePool, tmp_path: Path) -> None:
    page = tmp_path / "predictor.md"
    assert run("validate", "--ablation", 2, "--write", page).status == 0
    text = page.read_text(encoding="utf-8")
    first = text.splitlines()[0]
    assert first.startswith(
        f"Made by `m3gen validate --ablation 2 --write {page}` with {TIMINGS[Vendor.AMD].version}"
    )
    assert all(f"`{point.id}`" in text for point in shipped().points)
    assert "## What is known to be wrong" in text
    assert text.count("\n| shared |") == 1
    assert "times in us, predicted by" in text


def test_ablation_of_one_architecture(run: Run, pool: FakePool) -> None:
    found = run("validate", "--arch", "sm_90", "--ablation", 2, "--json").object["ablation"]
    assert {one["problem"]["arch"] for one in found} == {"sm_90"}
    assert pool.handlers == [work.JUDGE, work.ABLATE]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--points", "absent.json"), "cannot read points from absent.json"),
        (("--arch", "gfx9"), "unknown architecture 'gfx9'"),
        (("--write", "."), "is a folder"),
    ],
)
def test_bad_input(run: Run, pool: FakePool, arguments: tuple[str, ...], said: str) -> None:
    assert said in run("validate", *arguments).line
    assert pool.asked == []


def test_no_points_on_an_architecture(run: Run, pool: FakePool, tmp_path: Path) -> None:
    path = points(tmp_path, 20.0)
    assert f"{path} has no points on sm_90" in run("validate", "--points", path, "--arch", "sm_90").line
