"""Sessions on a bench of fakes with a real store: how they end, and what is seen of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from m3gen.errors import UserError
from m3gen.search.progress import Progress
from m3gen.search.sampler import sampler_names
from m3gen.store import Store
from tests.search.fakes import DEVICE, Bench, problem, whole_space


def test_ends_by_evaluations_with_the_baseline_among_them(bench: Bench):
    result = bench.session(budget="10").run()
    assert result.ended == "budget"
    assert len(bench.store.evaluations(problem())) == 10
    assert bench.compiles[0] == ((problem(),), bench.op.default(problem(), DEVICE))
    assert result.progress.evaluated == result.progress.predicted == 10
    assert len(result.rows) == 1


@pytest.mark.parametrize("sampler", sampler_names())
def test_ends_by_exhaustion_with_the_optimum(bench: Bench, sampler: str):
    result = bench.session(budget="1000", sampler=sampler).run()
    assert result.ended == "exhausted"
    assert len(bench.compiles) == len(whole_space(bench)) == 33
    (row,) = result.rows
    assert row.config == bench.op.best(problem())
    assert (row.value_us, row.baseline_us, row.ratio) == (1.0, 3.0, 3.0)
    assert (row.limit, row.registers, row.waves_per_simd, row.workgroups_per_cu) == ("memory", 64, 2.0, 2)
    assert row.verification.ok
    assert row.field_config == bench.op.default(problem(), DEVICE)
    (winner,) = bench.store.winners()
    assert winner.config == row.config


def test_ends_by_time(bench: Bench):
    def tick() -> None:
        bench.now += 10.0

    bench.on_poll = tick
    result = bench.session(budget="55s").run()
    assert result.ended == "budget"
    assert 1 < len(bench.store.evaluations(problem())) <= 6
    assert result.rows
    assert bench.pools[0].closed


def test_the_baseline_is_evaluated_whatever_the_budget(bench: Bench):
    def tick() -> None:
        bench.now += 10.0

    bench.on_poll = tick
    result = bench.session(problem(1), problem(512), problem(64), problem(16), budget="1s").run()
    assert len(result.rows) == 4
    assert all(row.baseline_us is not None for row in result.rows)


def test_ends_by_stop_and_verifies_nothing(bench: Bench):
    session = bench.session()

    def stop_at_five() -> None:
        if len(bench.compiles) == 5:
            session.stop()

    bench.on_poll = stop_at_five
    result = session.run()
    assert result.ended == "interrupted"
    assert len(bench.store.evaluations(problem())) == len(bench.compiles) == 6
    assert bench.verifications == []
    assert result.rows == ()
    assert all(pool.closed for pool in bench.pools)


def test_a_stop_before_the_run_starts_no_worker(bench: Bench):
    session = bench.session()
    session.stop()
    assert session.run().ended == "interrupted"
    assert bench.pools == []


def test_the_listener_sees_every_phase(bench: Bench):
    seen: list[Progress] = []

    class Watcher:
        def update(self, progress: Progress) -> None:
            seen.append(progress)

    result = bench.session(budget="1000,10m", listener=Watcher()).run()
    assert list(dict.fromkeys(p.phase for p in seen)) == ["search", "verify", "done"]
    assert [p.evaluated for p in seen] == sorted(p.evaluated for p in seen)
    assert seen[0].remaining_s == 600.0
    assert seen[-1] == result.progress
    assert seen[-1].refused == {"narrow": 4}
    assert seen[-1].space_sizes == {problem(): 33}
    assert seen[-1].best[problem()].config == bench.op.best(problem())
    assert seen[-1].compiled == sum(len(bench.op.work(problem(), config)) for config in whole_space(bench))


def test_same_seed_same_search(tmp_path: Path):
    runs = []
    for name in ("a", "b"):
        with Store.open(f"sqlite:///{tmp_path / name}.db") as store:
            bench = Bench(store)
            bench.session(budget="25", sampler="tpe", seed=7).run()
            runs.append([config for _, config in bench.compiles])
    assert runs[0] == runs[1]


def test_an_unknown_sampler_is_refused_before_any_work(bench: Bench):
    with pytest.raises(UserError, match="unknown sampler"):
        bench.session(sampler="magic")


def test_the_parent_imports_neither_torch_nor_triton():
    program = (
        "import sys, m3gen.search.session; sys.exit(bool({'torch', 'triton', 'optuna'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
