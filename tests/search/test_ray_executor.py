"""On a cluster of this machine. `.ci/ray` runs these; without Ray they are skipped."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import pytest

from m3gen.errors import UserError
from m3gen.search import ray_pool
from m3gen.search.executor import Executor, Needs, open_executor
from m3gen.spec import Status
from m3gen.testing.executor_suite import MARK, ExecutorSuite, drain, eventually, opened, poll_until, processes_with
from tests.search.rays import kill_slots

pytest.importorskip("ray", reason="Ray is not installed: pip install ray")

PERFORM = "m3gen.testing.faults:perform"


@pytest.fixture(scope="module")
def cluster_of_two() -> Iterator[Executor]:
    with open_executor("ray", None, jobs=2, cpus=1) as executor:
        yield executor


class TestRay(ExecutorSuite):
    @pytest.fixture
    def executor(self, cluster_of_two: Executor) -> Executor:
        return cluster_of_two

    def test_a_payload_whose_slot_is_killed_goes_to_another(
        self, executor: Executor, tmp_path: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        with opened(executor, PERFORM) as pool:
            pool.submit(("once", str(tmp_path / "began")))
            poll_until(pool, (tmp_path / "began").exists)
            kill_slots()
            [done] = drain(pool, 1)
        assert (done.status, done.value) == (Status.OK, "the second time")
        assert capfd.readouterr().out == ""  # that is where --json writes

    def test_a_payload_that_kills_its_slot_twice_is_charged(self, executor: Executor) -> None:
        with opened(executor, PERFORM) as pool:
            murder = pool.submit(("parricide", None))
            rest = [pool.submit(("echo", number)) for number in range(4)]
            done = {one.ticket: one for one in drain(pool, 5)}
        assert done[murder].status is Status.COMPILE_ABORT
        assert "lost its worker" in done[murder].reason
        assert "\n" not in done[murder].reason
        assert [done[ticket].value for ticket in rest] == list(range(4))

    def test_a_payload_that_does_not_travel(self, executor: Executor) -> None:
        with opened(executor, PERFORM) as pool:
            with pytest.raises((TypeError, AttributeError)):
                pool.submit(("echo", socket.socket()))
            pool.submit(("echo", 1))
            [done] = drain(pool, 1)
            assert done.value == 1

    def test_a_cluster_without_room_is_not_waited_for_for_ever(
        self, executor: Executor, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        with opened(executor, PERFORM) as full, opened(executor, PERFORM) as waits:
            for name in ("one", "two"):
                full.submit(("hang", str(tmp_path / name)))
            poll_until(full, lambda: (tmp_path / "one").exists() and (tmp_path / "two").exists())
            monkeypatch.setattr(ray_pool, "_PLACE_S", 2.0)
            waits.submit(("echo", 1))
            with pytest.raises(UserError, match=r"no room for a worker for 2 s: add a node or free one"):
                drain(waits, 1)

    def test_no_node_has_such_a_gpu(self, executor: Executor) -> None:
        with pytest.raises(
            UserError, match=r"no node .* has a GPU of gfx942 .*--resources='\{\"m3gen_gfx942\": 1\}'"
        ):
            executor.pool(PERFORM, Needs("gfx942", gpu=True), deadline_s=1.0, env={})


def test_a_node_with_another_compiler_is_refused(
    cluster_of_two: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its answers would be stored as those of the driver's compiler."""
    monkeypatch.setattr(ray_pool, "identity", lambda: "m3gen 0.1.0, triton-9.9.9, Python 3.11")
    with opened(cluster_of_two, PERFORM) as pool:
        pool.submit(("echo", 1))
        with pytest.raises(
            UserError, match=r"^the node .* has m3gen .* and here is .*triton-9\.9\.9.*: install the same"
        ):
            drain(pool, 1)


DRIVER = """
import os, signal, sys
from m3gen.search.executor import Needs, open_executor
executor = open_executor("ray", None, jobs=1, cpus=1)
pool = executor.pool("m3gen.testing.faults:perform", Needs("gfx942"), deadline_s=60.0, env={})
pool.submit(("hang", sys.argv[1]))
while not os.path.exists(sys.argv[1]):
    pool.poll(0.1)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_driver_leaves_no_workers(tmp_path: Path) -> None:
    """Two of Ray's own processes go a minute later."""
    mark = f"m3gen_{uuid4().hex}"
    ran = subprocess.run([sys.executable, "-c", DRIVER, str(tmp_path / "hangs")], env={**os.environ, MARK: mark})
    assert ran.returncode == -signal.SIGKILL
    assert eventually(lambda: not {pid for pid in processes_with(f"{MARK}={mark}") if works(pid)}, 60.0)


def works(pid: int) -> bool:
    """Whether a process is a slot, or the child of one."""
    with suppress(OSError):  # gone meanwhile
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
        return command.startswith(b"ray::Slot") or b"m3gen.compiler.child" in command
    return False
