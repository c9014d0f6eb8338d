"""What an op is: the protocol that `ops/<name>.py` implements, and the values it speaks in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from m3gen.space import Config, Space
from m3gen.spec import MINIMAX_M3, Problem, Shard
from m3gen.targets import Device

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class Work:
    """What one launch must move and compute, whatever the schedule: the floor of any prediction.

    `read_bytes`, `written_bytes`: unique bytes from and to memory. `flops`: matrix FLOP, padding not counted.
    `streamed_bytes`: the part of `read_bytes` that is read once and cannot stay in a cache (the KV pages).
    `loop_trips`: iterations of the innermost tile loop in one program of the launch. `load_waits`: how often one
    iteration waits for memory (2 when V is asked for only after the scores). `loads_ahead`: iterations whose loads
    are issued before they are due (pipeline stages less one). `lookups`: dependent loads before the data of an
    iteration can be asked for (list entry, then page). `idle`: the share of the programs that find nothing to do.
    """

    kernel: str
    read_bytes: float
    written_bytes: float
    streamed_bytes: float
    flops: float
    loop_trips: float
    load_waits: int = 1
    loads_ahead: int = 0
    lookups: float = 0.0
    idle: float = 0.0


@dataclass(frozen=True, slots=True)
class Case:
    """One set of inputs on which the gate runs a candidate.

    `arguments` are the keyword arguments of the generated launcher, `outputs` the names of those that it
    writes, already poisoned with NaN where their dtype can hold it; `zero_rows` the output rows that must be
    exactly zero. `tolerances` is the name of the grid the case belongs to ("awkward" or "peers").

    Of the outputs, `kept` are those that the launcher writes in part, caches above all: they hold before every
    launch what they hold here, and the reference says what stays. `exact` are those that must be the reference
    in every bit, which is then of the output's dtype.
    """

    name: str
    problem: Problem
    arguments: Mapping[str, Any]
    outputs: tuple[str, ...]
    zero_rows: tuple[int, ...]
    tolerances: str
    seed: int
    kept: tuple[str, ...] = ()
    exact: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Bounds of a comparison with the float64 reference; None leaves a bound out.

    `row_rms`: RMS of the error over RMS of the reference, the worst row. `mean_abs`, `max_abs`: over all.
    `past_rounding`: the largest error past half a unit in the last place of the output's dtype, which rounding
    once costs, over the RMS of the reference's row.
    """

    row_rms: float | None = None
    mean_abs: float | None = None
    max_abs: float | None = None
    past_rounding: float | None = None
    source: str = ""


@dataclass(frozen=True, slots=True)
class Cache:
    """What a KV or index cache holds: dtype by variant, and how its scales are kept (`spec.KV_SCALES`)."""

    dtype: str
    scale: str = "none"


class Op(Protocol):
    """One op. Everything that is known of it, in one file beside its template.

    Only `example`, `cases` and `reference` may import torch, and they import it when called.
    """

    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str:
        """One line, opens the docstring of its modules."""
        ...

    @property
    def template(self) -> str:
        """File under templates/, e.g. "sparse_decode.py.jinja"."""
        ...

    def problem(self, device: Device, shard: Shard, cache: Cache, query_len: int) -> Problem | None:
        """The op on MiniMax-M3's shapes, at the smallest load; None when it has no variant for this cache."""
        ...

    def space(self, problem: Problem, device: Device) -> Space:
        """The tunables of the op on this problem, with their constraints."""
        ...

    def default(self, problem: Problem, device: Device) -> Config:
        """What runs where nothing was tuned: in the space, no scratch, no spill. The field's constants where they
        allow that."""
        ...

    def canonical(self, problem: Problem) -> Problem:
        """The problem with every load the op cannot tell apart folded into one."""
        ...

    def variant(self, problem: Problem) -> Mapping[str, str | int | bool]:
        """What the template needs of the problem: dtypes, scale mode, head dim, page size. Never the load."""
        ...

    def flags(self, problem: Problem, config: Config) -> Mapping[str, Any]:
        """The config as the template's flags, every one of them set."""
        ...

    def work(self, problem: Problem, config: Config) -> tuple[Work, ...]:
        """Bytes and FLOP of each launch, in launch order."""
        ...

    def example(self, problem: Problem, config: Config) -> dict[str, Any]:
        """Keyword arguments of the launcher on torch's meta device: shapes, dtypes and strides of the problem
        as an engine would send it, a cache of over 2 GiB included. Tracing the launcher on them gives the
        exact arguments and grids."""
        ...

    def cases(self, problem: Problem, config: Config, seed: int) -> Iterator[Case]:
        """Awkward inputs for this problem's dtypes and shape (the load aside), small enough to interpret."""
        ...

    def reference(self, case: Case) -> dict[str, torch.Tensor]:
        """The outputs in float64; those of `case.exact` in their own dtype."""
        ...

    def tolerance(self, problem: Problem, grid: str) -> Tolerance:
        """Bounds for one grid of cases."""
        ...


@runtime_checkable
class HasField(Protocol):
    """An op whose default departs from what the field hard-codes."""

    def field(self, problem: Problem, device: Device) -> Config:
        """What the field hard-codes today for this problem, or the nearest that fits."""
        ...


def field_config(op: Op, problem: Problem, device: Device) -> Config:
    """What the field hard-codes for this problem: the baseline of every ratio."""
    return op.field(problem, device) if isinstance(op, HasField) else op.default(problem, device)


def decode_problem(op: str, device: Device, shard: Shard, cache: Cache, query_len: int) -> Problem:
    """Decode attention of one rank in bf16: what `Op.problem` of an attention op answers."""
    return Problem(
        op=op,
        arch=device.arch,
        compute_units=device.compute_units,
        kv_dtype=cache.dtype,
        kv_scale=cache.scale,
        group_size=shard.group_size,
        kv_heads=shard.kv_heads,
        head_dim=MINIMAX_M3.head_dim,
        page_size=MINIMAX_M3.page_size,
        topk=MINIMAX_M3.topk,
        query_len=query_len,
    )
