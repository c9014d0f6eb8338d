from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

from m3gen.errors import UserError
from m3gen.search.executor import Executor, LocalExecutor, Needs, open_executor
from m3gen.search.ray_executor import resources_of
from m3gen.testing.executor_suite import ExecutorSuite


class TestLocal(ExecutorSuite):
    @pytest.fixture
    def executor(self) -> Iterator[Executor]:
        with LocalExecutor(2) as executor:
            yield executor


def test_jobs_win_over_the_number_of_cpus() -> None:
    assert open_executor("local", None, jobs=3, cpus=2).slots == 3
    assert open_executor("local", None, jobs=None, cpus=2).slots == 2


def test_an_executor_there_is_not() -> None:
    with pytest.raises(UserError, match=r"--executor 'rey': expected local or ray"):
        open_executor("rey", None, jobs=1, cpus=1)


def test_an_address_for_what_takes_none() -> None:
    with pytest.raises(UserError, match=r"10\.0\.0\.1:6379 names a Ray cluster: give --executor ray"):
        open_executor("local", "10.0.0.1:6379", jobs=1, cpus=1)


def test_this_machine_gives_out_no_gpu() -> None:
    with pytest.raises(UserError, match="no GPU of gfx950"):
        LocalExecutor(1).pool("m3gen.testing.faults:echo", Needs("gfx950", gpu=True), deadline_s=1.0, env={})


def test_ray_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UserError, match=r"^--executor ray needs the Python package ray, .*: pip install ray$"):
        open_executor("ray", None, jobs=2, cpus=2)


def test_a_gpu_is_asked_for_by_its_architecture() -> None:
    assert resources_of(Needs("gfx942")) == {"CPU": 1}
    assert resources_of(Needs("gfx942", gpu=True)) == {"CPU": 1, "GPU": 1, "m3gen_gfx942": 1}


@pytest.mark.parametrize("address", ["127.0.0.1", "ray://127.0.0.1:10001", "nonsense:port"])
def test_an_address_that_is_none(address: str, any_ray: None) -> None:
    with pytest.raises(UserError, match="expected HOST:PORT"):
        open_executor("ray", address, jobs=1, cpus=1)


def test_a_cluster_that_is_not_there(any_ray: None) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(
            UserError, match=rf"cluster at 127\.0\.0\.1:{port} does not answer .*refused.*ray start"
        ):
            open_executor("ray", f"127.0.0.1:{port}", jobs=1, cpus=1)


@pytest.fixture
def any_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is refused before Ray is asked is refused alike without it."""
    monkeypatch.setitem(sys.modules, "ray", ModuleType("ray"))
