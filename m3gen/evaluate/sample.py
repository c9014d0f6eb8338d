"""`materialise`: the arguments of an op's launcher as small CPU tensors, for running its machine code once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from m3gen.ops.base import Op
from m3gen.space import Config
from m3gen.spec import CONTEXT_BUCKETS, ExactProblem, Problem

if TYPE_CHECKING:
    import torch

_MOST_TRIPS = 8
_SOME_PAGES = 8
_MOST_PAGES = 512
_MOST_BLOCKS = 8192  # of scores, where no page is read
_CACHES = ("k_cache", "source_k")  # of as many pages as the pool has
_RANDOM = 64  # rows of a tensor that are random, the others repeat them: any values will do


def loads(op: Op, problem: Problem, config: Config) -> Iterator[Problem]:
    """The problem with one request, at two contexts between which a program's iterations differ, few of them
    where that is possible; at one context where none makes a difference. Whatever the problem's own load.

    Of contexts with as many iterations the shortest; where nothing streams, the longest: it is small too, and how
    much of a tile is filled may decide how long a selection takes."""
    shortest, longest = (op.canonical(problem.with_load(problem.rows, CONTEXT_BUCKETS[end])) for end in (0, -1))
    if shortest == longest:  # the context is nothing to this op: a pool of some pages is as good as a large one
        yield ExactProblem.of(problem, problem.query_len, _SOME_PAGES * problem.page_size)
        return
    found: dict[float, Problem] = {}
    pages, streams = 1, True
    while pages <= _MOST_PAGES or (pages <= _MOST_BLOCKS and not streams and len(found) < 2):
        load = ExactProblem.of(problem, problem.query_len, pages * problem.page_size)
        works = op.work(load, config)
        trips, streams = max(work.loop_trips for work in works), any(work.streamed_bytes for work in works)
        if trips > _MOST_TRIPS and len(found) > 1:
            break
        if not streams or trips not in found:
            found[trips] = load
        pages *= 2
    yield from (found[trips] for trips in sorted(found)[-2:])


def materialise(op: Op, problem: Problem, config: Config) -> dict[str, Any]:
    """Keyword arguments like those of `op.example`, strides included, with a pool of as many pages as are needed:
    block tables without a page twice, lists of the last blocks, lengths of the whole context, random values."""
    import torch

    example = op.example(problem, config)
    blocks = -(-problem.context // problem.page_size)
    pages = max(1, problem.rows // problem.query_len) * blocks
    pool = next((len(example[name]) for name in _CACHES if name in example), 0)
    generator = torch.Generator().manual_seed(0)
    return {
        name: _tensor(name, value, problem, pages, pool, generator) if isinstance(value, torch.Tensor) else value
        for name, value in example.items()
    }


def _tensor(
    name: str, like: torch.Tensor, problem: Problem, pages: int, pool: int, generator: torch.Generator
) -> torch.Tensor:
    import torch

    # Tokens of the pool are a multiple of its pages.
    shape = [pages * (one // pool) if pool and one >= pool and one % pool == 0 else one for one in like.shape]
    strides = list(like.stride())
    if shape[1:] != list(like.shape[1:]):  # a plane of tokens: as wide as the pool is
        strides = _dense(shape)
    out = torch.empty_strided(shape, strides, dtype=like.dtype)
    if like.dtype.is_floating_point:
        some = torch.rand((min(shape[0], _RANDOM), *shape[1:]), generator=generator).to(like.dtype)
        whole = shape[0] // _RANDOM * _RANDOM
        if whole:
            out[:whole].view(-1, *some.shape).copy_(some)
        out[whole:].copy_(some[: shape[0] - whole])
        return out
    out.zero_()
    blocks = -(-problem.context // problem.page_size)
    if name == "block_table":
        rows = out.shape[0]
        out[:, :blocks] = torch.arange(rows * blocks, dtype=out.dtype).view(rows, blocks)
    elif name == "seq_lens":
        out.fill_(problem.context)
    elif name == "starts":  # of each request's tokens, and the end of the last one's
        out.copy_(problem.context * torch.arange(out.numel(), dtype=out.dtype))
    elif name == "topk_ids":
        count = min(out.shape[-1], blocks)
        out.fill_(-1)
        out[..., :count] = torch.arange(blocks - count, blocks, dtype=out.dtype)
    elif name in ("pairs", "index_pairs"):
        out[..., -1] = pages - 1  # from the first page to the last
    elif name in ("slot_mapping", "index_slot_mapping", "positions"):
        out.copy_(torch.arange(out.numel(), dtype=out.dtype).view(shape))
    return out


def _dense(shape: list[int]) -> list[int]:
    strides, step = [], 1
    for one in reversed(shape):
        strides.append(step)
        step *= one
    return strides[::-1]
