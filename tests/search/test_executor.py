from __future__ import annotations

from collections.abc import Iterator

import pytest

from m3gen.errors import UserError
from m3gen.search.executor import Executor, LocalExecutor, Needs, open_executor
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
