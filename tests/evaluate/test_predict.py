from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from m3gen.codegen.launch import Launch
from m3gen.compiler.facts import KernelFacts, LoopFacts
from m3gen.evaluate.dynamics import DYNAMICS, UNITS, WITHOUT, Dynamics, Sample
from m3gen.evaluate.predict import SWITCHES, TERMS, predict
from m3gen.evaluate.timing import TIMINGS
from m3gen.ops.base import Work
from m3gen.spec import Status
from m3gen.targets import DEVICES, device

MI300X = device("MI300X")
LOOP = LoopFacts(
    label="LBB0_1",
    depth=1,
    instructions=600,
    mix={"vector": 300, "transcendental": 32, "scalar": 60, "matrix": 32, "load": 16, "wait": 20},
    matrix_cycles=512,
    load_bytes_per_lane=256,
    load_widths={"16": 16},
    shared_read_bytes_per_lane=512,
    shared_write_bytes_per_lane=256,
    waits=20,
    barriers=2,
    branches=1,
)
FACTS = KernelFacts(
    kernel="attend",
    arch="gfx942",
    num_warps=4,
    registers=128,
    accumulation_registers=0,
    scalar_registers=60,
    vector_spills=0,
    scalar_spills=0,
    scratch_bytes=0,
    shared_bytes=32768,
    workgroups_per_cu=2,
    waves_per_simd=2,
    occupancy_limit="shared",
    instructions=900,
    mix={**LOOP.mix, "vector": 450, "store": 8},
    matrix_instructions={"v_mfma_f32_16x16x16_bf16": 32},
    matrix_cycles=512,
    load_widths={"16": 18},
    loops=(LOOP,),
    code_bytes=8192,
    compile_seconds=1.0,
    compiler="test",
    code_sha="0" * 64,
)
WORK = Work(
    kernel="attend",
    read_bytes=64 << 20,
    written_bytes=1 << 20,
    streamed_bytes=64 << 20,
    flops=1e9,
    loop_trips=4,
)
# 1,000 clocks and 2,000 an iteration; two workgroups on a compute unit half as long again.
SEEN = Dynamics(
    (
        Sample(2, {1: 5000.0, 2: 7500.0}, {"valu": 800.0, "matrix": 200.0, "lds": 600.0}),
        Sample(4, {1: 9000.0, 2: 13500.0}, {"valu": 1600.0, "matrix": 400.0, "lds": 1200.0}),
    ),
    0.1,
)
SIMULATED = replace(FACTS, extra={DYNAMICS: SEEN.to_dict()})
CLOCKS_PER_US = MI300X.clock_hz / 1e6


def launch(programs: int = 256) -> Launch:
    return Launch("attend", (), (("num_warps", 4),), (programs, 1, 1))


def microseconds(programs: int = 256, facts: KernelFacts = FACTS, work: Work = WORK, on=MI300X) -> float:
    value = predict([launch(programs)], [facts], [work], on).value_us
    assert value is not None
    return value


def with_loop(**changes: object) -> KernelFacts:
    loop = replace(LOOP, **changes)
    return replace(FACTS, loops=(loop,), mix={**FACTS.mix, **loop.mix})


@given(st.integers(1, 5000), st.integers(1, 5000))
def test_more_programs_never_take_less_time(a: int, b: int) -> None:
    few, many = sorted((a, b))
    assert microseconds(few) <= microseconds(many)


def test_a_partial_round_is_charged_as_tail() -> None:
    whole = predict([launch(608)], [FACTS], [WORK], MI300X)
    spill = predict([launch(609)], [FACTS], [WORK], MI300X)
    assert whole.terms["tail"] == 0
    assert spill.terms["tail"] > 0
    assert spill.terms["schedule"] > whole.terms["schedule"]


def test_slower_memory_shows_in_the_memory_term_and_nowhere_else() -> None:
    slow = replace(MI300X, memory_bytes_per_s=MI300X.memory_bytes_per_s / 2)
    fast_terms = predict([launch()], [FACTS], [WORK], MI300X).terms
    slow_terms = predict([launch()], [FACTS], [WORK], slow).terms
    assert slow_terms["memory"] > 1.9 * fast_terms["memory"]
    assert {k for k in fast_terms if fast_terms[k] != slow_terms[k]} == {"memory"}


@pytest.mark.parametrize(
    ("term", "facts"),
    [
        ("issue", with_loop(mix={**LOOP.mix, "vector": 4000})),
        ("matrix", with_loop(matrix_cycles=8192)),
        ("shared", with_loop(shared_read_bytes_per_lane=8192)),
    ],
)
def test_each_unit_limits_when_it_is_what_is_busy(term: str, facts: KernelFacts) -> None:
    facts = replace(facts, matrix_cycles=facts.loops[0].matrix_cycles)
    evaluation = predict([launch(2432)], [facts], [WORK], MI300X)
    assert evaluation.limit == term
    assert evaluation.terms[term] > predict([launch(2432)], [FACTS], [WORK], MI300X).terms[term]


