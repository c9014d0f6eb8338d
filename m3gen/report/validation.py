"""Predictions beside published times: tables for a terminal, and the same for machines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from m3gen.evaluate import agreement
from m3gen.evaluate.ablation import Ablated
from m3gen.evaluate.predict import SWITCHES
from m3gen.evaluate.ranking import TIE
from m3gen.evaluate.validation import Ordered, Outcome, Ranked, Validation
from m3gen.report import layout, words


@dataclass(frozen=True, slots=True)
class Sheet:
    """One table of the report. A column that starts with ">" holds figures."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    fold: tuple[str, ...] = ()


def report(found: Validation, ablated: Sequence[Ablated]) -> RenderableType:
    parts: list[RenderableType] = []
    for sheet in sheets(found, ablated):
        parts.append(layout.title(sheet.title))
        if sheet.note:
            parts.append(Text(sheet.note))
        parts += [layout.table(sheet.columns, sheet.rows, fold=sheet.fold), Text("")]
    return Group(*parts, Text(summary(found)))


def sheets(found: Validation, ablated: Sequence[Ablated]) -> list[Sheet]:
    """Every table, those without a row left out."""
    made = [
        *_points(found.outcomes),
        _statistics("By group", "group", found.judged, lambda one: one.point.group),
        _statistics("By split", "split", found.judged, lambda one: str(one.point.split)),
        _statistics("By dominant term", "term", found.judged, lambda one: one.dominant or "failed"),
        _orders(found.orders),
        _choices(found.choices),
        _ablation(ablated),
    ]
    return [sheet for sheet in made if sheet.rows]


def summary(found: Validation) -> str:
    """ "21 of 30 points within their tolerance, 24 inside the interval; 8 of 9 orders hold"."""
    judged = found.judged
    within, inside = len(judged) - len(found.missed), sum(one.inside_interval for one in judged)
    holding = sum(one.holds for one in found.orders)
    return (
        f"{within} of {words.count(len(judged), 'point')} within tolerance, {inside} inside the predicted "
        f"interval; {holding} of {words.count(len(found.orders), 'order')} hold"
    )


def judges(found: Validation) -> str:
    """The versions of the predictor at work: "predict-amd-1, predict-nvidia-1"."""
    return _judges(found.outcomes)


def report_object(found: Validation, ablated: Sequence[Ablated]) -> dict[str, Any]:
    """All of it as plain data. Times in microseconds; ratios are predicted over published."""
    return {
        "judges": sorted({judge for one in found.outcomes for judge in one.judges}),
        "points": [_point_object(one) for one in found.outcomes],
        "groups": _statistics_objects(found.judged, lambda one: one.point.group),
        "splits": _statistics_objects(found.judged, lambda one: str(one.point.split)),
        "terms": _statistics_objects(found.judged, lambda one: one.dominant or "failed"),
        "orders": [
            {
                "what": one.order.what,
                "slower": one.order.slower.id,
                "faster": one.order.faster.id,
                "published_ratio": one.order.ratio,
                "predicted_ratio": one.ratio,
                "holds": one.holds,
            }
            for one in found.orders
        ],
        "choices": [
            {
                "id": one.choice.id,
                "device": one.choice.device,
                "what": one.choice.what,
                "parameter": one.choice.parameter,
                "shipped": one.choice.shipped,
                "times_us": {str(value): time for value, time in one.times_us.items()},
                "rank": one.rank,
                "tied_rank": one.tied_rank,
                "picked_rank": one.rule_rank,
                "refused": list(one.refuses),
                "regret": one.regret,
            }
            for one in found.choices
        ],
        "ablation": [asdict(one) | {"problem": one.problem.to_dict()} for one in ablated],
        "missed": [one.point.id for one in found.missed],
    }


