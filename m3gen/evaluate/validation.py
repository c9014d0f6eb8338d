"""Predictions of published points: what must be compiled for them, and how they come out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from m3gen import ops
from m3gen.compiler.request import CompileRequest, CompileResult
from m3gen.evaluate import ranking
from m3gen.evaluate.evaluation import Evaluation
from m3gen.evaluate.points import Choice, Order, Point, PointSet, Term
from m3gen.evaluate.predict import TERMS, predict
from m3gen.evaluate.ranking import TIE
from m3gen.ops import Cache, field_config
from m3gen.space import Config
from m3gen.spec import MINIMAX_M3, ExactProblem, Problem
from m3gen.targets import Device, device


@dataclass(frozen=True, slots=True)
class Candidate:
    """One op under one load, in one configuration."""

    problem: ExactProblem
    config: Config


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a point. On failure `reason` says which term does not compile, and times are None.

    The interval of a sum is as wide as its parts' widths with their signs, as if every part were off by the same
    share. `terms` are those of the predictor, added up with the point's signs; `dominant` is the largest that
    bounds a time.
    """

    point: Point
    predicted_us: float | None = None
    low_us: float | None = None
    high_us: float | None = None
    terms: Mapping[str, float] = field(default_factory=dict)
    dominant: str = ""
    judges: tuple[str, ...] = ()
    reason: str = ""

    @property
    def ratio(self) -> float | None:
        """Predicted over published."""
        return None if self.predicted_us is None else self.predicted_us / self.point.microseconds

    @property
    def within_tolerance(self) -> bool:
        return self.ratio is not None and abs(self.ratio - 1) <= self.point.tolerance

    @property
    def inside_interval(self) -> bool:
        """Whether a published time lies between `low_us` and `high_us`."""
        if self.low_us is None or self.high_us is None:
            return False
        return any(self.low_us <= time <= self.high_us for time in self.point.published_us)


@dataclass(frozen=True, slots=True)
class Ordered:
    """What became of an order; `ratio` is predicted, slower over faster, None where either failed."""

    order: Order
    ratio: float | None

    @property
    def holds(self) -> bool:
        return self.ratio is not None and self.ratio > 1


@dataclass(frozen=True, slots=True)
class Ranked:
    """What became of a choice: predicted microseconds by alternative, those that do not compile left out. `order` is
    the one of a pick, the best first: without what the space `refuses`, ties broken as `evaluate.ranking` does.
    Nothing is a baseline in it: that would be what is shipped."""

    choice: Choice
    times_us: Mapping[int | str, float]
    order: tuple[int | str, ...] = ()
    refuses: tuple[int | str, ...] = ()

    @property
    def rank(self) -> int | None:
        """1 when nothing is predicted faster than what is shipped; None where that does not compile."""
        shipped = self.times_us.get(self.choice.shipped)
        return None if shipped is None else 1 + sum(time < shipped for time in self.times_us.values())

    @property
    def tied_rank(self) -> int | None:
        """1 when nothing is predicted faster by more than a tie."""
        shipped = self.times_us.get(self.choice.shipped)
        return None if shipped is None else 1 + sum(time * (1 + TIE) < shipped for time in self.times_us.values())

    @property
    def rule_rank(self) -> int | None:
        """1 when m3gen would pick it."""
        return 1 + self.order.index(self.choice.shipped) if self.choice.shipped in self.order else None

    @property
    def best(self) -> int | str | None:
        return min(self.times_us, key=lambda value: self.times_us[value], default=None)

    @property
    def regret(self) -> float | None:
        """By what share the shipped one is predicted slower than the best."""
        shipped = self.times_us.get(self.choice.shipped)
        return None if shipped is None else shipped / min(self.times_us.values()) - 1


@dataclass(frozen=True, slots=True)
class Validation:
    """Everything that a set of points says about the predictor."""

    outcomes: tuple[Outcome, ...]
    orders: tuple[Ordered, ...]
    choices: tuple[Ranked, ...]

    @property
    def judged(self) -> tuple[Outcome, ...]:
        """Without the points that are context only."""
        return tuple(one for one in self.outcomes if not one.point.context_only)

    @property
    def missed(self) -> tuple[Outcome, ...]:
        return tuple(one for one in self.judged if not one.within_tolerance)


def of_arch(points: PointSet, arch: str) -> PointSet:
    """What concerns devices of one architecture."""
    return PointSet(
        tuple(one for one in points.points if device(one.device).arch == arch),
        tuple(one for one in points.orders if device(one.slower.device).arch == arch),
        tuple(one for one in points.choices if device(one.device).arch == arch),
    )


def requests(points: PointSet) -> list[CompileRequest]:
    """What has to be compiled, each op and configuration once with all its loads."""
    loads: dict[tuple[ExactProblem, Config], dict[ExactProblem, None]] = {}
    for one in _candidates(points):
        signature = ExactProblem.of(one.problem, 1, 1)
        loads.setdefault((signature, one.config), {})[one.problem] = None
    return [CompileRequest(signature.op, tuple(found), config) for (signature, config), found in loads.items()]


