"""`m3gen verify` with a fake gate."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from m3gen import ops
from m3gen.cli import work
from m3gen.cli.work import Candidate
from m3gen.evaluate.verification import Verification
from m3gen.space import Config
from m3gen.spec import Status
from m3gen.store import Store
from m3gen.targets import default_device, device
from tests import problems
from tests.cli.conftest import Run
from tests.report import rows
from tests.store import samples

VERIFY = ("verify", "--arch", "gfx942")


class FakeGate:
    """Passes all but what runs with `failing_warps`."""

    def __init__(self) -> None:
        self.asked: list[Candidate] = []
        self.seeds: tuple[int, ...] = ()
        self.on = ""
        self.failing_warps = 0

    def __call__(
        self, candidates: Sequence[Candidate], jobs: int, seeds: tuple[int, ...] = (0, 1), on: str = "interpreter"
    ) -> Iterator[tuple[Candidate, Verification]]:
        self.asked += candidates
        self.seeds, self.on = seeds, on
        for one in candidates:
            wrong = one.config["num_warps"] == self.failing_warps
            status = Status.CORRECTNESS if wrong else Status.OK
            yield one, rows.verification(status, on=on, source_sha=samples.verified().source_sha)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> FakeGate:
    gate = FakeGate()
    monkeypatch.setattr(work, "verify", gate)
    return gate


@pytest.fixture
def store(home: Path) -> None:
    """Winners of bf16 at two loads with one config, and of fp8 with another."""
    with Store.open(f"sqlite:///{home / 'm3gen.db'}") as store:
        session = store.begin({}, [])
        for fp8, load, warps in ((False, 1, 2), (False, 16, 2), (True, 16, 8)):
            problem, on = problems.sparse_decode(fp8=fp8, rows=load)
            default = ops.get(problem.op).default(samples.problem(context=2048), on)
            config = Config({**default, "num_warps": warps})
            store.commit_evaluation(session, problem, config, samples.predicted(8.0))
            store.commit_verification(problem, config, samples.verified())


@pytest.mark.usefixtures("store")
class TestStoredWinners:
    def test_a_config_of_several_loads_runs_once(self, run: Run, gate: FakeGate) -> None:
        ran = run(*VERIFY)
        assert ran.status == 0
        assert [(one.problem.kv_dtype, one.config["num_warps"]) for one in gate.asked] == [
            ("bf16", 2),
            ("e4m3fnuz", 8),
        ]
        assert ran.out.count("passed 2 cases on the interpreter") == 2
        assert "1.0e-03 / 4.0e-03" in ran.out  # the bf16 bound of a row
        assert "1.0e-03 / 3.0e-02" in ran.out  # and that of fp8

    @pytest.mark.parametrize(
        ("options", "dtypes"),
        [
            (("--kv", "fp8"), ["e4m3fnuz"]),
            (("--rows", "1"), ["bf16"]),
            (("--rows", "16", "--tp", "4"), ["bf16", "e4m3fnuz"]),
            (("--op", "sparse_decode", "--kv", "bf16"), ["bf16"]),
        ],
    )
    def test_the_options_choose(
        self, run: Run, gate: FakeGate, options: tuple[str, ...], dtypes: list[str]
    ) -> None:
        run(*VERIFY, *options)
        assert [one.problem.kv_dtype for one in gate.asked] == dtypes

    def test_a_failure_ends_with_1(self, run: Run, gate: FakeGate) -> None:
        gate.failing_warps = 8
        ran = run(*VERIFY)
        assert ran.status == 1
        assert "FAILED on the interpreter: wrong result" in ran.out

    def test_as_an_object(self, run: Run, gate: FakeGate) -> None:
        gate.failing_warps = 2
        ran = run(*VERIFY, "--json")
        first, second = ran.object["verifications"]
        assert (ran.status, first["status"], second["status"]) == (1, "correctness", "ok")
        bounds = {"row_rms": 4e-3, "mean_abs": 2.5e-4, "max_abs": 1.7e-2, "past_rounding": None}
        assert first["cases"][1]["bounds"] == bounds

    def test_the_store_keeps_the_verdicts(self, run: Run, gate: FakeGate, home: Path) -> None:
        gate.failing_warps = 8
        run(*VERIFY, "--on", "machine-code")
        with Store.open(f"sqlite:///{home / 'm3gen.db'}") as store:
            winners = store.winners(arch="gfx942")
        assert {(one.problem.kv_dtype, one.verification.on) for one in winners} == {("bf16", "machine-code")}

    def test_nothing_to_verify(self, run: Run, gate: FakeGate) -> None:
        assert "no such winner on gfx942" in run(*VERIFY, "--tp", "8").line
        assert "run m3gen tune --arch sm_90" in run("verify", "--arch", "sm_90").line


class TestGivenConfig:
    def test_what_it_leaves_out_is_as_in_the_default(self, run: Run, gate: FakeGate) -> None:
        ran = run(*VERIFY, "--config", '{"num_warps": 2}', "--kv", "bf16", "--rows", "1")
        assert ran.status == 0
        [one] = gate.asked
        default = ops.get("sparse_decode").default(one.problem, device("MI300X"))
        assert one.config == Config({**default, "num_warps": 2})

    def test_a_config_out_of_the_object_of_tune_is_taken_as_it_is(self, run: Run, gate: FakeGate) -> None:
        problem, on = problems.sparse_decode()
        default = ops.get("sparse_decode").default(problem, on)
        run(*VERIFY, "--config", json.dumps(default.to_dict()), "--kv", "bf16", "--rows", "1")
        assert [one.config for one in gate.asked] == [default]

    @pytest.mark.parametrize(
        ("config", "names"),
        [
            ("{", "no JSON"),
            ("[1]", "expected an object"),
            ('{"tile_n": [64]}', "plain values"),
            ('{"tile_m": 64}', "did you mean tile_n"),
            ('{"tile_n": 63}', "tile_n"),
            ('{"tile_n": 16, "num_warps": 8}', "refused by rule"),
        ],
    )
    def test_what_is_no_config_is_refused(self, run: Run, gate: FakeGate, config: str, names: str) -> None:
        line = run(*VERIFY, "--config", config).line
        assert "--config" in line
        assert names in line
        assert gate.asked == []

    def test_a_store_would_not_be_used(self, run: Run, gate: FakeGate) -> None:
        assert "--config or --store" in run(*VERIFY, "--config", "{}", "--store", "sqlite:///x.db").line


class TestDefaults:
    @pytest.mark.parametrize("arch", problems.ARCHS)
    @pytest.mark.parametrize(("mode", "seeds"), [("--all", (0, 1)), ("--quick", (0,))])
    def test_every_op_is_verified_in_its_default(
        self, run: Run, gate: FakeGate, arch: str, mode: str, seeds: tuple[int, ...]
    ) -> None:
        ran = run("verify", "--arch", arch, mode)
        assert (ran.status, gate.seeds) == (0, seeds)
        assert {one.problem.op for one in gate.asked} == set(ops.names())
        for one in gate.asked:
            assert one.config == ops.get(one.problem.op).default(one.problem, default_device(arch))
        last = ran.out.splitlines()[-1]
        assert last.startswith(f"{len(ops.names())} ops, {len(gate.asked)} problems, {2 * len(gate.asked)} cases")
        assert "all passed; gate: interpreter; " in last

    def test_a_line_stays_whole_on_a_narrow_terminal(
        self, run: Run, gate: FakeGate, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("COLUMNS", "40")
        ran = run(*VERIFY, "--quick")
        assert "sparse_decode  e4m3fnuz  padding  ok  row rms 1.0e-03 of 3.0e-02" in ran.out.splitlines()

    def test_the_long_ones_come_first(self, run: Run, gate: FakeGate) -> None:
        run(*VERIFY, "--all")
        first, last = gate.asked[0].problem, gate.asked[-1].problem
        assert (first.op, first.query_len) == ("index_score", 4)
        assert (last.op, last.rows) == ("index_topk", 256)

    def test_ops_narrow_it(self, run: Run, gate: FakeGate) -> None:
        run(*VERIFY, "--all", "--op", "kv_copy,kv_zero")
        assert {one.problem.op for one in gate.asked} == {"kv_copy", "kv_zero"}

    def test_a_failure_ends_with_1(self, run: Run, gate: FakeGate) -> None:
        gate.failing_warps = 4
        ran = run(*VERIFY, "--quick", "--op", "sparse_decode")
        assert ran.status == 1
        assert "1 op, 2 problems, 4 cases, 2 problems FAILED; gate: interpreter" in ran.out

    def test_as_an_object(self, run: Run, gate: FakeGate) -> None:
        ran = run(*VERIFY, "--quick", "--op", "kv_insert", "--json")
        found = ran.object
        assert {name: found[name] for name in ("ops", "problems", "cases", "failed", "gate")} == {
            "ops": 1,
            "problems": 2,
            "cases": 4,
            "failed": 0,
            "gate": "interpreter",
        }
        assert [one["problem"]["op"] for one in found["verifications"]] == ["kv_insert"] * 2
        assert found["verifications"][0]["cases"][0]["worst"] is None  # exact

    @pytest.mark.parametrize(
        "beside", [("--rows", "1"), ("--tp", "4"), ("--kv", "bf16"), ("--config", "{}"), ("--store", "sqlite://")]
    )
    def test_it_chooses_its_own_problems(self, run: Run, gate: FakeGate, beside: tuple[str, str]) -> None:
        assert f"drop {beside[0]}" in run(*VERIFY, "--all", *beside).line
        assert gate.asked == []

    def test_all_and_quick_are_not_given_together(self, run: Run, gate: FakeGate) -> None:
        assert "give one of them" in run(*VERIFY, "--all", "--quick").line
        assert "unknown op 'kv_cpy'" in run(*VERIFY, "--all", "--op", "kv_cpy").line

    def test_on_machine_code(self, run: Run, gate: FakeGate) -> None:
        ran = run("verify", "--arch", "gfx942", "--quick", "--op", "kv_zero", "--on", "machine-code")
        assert (ran.status, gate.on) == (0, "machine-code")

    @pytest.mark.parametrize(
        ("arch", "on", "text"),
        [
            ("sm_90", "machine-code", "only AMD's machine code can be executed, sm_90 is not"),
            ("gfx942", "silicon", "unknown gate 'silicon': there are interpreter, machine-code"),
        ],
    )
    def test_a_gate_that_cannot_be(self, run: Run, gate: FakeGate, arch: str, on: str, text: str) -> None:
        ran = run("verify", "--arch", arch, "--quick", "--on", on)
        assert ran.status == 2
        assert text in ran.err
