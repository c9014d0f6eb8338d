"""From settings and tables to a `Plan` for every size of step: the freeze."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import torch

from m3gen.runtime.dispatch import Dispatch
from m3gen.runtime.plan import Plan, bound
from m3gen.runtime.problems import NORM, STORE, ops_of, problem
from m3gen.runtime.refusal import Refusal, RefusalCode
from m3gen.runtime.selection import NoKernel, Selection
from m3gen.runtime.settings import Settings
from m3gen.runtime.step import Reason
from m3gen.spec import DTYPES, Problem

_WIDTH_MULTIPLE = 16  # of score rows: strides of one divisibility, so one compiled kernel


class Bindable(Protocol):
    """The kernels of one op: `m3gen.runtime.OpKernels`."""

    def bind(self, problem: Problem, max_rows: int) -> Dispatch: ...


Chosen = Mapping[str, Mapping[int, Dispatch]]
"""By op and query length."""


def choose(settings: Settings, kernels: Mapping[str, Bindable], refused: list[Refusal]) -> Chosen:
    """A dispatch for every op and query length; what has none is added to `refused`."""
    chosen: dict[str, dict[int, Dispatch]] = {}
    for op in ops_of(settings):
        for query_len in settings.limits.query_lens:
            rows = settings.limits.max_requests * query_len
            try:
                dispatch = kernels[op].bind(problem(op, settings, query_len), rows)
            except (NoKernel, KeyError) as error:
                refused.append(Refusal(RefusalCode.KERNEL, str(error.args[0])))
            else:
                chosen.setdefault(op, {})[query_len] = dispatch
    return chosen


class Buffers:
    """Everything that the kernels write beside the caches and the engine's output, for the largest step.

    One set serves all layers, which run one after the other on one stream.
    """

    def __init__(self, settings: Settings, chosen: Chosen) -> None:
        spec, shard, limits = settings.spec, settings.shard, settings.limits
        rows = limits.max_requests * max(limits.query_lens)
        blocks = -(-limits.model_len() // spec.page_size)
        self.width = -(-blocks // _WIDTH_MULTIPLE) * _WIDTH_MULTIPLE
        heads = shard.index_heads if spec.layers > spec.dense_layers else 0

        def empty(*shape: int, of: torch.dtype) -> torch.Tensor:
            return torch.zeros(shape, dtype=of, device=settings.device)

        self.q = empty(rows * settings.norm, shard.q_heads, spec.head_dim, of=settings.dtype)
        self.index_q = empty(rows * settings.norm, heads, spec.index_dim, of=DTYPES[settings.index_q_name].torch())
        self.scores = empty(heads, rows, self.width, of=torch.float32)
        self.ids = empty(heads, rows, spec.topk, of=torch.int32)
        self.workspace: dict[tuple[str, torch.dtype], torch.Tensor] = {}
        for op, by_length in chosen.items():
            for query_len, dispatch in by_length.items():
                of = problem(op, settings, query_len)
                for largest, selection in dispatch.selections().items():
                    self._make_room(selection, largest, of, settings.device)

    @property
    def bytes(self) -> int:
        held = (self.q, self.index_q, self.scores, self.ids, *self.workspace.values())
        return sum(tensor.nbytes for tensor in held)

    def arguments(self, selection: Selection, rows: int, of: Problem) -> dict[str, torch.Tensor]:
        """The workspace of a launch of up to `rows` rows, by the launcher's names; buffers are shared, and zeroed
        as those that count arrivals must be before their first launch."""
        wanted = selection.workspace(rows, of.kv_heads, of.group_size)
        return {name: self.workspace[name, dtype] for name, (_, dtype) in wanted.items()}

    def _make_room(self, selection: Selection, rows: int, of: Problem, device: torch.device) -> None:
        for name, (shape, dtype) in selection.workspace(rows, of.kv_heads, of.group_size).items():
            held = self.workspace.get((name, dtype))
            if held is None or held.numel() < torch.Size(shape).numel():
                self.workspace[name, dtype] = torch.zeros(shape, dtype=dtype, device=device)


def make_plans(settings: Settings, chosen: Chosen, buffers: Buffers) -> list[list[Plan] | None]:
    """`plans[query_len][requests]`; None for a query length without kernels."""
    plans: list[list[Plan] | None] = [None] * (max(settings.limits.query_lens) + 1)
    for query_len in settings.limits.query_lens:
        sizes = range(settings.limits.max_requests + 1)
        plans[query_len] = [_plan(settings, chosen, buffers, requests, query_len) for requests in sizes]
    return plans


def _plan(settings: Settings, chosen: Chosen, buffers: Buffers, requests: int, query_len: int) -> Plan:
    plan = Plan(Reason.NONE, requests, query_len)
    rows, spec = plan.rows, settings.spec

    def launch(op: str, **fixed: Any) -> Any:
        selection = chosen[op][query_len].selection(rows)
        work = buffers.arguments(selection, rows, problem(op, settings, query_len))
        return bound(selection.launcher, **fixed, **work, check=settings.debug)

    plan.q, plan.index_q = buffers.q[:rows], buffers.index_q[:rows]
    plan.scores, plan.ids = buffers.scores[:, :rows], buffers.ids[:, :rows]
    if NORM in chosen:
        plan.insert = launch(NORM, eps=spec.rms_eps)
    if STORE in chosen:
        plan.store = launch(STORE)
    if "index_select" in chosen:
        forced = {"init_blocks": spec.init_blocks, "local_blocks": spec.local_blocks}
        plan.select = launch("index_select", query_len=query_len, **forced)
    attend = {"softmax_scale": spec.softmax_scale, "query_len": query_len}
    if "sparse_decode" in chosen:
        plan.attend = launch("sparse_decode", **attend)
    if "dense_decode" in chosen:
        plan.attend_all = launch("dense_decode", **attend)
    return plan
