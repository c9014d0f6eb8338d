"""`FakeKernels`: kernels that only count, for what is around them: plans, bindings, the life of a state."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from m3gen.runtime import Dispatch, NoKernel, Place, Rung, Selection
from m3gen.spec import Problem

Shapes = Mapping[str, tuple[tuple[int, ...], torch.dtype]]
OPS = ("qk_norm_rope_insert", "kv_insert", "index_select", "sparse_decode", "dense_decode")


@dataclass
class FakeOp:
    """One op; `launch` is called by every launch, `missing` is why there is no kernel. One selection up to
    `edge` rows, another beyond."""

    op: str
    launch: Callable[..., None] = lambda *arguments, **keywords: None
    missing: str = ""
    edge: int = 2
    workspace: Callable[[int, int, int], Shapes] | None = None
    problems: list[Problem] = field(default_factory=list)

    def bind(self, problem: Problem, max_rows: int) -> Dispatch:
        self.problems.append(problem)
        if self.missing:
            raise NoKernel(self.missing)
        small, large = self._selection("small"), self._selection("large")
        return Dispatch([small if rows <= self.edge else large for rows in range(max_rows + 1)])

    def _selection(self, size: str) -> Selection:
        return Selection(
            launcher=self.launch,
            workspace=self.workspace or _room,
            config={},
            rung=Rung.RELEASE,
            point=None,
            reason=f"fake, {size}",
            module=f"fake.{self.op}_{size}",
        )


class FakeKernels(Mapping[str, FakeOp]):
    """Of one arch; `FakeKernels(sparse_decode=FakeOp("sparse_decode", missing="not tuned"))` replaces one."""

    arch = "gfx942"
    place = Place.INTERPRETER

    def __init__(self, **replaced: FakeOp) -> None:
        self._by_op = {op: FakeOp(op) for op in OPS} | replaced

    def __getitem__(self, op: str) -> FakeOp:
        return self._by_op[op]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_op)

    def __len__(self) -> int:
        return len(self._by_op)


@dataclass
class Recorder:
    """A launcher that keeps the arguments of every call."""

    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = field(default_factory=list)

    def __call__(self, *arguments: Any, **keywords: Any) -> None:
        self.calls.append((arguments, keywords))


def _room(rows: int, kv_heads: int, group_size: int) -> Shapes:
    return {"partial_out": ((2, rows, kv_heads * group_size, 128), torch.float32)}
