"""A session on real workers: one candidate aborts the compiler, one hangs it, one is too large for the device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from m3gen.report import history, outcome
from m3gen.search.result import SessionResult
from m3gen.spec import Status
from m3gen.store import Store
from m3gen.testing import faulty_session
from m3gen.testing.faulty_session import DEVICE, FAILURES, OPEN_GATE, PROBLEM, TOO_LARGE
from tests.processes import processes_with
from tests.report.rows import printed


@dataclass(frozen=True)
class Ran:
    """What a session returned, the store it left, and the processes it left running."""

    result: SessionResult
    store: Store
    left: set[int]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    folder = tmp_path_factory.mktemp("faults")
    with Store.open(f"sqlite:///{folder / 'm3gen.db'}") as store:
        session = faulty_session.open_session(store, folder, deadline_s=5.0, gate=OPEN_GATE)
        yield Ran(session.run(), store, processes_with(f"M3GEN_CACHE={folder}"))


def test_it_ends_normally_and_leaves_no_process(ran: Ran) -> None:
    assert ran.result.ended == "exhausted"
    assert ran.left == set()
    assert ran.store.check() == []
    assert [session.state for session in ran.store.sessions()] == ["exhausted"]


def test_there_is_a_winner_and_a_baseline(ran: Ran) -> None:
    (row,) = ran.result.rows
    assert row.ratio is not None
    (winner,) = ran.store.winners()
    assert (winner.problem, winner.config) == (PROBLEM, row.config)


def test_each_fault_costs_its_own_candidate(ran: Ran) -> None:
    assert ran.result.progress.failed == FAILURES
    found = {record.config["tile_n"]: record.evaluation for record in ran.store.evaluations(PROBLEM)}
    assert {tile: one.status for tile, one in found.items()} == {
        16: Status.OK,
        32: Status.TIMEOUT,
        64: Status.OK,
        128: Status.COMPILE_ABORT,
        TOO_LARGE: Status.RESOURCES,
    }
    assert "killed after 5 s; the worker died of SIGKILL" in found[32].reason
    assert "died of SIGABRT: LLVM ERROR: a candidate that the compiler cannot take" in found[128].reason
    assert "131072 bytes per workgroup, gfx942 allows 65536" in found[TOO_LARGE].reason


def test_each_fault_is_shown_under_its_reason(ran: Ran) -> None:
    words = ("compiler crashed", "ran past its deadline", "does not fit the device")
    shown = " ".join(printed(outcome.session(ran.result, DEVICE, (), "store"), 120).split())
    assert f"failed {', '.join(f'{word} 1' for word in sorted(words))}" in shown
    counted = outcome.session_object(ran.result, DEVICE, (), "store")["failures"]
    assert counted == {"compile_abort": 1, "resources": 1, "timeout": 1}
    lines = printed(history.failures(ran.store.failures()), 200)
    for word, reason in zip(words, ("SIGABRT", "killed after 5 s", "131072 bytes"), strict=True):
        assert any(word in line and reason in line for line in lines.splitlines())
