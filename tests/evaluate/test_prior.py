from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from m3gen import ops
from m3gen.evaluate.predict import predict
from m3gen.evaluate.prior import least_us, prior_us
from m3gen.evaluate.timing import TIMINGS
from m3gen.ops.base import Work
from m3gen.targets import DEVICES, device
from tests.evaluate.test_predict import FACTS, launch
from tests.problems import ARCHS, sparse_decode

MI300X = device("MI300X")

WORKS = st.builds(
    Work,
    kernel=st.just("attend"),
    read_bytes=st.floats(1e6, 1e9),
    written_bytes=st.floats(0, 1e8),
    streamed_bytes=st.floats(0, 1e6),
    flops=st.just(1e9),
    loop_trips=st.floats(1, 512),
    load_waits=st.integers(1, 2),
    loads_ahead=st.integers(0, 2),
    lookups=st.floats(0, 2),
)


@given(st.lists(WORKS, min_size=1, max_size=3), st.sampled_from(sorted(DEVICES)), st.integers(1, 4096))
def test_machine_code_is_never_predicted_under_its_prior(works: list[Work], name: str, programs: int):
    found = predict([launch(programs)] * len(works), [FACTS] * len(works), works, DEVICES[name]).value_us
    assert found is not None
    assert prior_us(works, DEVICES[name]) <= found * (1 + 1e-9)
    assert 0 < least_us(works, DEVICES[name]) <= prior_us(works, DEVICES[name]) * (1 + 1e-9)


def test_by_hand():
    """Half a megabyte at 5.3 TB/s with 0.76 of it to be had, and sixteen iterations of two loads and two lookups."""
    timing = TIMINGS[MI300X.architecture.vendor]
    work = Work("attend", 524288.0, 0.0, 524288.0, 1.0, loop_trips=16, load_waits=2, lookups=2.0)
    waits = 16 * (2 * timing.lookup_latency_us + 2 * timing.memory_latency_us)
    assert prior_us([work], MI300X) == pytest.approx(timing.launch_us + waits)
    ahead = replace(work, loads_ahead=2, loop_trips=0.01)
    memory = 524288.0 / (MI300X.memory_bytes_per_s * timing.memory_efficiency) * 1e6
    assert prior_us([ahead], MI300X) == pytest.approx(timing.launch_us + memory)
    merge = replace(work, streamed_bytes=0.0)
    cached = 524288.0 / MI300X.last_level_bytes_per_s * 1e6
    assert prior_us([work, merge], MI300X) == pytest.approx(2 * timing.launch_us + waits + cached)
    assert least_us([work, merge], MI300X) == pytest.approx(timing.launch_us + memory)


@pytest.mark.parametrize("arch", ARCHS)
def test_more_splits_of_one_row_wait_less(arch: str):
    problem, one = sparse_decode(arch, rows=1)
    op = ops.get("sparse_decode")
    field = op.field(problem, one)
    whole = op.space(problem, one).canonical({**field, "splits": 1, "first_tile": "loop"})
    assert field["splits"] == 16
    assert prior_us(op.work(problem, field), one) < prior_us(op.work(problem, whole), one)