def test_one_program_is_bound_by_latency_and_pipelining_shortens_it() -> None:
    alone = predict([launch(1)], [FACTS], [replace(WORK, load_waits=2, streamed_bytes=1, read_bytes=1)], MI300X)
    piped = predict([launch(1)], [FACTS], [replace(WORK, loads_ahead=1, streamed_bytes=1, read_bytes=1)], MI300X)
    assert alone.limit == "latency"
    assert piped.value_us < alone.value_us


@pytest.mark.parametrize("term", [term for term in TERMS if term != "tail"])
def test_a_term_that_is_left_out_is_nothing_and_the_others_stay(term: str) -> None:
    whole = predict([launch(609)], [FACTS], [WORK], MI300X)
    without = predict([launch(609)], [FACTS], [WORK], MI300X, without=frozenset({term}))
    assert without.terms[term] == 0 < whole.terms[term]
    assert without.value_us <= whole.value_us
    others = set(TERMS) - {term, "tail"}
    assert {name: without.terms[name] for name in others} == {name: whole.terms[name] for name in others}


def test_without_a_tail_programs_spread_evenly() -> None:
    apart = predict([launch(608)], [FACTS], [WORK], MI300X, without=frozenset({"tail"})).terms["schedule"]
    one_more = predict([launch(609)], [FACTS], [WORK], MI300X, without=frozenset({"tail"})).terms["schedule"]
    assert one_more == pytest.approx(apart * 609 / 608, abs=1e-3)


def test_a_term_there_is_not_cannot_be_left_out() -> None:
    with pytest.raises(ValueError, match="no such term: memry; there are memory"):
        predict([launch()], [FACTS], [WORK], MI300X, without=frozenset({"memry"}))


def test_fewer_resident_programs_never_help() -> None:
    times = [microseconds(2432, replace(FACTS, workgroups_per_cu=n)) for n in (1, 2, 4)]
    assert times == sorted(times, reverse=True)


def test_launches_add_up() -> None:
    merge = replace(FACTS, kernel="merge", loops=())
    small = Work("merge", 1e6, 1e5, 0, 0, 1)
    both = predict([launch(), Launch("merge", (), (), (256, 1, 1))], [FACTS, merge], [WORK, small], MI300X)
    assert both.terms["launch"] == 2 * TIMINGS[MI300X.architecture.vendor].launch_us
    assert both.value_us > microseconds()


def test_work_of_another_kernel_is_refused() -> None:
    with pytest.raises(ValueError, match="merge"):
        predict([launch()], [FACTS], [replace(WORK, kernel="merge")], MI300X)


def test_idle_programs_take_no_place() -> None:
    terms = predict([launch(1024)], [FACTS], [replace(WORK, idle=0.75)], MI300X).terms
    assert terms == predict([launch(256)], [FACTS], [WORK], MI300X).terms
    assert predict([launch(1)], [FACTS], [replace(WORK, idle=0.9)], MI300X).terms["schedule"] > 0


def test_a_round_before_which_nothing_streams_is_the_start() -> None:
    """What stands outside of the loop and two loads; it is added to the memory's time, not laid over it."""
    slow = replace(WORK, streamed_bytes=1e9, read_bytes=1e9)
    evaluation = predict([launch()], [FACTS], [slow], MI300X)
    terms = evaluation.terms
    assert terms["start"] > 2 * TIMINGS[MI300X.architecture.vendor].memory_latency_us
    assert evaluation.value_us is not None
    assert evaluation.value_us >= terms["launch"] + terms["start"] + terms["memory"]


@pytest.mark.parametrize("name", ["MI300X", "H200"])
def test_conversions_issue_at_their_own_rate(name: str) -> None:
    gpu = device(name)
    timing, count = TIMINGS[gpu.architecture.vendor], 400
    more = with_loop(mix={**LOOP.mix, "convert": count})
    programs = gpu.compute_units  # one on each: four waves, one on a SIMD
    few, many = (predict([launch(programs)], [one], [WORK], gpu).terms["issue"] for one in (with_loop(), more))
    clocks = (many - few) * gpu.clock_hz / 1e6
    assert clocks == pytest.approx(WORK.loop_trips * count * timing.convert_cycles, rel=1e-3)


# where the machine code was run


@pytest.mark.parametrize(("programs", "clocks"), [(304, 9000), (608, 13500), (609, 13500 + 9000), (1216, 27000)])
def test_a_round_takes_as_long_as_its_simulation(programs: int, clocks: float) -> None:
    """304 compute units, two workgroups each; four iterations."""
    terms = predict([launch(programs)], [SIMULATED], [WORK], MI300X).terms
    assert terms["schedule"] == pytest.approx(clocks / CLOCKS_PER_US, abs=1e-3)


