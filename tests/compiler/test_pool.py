from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from m3gen.compiler.pool import Done, WorkerPool
from m3gen.compiler.wire import MAX_FRAME
from m3gen.errors import UserError
from m3gen.spec import Status

FAULTS = "m3gen.testing.faults:perform"
PATIENCE = 60.0  # a busy machine starts processes slowly


def drain(pool: WorkerPool, patience: float = PATIENCE) -> list[Done]:
    until = time.monotonic() + patience
    done: list[Done] = []
    while pool.pending and time.monotonic() < until:
        done += pool.poll(1.0)
    assert not pool.pending, "the pool did not answer in time"
    return done


def one(pool: WorkerPool, deed: tuple[str, Any]) -> Done:
    ticket = pool.submit(deed)
    (done,) = drain(pool)
    assert done.ticket == ticket
    return done


def gone(pid: int) -> bool:
    """No such process, or a zombie that only its new parent has to collect."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] in "ZX"
    except FileNotFoundError:
        return True


def eventually(holds: Callable[[], bool], patience: float = 20.0) -> bool:
    until = time.monotonic() + patience
    while not holds():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def test_every_payload_is_answered_once_by_few_children() -> None:
    with WorkerPool("m3gen.testing.faults:echo_pid", jobs=2) as pool:
        tickets = [pool.submit({"payload": i}) for i in range(60)]
        assert pool.pending == 60
        done = drain(pool)
    assert sorted(d.ticket for d in done) == tickets
    assert {d.ticket: d.value[0] for d in done} == {t: {"payload": t} for t in tickets}
    assert all(d.status is Status.OK and d.reason == "" and d.seconds >= 0 for d in done)
    pids = {d.value[1] for d in done}
    assert 1 <= len(pids) <= 2
    assert os.getpid() not in pids
    assert all(gone(pid) for pid in pids)


def test_a_large_payload_and_answer_pass_through_the_pipes() -> None:
    with WorkerPool("m3gen.testing.faults:echo", jobs=1) as pool:
        payload = os.urandom(3 << 20)
        pool.submit(payload)
        (done,) = drain(pool)
    assert done.value == payload


def test_a_payload_over_the_bound_is_refused_at_once() -> None:
    with WorkerPool(FAULTS) as pool:
        with pytest.raises(ValueError, match="over"):
            pool.submit(bytearray(MAX_FRAME + 1))
        assert pool.pending == 0


def test_faults_cost_their_own_payload_and_nothing_else() -> None:
    """One slot meets them all; each is told apart, and the next payload does not notice."""
    expected = [
        (
            ("abort", "cannot select: t1"),
            Status.COMPILE_ABORT,
            "died of SIGABRT: LLVM ERROR: cannot select: t1",
        ),
        (("raise", "second line"), Status.RUNTIME, "ValueError: first line second line"),
        (("suicide", None), Status.COMPILE_ABORT, "died of SIGKILL"),
        (("exit", 7), Status.RUNTIME, "SystemExit: 7"),
        (("unpicklable", None), Status.RUNTIME, "pickle"),
        (("flood", 100_000), Status.OK, ""),
    ]
    with WorkerPool(FAULTS, jobs=1) as pool:
        for deed, status, reason in expected:
            done = one(pool, deed)
            assert (done.status, "\n" in done.reason) == (status, False)
            assert reason in done.reason
            assert one(pool, ("echo", "still here")).value == "still here"


def test_what_the_user_has_to_mend_is_raised_after_what_came_before() -> None:
    with WorkerPool(FAULTS, jobs=1) as pool:
        first = pool.submit(("echo", 1))
        pool.submit(("refuse", "the disk is full:\n  free some space"))
        pool.submit(("echo", 2))
        assert [done.ticket for done in pool.poll(PATIENCE)] == [first]
        for _ in range(2):
            with pytest.raises(UserError, match=r"^the disk is full: free some space$"):
                pool.poll(PATIENCE)


def test_a_hang_that_ignores_sigterm_is_killed_with_its_children(tmp_path: Path) -> None:
    path = tmp_path / "pid"
    with WorkerPool(FAULTS, jobs=1, deadline_s=2.0) as pool:
        done = one(pool, ("breed", str(path)))
        assert done.status is Status.TIMEOUT
        assert done.reason.startswith("killed after 2 s")
        assert done.seconds >= 2.0
        assert eventually(lambda: gone(int(path.read_text())))
        assert one(pool, ("echo", 1)).value == 1


def test_a_hang_does_not_hold_up_the_other_worker() -> None:
    with WorkerPool(FAULTS, jobs=2, deadline_s=3.0) as pool:
        hanging = pool.submit(("hang", None))
        for i in range(20):
            pool.submit(("echo", i))
        done = drain(pool)
    assert done[-1].ticket == hanging
    assert [d.status for d in done] == [Status.OK] * 20 + [Status.TIMEOUT]


def test_a_worker_that_dies_idle_is_no_payloads_fault() -> None:
    with WorkerPool("m3gen.testing.faults:echo_pid", jobs=1) as pool:
        pool.submit(0)
        (first,) = drain(pool)
        os.kill(first.value[1], signal.SIGKILL)
        assert eventually(lambda: gone(first.value[1]))
        pool.submit(1)
        (second,) = drain(pool)
    assert second.status is Status.OK
    assert second.value[1] != first.value[1]


def test_children_are_replaced_after_their_share() -> None:
    with WorkerPool("m3gen.testing.faults:echo_pid", jobs=1, payloads_per_child=2) as pool:
        for i in range(5):
            pool.submit(i)
        done = drain(pool)
    assert [d.value[0] for d in done] == list(range(5))
    assert len({d.value[1] for d in done}) == 3


def test_a_handler_that_cannot_be_imported_is_named() -> None:
    with WorkerPool("m3gen.testing.faults:missing", jobs=1) as pool:
        pool.submit(0)
        (done,) = drain(pool)
    assert done.status is Status.RUNTIME
    assert "m3gen.testing.faults:missing" in done.reason


def test_environment_reaches_the_children_and_the_parent_keeps_its_own() -> None:
    with WorkerPool("os:getenv", jobs=1, env={"M3GEN_CACHE": "/some/where"}) as pool:
        pool.submit("M3GEN_CACHE")
        (done,) = drain(pool)
    assert done.value == "/some/where"
    assert os.environ.get("M3GEN_CACHE") != "/some/where"


def test_poll_waits_no_longer_than_it_is_told() -> None:
    with WorkerPool(FAULTS, jobs=1) as pool:
        assert pool.poll(60.0) == []  # nothing pending: at once
        pool.submit(("hang", None))
        assert pool.poll(0.05) == []
        assert pool.pending == 1
        assert pool.idle == 0


def test_closing_kills_what_runs_and_is_idempotent() -> None:
    pool = WorkerPool("m3gen.testing.faults:echo_pid", jobs=1)
    pool.submit(0)
    (done,) = drain(pool)
    pool.close()
    pool.close()
    assert gone(done.value[1])
    with pytest.raises(RuntimeError, match="closed"):
        pool.submit(1)


def test_descriptors_are_given_back() -> None:
    before = len(os.listdir("/proc/self/fd"))
    with WorkerPool(FAULTS, jobs=2) as pool:
        for _ in range(2):
            pool.submit(("suicide", None))
        drain(pool)
    assert len(os.listdir("/proc/self/fd")) == before


PARENT = """
import os, sys, time
from m3gen.compiler.pool import WorkerPool
pool = WorkerPool("m3gen.testing.faults:perform", jobs=2)
pool.submit(("echo", 0)); pool.submit(("hang", sys.argv[1]))
while pool.pending > 1 or not os.path.exists(sys.argv[1]): pool.poll(0.1)
print(*[slot.worker.pid for slot in pool._slots], flush=True)
time.sleep(600)
"""


def test_children_die_with_a_parent_killed_by_sigkill(tmp_path: Path) -> None:
    """The idle one, and the one that hangs with its signals ignored and the GIL held."""
    command = [sys.executable, "-c", PARENT, str(tmp_path / "hangs")]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert parent.stdout is not None
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        assert len(pids) == 2
        assert not any(gone(pid) for pid in pids)
    finally:
        parent.kill()
        parent.wait()
    assert eventually(lambda: all(gone(pid) for pid in pids))


def test_ctrl_c_does_not_reach_the_children() -> None:
    with WorkerPool("m3gen.testing.faults:echo_pid", jobs=1) as pool:
        pool.submit(0)
        (done,) = drain(pool)
        assert os.getsid(done.value[1]) == done.value[1] != os.getsid(0)
