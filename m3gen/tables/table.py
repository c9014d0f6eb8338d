"""`Table`: the winners of one op on one architecture, as they ship."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum

from m3gen.spec import Problem

FORMAT = 1
"""Version of the format. It rises when an old reader would misread a new table, not when it refuses one."""

LOAD_FIELDS = ("rows", "context")
KEY_FIELDS = tuple(f.name for f in fields(Problem) if f.name not in ("op", "arch"))
EXACT_FIELDS = tuple(name for name in KEY_FIELDS if name not in LOAD_FIELDS)

Value = int | bool | str
Values = Mapping[str, Value]


class PointStatus(StrEnum):
    """What a time rests on."""

    MEASURED = "measured"
    PREDICTED = "predicted"


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchCode:
    """What a compiler made of one launch: enough to tell that another makes something else of it.

    `vector_spills`  registers spilled to memory (NVIDIA: instructions that load and store them)
    `scalar_spills`  scalar registers kept in lanes of vector registers (AMD)
    `scratch_bytes`  per lane
    `shared_bytes`   per workgroup
    `code_sha`       SHA-256 of the machine code without line information
    """

    kernel: str
    registers: int
    vector_spills: int
    scalar_spills: int
    scratch_bytes: int
    shared_bytes: int
    workgroups_per_cu: int
    code_sha: str

    @property
    def id(self) -> str:
        """The first 12 hex digits of the SHA-256 of its canonical JSON."""
        return _sha(asdict(self))[:12]


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """The winner of one problem. Times are microseconds for the whole op.

    `problem`      what it was tuned for; its key in the file is every field but op and arch
    `config`       id of its config in `Table.configs`
    `us`           time, between `low_us` and `high_us`: a prediction's interval, a measurement's quartiles
    `baseline_us`  time of the field's config, judged alike; None when it does not run
    `judge`        version of the performance model or measuring protocol
    `gate`         what ran the kernel when its output was checked: "interpreter", "machine-code" or "gpu"
    `limit`        what bounds the time, as the judge names it
    `registers`    of the launch that takes the most, per lane
    `compiler`     fingerprint of the compiler that the time holds for; "" when unknown
    `source_sha`   SHA-256 of the kernel's text that the gate ran, without provenance lines
    `evidence`     SHA-256 of the evaluation and the keys of its facts
    `open_ended`   load fields of which this point also serves anything larger
    `launches`     ids in `Table.code` of its launches, in order; empty when they were not kept
    """

    problem: Problem
    config: str
    us: float
    low_us: float
    high_us: float
    baseline_us: float | None
    status: PointStatus
    judge: str
    gate: str
    limit: str
    registers: int
    compiler: str
    source_sha: str
    evidence: str
    open_ended: tuple[str, ...] = ()
    launches: tuple[str, ...] = ()

    @property
    def ratio(self) -> float | None:
        """Baseline over winner."""
        return None if self.baseline_us is None else self.baseline_us / self.us


@dataclass(frozen=True, slots=True, kw_only=True)
class Fallback:
    """The config that answers where no point does, for problems that have these values in these fields."""

    key: Values = field(hash=False)
    config: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where a table comes from. `date` (YYYY-MM-DD, UTC) is that of its newest evidence; `templates` maps
    each template behind the newest export to the SHA-256 of its text."""

    m3gen: str
    compilers: tuple[str, ...]
    judges: tuple[str, ...]
    templates: Mapping[str, str] = field(hash=False)
    date: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """`variant_fields` are the problem's fields that a text depends on, beside the config; a kernel
    is one (variant, config). `points` are in the order of their problems. `code`: the launches of points by id."""

    op: str
    arch: str
    variant_fields: tuple[str, ...]
    configs: Mapping[str, Values] = field(hash=False)
    points: tuple[Point, ...]
    fallback: tuple[Fallback, ...]
    provenance: Provenance
    code: Mapping[str, LaunchCode] = field(default_factory=dict, hash=False)

    @property
    def buckets(self) -> dict[str, tuple[int, ...]]:
        """The edges held, by load field."""
        return {name: tuple(sorted({getattr(p.problem, name) for p in self.points})) for name in LOAD_FIELDS}

    def variant(self, problem: Problem) -> dict[str, Value]:
        return {name: getattr(problem, name) for name in self.variant_fields}

    def kernel(self, problem: Problem, config: str) -> str:
        """Key of the generated kernel that runs `problem` with a config of this table."""
        return kernel_key(self.op, self.variant(problem), self.configs[config])


def config_id(config: Values) -> str:
    """The first 12 hex digits of the SHA-256 of the config's canonical JSON."""
    return _sha(config)[:12]


def kernel_key(op: str, variant: Values, config: Values) -> str:
    """8 hex digits that name the module of a (variant, config) of an op."""
    return _sha({"op": op, "variant": dict(variant), "config": dict(config)})[:8]


def _sha(data: object) -> str:
    text = json.dumps(_plain(data), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(data: object) -> object:
    return dict(data) if isinstance(data, Mapping) else data
