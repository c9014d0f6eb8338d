"""Inputs on which sparse decodes have gone wrong, one fault each, and what comes out wrong of an output."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from m3gen import ops
from m3gen.ops import decode_inputs
from m3gen.ops.decode_inputs import Layout
from m3gen.spec import Problem, dtype
from m3gen.targets import default_device

OP = ops.get("sparse_decode")
PAGE = 128
# RMS error of a row over its RMS: three times and more what rounding costs the better of two right kernels.
BOUNDS = {False: 1e-2, True: 3e-2}  # by whether the cache is fp8

Arguments = dict[str, Any]


@dataclass(frozen=True, slots=True)
class AttendCase:
    """Arguments of m3gen's launcher, workspace included, and the float64 answer [rows, q_heads, head_dim]."""

    name: str
    right: str
    problem: Problem
    arguments: Arguments
    answer: torch.Tensor


def cases() -> Iterator[AttendCase]:
    """Of bf16, 16 heads and one KV head where nothing else is said; NaN wherever no row may look."""
    yield make("lengths 1, 127, 128, 129, 2500", "attention", [1, 127, 128, 129, 2500])
    yield make("rows of padding (seq_len 0)", "zeros", [300, 0, 129, 0])
    yield make("query_len 3, seq_len 1", "zeros in rows 0 and 1", [1, 131], query_len=3)
    yield make("a live row that selects nothing", "zeros", [300, 300], change=_first_list([]))
    yield make("speculative rows, lengths 128 and 257", "attention", [128, 257], query_len=4)
    yield make("-1 inside a list", "skipped", [300], change=_first_list([0, -1, 2]))
    yield make("list with holes: 0 -1 -1 -1 2", "both blocks", [300], change=_first_list([0, -1, -1, -1, 2]))
    yield make("unordered list, partial block first", "any order", [300], change=_first_list([2, 0, 1]))
    yield make("ids past the context", "skipped", [300], change=_first_list([0, 1, 2, 3, 2**31 - 1]))
    yield make(
        "stale ids after the list: 0 1 2, then 1 0",
        "the first three",
        [300],
        change=_first_list([0, 1, 2, 1, 0]),
        meant=[0, 1, 2],
    )
    yield make(
        "an id twice: 0 1 1, of 3 blocks", "it weighs once", [300], change=_first_list([0, 1, 1]), meant=[0, 1]
    )
    yield make("NaN in page tails and unused pages", "never seen", [1, 130, 255])
    yield make("a page of -1 in the block table", "skipped", [300, 129], change=_no_second_page)
    for group in (8, 6):
        yield make(f"{group} heads a KV head", "attention", [300, 129], group_size=group, kv_heads=2)
    yield make("cache [pages, tokens, heads, dim]", "attention", [300, 129], kv_heads=2, heads_first=False)
    for scale in ("scalar", "per_token_head"):
        for arch in ("sm_90", "gfx942"):
            fp8 = default_device(arch).architecture.fp8
            kind = "scale of each token" if scale == "per_token_head" else "scales 0.5 and 0.25"
            yield make(f"{fp8} cache, {kind}", "dequantised", [1, 129, 300], arch, kv_dtype=fp8, kv_scale=scale)
    yield make("page offset past 2^31", "attention", [300], far="page")
    yield make("head offset past 2^31 (heads outermost)", "attention", [300], kv_heads=3, far="head")


def fault(case: AttendCase, out: torch.Tensor) -> str:
    """What is wrong of an output, or nothing."""
    if nan := _numbers((~out.isfinite()).flatten(1).any(1)):
        return f"NaN in {nan}"
    is_empty = (case.answer == 0).flatten(1).all(1)
    error = errors(case, out)
    bound = BOUNDS[dtype(case.problem.kv_dtype).is_fp8]
    if off := _numbers(error > torch.where(is_empty, 0.0, bound)):
        return f"{off} off by {float(error.max()):.2g} of its RMS"
    return ""


def errors(case: AttendCase, out: torch.Tensor) -> torch.Tensor:
    """RMS error of each row over the RMS of its answer; over 1 where that is zero."""
    out, rows = out.double().flatten(1), case.answer.flatten(1)
    size = torch.where((rows == 0).all(1), 1.0, rows.square().mean(1)).sqrt()
    return (out - rows).square().mean(1).sqrt() / size


def _numbers(rows: torch.Tensor) -> str:
    found = rows.nonzero().flatten().tolist()
    return f"row{'s' if len(found) > 1 else ''} {', '.join(map(str, found))}" if found else ""


def make(
    name: str,
    right: str,
    seq_lens: list[int],
    arch: str = "gfx942",
    *,
    change: Callable[[Arguments], None] | None = None,
    meant: list[int] | None = None,
    far: str = "",
    heads_first: bool = True,
    **fields: Any,
) -> AttendCase:
    """A case of these lengths, then changed. `meant`: the blocks of row 0 where its list says something else."""
    device = default_device(arch)
    values = {"compute_units": device.compute_units, "kv_heads": 1, "rows": 8, "context": 4096, **fields}
    problem = Problem(op=OP.name, arch=arch, **values)
    layout = Layout(heads_first=heads_first)
    if far == "page":
        layout = Layout(first_page=decode_inputs.far_page(problem, layout))
    flags = OP.flags(problem, OP.default(problem, device))
    builder = decode_inputs.CaseBuilder(problem, flags, layout, seed=0, lists=True)
    arguments = dict(builder.case(name, seq_lens).arguments)
    if far == "head":
        _spread_heads(arguments)
    if change is not None:
        change(arguments)
    answered = dict(arguments)
    if meant is not None:
        answered["topk_ids"] = arguments["topk_ids"].clone()
        _first_list(meant)(answered)
    return AttendCase(name, right, problem, arguments, decode_inputs.reference(problem, answered))


def _first_list(blocks: list[int]) -> Callable[[Arguments], None]:
    """Row 0 lists these blocks."""

    def change(arguments: Arguments) -> None:
        listed = arguments["topk_ids"]
        listed[:, 0] = -1
        listed[:, 0, : len(blocks)] = torch.tensor(blocks, dtype=torch.int32)

    return change


def _no_second_page(arguments: Arguments) -> None:
    """Request 0 has no page for its second block; what lies before the cache is NaN."""
    arguments["block_table"][0, 1] = -1
    for name in ("k_cache", "v_cache"):  # page 0 is NaN and in nobody's table
        arguments[name] = arguments[name][1:]
    arguments["block_table"][arguments["block_table"] > 0] -= 1


def _spread_heads(arguments: Arguments) -> None:
    """Heads outermost and 2^30 elements and a page apart; what is never touched is never committed."""
    k, v = arguments["k_cache"], arguments["v_cache"]
    pages, heads, tokens, head_dim = k.shape
    strides = (tokens * 2 * head_dim, (1 << 30) + tokens * 2 * head_dim, 2 * head_dim, 1)
    room = strides[1] * (heads - 1) + strides[0] * pages
    store = torch.empty(room, dtype=k.dtype)
    for name, side in (("k_cache", k), ("v_cache", v)):
        first = 0 if side is k else head_dim
        arguments[name] = store.as_strided(k.shape, strides, first).copy_(side)
