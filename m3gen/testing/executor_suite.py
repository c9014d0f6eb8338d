"""`ExecutorSuite`: what every executor must keep, inherited by the tests of each.

class TestMine(ExecutorSuite):
    @pytest.fixture(scope="class")
    def executor(self) -> Iterator[Executor]: ...  # of two slots
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from m3gen.errors import UserError
from m3gen.search.executor import Done, Executor, Needs, Pool
from m3gen.spec import Status

PATIENCE_S = 120.0  # a busy machine starts processes slowly
NEEDS = Needs("gfx942")
MARK = "M3GEN_SUITE"  # in the environment of every worker, so that those of one pool can be found


class ExecutorSuite:
    """Inherit it, and give it the fixture `executor`."""

    def test_has_the_slots_it_was_given(self, executor: Executor) -> None:
        assert executor.slots == 2

    def test_every_payload_is_answered_once_by_two_workers(self, executor: Executor) -> None:
        with opened(executor, "m3gen.testing.faults:echo_pid") as pool:
            tickets = [pool.submit({"payload": number}) for number in range(40)]
            assert len(set(tickets)) == 40
            done = drain(pool, 40)
        assert sorted(one.ticket for one in done) == sorted(tickets)
        assert {one.ticket: one.value[0] for one in done} == {t: {"payload": n} for n, t in enumerate(tickets)}
        assert all((one.status, one.reason) == (Status.OK, "") and one.seconds >= 0 for one in done)
        pids = {one.value[1] for one in done}
        assert 1 <= len(pids) <= 2
        assert os.getpid() not in pids

    def test_a_dying_worker_costs_only_its_payload(self, executor: Executor) -> None:
        with opened(executor, "m3gen.testing.faults:perform") as pool:
            dies = pool.submit(("abort", "cannot select: t1"))
            killed = pool.submit(("suicide", None))
            rest = [pool.submit(("echo", number)) for number in range(8)]
            done = {one.ticket: one for one in drain(pool, 10)}
        assert (done[dies].status, done[killed].status) == (Status.COMPILE_ABORT, Status.COMPILE_ABORT)
        assert "LLVM ERROR: cannot select: t1" in done[dies].reason
        assert "SIGKILL" in done[killed].reason
        assert [done[ticket].value for ticket in rest] == list(range(8))

    def test_what_a_handler_raises_is_its_answer(self, executor: Executor) -> None:
        with opened(executor, "m3gen.testing.faults:perform") as pool:
            pool.submit(("raise", "second line"))
            [done] = drain(pool, 1)
        assert (done.status, done.reason) == (Status.RUNTIME, "ValueError: first line second line")

    def test_a_hang_is_killed_at_its_deadline_with_all_it_started(
        self, executor: Executor, tmp_path: Path
    ) -> None:
        with opened(executor, "m3gen.testing.faults:perform", deadline_s=2.0) as pool:
            hangs = pool.submit(("breed", str(tmp_path / "pid")))
            pool.submit(("echo", 1))
            done = {one.ticket: one for one in drain(pool, 2)}
            assert done[hangs].status is Status.TIMEOUT
            assert done[hangs].reason.startswith("killed after 2 s")
            assert eventually(lambda: gone(int((tmp_path / "pid").read_text())))
            pool.submit(("echo", 2))
            [again] = drain(pool, 1)
            assert again.value == 2

    def test_a_handler_that_is_not_there_is_named(self, executor: Executor) -> None:
        with opened(executor, "m3gen.testing.faults:missing") as pool:
            pool.submit(0)
            [done] = drain(pool, 1)
        assert done.status is Status.RUNTIME
        assert "m3gen.testing.faults:missing" in done.reason

    def test_what_the_user_has_to_mend_is_raised(self, executor: Executor) -> None:
        with opened(executor, "m3gen.testing.faults:perform") as pool:
            pool.submit(("refuse", "the disk is full:\n  free some space"))
            with pytest.raises(UserError, match=r"^the disk is full: free some space$"):
                drain(pool, 1)

    def test_the_environment_reaches_the_workers(self, executor: Executor) -> None:
        with opened(executor, "os:getenv", env={"M3GEN_CACHE": "/some/where"}) as pool:
            pool.submit("M3GEN_CACHE")
            [done] = drain(pool, 1)
        assert done.value == "/some/where"

    def test_poll_waits_no_longer_than_it_is_told(self, executor: Executor) -> None:
        with opened(executor, "m3gen.testing.faults:perform") as pool:
            assert pool.poll(60.0) == []  # nothing pending: at once
            pool.submit(("hang", None))
            assert pool.poll(0.05) == []

    def test_closing_ends_what_runs(self, executor: Executor, tmp_path: Path) -> None:
        mark = uuid4().hex
        with opened(executor, "m3gen.testing.faults:perform", env={MARK: mark}) as pool:
            pool.submit(("echo", 0))
            pool.submit(("hang", str(tmp_path / "hangs")))
            drain(pool, 1)
            poll_until(pool, (tmp_path / "hangs").exists)
            assert processes_with(f"{MARK}={mark}")
            pool.close()
            pool.close()
            assert eventually(lambda: not processes_with(f"{MARK}={mark}"))
            with pytest.raises(RuntimeError, match="closed"):
                pool.submit(0)

    def test_two_pools_one_after_the_other(self, executor: Executor) -> None:
        for handler, value in (("m3gen.testing.faults:echo", 1), ("builtins:str", "1")):
            with opened(executor, handler) as pool:
                pool.submit(1)
                [done] = drain(pool, 1)
            assert done.value == value


@contextmanager
def opened(
    executor: Executor, handler: str, *, deadline_s: float = 60.0, env: Mapping[str, str] | None = None
) -> Iterator[Pool]:
    """A pool of the executor that is closed at the end."""
    pool = executor.pool(handler, NEEDS, deadline_s=deadline_s, env=env or {})
    try:
        yield pool
    finally:
        pool.close()


def drain(pool: Pool, count: int) -> Sequence[Done]:
    """`count` answers; fails when they do not come in time, or more do."""
    until = time.monotonic() + PATIENCE_S
    done: list[Done] = []
    while len(done) < count and time.monotonic() < until:
        done += pool.poll(1.0)
    assert len(done) == count, f"{len(done)} answers of {count} in time"
    return done


def poll_until(pool: Pool, holds: Callable[[], bool]) -> None:
    """Lets the pool work until it holds; nothing may be answered by then."""

    def polled() -> bool:
        assert pool.poll(0.05) == []
        return holds()

    assert eventually(polled, PATIENCE_S)


def eventually(holds: Callable[[], Any], patience_s: float = 20.0) -> bool:
    """Whether it holds before patience ends."""
    until = time.monotonic() + patience_s
    while not (found := holds()) and time.monotonic() < until:
        time.sleep(0.02)
    return bool(found)


def gone(pid: int) -> bool:
    """No such process, or a zombie that only its new parent has to collect."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] in "ZX"
    except FileNotFoundError:
        return True


def processes_with(setting: str) -> set[int]:
    """Ids of the running processes, this one aside, in whose environment `setting` stands ("NAME=value")."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # gone meanwhile, or another user's
            if setting.encode() in (process / "environ").read_bytes().split(b"\0"):
                found.add(int(process.name))
    return {pid for pid in found - {os.getpid()} if not gone(pid)}
