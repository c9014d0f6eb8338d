"""What is compared: ops and loads, m3gen's pick for each, and the kernels that vLLM has for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from m3gen import ops
from m3gen.ops import Cache, field_config
from m3gen.paths import tables_dir
from m3gen.peers import Peer, read
from m3gen.peers.resolve import Load
from m3gen.space import Config
from m3gen.spec import MINIMAX_M3, ExactProblem, Problem
from m3gen.tables.load import load
from m3gen.targets import Device, Vendor

FOLDER = Path(__file__).parent.parent / "peers"
ROWS = (1, 16, 64, 256)
TP = 4
MERGE = "merge"
"""No op of its own: the second launch of a split `sparse_decode`, on both sides with the field's splits."""

BY_CONTEXT = {"index_score", "index_topk", "index_select", "dense_decode"}
CONTEXTS = (8192, 131072)
# The work of the others grows no more past this: a sparse row reads its list of pages, a cache op its rows.
ENOUGH = (8192,)
NAMES = tuple(sorted((*ops.names(), MERGE)))


@dataclass(frozen=True, slots=True)
class Part:
    """Launches of one file; of several `settings`, which an autotuner chooses among, the best predicted counts.
    `launch` takes one of the launches by itself."""

    file: str
    settings: tuple[Load, ...] = ({},)
    launch: int | None = None


@dataclass(frozen=True, slots=True)
class Rival:
    """What vLLM runs for an op: its parts one after the other."""

    name: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Match:
    """One op under one load on one device. Of several rivals the best predicted counts; without any there is only the
    floor. `launch`: as of `Part`, of m3gen's own launches."""

    op: str
    device: Device
    problem: ExactProblem
    config: Config
    origin: str  # "table" or "default"
    rivals: tuple[Rival, ...]
    launch: int | None = None


_AUTOTUNED: tuple[Load, ...] = tuple(
    {"tile": tile, "warps": warps, "stages": stages}
    for tile, warps, stages in ((256, 8, 2), (256, 4, 2), (128, 4, 2), (128, 4, 3), (64, 2, 2))
)
_SCORE = {Vendor.AMD: Part("index_score_amd.toml"), Vendor.NVIDIA: Part("index_score.toml")}
_TOPK = {Vendor.AMD: Part("index_topk_amd.toml"), Vendor.NVIDIA: Part("index_topk.toml", _AUTOTUNED)}
_SPARSE = Rival("common", (Part("sparse_decode.toml"),))
_DENSE = Rival("unified", (Part("dense_decode.toml"),))
_INSERT = Rival("flash", (Part("kv_insert.toml"),))
_GATHER = Rival("aiter", (Part("kv_gather_amd.toml"),))
_ZERO = Rival("zeroer", (Part("kv_zero.toml"),))
_MERGE = Rival("common", (Part("sparse_decode.toml", launch=1),))


def rivals(op: str, vendor: Vendor) -> tuple[Rival, ...]:
    """vLLM's Triton kernels for an op; empty where its kernel is C++ or there is none."""
    amd = vendor is Vendor.AMD
    name = "AMD" if amd else "common"
    found: Mapping[str, tuple[Rival, ...]] = {
        "sparse_decode": (_SPARSE,),
        "merge": (_MERGE,),
        "index_score": (Rival(name, (_SCORE[vendor],)),),
        "index_topk": (Rival(name, (_TOPK[vendor],)),),
        "index_select": (Rival(name, (_SCORE[vendor], _TOPK[vendor])),),
        "dense_decode": (_DENSE, Rival("rocm", (Part("dense_decode_rocm.toml"),))) if amd else (_DENSE,),
        "kv_insert": (_INSERT, Rival("packed", (Part("kv_insert.toml", ({"packed": 1},)),)))
        if amd
        else (_INSERT,),
        "kv_gather": (_GATHER,) if amd else (),
        "kv_zero": (_ZERO,),
    }
    return found.get(op, ())


def matches(devices: Iterable[Device], names: Sequence[str]) -> Iterator[Match]:
    """Every load of the named ops on each device, at TP 4 and one query row a request."""
    for where in devices:
        for name in names:
            yield from _of_op(name, where)


def _of_op(name: str, where: Device) -> Iterator[Match]:
    op = ops.get("sparse_decode" if name == MERGE else name)
    for cache in caches(name, where):
        made = op.problem(where, MINIMAX_M3.shard(TP), cache, 1)
        assert made is not None
        for context in CONTEXTS if name in BY_CONTEXT else ENOUGH:
            for rows in ROWS:
                problem = ExactProblem.of(made, rows, context)
                config, origin = pick(problem, where)
                if name == MERGE:
                    config, origin = field_config(op, problem, where), "default"
                    if config.get("merge") != "kernel":  # a single part needs none
                        continue
                yield Match(
                    name,
                    where,
                    problem,
                    config,
                    origin,
                    rivals(name, where.architecture.vendor),
                    1 if name == MERGE else None,
                )


def caches(name: str, where: Device) -> tuple[Cache, ...]:
    """What vLLM keeps in its caches; a scorer's keys are bf16, a top-k and a merge look at none."""
    if name in ("index_score", "index_topk", "index_select", MERGE):
        return (Cache("bf16"),)
    return (Cache("bf16"), Cache(where.architecture.fp8, "scalar"))


def pick(problem: ExactProblem, where: Device) -> tuple[Config, str]:
    """The config of the tables, else the op's default."""
    op = ops.get(problem.op)
    path = tables_dir() / problem.arch / f"{problem.op}.json"
    if path.is_file():
        table = load(path)
        wanted = op.canonical(Problem(**problem.to_dict())).to_dict()
        for point in table.points:
            if point.problem.to_dict() == wanted:
                return Config(table.configs[point.config]), "table"
    return op.default(problem, where), "default"


def peer_of(part: Part) -> Peer:
    return read(FOLDER / part.file)


def loads(match: Match, part: Part, peer: Peer) -> tuple[Load, ...]:
    """The match's load in the names of the peer's file, once for each setting."""
    problem = match.problem
    usual: Load = {"rows": problem.rows, "context": problem.context, "kv": problem.kv_dtype}
    known = {name: value for name, value in usual.items() if name in peer.dimensions}
    return tuple({**known, **one} for one in part.settings)
