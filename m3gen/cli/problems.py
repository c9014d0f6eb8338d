"""From options to problems: everything that can be refused is refused here, before any work."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from m3gen import ops, targets
from m3gen.cli.options import integers, split
from m3gen.errors import UserError
from m3gen.ops import Cache, Op
from m3gen.spec import MINIMAX_M3, Problem, Shard
from m3gen.targets import Device

DEFAULT_OPS = ("sparse_decode",)
DEFAULT_RANKS = (4,)
DEFAULT_DTYPES = ("bf16", "fp8")
DEFAULT_ROWS = (1, 16, 64, 256)
DEFAULT_CONTEXTS = (8192,)
KV_SCALES = ("auto", "none", "scalar", "per_token_head")


def find_device(arch: str, name: str | None) -> Device:
    """The device called `name`, which must be one of `arch`; the architecture's usual one for None."""
    architecture = targets.architecture(arch)
    if name is None:
        return targets.default_device(architecture.name)
    device = targets.device(name)
    if device.architecture is not architecture:
        of_arch = ", ".join(d.name for d in targets.DEVICES.values() if d.architecture is architecture)
        raise UserError(
            f"--device {device.name} is a {device.arch} device, not {architecture.name}: "
            f"name --arch {device.arch}, or one of {of_arch}"
        )
    return device


def find_ops(names: Sequence[str] | None) -> tuple[Op, ...]:
    """The ops asked for, "all" for each there is; `DEFAULT_OPS` for None."""
    if names is None:
        names = DEFAULT_OPS
    asked = split(names)
    if not asked:
        raise UserError(f"--op {','.join(names)!r} names no op: known ops: {', '.join(ops.names())}")
    return tuple(ops.get(name) for name in (ops.names() if "all" in asked else asked))


def build(
    device: Device,
    *,
    op: Sequence[str] | None = None,
    tp: Sequence[str] | None = None,
    kv: Sequence[str] | None = None,
    kv_scale: str = "auto",
    rows: Sequence[str] | None = None,
    context: Sequence[str] | None = None,
    query_len: int = 1,
) -> tuple[Problem, ...]:
    """The problems that the options span, each once, folded by its op. `UserError` names the option."""
    shards = [_shard(ranks) for ranks in integers("--tp", tp, DEFAULT_RANKS)]
    caches = _caches(device, dtypes(device, kv), kv_scale)
    contexts = integers("--context", context, DEFAULT_CONTEXTS)
    loads = list(product(_rows(rows, query_len), contexts))
    found: dict[Problem, None] = {}
    for one in find_ops(op):
        for shard in shards:
            for cache in caches:
                problem = one.problem(device, shard, cache, query_len)
                if problem is None:
                    continue
                for load in loads:
                    found[one.canonical(_with_load(problem, *load))] = None
    return tuple(found)


def _shard(ranks: int) -> Shard:
    try:
        return MINIMAX_M3.shard(ranks)
    except ValueError as error:
        raise UserError(f"--tp {ranks}: {error}; {MINIMAX_M3.name} runs on 1, 2, 4, 8, 16, ... ranks") from None


def dtypes(device: Device, names: Sequence[str] | None) -> tuple[str, ...]:
    """The cache dtypes asked for, by variant: "fp8" is the architecture's own dialect."""
    dialect = device.architecture.fp8
    known = {"bf16": "bf16", "fp8": dialect, dialect: dialect}
    asked = DEFAULT_DTYPES if names is None else split(names) or ("",)
    for name in asked:
        if name not in known:
            raise UserError(
                f"--kv {name!r}: {device.arch} is tuned for bf16 and fp8 (its dialect is {dialect}); "
                "name one or both of these"
            )
    return tuple(dict.fromkeys(known[name] for name in asked))


def _caches(device: Device, names: Sequence[str], scale: str) -> list[Cache]:
    """Scales belong to fp8 caches."""
    dialect = device.architecture.fp8
    if scale not in KV_SCALES:
        raise UserError(f"--kv-scale {scale!r}: expected one of {', '.join(KV_SCALES)}")
    if scale != "auto" and dialect not in names:
        raise UserError(f"--kv-scale {scale} concerns fp8 caches, and --kv names none: add fp8 or drop it")
    fp8_scale = "scalar" if scale == "auto" else scale
    return [Cache(name, fp8_scale if name == dialect else "none") for name in names]


def _rows(rows: Sequence[str] | None, query_len: int) -> tuple[int, ...]:
    if rows is None:
        loads = tuple(load for load in DEFAULT_ROWS if load >= query_len)
    else:
        loads = integers("--rows", rows)
    if too_few := [load for load in loads if load < query_len]:
        raise UserError(
            f"--rows {too_few[0]} is under --query-len {query_len}, the query rows of one request: "
            f"ask for {query_len} rows or more"
        )
    return loads


def _with_load(problem: Problem, rows: int, context: int) -> Problem:
    try:
        return problem.with_load(rows, context)
    except ValueError as error:
        name, _, what = str(error).partition(": ")
        raise UserError(f"--{name} {what}") from None
