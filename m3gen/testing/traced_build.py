"""`TracedBuild`: a builder of kernels that knows what each launcher launches, to hold counts against."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from types import ModuleType

from m3gen import ops
from m3gen.codegen import build, render, trace
from m3gen.runtime import Counters
from m3gen.space import Config
from m3gen.spec import Problem


@dataclass
class TracedBuild:
    """`m3gen.codegen.build` for `m3gen.runtime.load`. `kernels`: by op, the Triton kernels that one call of its
    launcher launches, in order, as tracing the launcher on meta tensors tells."""

    kernels: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def __call__(self, problem: Problem) -> tuple[ModuleType, Config]:
        module, config = build(problem)
        op = ops.get(problem.op)
        names = tuple(launch.kernel for launch in trace(render(op, problem, config), op.example(problem, config)))
        if self.kernels.setdefault(problem.op, names) != names:
            raise ValueError(
                f"{problem.op} launches {self.kernels[problem.op]} for one problem, {names} for another"
            )
        return module, config

    def launched(self, counters: Counters) -> Counter[str]:
        """Launches by Triton kernel that a state's counters stand for. `KeyError` for an op that was not built."""
        found: Counter[str] = Counter()
        for op, calls in counters.launches.items():
            for name in self.kernels[op] if calls else ():
                found[name] += calls
        return found
