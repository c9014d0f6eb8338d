"""`Related`: what the tables and the store know of problems like one, as the `Prior` of its search."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from itertools import chain
from pathlib import Path

from m3gen.errors import UserError
from m3gen.search.neighbours import distance, fitted
from m3gen.search.prior import Prior
from m3gen.space import Config, Space
from m3gen.spec import Problem
from m3gen.store import Record, Store
from m3gen.tables.load import load
from m3gen.tables.table import Table
from m3gen.targets import ARCHITECTURES, architecture

MOST_SEEDS = 5
# Problems whose evaluations train a surrogate, which takes a second or two each, and how many they need to say
# anything.
MOST_SIBLINGS, FEWEST_EVALUATIONS = 2, 20


class Related:
    """Looks in `tables` (None: nowhere) and `store` for problems of the same op, on the archs of the vendor."""

    def __init__(self, store: Store, tables: Path | None) -> None:
        self._tables = tables
        self._table = cache(self._load)
        self._problems = cache(lambda arch: store.problems(arch=arch))
        self._records = cache(store.evaluations)

    def prior(self, problem: Problem, space: Space, field: Config, default: Config | None = None) -> Prior:
        """At most five seeds that fit the space: the op's own `default`, the shipped row, the best of the nearest
        problems, the best of a sibling arch. `field` is no seed, for a session evaluates it first anyway. Siblings are
        the evaluations of the nearest problems, in configs of this space, the problem itself among them with those
        of a space that had other parameters."""
        seeds: dict[Config, None] = {}
        for config in chain([] if default is None else [default], self._seeds(problem)):
            found = fitted(config, space)
            if found is not None and found != field and len(seeds) < MOST_SEEDS:
                seeds[found] = None
        return Prior(tuple(seeds), tuple(self._siblings(problem, space)))

    def _seeds(self, problem: Problem) -> Iterator[Config]:
        """Shipped for this very problem, then what is best where it is nearest: two rows of this arch, a row of each
        sibling, shipped or stored, then the next ones."""
        here = self._winners(problem, problem.arch)
        yield from here[:3]
        for arch in _siblings_of(problem.arch):
            yield from self._winners(problem, arch)[:1]
        yield from here[3:]

    def _winners(self, problem: Problem, arch: str) -> list[Config]:
        """Configs that are best somewhere, those of nearer problems first; of one problem the shipped one first."""
        table = self._table(arch, problem.op)
        shipped = [(p.problem, Config(table.configs[p.config])) for p in table.points] if table else []
        stored = [(one, best) for one in self._of_op(problem, arch) if (best := self._best(one)) is not None]
        ordered = sorted([*shipped, *stored], key=lambda pair: distance(problem, pair[0]))
        return list(dict.fromkeys(config for _, config in ordered))

    def _siblings(self, problem: Problem, space: Space) -> Iterator[Mapping[Config, float | None]]:
        archs = (problem.arch, *_siblings_of(problem.arch))
        known = [one for arch in archs for one in self._of_op(problem, arch)]
        found = 0
        for one in sorted(known, key=lambda one: distance(problem, one)):
            times: dict[Config, float | None] = {}
            for record in self._records(one):
                if one == problem and record.config in space:
                    continue  # the search itself takes it over
                evaluation = record.evaluation
                config = fitted(record.config, space) if evaluation.may_win or not evaluation.ok else None
                if config is not None:
                    times[config] = evaluation.value_us if evaluation.ok else None
            if len(times) >= FEWEST_EVALUATIONS:
                yield times
                found += 1
            if found == MOST_SIBLINGS:
                return

    def _of_op(self, problem: Problem, arch: str) -> list[Problem]:
        return [one for one in self._problems(arch) if one.op == problem.op]

    def _best(self, problem: Problem) -> Config | None:
        """The fastest that one judge, the newest, saw on the last rung."""
        last: list[Record] = [record for record in self._records(problem) if record.evaluation.may_win]
        if not last:
            return None
        judged = [record for record in last if record.evaluation.judge == last[-1].evaluation.judge]
        return min(judged, key=lambda record: record.evaluation.value_us or 0.0).config

    def _load(self, arch: str, op: str) -> Table | None:
        """None where there is no table; one that cannot be read gives no seeds either, and export will say why."""
        path = self._tables / arch / f"{op}.json" if self._tables else None
        if path is None or not path.is_file():
            return None
        with suppress(UserError):
            return load(path)
        return None


def _siblings_of(arch: str) -> tuple[str, ...]:
    """Other archs of its vendor; what wins on another vendor's says nothing here."""
    vendor = architecture(arch).vendor
    return tuple(name for name, one in ARCHITECTURES.items() if one.vendor is vendor and name != arch)
