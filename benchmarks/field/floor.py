"""Two floors of an op under a load: its bytes at the peak rate, and what any kernel has to wait for besides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil, log2

from m3gen import ops
from m3gen.evaluate.predict import OVERLAP_NORM, floor_us
from m3gen.evaluate.timing import TIMINGS, Timing
from m3gen.ops.base import Work
from m3gen.ops.decode_attention import kv_bytes_per_token
from m3gen.spec import Problem, dtype
from m3gen.targets import Device

from .matches import MERGE, Match

Chain = tuple[tuple[str, ...], ...]
_STREAM: Chain = (("data",), ("store",))
_BESIDE = ("argument", "cached")


@dataclass(frozen=True, slots=True)
class Trips:
    """Microseconds of one dependent access, the fastest that the predictor's constants allow for it."""

    argument: float  # a length, a list entry, a slot: nobody has touched it in this launch
    lookup: float  # an address that another load gave, of a small table
    data: float  # a page of a cache, from memory
    cached: float  # what a kernel before just wrote
    store: float  # until the next kernel may see it
    shared: float  # what another program of this launch just wrote

    @classmethod
    def of(cls, device: Device, timing: Timing) -> Trips:
        if (found := timing.latencies) is not None:
            # No wave waits for a store: what that takes is in the cost of a launch.
            clocks = (found.scalar, found.scalar, found.far, found.near, 0.0, found.coherent)
            return cls(*(one / device.clock_hz * 1e6 for one in clocks))
        # The model has every launch wait twice for memory, before its loop and after it, whatever it reads there; a
        # lookup costs something in a loop alone.
        memory = timing.memory_latency_us
        return cls(memory, 0.0, memory, memory, memory, timing.lookup_latency_us)


@dataclass(frozen=True, slots=True)
class Needs:
    """What no implementation does without. `chain`: its dependent accesses, each of those that can be under way
    together. `parts`: programs that can share the streamed bytes without waiting for each other; 0 where any
    number can. `steps`: dependent vector instructions."""

    streamed_bytes: float
    other_bytes: float
    chain: Chain
    parts: int = 0
    steps: int = 0


def physical_us(match: Match) -> float:
    """The streamed bytes at the memory's peak rate; 0 where nothing has to come from memory."""
    return floor_us(_streaming(needs(match).streamed_bytes), match.device)


def reachable_us(match: Match) -> float:
    """One launch, the chain, and the bytes at the rates that the predictor grants: below what it can say of any
    kernel. Bytes and the wait for the first of them overlap as they do there."""
    device, wanted = match.device, needs(match)
    timing = TIMINGS[device.architecture.vendor]
    trips = Trips.of(device, timing)
    cache_rate = device.last_level_bytes_per_s or device.l2_bytes_per_s
    memory = wanted.streamed_bytes / (device.memory_bytes_per_s * timing.memory_efficiency) * 1e6
    memory += wanted.other_bytes / cache_rate * 1e6
    around: float = sum(max(getattr(trips, one) for one in stage) for stage in wanted.chain if "data" not in stage)
    around += wanted.steps * (timing.vector_cycles + timing.dependent_cycles) / device.clock_hz * 1e6
    waits = trips.data if any("data" in stage for stage in wanted.chain) else 0.0
    ways = [waits]
    if wanted.parts:
        # Alone with its bytes, or shared out and put together by the last: a counter, then the others' results.
        rate = device.architecture.l1_bytes_per_clock * device.clock_hz
        alone = wanted.streamed_bytes / wanted.parts / rate * 1e6
        ways = [waits + alone, waits + 2 * trips.shared]
    return timing.launch_us + around + min(_overlapped(memory, way) for way in ways)


def _overlapped(memory: float, wait: float) -> float:
    return float((memory**OVERLAP_NORM + wait**OVERLAP_NORM) ** (1 / OVERLAP_NORM))


def needs(match: Match) -> Needs:
    return _NEEDS.get(match.op, _of_cache_op)(match)


