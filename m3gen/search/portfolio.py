"""`Portfolio`: the few configs of an op that serve all its buckets almost as well as the best of each."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, count, islice
from typing import TYPE_CHECKING

from m3gen.evaluate.evaluation import Stage
from m3gen.space import Config
from m3gen.spec import Problem, Status
from m3gen.store import Record, Store
from m3gen.store.winners import judge_ranks

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

EARNS = 0.02  # what the worst regret times the geometric mean must fall by for one more member
MOST = 8
# Sets of one size of which each is looked at; of more, the greedy one is improved by exchanges.
_ALL_SETS = 100_000
_CHUNK = 4096

Times = Mapping[Problem, Mapping[Config, float]]
"""Microseconds of each config that ran, by problem."""


@dataclass(frozen=True, slots=True)
class Member:
    """A config and the problems for which it is the best of the portfolio."""

    config: Config
    serves: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class Portfolio:
    """`regrets`: the time of the portfolio over that of the best config known, 1 or more, by problem served.
    `unserved`: problems on which no member ran."""

    members: tuple[Member, ...]
    regrets: Mapping[Problem, float]
    unserved: tuple[Problem, ...]

    @property
    def worst(self) -> float:
        return max(self.regrets.values(), default=1.0)

    @property
    def geometric_mean(self) -> float:
        return math.exp(math.fsum(map(math.log, self.regrets.values())) / max(1, len(self.regrets)))


def portfolio(times: Times, most: int = MOST) -> Portfolio:
    """At most `most` configs: of each number of them the set that leaves the fewest problems unserved and then has the
    least worst regret times geometric mean, and one more only where it serves a problem more or earns `EARNS`."""
    problems = [problem for problem in sorted(times) if times[problem]]
    configs = sorted({config for problem in problems for config in times[problem]}, key=lambda one: one.sha)
    if not problems or most < 1:
        return Portfolio((), {}, tuple(sorted(times)))
    matrix = _Matrix([[times[problem].get(config, math.inf) for config in configs] for problem in problems])
    chosen: tuple[int, ...] = ()
    cost = (len(problems) + 1, math.inf)
    for size in range(1, most + 1):
        found = matrix.best(size, chosen)
        unserved, _, product = matrix.cost(found)
        if len(found) < size or (unserved >= cost[0] and product * (1 + EARNS) > cost[1]):
            break
        chosen, cost = found, (unserved, product)
    return _as_portfolio(times, problems, [configs[number] for number in chosen])


def cover(times: Times, liked: Mapping[Config, int]) -> frozenset[Config]:
    """The fewest configs of which each problem has a time of one; of sets as small the one most liked (the sum over its
    configs), then that of the least worst regret times geometric mean. Every problem has a time."""
    problems = sorted(times)
    found = {config for problem in problems for config in times[problem]}
    configs = sorted(found, key=lambda one: (-liked.get(one, 0), one.sha))
    matrix = _Matrix(
        [[times[problem].get(config, math.inf) for config in configs] for problem in problems],
        [liked.get(config, 0) for config in configs],
    )
    chosen: tuple[int, ...] = ()
    for size in count(1):
        chosen = matrix.best(size, chosen)
        if matrix.cost(chosen)[0] == 0:
            break
    return frozenset(configs[number] for number in chosen)


def stored_times(store: Store, arch: str, op: str) -> dict[Problem, dict[Config, float]]:
    """What the store knows of every problem of an op on an arch, each by its best authority: measured before predicted,
    then the newest judge. What failed the gate is left out."""
    found = {}
    for problem in store.problems(arch=arch):
        if problem.op == op:
            records = [record for record in store.evaluations(problem) if record.evaluation.may_win]
            found[problem] = {
                record.config: record.evaluation.value_us
                for record in _of_best_authority(records)
                if record.evaluation.value_us is not None and not _failed(store, problem, record)
            }
    return found


class _Matrix:
    """Logarithms of regrets, infinite where a config did not run: a row per problem, a column per config.

    `liked`: of sets that serve as many problems the one with the largest sum of these goes first.
    """

    def __init__(self, times: Sequence[Sequence[float]], liked: Sequence[int] | None = None) -> None:
        import numpy as np

        rows = np.asarray(times, dtype=float)
        self._regrets = np.log(rows / rows.min(axis=1, keepdims=True))
        self._disliked = -np.asarray(liked or [0] * rows.shape[1], dtype=np.int64)
        self._columns = _undominated(np.vstack([self._regrets, self._disliked]))

    def cost(self, chosen: Sequence[int]) -> tuple[int, int, float]:
        """Problems unserved; how little it is liked; worst regret times geometric mean on the others."""
        unserved, disliked, product = self._costs([tuple(chosen)])
        return int(unserved[0]), int(disliked[0]), float(product[0])

    def best(self, size: int, smaller: tuple[int, ...]) -> tuple[int, ...]:
        """The columns of least cost. `smaller`: the best ones of one size less, where exchanges begin,
        as they do at the best column of each problem."""
        size = min(size, len(self._columns))
        if size == len(self._columns) or math.comb(len(self._columns), size) <= _ALL_SETS:
            return self._least(combinations(self._columns, size))
        begun = {self._grown(smaller, size)} | {
            self._grown((int(one),), size) for one in self._regrets.argmin(axis=1)
        }
        return min((self._exchanged(found) for found in sorted(begun)), key=self.cost)

    def _grown(self, found: tuple[int, ...], size: int) -> tuple[int, ...]:
        while len(found) < size:
            found = self._least((*found, one) for one in self._columns if one not in found)
        return tuple(sorted(found))

    def _exchanged(self, found: tuple[int, ...]) -> tuple[int, ...]:
        """The least that exchanging one column at a time leads to."""
        while True:
            exchanges = (
                tuple(sorted({*found} - {out} | {one}))
                for out in found
                for one in self._columns
                if one not in found
            )
            better = self._least(exchanges)
            if self.cost(better) >= self.cost(found):
                return found
            found = better

    def _least(self, sets: Iterator[tuple[int, ...]]) -> tuple[int, ...]:
        import numpy as np

        found: tuple[tuple[int, int, float], tuple[int, ...]] | None = None
        while chunk := list(islice(sets, _CHUNK)):
            unserved, disliked, product = self._costs(chunk)
            place = int(np.lexsort((product, disliked, unserved))[0])
            here = (int(unserved[place]), int(disliked[place]), float(product[place])), chunk[place]
            if found is None or here[0] < found[0]:
                found = here
        assert found is not None
        return found[1]

    def _costs(
        self, sets: Sequence[tuple[int, ...]]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        import numpy as np

        chosen = np.asarray(sets)
        regrets = self._regrets[:, chosen].min(axis=2)  # problems x sets
        served = np.isfinite(regrets)
        known = np.where(served, regrets, 0.0)
        mean = known.sum(axis=0) / np.maximum(served.sum(axis=0), 1)
        product = np.exp(known.max(axis=0) + mean)
        return len(regrets) - served.sum(axis=0), self._disliked[chosen].sum(axis=1), product


def _undominated(regrets: NDArray[np.float64]) -> list[int]:
    """Columns that no other one beats or equals in every row; of equals the first."""
    import numpy as np

    columns = np.arange(regrets.shape[1])
    kept = []
    for number in columns:
        column = regrets[:, number, None]
        as_good = (regrets <= column).all(axis=0)
        better = as_good & ((regrets < column).any(axis=0) | (columns < number))
        if not better.any():
            kept.append(int(number))
    return kept


def _as_portfolio(times: Times, problems: Sequence[Problem], chosen: Sequence[Config]) -> Portfolio:
    serves: dict[Config, list[Problem]] = {config: [] for config in chosen}
    regrets = {}
    for problem in problems:
        ran = [config for config in chosen if config in times[problem]]
        if ran:
            best = min(ran, key=lambda config: times[problem][config])
            serves[best].append(problem)
            regrets[problem] = times[problem][best] / min(times[problem].values())
    members = [Member(config, tuple(served)) for config, served in serves.items() if served]
    members.sort(key=lambda one: one.serves)
    return Portfolio(tuple(members), regrets, tuple(one for one in sorted(times) if one not in regrets))


def _of_best_authority(records: Sequence[Record]) -> list[Record]:
    """Of one stage and judge."""
    first_seen: dict[str, int] = {}
    for number, record in enumerate(records):
        first_seen.setdefault(record.evaluation.judge, number)
    judges = judge_ranks(first_seen)

    def authority(record: Record) -> tuple[bool, int]:
        return record.evaluation.stage is not Stage.MEASURED, judges[record.evaluation.judge]

    best = min(map(authority, records), default=None)
    return [record for record in records if authority(record) == best]


def _failed(store: Store, problem: Problem, record: Record) -> bool:
    source = str(record.evaluation.environment.get("source_sha", ""))
    verdict = store.verification(problem, record.config, source)
    return verdict is not None and verdict.status is not Status.OK