def _points(outcomes: Sequence[Outcome]) -> list[Sheet]:
    """A table per group; what is not judged stands after what is."""
    columns = ("point", ">published", ">predicted", ">interval", ">ratio", "within", "split", "dominant")
    made = []
    ordered = sorted(outcomes, key=_group)
    for (shown_only, group), grouped in groupby(ordered, _group):
        members = list(grouped)
        remark = " (context only)" if shown_only else ""
        title = f"{group}{remark}: times in us, predicted by {_judges(members)}"
        note = f"not judged: {shown_only}" if shown_only else ""
        made.append(Sheet(title, columns, tuple(_point(one) for one in members), note=note))
    return made


def _group(one: Outcome) -> tuple[str, str]:
    return one.point.context_only, one.point.group


def _judges(outcomes: Iterable[Outcome]) -> str:
    return ", ".join(sorted({judge for one in outcomes for judge in one.judges})) or "no predictor"


def _point(one: Outcome) -> tuple[str, ...]:
    published = words.microseconds(one.point.microseconds)
    if one.predicted_us is None or one.low_us is None or one.high_us is None or one.ratio is None:
        return (one.point.id, published, "-", "-", "-", "failed", str(one.point.split), one.reason)
    return (
        one.point.id,
        published,
        words.microseconds(one.predicted_us),
        f"{words.microseconds(one.low_us)} to {words.microseconds(one.high_us)}",
        words.ratio(one.ratio),
        "yes" if one.within_tolerance else "NO",
        str(one.point.split),
        one.dominant,
    )


@dataclass(frozen=True, slots=True)
class _Statistics:
    points: int
    failed: int
    mean_ratio: float
    mean_factor: float
    worst_ratio: float | None
    spearman: float | None
    kendall: float | None
    within_tolerance: int
    inside_interval: int

    @classmethod
    def of(cls, members: Sequence[Outcome]) -> _Statistics:
        done = [one for one in members if one.predicted_us is not None]
        ratios = [one.ratio for one in done if one.ratio is not None]
        published = [one.point.microseconds for one in done]
        predicted = [one.predicted_us for one in done if one.predicted_us is not None]
        return cls(
            points=len(members),
            failed=len(members) - len(done),
            mean_ratio=agreement.mean_ratio(ratios),
            mean_factor=agreement.mean_factor(ratios),
            worst_ratio=agreement.worst_ratio(ratios) if ratios else None,
            spearman=agreement.spearman(published, predicted),
            kendall=agreement.kendall(published, predicted),
            within_tolerance=sum(one.within_tolerance for one in members),
            inside_interval=sum(one.inside_interval for one in members),
        )


def _grouped(outcomes: Iterable[Outcome], key: Callable[[Outcome], str]) -> dict[str, _Statistics]:
    found: dict[str, list[Outcome]] = {}
    for one in outcomes:
        found.setdefault(key(one), []).append(one)
    return {name: _Statistics.of(members) for name, members in found.items()}


def _statistics(title: str, name: str, outcomes: Sequence[Outcome], key: Callable[[Outcome], str]) -> Sheet:
    rows = [
        (
            group,
            str(one.points),
            words.ratio(one.mean_ratio),
            words.ratio(one.mean_factor),
            words.ratio(one.worst_ratio),
            _signed(one.spearman),
            _signed(one.kendall),
            f"{one.within_tolerance} of {one.points}",
            f"{one.inside_interval} of {one.points}",
        )
        for group, one in _grouped(outcomes, key).items()
    ]
    columns = (name, ">points", ">mean", ">off by", ">worst", ">Spearman", ">Kendall", ">within", ">in interval")
    note = "predicted over published: geometric mean, mean factor either way, furthest from 1"
    return Sheet(title, columns, tuple(rows), note=note)


def _statistics_objects(outcomes: Sequence[Outcome], key: Callable[[Outcome], str]) -> list[dict[str, Any]]:
    return [{"name": name, **asdict(one)} for name, one in _grouped(outcomes, key).items()]


