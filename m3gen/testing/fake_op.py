"""`FakeOp`: an op of 33 configs with a known cost, for tests of what drives ops. It has no template."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from m3gen.ops.base import Cache, Case, Tolerance, Work
from m3gen.space import Choice, Config, Constraint, Flag, PowerOfTwo, Space
from m3gen.spec import CONTEXT_BUCKETS, Problem, Shard
from m3gen.targets import Device

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class FakeOp:
    """Context does not matter, so `canonical` folds it. `best(problem)` is the only cheapest config."""

    name: str = "fake"
    title: str = "Nothing at all."
    template: str = "fake.py.jinja"

    def problem(self, device: Device, shard: Shard, cache: Cache, query_len: int) -> Problem | None:
        raise NotImplementedError("a fake op's problems are made by hand")

    def space(self, problem: Problem, device: Device) -> Space:
        return Space(
            [
                PowerOfTwo("tile", 16, 128, default=64),
                PowerOfTwo("warps", 1, 4, default=4),
                Choice("split", ("none", "kernel"), default="none"),
                Flag("merged", default=False, active=lambda c: c["split"] == "kernel"),
            ],
            [
                Constraint(
                    "narrow", ("tile", "warps"), lambda c: int(c["tile"]) >= 8 * int(c["warps"]), "too narrow"
                )
            ],
        )

    def default(self, problem: Problem, device: Device) -> Config:
        return Config({"tile": 64, "warps": 4, "split": "none"})

    def best(self, problem: Problem) -> Config:
        """The cheapest config: the one of cost 1."""
        tile = min(128, max(16, problem.rows))
        return Config({"tile": tile, "warps": 2, "split": "kernel", "merged": True})

    def cost_us(self, problem: Problem, config: Config) -> float:
        """Microseconds: 1 for the best, and for every parameter one more per step away from it."""
        best = self.best(problem)
        steps = abs(int(config["tile"]).bit_length() - int(best["tile"]).bit_length())
        steps += abs(int(config["warps"]).bit_length() - int(best["warps"]).bit_length())
        return 1.0 + steps + (config["split"] != best["split"]) + (config.get("merged", True) is not True)

    def canonical(self, problem: Problem) -> Problem:
        return problem.with_load(problem.rows, CONTEXT_BUCKETS[0])

    def variant(self, problem: Problem) -> Mapping[str, str | int | bool]:
        return {"PAGE": problem.page_size}

    def flags(self, problem: Problem, config: Config) -> Mapping[str, Any]:
        return dict(config)

    def work(self, problem: Problem, config: Config) -> tuple[Work, ...]:
        """One launch, or two when split and not merged; the cost stands in the first one's `flops`."""
        main = Work(
            kernel="fake",
            read_bytes=0.0,
            written_bytes=0.0,
            streamed_bytes=0.0,
            flops=self.cost_us(problem, config),
            loop_trips=1.0,
        )
        return (main, main) if config.get("merged") is False else (main,)

    def example(self, problem: Problem, config: Config) -> dict[str, Any]:
        raise NotImplementedError("a fake op has no kernel to launch")

    def cases(self, problem: Problem, config: Config, seed: int) -> Iterator[Case]:
        raise NotImplementedError("a fake op has no kernel to run")

    def reference(self, case: Case) -> dict[str, torch.Tensor]:
        raise NotImplementedError("a fake op computes nothing")

    def tolerance(self, problem: Problem, grid: str) -> Tolerance:
        return Tolerance()
