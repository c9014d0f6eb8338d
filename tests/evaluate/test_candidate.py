from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from m3gen import ops
from m3gen.compiler.pool import WorkerPool
from m3gen.compiler.request import CompileRequest, CompileResult
from m3gen.emulator.faults import Hang
from m3gen.emulator.kernel import Emulator
from m3gen.evaluate import observed as memory
from m3gen.evaluate.candidate import ablate_candidate, judge_candidate, observed
from m3gen.evaluate.dynamics import dynamics_of
from m3gen.evaluate.evaluation import Evaluation
from m3gen.evaluate.predict import predict
from m3gen.evaluate.timing import AMD
from m3gen.evaluate.trace import Traces
from m3gen.ops.base import Cache
from m3gen.ops.coverage import QUICK
from m3gen.spec import MINIMAX_M3, Status
from m3gen.targets import default_device
from tests.evaluate.compiled import result as answered

DEVICE = default_device("gfx942")
OP = ops.get("kv_gather")


def request() -> CompileRequest:
    """Two loads, so far apart that other code serves each."""
    problem = next(QUICK.problems([OP], DEVICE))
    loads = tuple(OP.canonical(problem.with_load(rows, context)) for rows, context in ((1, 2048), (256, 131072)))
    return CompileRequest(OP.name, loads, OP.default(problem, DEVICE))


REQUEST = request()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("M3GEN_CACHE", str(folder))
        yield folder


@pytest.fixture(scope="module")
def judged(home: Path) -> CompileResult:
    return judge_candidate(REQUEST)


@pytest.fixture
def kept(home: Path, judged: CompileResult) -> Iterator[list[Path]]:
    """The files of what was found out; whatever a test does to them is undone."""
    files = sorted((home / "traces").iterdir())
    texts = {path: path.read_bytes() for path in files}
    yield files
    for path, text in texts.items():
        path.write_bytes(text)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kernels that were run, in order."""
    ran: list[str] = []
    execute = Emulator.execute

    def counted(self: Emulator, code: Any, *rest: Any) -> None:
        ran.append(code.name)
        execute(self, code, *rest)

    monkeypatch.setattr(Emulator, "execute", counted)
    return ran


def bare(result: CompileResult) -> CompileResult:
    return replace(result, facts={key: replace(one, extra={}) for key, one in result.facts.items()})


def predicted(result: CompileResult, number: int = 0, **options: Any) -> Evaluation:
    facts = [result.facts[key] for key in result.keys[number]]
    work = OP.work(REQUEST.problems[number], REQUEST.config)
    return predict(result.launches[number], facts, work, DEVICE, **options)


def extras(result: CompileResult) -> dict[str, Any]:
    return {key: one.extra for key, one in result.facts.items()}


def test_a_kernel_is_run_at_two_loads(judged: CompileResult) -> None:
    found = dynamics_of(judged.facts[judged.keys[0][0]])
    assert found is not None
    few, many = found.samples
    assert 0 < few.trips < many.trips
    assert few.clocks[1] < many.clocks[1]
    assert list(few.clocks.values()) == sorted(few.clocks.values())
    assert found.seconds > 0


def test_a_prediction_is_made_from_what_was_seen(judged: CompileResult) -> None:
    assert predicted(judged).value_us != predicted(bare(judged)).value_us
    without = frozenset({"simulation"})
    assert (
        predicted(judged, without=without) == predicted(bare(judged), without=without) == predicted(bare(judged))
    )


def test_problems_of_one_request_that_run_other_kernels_are_seen_too(judged: CompileResult) -> None:
    """Once only the kernels of the last problem were run, so that two models judged one candidate."""
    assert judged.keys[0] != judged.keys[1]
    assert all(dynamics_of(one) is not None for one in judged.facts.values())


def test_a_second_time_nothing_is_run(judged: CompileResult, kept: list[Path], runs: list[str]) -> None:
    again = judge_candidate(REQUEST)
    assert runs == []
    assert extras(again) == extras(judged)
    assert sorted(path.name.split("-")[0] for path in kept) == sorted(f.code_sha for f in judged.facts.values())
    assert sorted(again.traces) == sorted(one.extra["trace"] for one in judged.facts.values())


def test_configurations_that_share_code_are_not_sampled_for_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """sparse_decode in 8 parts runs the code of two parts, twice: its clocks said nothing of eight iterations."""
    monkeypatch.setenv("M3GEN_CACHE", str(tmp_path))
    op, device = ops.get("sparse_decode"), default_device("gfx942")
    problem = op.problem(device, MINIMAX_M3.shard(4), Cache("bf16"), 1)
    assert problem is not None
    space = op.space(problem, device)
    trips = []
    for splits in (8, 2):
        values = {
            **op.field(problem, device),
            "splits": splits,
            "tile_n": 128,
            "merge": "kernel",
            "first_tile": "loop",
        }
        config = space.canonical(values)
        found = judge_candidate(CompileRequest("sparse_decode", (problem,), config))
        dynamics = dynamics_of(found.facts[found.keys[0][0]])
        assert dynamics is not None
        trips.append([one.trips for one in dynamics.samples])
    assert trips == [[1, 2], [4, 8]]


@pytest.mark.parametrize("text", ["", "null", "{}"])
def test_a_file_that_is_damaged_is_a_file_that_is_missing(
    text: str, judged: CompileResult, kept: list[Path], runs: list[str]
) -> None:
    kept[0].write_text(text)
    again = observed(REQUEST, bare(judged))
    assert len(runs) == 2  # one kernel at two loads
    assert all(dynamics_of(one) is not None for one in again.facts.values())
    Traces.from_bytes(kept[0].read_bytes())


@pytest.mark.parametrize("text", ["", '{"samples": [', "null", "[]", "{}", '{"samples": 3}'])
def test_clocks_that_are_damaged_are_simulated_anew(
    text: str, judged: CompileResult, home: Path, runs: list[str]
) -> None:
    for path in (home / "dynamics" / AMD.version).glob("*.json"):
        path.write_text(text)
    again = observed(REQUEST, bare(judged))
    assert runs == []
    assert {key: dynamics_of(one) for key, one in again.facts.items()} == {
        key: dynamics_of(one) for key, one in judged.facts.items()
    }


def test_other_constants_run_nothing_anew(
    judged: CompileResult, runs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert AMD.latencies is not None
    slower = replace(AMD.latencies, far=2 * AMD.latencies.far, scalar=2 * AMD.latencies.scalar)
    monkeypatch.setattr(memory, "AMD", replace(AMD, version="predict-amd-test", latencies=slower))
    again = observed(REQUEST, bare(judged))
    assert runs == []
    for key, facts in again.facts.items():
        now, before = dynamics_of(facts), dynamics_of(judged.facts[key])
        assert now is not None
        assert before is not None
        assert now.samples[0].clocks[1] > before.samples[0].clocks[1]


def test_one_machine_code_is_run_once_whatever_its_key(
    judged: CompileResult, kept: list[Path], runs: list[str]
) -> None:
    """Options that change nothing make another key, and the same code."""
    renamed = replace(
        judged,
        keys=tuple(tuple(f"other{key}" for key in keys) for keys in judged.keys),
        facts={f"other{key}": facts for key, facts in judged.facts.items()},
    )
    again = observed(REQUEST, bare(renamed))
    assert runs == []
    assert again.traces == judged.traces


def test_a_term_is_left_out_of_the_simulation(judged: CompileResult) -> None:
    found = ablate_candidate(REQUEST)
    for facts in found.facts.values():
        assert facts.extra["dynamics_without"].keys() == set(memory.SIMULATED)
        whole, free = dynamics_of(facts), dynamics_of(facts, "latency")
        assert whole is not None
        assert free is not None
        assert free.samples[0].clocks[1] < whole.samples[0].clocks[1]
    assert predicted(found, without=frozenset({"latency"})).value_us < predicted(found).value_us
    assert predicted(found) == predicted(judged)


def test_a_cache_that_cannot_be_written_is_done_without(
    judged: CompileResult, home: Path, runs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file lies where the folder would be: that stops root too."""
    (home / "blocked").write_text("")
    monkeypatch.setattr(memory, "cache_dir", lambda: home / "blocked")
    again = observed(REQUEST, bare(judged))
    assert all(dynamics_of(one) is not None for one in again.facts.values())
    assert len(runs) == 4