def _orders(orders: Sequence[Ordered]) -> Sheet:
    rows = [
        (one.order.what, words.ratio(one.order.ratio), words.ratio(one.ratio), "yes" if one.holds else "NO")
        for one in orders
    ]
    columns = ("order", ">published", ">predicted", "holds")
    return Sheet("Orders: the slower over the faster", columns, tuple(rows))


def _choices(choices: Sequence[Ranked]) -> Sheet:
    rows = [
        (
            one.choice.what,
            one.choice.device,
            f"{one.choice.parameter}={one.choice.shipped}",
            *(f"{rank or '-'} of {count}" for rank, count in _ranks(one)),
            ", ".join(_alternative(one, value) for value in one.times_us),
            _share(one.regret),
        )
        for one in choices
    ]
    columns = (
        "shipped choice",
        "device",
        "shipped",
        ">by time",
        ">with ties",
        ">picked",
        "predicted us",
        ">behind",
    )
    firsts = [sum(_ranks(one)[column][0] == 1 for one in choices) for column in range(3)]
    note = (
        f"rank of what vLLM ships among its alternatives: by predicted time alone; when what is faster by no more "
        f"than a tie, {100 * TIE:.0f} %, does not count; and as m3gen would pick, a tie going to fewer registers, "
        f"then fewer launches, from those that its space allows (others are in brackets). First "
        f"{', '.join(map(str, firsts))} times in {len(choices)}. The last column is how far what is shipped is "
        f"predicted behind the fastest"
    )
    return Sheet("Shipped choices", columns, tuple(rows), note=note, fold=(columns[0], columns[6]))


def _ranks(one: Ranked) -> tuple[tuple[int | None, int], ...]:
    """By time, with ties, as picked: the rank, and among how many."""
    count = len(one.times_us)
    return (one.rank, count), (one.tied_rank, count), (one.rule_rank, len(one.order))


def _alternative(one: Ranked, value: int | str) -> str:
    text = f"{value}: {words.microseconds(one.times_us[value])}"
    return f"({text})" if value in one.refuses else text


def _ablation(ablated: Sequence[Ablated]) -> Sheet:
    spaces = list(dict.fromkeys((one.problem.op, one.problem.arch) for one in ablated))
    rows = []
    for term in SWITCHES:
        cells = []
        for space in spaces:
            of_space = [one for one in ablated if one.term == term and (one.problem.op, one.problem.arch) == space]
            if not of_space:
                cells.append("-")
                continue
            worst = max(one.regret for one in of_space)
            changed = sum(one.regret > TIE for one in of_space)
            taus = [one.agreement for one in of_space if one.agreement is not None]
            tau = _signed(min(taus)) if taus else "-"
            cells.append(f"{_share(worst)} ({changed} of {len(of_space)}), {tau}")
        rows.append((term, *cells))
    candidates = max((one.candidates for one in ablated), default=0)
    note = (
        f"the worst regret over loads of the winner picked without the term, as the whole model judges it; under "
        f"how many loads that is over {100 * TIE:.0f} %, a tie; the least Kendall tau of the two orders of "
        f"{candidates} random candidates"
    )
    columns = ("without", *(f"{op} {arch}" for op, arch in spaces))
    return Sheet("Ablation", columns, tuple(rows) if ablated else (), note=note)


def _point_object(one: Outcome) -> dict[str, Any]:
    point = one.point
    return {
        "id": point.id,
        "group": point.group,
        "device": point.device,
        "source": point.source,
        "what": point.what,
        "split": str(point.split),
        "context_only": point.context_only,
        "published_us": list(point.published_us),
        "predicted_us": one.predicted_us,
        "low_us": one.low_us,
        "high_us": one.high_us,
        "ratio": one.ratio,
        "tolerance": point.tolerance,
        "within_tolerance": one.within_tolerance,
        "inside_interval": one.inside_interval,
        "terms": dict(one.terms),
        "dominant": one.dominant,
        "judges": list(one.judges),
        "reason": one.reason,
    }


def _signed(value: float | None) -> str:
    return "-" if value is None else f"{value:+.2f}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.0f} %"