def test_more_iterations_than_were_run_lie_on_the_line() -> None:
    terms = predict([launch(304)], [SIMULATED], [replace(WORK, loop_trips=100)], MI300X).terms
    assert terms["schedule"] == pytest.approx(201000 / CLOCKS_PER_US, abs=1e-3)


@pytest.mark.parametrize(
    ("fixed", "streamed", "start"), [(0, True, 1800), (1000, True, 1800), (2500, True, 2500), (0, False, 700)]
)
def test_nothing_streams_before_the_first_data_are_there(fixed: int, streamed: bool, start: int) -> None:
    """Once a line through two samples left nothing before the loop, and a pick was under the reachable floor."""
    samples = tuple(
        Sample(trips, {1: fixed + 2000 * trips, 2: fixed + 3000 * trips}, {"valu": 100.0}) for trips in (2, 4)
    )
    simulated = replace(SIMULATED, extra={DYNAMICS: Dynamics(samples, 0.1).to_dict()})
    work = WORK if streamed else replace(WORK, streamed_bytes=0)
    terms = predict([launch(304)], [simulated], [work], MI300X).terms
    assert terms["start"] == pytest.approx(start / CLOCKS_PER_US, abs=1e-3)


def test_units_are_as_busy_as_they_were_seen_and_latency_is_the_rest() -> None:
    """Two workgroups of four waves: their vector instructions meet on four SIMDs, their LDS accesses in one LDS."""
    terms = predict([launch(608)], [SIMULATED], [WORK], MI300X).terms
    found = {name: terms[name] * CLOCKS_PER_US for name in ("issue", "matrix", "shared", "latency")}
    assert found == pytest.approx({"issue": 3200, "matrix": 800, "shared": 2400, "latency": 13500 - 3200}, abs=0.5)


def test_without_the_simulation_facts_alone_count() -> None:
    bare = predict([launch(609)], [FACTS], [WORK], MI300X)
    assert predict([launch(609)], [SIMULATED], [WORK], MI300X).value_us != bare.value_us
    assert predict([launch(609)], [SIMULATED], [WORK], MI300X, without=frozenset({"simulation"})) == bare


def test_a_term_is_left_out_of_the_simulation_where_that_was_done() -> None:
    halved = replace(SEEN, samples=tuple(replace(s, clocks={1: s.clocks[1] / 2}) for s in SEEN.samples))
    known = replace(SIMULATED, extra={**SIMULATED.extra, WITHOUT: {"shared": halved.to_dict()}})
    whole, without, bare = (
        predict([launch(1)], [one], [WORK], MI300X, without=terms).terms["schedule"]
        for one, terms in ((known, frozenset()), (known, frozenset({"shared"})), (FACTS, frozenset({"shared"})))
    )
    assert without == pytest.approx(whole / 2, rel=1e-3)
    both = predict([launch(1)], [known], [WORK], MI300X, without=frozenset({"shared", "issue"}))
    assert both == predict([launch(1)], [FACTS], [WORK], MI300X, without=frozenset({"shared", "issue"}))
    assert without != bare


def test_without_residents_a_workgroup_is_alone() -> None:
    terms = predict([launch(304)], [SIMULATED], [WORK], MI300X, without=frozenset({"residents"})).terms
    twice = predict([launch(608)], [SIMULATED], [WORK], MI300X, without=frozenset({"residents"})).terms
    assert twice["schedule"] == pytest.approx(2 * terms["schedule"])


@pytest.mark.parametrize("term", SWITCHES)
def test_a_unit_that_is_left_out_leaves_the_simulation_out_too(term: str) -> None:
    """The others can be left out of what was simulated."""
    without = frozenset({term})
    found, bare = (predict([launch(609)], [one], [WORK], MI300X, without=without) for one in (SIMULATED, FACTS))
    assert (found == bare) == (term in (*UNITS, "latency", "conflicts", "simulation"))


@given(st.sampled_from(sorted(DEVICES)), st.integers(1, 4096), st.floats(1e3, 1e10))
def test_never_under_the_physical_floor(name: str, programs: int, streamed: float) -> None:
    gpu = DEVICES[name]
    evaluation = predict(
        [launch(programs)], [FACTS], [replace(WORK, streamed_bytes=streamed, read_bytes=streamed)], gpu
    )
    floor = streamed / gpu.memory_bytes_per_s * 1e6
    assert evaluation.status is Status.OK
    assert floor <= evaluation.low_us < evaluation.value_us < evaluation.high_us
    assert evaluation.judge == TIMINGS[gpu.architecture.vendor].version
