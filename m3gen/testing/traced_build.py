"""`TracedBuild`: a builder of kernels that knows what each launcher launches, to hold counts against."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from dataclasses import dataclass, field
from types import ModuleType

from m3gen import ops
from m3gen.codegen import build, render, trace
from m3gen.runtime import Counters
from m3gen.runtime.selection import Launcher
from m3gen.space import Config
from m3gen.spec import Problem

_LAUNCH = re.compile(r"^ {4}(\w+)\[.*\]\($", re.MULTILINE)


@dataclass
class TracedBuild:
    """`m3gen.codegen.build` for `m3gen.runtime.load`. `kernels`: by op, the Triton kernels that one call of its
    launcher launches, in order, as tracing the launcher on meta tensors tells; of launchers that tables answer with,
    and `shipped` was told of, as their text does."""

    kernels: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def __call__(self, problem: Problem) -> tuple[ModuleType, Config]:
        module, config = build(problem)
        op = ops.get(problem.op)
        names = tuple(launch.kernel for launch in trace(render(op, problem, config), op.example(problem, config)))
        self._keep(problem.op, names)
        return module, config

    def shipped(self, launcher: Launcher) -> Launcher:
        """The launcher itself, for an `adapt`."""
        self._keep(launcher.__name__, tuple(_LAUNCH.findall(inspect.getsource(launcher))))
        return launcher

    def _keep(self, op: str, names: tuple[str, ...]) -> None:
        if self.kernels.setdefault(op, names) != names:
            raise ValueError(f"{op} launches {self.kernels[op]} for one problem, {names} for another")

    def launched(self, counters: Counters) -> Counter[str]:
        """Launches by Triton kernel that a state's counters stand for. `KeyError` for an op that was not built."""
        found: Counter[str] = Counter()
        for op, calls in counters.launches.items():
            for name in self.kernels[op] if calls else ():
                found[name] += calls
        return found
