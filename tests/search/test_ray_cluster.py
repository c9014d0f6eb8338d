"""On a cluster of several nodes, which may be lost. `.ci/ray` runs these; without Ray they are skipped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from m3gen.errors import UserError
from m3gen.search.executor import Needs
from m3gen.search.ray_executor import RayExecutor
from m3gen.testing.executor_suite import drain, opened, poll_until
from tests.search.rays import kill_slots

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install ray")

PERFORM = "m3gen.testing.faults:perform"


@pytest.fixture
def cluster() -> Iterator[Any]:
    """A head that works at nothing, and two nodes; one says that it has a GPU of gfx942."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    cluster.add_node(num_cpus=1)
    cluster.add_node(num_cpus=1, num_gpus=1, resources={"m3gen_gfx942": 1})
    yield cluster
    ray.shutdown()
    cluster.shutdown()


def test_measures_where_the_gpu_is_and_survives_the_loss_of_a_node(cluster: Any, tmp_path: Path) -> None:
    with RayExecutor.open(cluster.address, jobs=None, cpus=9) as executor:
        assert executor.slots == 2
        measuring = executor.pool(PERFORM, Needs("gfx942", gpu=True), deadline_s=60.0, env={})
        measuring.submit(("getenv", "CUDA_VISIBLE_DEVICES"))
        [done] = drain(measuring, 1)
        measuring.close()
        assert done.value == "0"
        with pytest.raises(UserError, match=r"no node .* a GPU of gfx950 .*nodes say m3gen_gfx942"):
            executor.pool(PERFORM, Needs("gfx950", gpu=True), deadline_s=60.0, env={})
        with opened(executor, PERFORM) as pool:
            for name in ("one", "two"):
                pool.submit(("once", str(tmp_path / name)))
            poll_until(pool, lambda: (tmp_path / "one").exists() and (tmp_path / "two").exists())
            cluster.remove_node(next(iter(cluster.worker_nodes)), allow_graceful=False)
            kill_slots()
            answers = drain(pool, 2)
        assert [one.value for one in answers] == ["the second time"] * 2