def validate(points: PointSet, compiled: Iterable[tuple[CompileRequest, CompileResult]]) -> Validation:
    """Predict every point from `requests(points)` and what they compiled to."""
    known: dict[Candidate, tuple[CompileResult, int]] = {}
    for request, result in compiled:
        for number, problem in enumerate(request.problems):
            assert isinstance(problem, ExactProblem)
            known[Candidate(problem, request.config)] = result, number

    def evaluate(term: Term, where: Device) -> Evaluation | str:
        one = candidate(term, where)
        result, number = known[one]
        if not result.ok:
            return f"{term.op}: {result.status}: {result.reason}"
        return evaluation(result, number, one.problem, one.config, where)

    def outcome(point: Point) -> Outcome:
        where = device(point.device)
        parts = [(term.sign, evaluate(term, where)) for term in point.terms]
        if failed := next((found for _, found in parts if isinstance(found, str)), ""):
            return Outcome(point=point, reason=failed)
        return _summed(point, [(sign, found) for sign, found in parts if isinstance(found, Evaluation)])

    def ranked(choice: Choice) -> Ranked:
        where = device(choice.device)
        made = {value: candidate(_with(choice, value), where) for value in choice.alternatives}
        found = {value: evaluate(_with(choice, value), where) for value in choice.alternatives}
        sound = {value: one for value, one in found.items() if isinstance(one, Evaluation) and one.value_us}
        refuses = tuple(
            value
            for value in sound
            if ops.get(choice.term.op).space(made[value].problem, where).violations(made[value].config)
        )
        registers = {key: facts.registers for value in sound for key, facts in known[made[value]][0].facts.items()}
        legal = {value: one for value, one in sound.items() if value not in refuses}
        order = tuple(ranking.ranked(legal, registers.get))
        times = {value: one.value_us for value, one in sound.items() if one.value_us}
        return Ranked(choice, times, order, refuses)

    outcomes = tuple(outcome(point) for point in points.points)
    times = {one.point.id: one.predicted_us for one in outcomes}
    orders = tuple(
        Ordered(order, _ratio(times[order.slower.id], times[order.faster.id])) for order in points.orders
    )
    return Validation(outcomes, orders, tuple(ranked(choice) for choice in points.choices))


def candidate(term: Term, where: Device) -> Candidate:
    """The op of a term under its exact load, in the field's configuration with the term's changes."""
    op = ops.get(term.op)
    made = op.problem(where, MINIMAX_M3.shard(term.tp), Cache(term.kv, term.kv_scale), term.query_len)
    if made is None:
        raise ValueError(f"{term.op} has no variant for {term.kv} with scale {term.kv_scale}")
    problem = ExactProblem.of(made, term.rows, term.context)
    config = field_config(op, problem, where)
    if term.config:
        space = op.space(problem, where)
        # The field's configuration lacks what its own values make inactive.
        config = space.canonical({**{p.name: p.default for p in space.parameters}, **config, **term.config})
    return Candidate(problem, config)


def evaluation(
    result: CompileResult,
    number: int,
    problem: Problem,
    config: Config,
    where: Device,
    without: frozenset[str] = frozenset(),
) -> Evaluation:
    """The prediction of one problem, the `number`-th of its request, from an OK result."""
    facts = [result.facts[key] for key in result.keys[number]]
    work = ops.get(problem.op).work(problem, config)
    found = predict(result.launches[number], facts, work, where, without=without)
    return replace(found, facts=result.keys[number])


def _candidates(points: PointSet) -> Iterable[Candidate]:
    for point in points.points:
        for term in point.terms:
            yield candidate(term, device(point.device))
    for choice in points.choices:
        for value in choice.alternatives:
            yield candidate(_with(choice, value), device(choice.device))


def _with(choice: Choice, value: int | str) -> Term:
    return replace(choice.term, config=Config({**choice.term.config, choice.parameter: value}))


def _summed(point: Point, parts: Sequence[tuple[int, Evaluation]]) -> Outcome:
    terms = dict.fromkeys(TERMS, 0.0)
    value = below = above = 0.0
    for sign, one in parts:
        time = one.value_us or 0.0
        value += sign * time
        below += sign * (time - (one.low_us or 0.0))
        above += sign * ((one.high_us or time) - time)
        for name in TERMS:
            terms[name] += sign * one.terms.get(name, 0.0)
    bounds = [name for name in TERMS if name != "tail"]
    return Outcome(
        point=point,
        predicted_us=value,
        low_us=value - abs(below),
        high_us=value + abs(above),
        terms={name: round(us, 4) for name, us in terms.items()},
        dominant=max(bounds, key=lambda name: terms[name]),
        judges=tuple(sorted({one.judge for _, one in parts})),
    )


def _ratio(slower: float | None, faster: float | None) -> float | None:
    return None if slower is None or faster is None or faster <= 0 else slower / faster
