"""On a cluster of this machine. `.ci/ray` runs these; without Ray they are skipped."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from m3gen.errors import UserError
from m3gen.search.executor import Executor, Needs, open_executor
from m3gen.search.ray_executor import resources_of
from m3gen.spec import Status
from m3gen.testing.executor_suite import ExecutorSuite, drain, opened
from tests.search.rays import kill_slots, poll_until

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
        with opened(executor, PERFORM, M3GEN_SUITE="moves") as pool:
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

    def test_no_node_has_such_a_gpu(self, executor: Executor) -> None:
        with pytest.raises(
            UserError, match=r"no node .* has a GPU of gfx942 .*--resources='\{\"m3gen_gfx942\": 1\}'"
        ):
            executor.pool(PERFORM, Needs("gfx942", gpu=True), deadline_s=1.0, env={})


def test_a_gpu_is_asked_for_by_its_architecture() -> None:
    assert resources_of(Needs("gfx942")) == {"CPU": 1}
    assert resources_of(Needs("gfx942", gpu=True)) == {"CPU": 1, "GPU": 1, "m3gen_gfx942": 1}


@pytest.mark.parametrize("address", ["127.0.0.1", "ray://127.0.0.1:10001", "nonsense:port"])
def test_an_address_that_is_none(address: str) -> None:
    with pytest.raises(UserError, match="expected HOST:PORT"):
        open_executor("ray", address, jobs=1, cpus=1)


def test_a_cluster_that_is_not_there() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    with pytest.raises(
        UserError, match=rf"the Ray cluster at 127.0.0.1:{port} does not answer .*refused.*ray start"
    ):
        open_executor("ray", f"127.0.0.1:{port}", jobs=1, cpus=1)
