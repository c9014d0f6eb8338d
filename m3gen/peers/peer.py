"""`Peer`: what a file says of somebody's kernels, its expressions still texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from m3gen.peers.arithmetic import Expression, Value

Stub = Mapping[str, str | Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Place:
    """Where the kernels are: the file at `path` or the importable `module`, one of them, below a root folder.

    `stubs` are put into `sys.modules` before: by module name the attributes that it has, each the dotted name of what
    to import for it, "inert", or a table of what calls of an inert one's attributes give; None where the module is a
    package below the root whose own code is not run.
    """

    path: str = ""
    module: str = ""
    stubs: Mapping[str, Stub | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TensorText:
    """A tensor of the launches. `dtype` names one, or a dimension that holds its name."""

    dtype: str
    shape: tuple[Expression, ...]
    strides: tuple[Expression, ...] | None = None
    storage_bytes: Expression | None = None
    offset: Expression = 0


@dataclass(frozen=True, slots=True)
class LaunchText:
    """One launch. `work` holds the fields of `Work` but for its kernel; the launch is left out unless `when`."""

    kernel: str
    grid: tuple[Expression, ...]
    arguments: Mapping[str, Expression]
    options: Mapping[str, Expression]
    work: Mapping[str, Expression]
    when: Expression = True


@dataclass(frozen=True, slots=True)
class SampleText:
    """Small loads for running the machine code once: what changes, in the names of the real load. `fills` says by
    tensor what integers it holds: "arange", "block table", or an expression."""

    loads: tuple[Mapping[str, Expression], ...]
    fills: Mapping[str, Expression] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """`dimensions` are names with their default values, `derived` expressions in these and in those before."""

    file: str
    name: str
    what: str
    source: str
    archs: tuple[str, ...]  # empty: any
    place: Place
    dimensions: Mapping[str, Value]
    derived: Mapping[str, Expression]
    tensors: Mapping[str, TensorText]
    launches: tuple[LaunchText, ...]
    sample: SampleText | None = None