@pytest.mark.parametrize(
    "fault", [Hang("more than 7 branches"), IndexError("of the emulator's own"), MemoryError()]
)
def test_a_kernel_whose_run_fails_is_predicted_from_its_instructions(
    fault: Exception, judged: CompileResult, kept: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*arguments: Any) -> None:
        raise fault

    for path in kept:
        path.unlink()
    monkeypatch.setattr(Emulator, "execute", fails)
    found = observed(REQUEST, bare(judged))
    for one in found.facts.values():
        assert one.extra.keys() == {"dynamics_failed"}
        assert one.extra["dynamics_failed"].startswith(type(fault).__name__)
        assert dynamics_of(one) is None
    assert predicted(found) == predicted(bare(judged))
    assert not any(path.exists() for path in kept)


def test_two_workers_at_once_write_one_file(judged: CompileResult, home: Path, kept: list[Path]) -> None:
    for path in kept:
        path.unlink()
    with WorkerPool("m3gen.evaluate.candidate:judge_candidate", jobs=2, env={"M3GEN_CACHE": str(home)}) as pool:
        for _ in range(2):
            pool.submit(REQUEST)
        done = []
        while pool.pending:
            done += pool.poll(1.0)
    assert [one.status for one in done] == [Status.OK, Status.OK]
    for one in done:
        found = [dynamics_of(facts) for facts in one.value.facts.values()]
        assert [each and each.samples for each in found] == [
            known.samples for facts in judged.facts.values() if (known := dynamics_of(facts))
        ]
    assert sorted(kept[0].parent.iterdir()) == kept


def test_nvidia_has_none() -> None:
    device = default_device("sm_90")
    problem = next(QUICK.problems([OP], device))
    asked = CompileRequest(OP.name, (problem,), OP.default(problem, device))
    found = answered(asked)
    assert observed(asked, found) is found


def test_what_does_not_compile_has_none() -> None:
    failed = CompileResult(status=Status.COMPILE, reason="no such layout")
    assert observed(REQUEST, failed) is failed


def test_the_sample_of_more_programs_than_run_in_step_has_the_merge_of_the_last(home: Path) -> None:
    """Once 64 of 128 ran, and a merge by the last of them seemed to cost nothing: 7.3 us in the place of 17.1."""
    op = ops.get("dense_decode")
    problem = op.canonical(next(QUICK.problems([op], DEVICE)).with_load(1, 8192))
    values = {**op.default(problem, DEVICE), "splits": 128, "partials": "fp32", "merge": "last", "merge_warps": 4}
    executed = {}
    for merge in ("last", "kernel"):
        config = op.space(problem, DEVICE).canonical_of_known({**values, "merge": merge})
        found = judge_candidate(CompileRequest(op.name, (problem,), config))
        name = found.facts[found.keys[0][0]].extra["trace"]
        [trace, *_] = Traces.from_bytes(found.traces[name]).samples
        executed[merge] = sum(count for wave in trace.waves for _, count in wave.runs)
    assert executed["last"] > 1.5 * executed["kernel"]