def _sparse_decode(match: Match) -> Needs:
    """The list entry beside the length, then its page, then K and V."""
    p = match.problem
    tokens = min(p.context, p.topk * p.page_size)
    listed = 4 * p.rows * p.kv_heads * p.topk
    return _attention(p, tokens, listed, (("argument",), ("lookup",), *_STREAM))


def _dense_decode(match: Match) -> Needs:
    """The page beside the length, then K and V."""
    p = match.problem
    return _attention(p, p.context, 0, (("argument",), *_STREAM))


def _attention(problem: Problem, tokens: int, listed: int, chain: Chain) -> Needs:
    p = problem
    parts = p.rows // p.query_len * p.kv_heads
    outputs = 2 * p.rows * p.q_heads * p.head_dim * dtype(p.q_dtype).bytes  # and queries
    table = 4 * parts * -(-tokens // p.page_size)
    return Needs(parts * tokens * kv_bytes_per_token(p), outputs + table + listed, chain, parts)


def _index_score(match: Match) -> Needs:
    """The page beside the length, then the keys; a block's score is nobody else's."""
    found = _of_cache_op(match)
    return Needs(found.streamed_bytes, found.other_bytes, (("argument",), *_STREAM))


def _index_topk(match: Match) -> Needs:
    """The scores beside the length. The greatest of n is at the end of log2 n comparisons, whoever makes them."""
    p = match.problem
    lists, blocks = p.rows * p.group_size, -(-p.context // p.page_size)
    return Needs(0, 4 * lists * (blocks + p.topk), (_BESIDE, ("store",)), steps=ceil(log2(max(2, blocks))))


def _index_select(match: Match) -> Needs:
    """In one launch: the scores, a counter, the others' scores, the comparisons."""
    p = match.problem
    blocks = -(-p.context // p.page_size)
    scored = ops.get("index_score")
    work = scored.work(p, scored.default(p, match.device))[0]
    other = work.read_bytes - work.streamed_bytes + 4 * p.rows * p.group_size * p.topk
    steps = ceil(log2(max(2, blocks)))
    chain = (("argument",), ("data",), ("shared",), ("shared",), ("store",))
    return Needs(work.streamed_bytes, other, chain, steps=steps)


def _merge(match: Match) -> Needs:
    """The partial outputs, which the launch before wrote."""
    work = ops.get(match.problem.op).work(match.problem, match.config)[1]
    return Needs(0, work.read_bytes + work.written_bytes, (("cached",), ("store",)))


def _of_cache_op(match: Match) -> Needs:
    """A single launch whose work does not depend on the config: its own bytes."""
    work = ops.get(match.problem.op).work(match.problem, match.config)[0]
    chain: Chain = {
        "kv_gather": (("lookup",), *_STREAM),  # the page beside the start
        "kv_copy": (("lookup",), *_STREAM),  # the pair of pages
        # A wave that reads a line or less is given a cache's latency by the model, for it takes that for a lookup; a
        # head of 8-bit values is one line.
        "kv_convert": (("lookup",), ("cached",) if _is_one_line(match.problem) else ("data",), ("store",)),
        "kv_zero": (("argument",), ("store",)),  # the page
        "kv_insert": (_BESIDE, ("store",)),  # the slot beside the row
        "qk_norm_rope_insert": (_BESIDE, ("lookup",), ("store",)),  # the position beside the row, its angle
    }.get(match.op, (("argument",), ("store",)))
    return Needs(work.streamed_bytes, work.read_bytes - work.streamed_bytes + work.written_bytes, chain)


def _is_one_line(problem: Problem) -> bool:
    return problem.head_dim * dtype(problem.kv_dtype).bytes <= 128


def _streaming(count: float) -> Work:
    return Work("", read_bytes=count, written_bytes=0, streamed_bytes=count, flops=0, loop_trips=1)


_NEEDS: Mapping[str, Callable[[Match], Needs]] = {
    "sparse_decode": _sparse_decode,
    "dense_decode": _dense_decode,
    "index_score": _index_score,
    "index_topk": _index_topk,
    "index_select": _index_select,
    MERGE: _merge,
}
