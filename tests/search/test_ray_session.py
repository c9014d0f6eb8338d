"""A session with its workers on a Ray cluster of two. `.ci/ray` runs these; without Ray they are skipped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from m3gen.search.executor import Executor, LocalExecutor, open_executor
from m3gen.search.progress import Progress
from m3gen.store import Store
from m3gen.testing.fake_session import JUDGE, done, open_session, problem
from tests.search.rays import kill_slots

pytest.importorskip("ray", reason="Ray is not installed: pip install ray")

EVALUATIONS = 40


@pytest.fixture(scope="module")
def cluster_of_two() -> Iterator[Executor]:
    with open_executor("ray", None, jobs=2, cpus=1) as executor:
        yield executor


def search(executor: Executor, folder: Path, listener: object = None) -> tuple[str, set[str], float]:
    """The winner, the candidates and how long the winner takes; everything was found out once."""
    folder.mkdir()
    with Store.open(f"sqlite:///{folder}/store.db") as store:
        session = open_session(
            *(store, executor, folder / "log"),
            evaluations=EVALUATIONS,
            seconds=0.1,
            sampler="tpe",
            seed=3,
            ordered=True,
            listener=listener,
        )
        (row,) = session.run().rows
        assert store.check() == []
        candidates = {record.config.sha for record in store.evaluations(problem())}
        assert len(candidates) == EVALUATIONS
    return row.config.sha, candidates, row.value_us


def test_same_search_and_same_winner_as_local(cluster_of_two: Executor, tmp_path: Path) -> None:
    local = search(LocalExecutor(2), tmp_path / "local")
    assert search(cluster_of_two, tmp_path / "ray") == local


def test_workers_killed_in_the_middle_lose_nothing(cluster_of_two: Executor, tmp_path: Path) -> None:
    class Kills:
        times = 0

        def update(self, progress: Progress) -> None:
            if progress.evaluated >= 10 * (self.times + 1) and self.times < 2:
                self.times += 1
                kill_slots()

    kills = Kills()
    killed = search(cluster_of_two, tmp_path / "killed", kills)
    assert kills.times == 2
    assert killed == search(LocalExecutor(2), tmp_path / "local")
    log = [line for line in done(tmp_path / "killed" / "log") if line.startswith(JUDGE)]
    assert EVALUATIONS <= len(log) <= EVALUATIONS + 4  # again only what was being worked on
