"""`index_select`: the indexer in one op, from index queries and paged keys to the blocks that a row attends to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from m3gen.ops import index_score, index_topk, select_inputs, topk_inputs
from m3gen.ops.base import Cache, Case, Tolerance, Work
from m3gen.space import Choice, Config, Constraint, Parameter, PowerOfTwo, Space, Value
from m3gen.spec import Problem, Shard
from m3gen.targets import Device

if TYPE_CHECKING:
    import torch

Values = Mapping[str, Any]

_SCORE, _TOPK = index_score.OP, index_topk.OP
# The two spaces multiply: what the scorer's own searches besides stays as vLLM has it.
_SETTLED: dict[str, Value] = {"share": "splits", "masked_loads": False}
_LEFT_OUT = ("share", "splits", "blocks", "masked_loads", "waves_per_eu", "maxnreg", "fp_fusion")
# What the selector's parameters are called beside the scorer's.
_SELECTOR = {"splits": "select_splits", "num_warps": "select_warps", "num_stages": "select_stages"}
_MERGE_WARPS = 4


@dataclass(frozen=True, slots=True)
class IndexSelect:
    """q [rows, heads, head_dim], K [pages, page_size, head_dim] through block_table [requests, max_blocks] -> ids
    int32 [heads, rows, topk], 0-based logical blocks.

    Blocks score as in `index_score`, forced ones included, and are selected as in `index_topk`: score descending,
    the lower id first among equal scores, NaN below -inf; -1 after the last block, on every write. Scores
    are fp32 sums: two that differ by less than the rounding of these may change places from config to config. Ids
    come in the order of selection, or ascending; on request a page table comes along. A row sees no more blocks
    than block_table has.

    One launcher, three forms. apart: the kernels of the two ops, two or three launches. scores, lists: one launch
    whose last program of a tile of query rows selects, from all scores or from each program's best. The last
    program reads 4 bytes a block in the one, 8 * topk a program in the other: lists are less where a program has
    more than 2 * topk blocks.

    Of a `Problem`, `group_size` is the index heads of a rank, `kv_heads` 1, `q_dtype` and `kv_dtype` those of the
    index queries and keys.
    """

    name: str = "index_select"
    title: str = "Selection of blocks by the lightning indexer over paged index keys."
    template: str = "index_select.py.jinja"

    def problem(self, device: Device, shard: Shard, cache: Cache, query_len: int) -> Problem | None:
        found = _SCORE.problem(device, shard, cache, query_len)
        return found and replace(found, op=self.name)

    def space(self, problem: Problem, device: Device) -> Space:
        scorer = _SCORE.space(problem, device)
        cap = topk_inputs.capacity(problem.topk)
        wave = device.architecture.wave_size

        def is_apart(c: Values) -> bool:
            return bool(c["form"] == "apart")

        def is_split(c: Values) -> bool:
            return is_apart(c) and c["select_splits"] > 1

        def sorted_keys(c: Values) -> int:
            """The widest network of the candidate."""
            if c["form"] == "lists":
                return int(cap * c["splits"])
            return int(max(c["tile"], cap * c.get("select_splits", 1)))

        parameters: list[Parameter] = [
            Choice(
                "form", ("apart", "scores", "lists"), default="apart", doc="launches, and what a last program has"
            ),
            PowerOfTwo("splits", 1, 256, default=64, doc="programs that score a tile of query rows"),
            *(parameter for parameter in scorer.parameters if parameter.name not in _LEFT_OUT),
            Choice(
                "select", ("sort", "insert"), default="sort", doc="bitonic network, or the greatest one by one"
            ),
            PowerOfTwo(
                "tile",
                max(64, cap),
                max(1024, cap),
                default=max(512, cap),
                active=lambda c: c["form"] != "lists",
                doc="scores per iteration of the selector",
            ),
            PowerOfTwo("select_splits", 1, 16, default=1, active=is_apart, doc="programs that select for a row"),
            Choice("merge", ("kernel", "last"), default="last", active=is_split, doc="who merges their lists"),
            PowerOfTwo("select_warps", 1, 8, default=4, active=is_apart),
            Choice("select_stages", (1, 2), default=2, active=is_apart),
        ]
        constraints = [
            *scorer.constraints,
            Constraint(
                "lanes",
                ("tile", "select_warps"),
                lambda c: c["tile"] >= wave * c["select_warps"],
                "a lane would be without a score",
            ),
            Constraint(
                "sort_size",
                ("form", "splits", "select"),
                lambda c: c["select"] == "insert" or sorted_keys(c) <= max(index_topk.LARGEST_SORT, cap),
                f"a network over more than {index_topk.LARGEST_SORT} keys",
                optional=("tile", "select_splits"),
            ),
        ]
        return Space(parameters, constraints)

    def default(self, problem: Problem, device: Device) -> Config:
        """The defaults of the two ops, one after the other."""
        return self._apart(problem, device, _SCORE.default(problem, device), _TOPK.default(problem, device))

    def field(self, problem: Problem, device: Device) -> Config:
        """What the field hard-codes for the two ops, one after the other."""
        return self._apart(problem, device, _SCORE.field(problem, device), _TOPK.field(problem, device))

    def _apart(self, problem: Problem, device: Device, scorer: Config, selector: Config) -> Config:
        values: dict[str, Any] = {
            "form": "apart",
            **scorer,
            **{_SELECTOR.get(name, name): value for name, value in selector.items()},
        }
        return self.space(problem, device).canonical_of_known(values)

    def canonical(self, problem: Problem) -> Problem:
        """Every load is its own: the work grows with the context."""
        return problem

    def variant(self, problem: Problem) -> Mapping[str, str | int | bool]:
        return {**_SCORE.variant(problem), **_TOPK.variant(problem)}

    def flags(self, problem: Problem, config: Config) -> Mapping[str, Any]:
        selector = _TOPK.flags(problem, _selector(config))
        return {
            **selector,
            **_SCORE.flags(problem, _scorer(config)),
            "FORM": config["form"],
            "SELECT_SPLITS": selector["SPLITS"],
            "SELECT_OPTIONS": selector["OPTIONS"],
        }

    def work(self, problem: Problem, config: Config) -> tuple[Work, ...]:
        """In one launch the last program of a tile waits for its counter, then for every step of the selection of
        each of its lists, one after the other: counted as trips of the loop, which waits as long."""
        scored = _SCORE.work(problem, _scorer(config))
        if config["form"] == "apart":
            return (*scored, *_TOPK.work(problem, _selector(config)))
        lists = problem.rows * problem.group_size
        blocks = -(-problem.context // problem.page_size)
        if config["form"] == "scores":
            handed_on = 4 * lists * blocks
            steps = -(-blocks // int(config["tile"]))
        else:
            handed_on = 8 * lists * min(int(config["splits"]), blocks) * topk_inputs.capacity(problem.topk)
            steps = 1
        heads = problem.group_size if config.get("heads", "together") == "together" else 1
        of_one_tile = heads * min(int(config.get("rows_packed", 1)), problem.query_len)
        return (
            replace(
                scored[0],
                kernel="score_and_select",
                read_bytes=scored[0].read_bytes + handed_on,
                written_bytes=handed_on + 4 * lists * problem.topk,
                loop_trips=scored[0].loop_trips + 1 + of_one_tile * steps,
            ),
        )

    def example(self, problem: Problem, config: Config) -> dict[str, Any]:
        return select_inputs.example(problem, self.flags(problem, config))

    def cases(self, problem: Problem, config: Config, seed: int) -> Iterator[Case]:
        return select_inputs.cases(problem, self.flags(problem, config), seed)

    def reference(self, case: Case) -> dict[str, torch.Tensor]:
        return select_inputs.reference(case.problem, case.arguments)

    def tolerance(self, problem: Problem, grid: str) -> Tolerance:
        """Integers are equal or wrong."""
        return Tolerance(source="exact")


def _scorer(config: Config) -> Config:
    """The config of `index_score` that this one holds."""
    return Config({**config, **_SETTLED})


def _selector(config: Config) -> Config:
    """The config of `index_topk` that this one holds; of one launch, what it says of the selection."""
    whole = {"tile": 0, "select_splits": 1, "select_warps": 0, "select_stages": 0, **config}
    names = ("select", "tile", "merge", "splits", "num_warps", "num_stages")
    values = {name: whole[_SELECTOR.get(name, name)] for name in names if _SELECTOR.get(name, name) in whole}
    return Config({**values, "merge_warps": _MERGE_WARPS})


OP = IndexSelect()
