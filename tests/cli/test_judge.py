"""`m3gen judge`, with a worker that answers at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from m3gen.cli import work
from m3gen.compiler.cache import FactsCache
from m3gen.evaluate.timing import TIMINGS
from m3gen.paths import cache_dir
from m3gen.peers.resolve import resolve
from m3gen.peers.worker import PeerRequest, PeerResult
from m3gen.spec import Status
from m3gen.targets import Vendor
from tests.cli.conftest import Run
from tests.store import samples

FILE = Path(__file__).parents[1] / "peers/gather.toml"


class FakeWorker:
    """In the place of `work.judged`; `fails` is the reason why nothing compiles."""

    def __init__(self) -> None:
        self.asked: list[PeerRequest] = []
        self.fails = ""

    def __call__(self, requests: Sequence[PeerRequest], jobs: int) -> list[PeerResult]:
        self.asked += requests
        if self.fails:
            return [PeerResult(status=Status.COMPILE, reason=self.fails) for _ in requests]
        return [self._answer(request) for request in requests]

    def _answer(self, request: PeerRequest) -> PeerResult:
        facts, keys = [], []
        for load in request.loads:
            names = [one.kernel for one in resolve(request.peer, request.arch, load).launches]
            facts.append(tuple(replace(samples.facts(), kernel=name) for name in names))
            keys.append(tuple(f"{number}{name}" for number, name in enumerate(names)))
        return PeerResult(status=Status.OK, facts=tuple(facts), keys=tuple(keys))


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> FakeWorker:
    found = FakeWorker()
    monkeypatch.setattr(work, "judged", found)
    return found


def test_facts_terms_and_a_prediction(run: Run, worker: FakeWorker) -> None:
    ran = run("judge", FILE, "--device", "MI300X", "--set", "rows=64", "--set", "pages=70000")
    assert ran.status == 0
    [request] = worker.asked
    assert (request.arch, request.root) == ("gfx942", FILE.parent)
    assert request.loads == ({"rows": 64, "pages": 70000},)
    assert "gather on MI300X (gfx942): sums of listed pages" in ran.out
    assert "rows 64, count 64, pages 70000" in ran.out
    assert f"by {TIMINGS[Vendor.AMD].version}" in ran.out
    assert "predicted: " in ran.out
    assert "physical floor: " in ran.out
    assert "measured" not in ran.out


def test_everything_as_an_object(run: Run, worker: FakeWorker) -> None:
    found = run("judge", FILE, "--device", "sm_90", "--json").object
    assert (found["peer"], found["device"], found["stage"]) == ("gather", "H200", "predicted")
    assert found["low_us"] < found["value_us"] < found["high_us"]
    [launch] = found["launches"]
    assert launch["grid"] == [2048, 1, 1]
    assert launch["facts"]["registers"] == samples.facts().registers
    assert found["load"] == {"rows": 2048, "count": 64, "pages": 131072}


def test_the_listing_is_what_the_worker_left(run: Run, worker: FakeWorker) -> None:
    FactsCache.open(cache_dir() / "facts").put("0gather", samples.facts(), "s_endpgm")
    assert run("judge", FILE, "--device", "MI300X", "--listing").out.endswith("\ngather\ns_endpgm\n")
    found = run("judge", FILE, "--device", "MI300X", "--listing", "--json").object
    assert found["listings"] == {"gather": "s_endpgm"}


def test_a_kernel_that_does_not_compile(run: Run, worker: FakeWorker) -> None:
    worker.fails = "gather: no such layout"
    ran = run("judge", FILE, "--device", "MI300X")
    assert (ran.status, ran.out) == (1, "")
    assert ran.err == "m3gen: gather on MI300X: gather: no such layout\n"
    ran = run("judge", FILE, "--device", "MI300X", "--json")
    assert (ran.status, ran.object["status"], ran.object["reason"]) == (1, "compile", worker.fails)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere.toml", "--device", "MI300X"], "cannot read nowhere.toml"),
        ([FILE, "--device", "MI301X"], "MI300X"),
        ([FILE, "--device", "MI300X", "--set", "rows"], "expected NAME=VALUE"),
        ([FILE, "--device", "MI300X", "--set", "rows=1", "--set", "rows=2"], "given twice"),
        ([FILE, "--device", "MI300X", "--set", "cuont=1"], "did you mean count"),
        ([FILE, "--device", "MI300X", "--set", "rows=many"], "rows is no number"),
        ([FILE, "--device", "MI300X", "--root", "nowhere"], "--root nowhere is no folder"),
    ],
)
def test_bad_input_is_one_line(run: Run, worker: FakeWorker, arguments: list[object], said: str) -> None:
    assert said in run("judge", *arguments).line
    assert worker.asked == []


def test_a_real_worker_that_finds_no_python(run: Run, tmp_path: Path) -> None:
    line = run("judge", FILE, "--device", "MI300X", "--root", tmp_path).line
    assert "there is no toys.py" in line
    assert "--root" in line
