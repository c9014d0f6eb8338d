"""What is kept of a run is all that the simulation needs."""

from __future__ import annotations

import lzma

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from m3gen.evaluate.trace import Traces
from m3gen.evaluate.waves import Workgroup, simulate
from tests.evaluate.programs import LATENCIES, trace
from tests.evaluate.test_waves import COLUMN, FIRST, MFMA, PROGRAMS, READ

LOOP = COLUMN + "s_mov_b32 s5, 3\nagain:\n" + MFMA + READ + "s_sub_u32 s5, s5, 1\ns_cmp_lg_u32 s5, 0\n"
LOOP += "s_cbranch_scc1 again\ns_waitcnt lgkmcnt(0)\n"
PARTED = FIRST + "s_branch end\nothers:\n" + READ + "end:\n"


def kept(*texts: str, waves: int = 1) -> tuple[Traces, Traces]:
    """Traces, and what is left of them after a way through bytes."""
    found = Traces(tuple(trace(text, waves, trips=number) for number, text in enumerate(texts)), 0.25)
    return found, Traces.from_bytes(found.to_bytes())


@pytest.mark.parametrize("text", [LOOP, PARTED, "s_branch over\nv_mov_b32 v9, v0\nover:\n"])
def test_traces_come_back_as_they_were(text: str) -> None:
    found, back = kept(text, LOOP, waves=3)
    assert back == found


def test_a_loop_is_kept_once_with_its_runs() -> None:
    one = trace(LOOP)
    lines = LOOP.count("\n") - LOOP.count(":\n")
    assert len(one.code) == lines + 1  # and the end of the program
    assert [count for _, count in one.waves[0].runs] == [7, 5, 7]
    assert [position for position, *_ in one.waves[0].memory] == [3, 8, 13]


def test_what_was_not_executed_is_not_kept() -> None:
    assert "v_mov_b32 v9, v0" not in trace("s_branch over\nv_mov_b32 v9, v0\nover:\n").code


@settings(max_examples=30, deadline=None)
@given(PROGRAMS, st.integers(1, 3), st.integers(1, 3))
def test_the_simulation_of_what_was_kept_is_the_same(text: str, waves: int, copies: int) -> None:
    found, back = kept(text, waves=waves)
    first, second = (simulate(Workgroup.of(one.samples[0]), copies, LATENCIES) for one in (found, back))
    assert first == second


@pytest.mark.parametrize(
    "data", [b"", b"{}", lzma.compress(b"[]"), lzma.compress(b'{"format": 0}'), lzma.compress(b"{")]
)
def test_anything_else_is_no_traces(data: bytes) -> None:
    with pytest.raises(ValueError, match="no traces"):
        Traces.from_bytes(data)
