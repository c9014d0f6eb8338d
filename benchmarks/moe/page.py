"""docs/predictor_moe.md: the rankings of every campaign, their bars, and what each term and fact is worth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from .campaign import Campaign
from .case import Case, percentile
from .evaluation import PENALTY, Figures, Held, Prepared, fit_without, held_out, prepare, unfitted
from .features import ALL, FACTS, GROUPS
from .kernels import Column
from .terms import SHAPES, TERMS

FIRST_BAR = 60.0  # percent of winners to be first of their tile
FEWEST_SIBLINGS = 2
TWINS = ("MI300X", "MI325X")
OTHER_PENALTIES = (3.0, 300.0)
FIGURES = ("mean", "median", "top 5 %", "top 10 %")
LOADS = (("up to 16", 0, 16), ("17 to 256", 17, 256), ("over 256", 257, 1 << 30))

Cases = Mapping[Campaign, Sequence[Case]]
Costs = Mapping[Campaign, Sequence[Column]]
Row = tuple[str, ...]


def page(cases: Cases, planned: Mapping[Campaign, int]) -> tuple[str, bool]:
    """Markdown, and whether every bar is met; `planned` counts the configurations of each pool."""
    every = [case for some in cases.values() for case in some]
    calibrated = costs(cases, prepare(every, ALL), "experts")
    tile_held = costs(cases, prepare(every, ALL), "tile")
    plain = {campaign: [unfitted(case) for case in some] for campaign, some in cases.items()}
    across = list(across_rows(cases, plain, calibrated))
    inside = list(inside_rows(cases, plain, calibrated, tile_held))
    met = all(row[-1] != "**missed**" for row in (*across, *inside))
    return HEAD.format(
        pools=table(("tables", "devices", "entries", "pool", "kernels", "rivals"), pool_rows(cases, planned)),
        across=table(("tables", "ranking", "entries", *FIGURES, "bar", ""), across),
        loads=table(("tables", "tokens", "entries", *FIGURES), load_rows(cases, calibrated)),
        inside=table(("tables", "ranking", "entries", "options", "first", "mean", "bar", ""), inside),
        agreement=table(
            ("tables", "pairs", "same winner", "same tile", "same options of it"), agreement_rows(cases)
        ),
        terms=table(("without", *(campaign.name for campaign in cases)), term_rows(cases)),
        groups=table(("ranking", *(campaign.name for campaign in cases)), group_rows(cases, every)),
        weights=table(("feature", "weight", "fp8"), weight_rows(every)),
        penalty=f"{PENALTY:g}",
    ), met


def costs(cases: Cases, prepared: Sequence[Prepared], held: Held, penalty: float = PENALTY) -> Costs:
    """Of every case by campaign, each ranked by a fit to all campaigns without what is `held` out."""
    ranked = iter(held_out(prepared, prepared, held, penalty))
    return {campaign: [next(ranked) for _ in some] for campaign, some in cases.items()}


def pool_rows(cases: Cases, planned: Mapping[Campaign, int]) -> Iterator[Row]:
    for campaign, some in cases.items():
        kernels = some[0].kernels
        rivals = np.array([case.rivals.sum() for case in some])
        devices = ", ".join(dict.fromkeys(case.entry.device for case in some))
        counts = (len(some), planned[campaign], len(kernels), round(rivals.mean()))
        yield campaign.name, devices, *map(str, counts)


def across_rows(cases: Cases, plain: Costs, calibrated: Costs) -> Iterator[Row]:
    """The bars are those of the calibrated ranking."""
    for campaign, some in cases.items():
        smallest = [case.kernels.block_m * case.kernels.block_n * case.kernels.block_k for case in some]
        for name, cost in (("smallest tile", smallest), ("unfitted", plain[campaign])):
            yield campaign.name, name, *_figures(percentiles(some, cost)), "", ""
        ours = Figures.of(percentiles(some, calibrated[campaign]))
        mean, median = campaign.bars
        bar = f"{mean:g} / {median:g}"
        yield (
            campaign.name,
            "calibrated",
            *_shown(ours),
            bar,
            _verdict(ours.mean <= mean and ours.median <= median),
        )


def load_rows(cases: Cases, calibrated: Costs) -> Iterator[Row]:
    for campaign, some in cases.items():
        for name, low, high in LOADS:
            chosen = [n for n, case in enumerate(some) if low <= case.entry.tokens <= high]
            found = percentiles([some[n] for n in chosen], [calibrated[campaign][n] for n in chosen])
            if found:
                yield campaign.name, name, *_figures(found)


def inside_rows(cases: Cases, plain: Costs, calibrated: Costs, tile_held: Costs) -> Iterator[Row]:
    for campaign, some in cases.items():
        chosen = [n for n, case in enumerate(some) if case.siblings.sum() >= FEWEST_SIBLINGS]
        if not chosen:
            continue
        tested = [some[n] for n in chosen]
        options = np.array([1 + case.siblings.sum() for case in tested])
        shared = (campaign.name, f"{len(tested)}", f"{options.mean():.1f}")
        rankings = {
            "random": None,
            "fewest registers": [case.kernels.registers for case in tested],
            "unfitted": [plain[campaign][n] for n in chosen],
            "calibrated": [calibrated[campaign][n] for n in chosen],
            "calibrated, tile unseen": [tile_held[campaign][n] for n in chosen],
        }
        for name, cost in rankings.items():
            row = (shared[0], name, *shared[1:])
            if cost is None:
                yield *row, f"{100 * (1 / options).mean():.0f} %", "50", "", ""
                continue
            ours = Figures.of(percentiles(tested, cost, inside=True))
            is_held = name.startswith("calibrated")
            verdict = (f"{FIRST_BAR:g} %", _verdict(ours.first >= FIRST_BAR)) if is_held else ("", "")
            yield *row, f"{ours.first:.0f} %", f"{ours.mean:.1f}", *verdict


def agreement_rows(cases: Cases) -> Iterator[Row]:
    """How far MI300X's and MI325X's tables, timings of the same compute units, give the same answers."""
    for campaign, some in cases.items():
        winners = {
            (e.device, e.experts, e.intermediate, e.tokens): e.winner for e in (case.entry for case in some)
        }
        pairs = [
            (w, winners[k])
            for (d, *rest), w in winners.items()
            if d == TWINS[0] and (k := (TWINS[1], *rest)) in winners
        ]
        if not pairs:
            continue
        tiles = [pair for pair in pairs if pair[0].tile == pair[1].tile]
        same = sum(one == other for one, other in pairs)
        shares = (same / len(pairs), len(tiles) / len(pairs), same / len(tiles))
        yield campaign.name, str(len(pairs)), *(f"{100 * share:.0f} %" for share in shares)


def term_rows(cases: Cases) -> Iterator[Row]:
    """Mean and median percentile of the unfitted ranking with one term switched off."""
    for off in ("nothing", *TERMS, *SHAPES):
        yield off, *(_pair(percentiles(some, [unfitted(c, (off,)) for c in some])) for some in cases.values())


def group_rows(cases: Cases, every: Sequence[Case]) -> Iterator[Row]:
    """Mean and median percentile of rankings calibrated on less, or under another penalty."""
    variants: list[tuple[str, Sequence[str], float]] = [("all features", ALL, PENALTY)]
    variants += [
        (f"without {group}", [n for n in ALL if n not in names], PENALTY) for group, names in GROUPS.items()
    ]
    variants += [(f"all features, penalty {other:g}", ALL, other) for other in OTHER_PENALTIES]
    for name, names, penalty in variants:
        found = costs(cases, prepare(every, names), "experts", penalty)
        yield name, *(_pair(percentiles(some, found[campaign])) for campaign, some in cases.items())


def weight_rows(every: Sequence[Case]) -> Iterator[Row]:
    """Of a fit to all cases: what one standard deviation inside a pool adds to the score, and fp8's correction."""
    weights = fit_without(prepare(every, ALL), "experts", None).standardised
    shared, fp8 = weights[: len(ALL)], weights[len(ALL) :]
    for n in np.argsort(-np.abs(shared)):
        kind = "machine code: " if ALL[n] in FACTS else ""
        yield f"{kind}{ALL[n]}", f"{shared[n]:+.2f}", f"{fp8[n]:+.2f}"


def percentiles(cases: Sequence[Case], cost: Sequence[Column], *, inside: bool = False) -> list[float]:
    """Of each case's winner among its rivals, or among its siblings."""
    pairs = zip(cases, cost, strict=True)
    return [percentile(case, column, case.siblings if inside else case.rivals) for case, column in pairs]


def table(head: Row, rows: Iterator[Row] | Sequence[Row]) -> str:
    lines = [
        head,
        tuple(
            "---" if name in ("tables", "devices", "tokens", "ranking", "feature", "without") else "---:"
            for name in head
        ),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in (*lines, *rows))


def _figures(found: Sequence[float]) -> Row:
    return _shown(Figures.of(found))


def _shown(f: Figures) -> Row:
    return str(f.count), f"{f.mean:.1f}", f"{f.median:.1f}", f"{f.top5:.0f} %", f"{f.top10:.0f} %"


def _pair(found: Sequence[float]) -> str:
    return f"{np.mean(found):.1f} / {np.median(found):.1f}"


def _verdict(met: bool) -> str:
    return "met" if met else "**missed**"


HEAD = """# How far down m3gen's ranking vLLM's winners come

Made by `python benchmarks/moe_winners.py` from the tables and the kernel in a vLLM wheel. Do not edit.

vLLM ships tables of the fastest configuration of its fused-MoE kernel, found on AMD's GPUs by timing. m3gen predicts
times from machine code, without a GPU. Here it ranks, for every entry of the tables, the configurations that the
tuner could have tried; the percentile of the shipped one is the share of them that m3gen ranks before it: 0 is the
best, 50 what a random order gives.

- *pool*: all shipped winners, a random sample of the rest of the tuner's space (waves_per_eu 0, as all winners have),
  and every option of the tiles that win most often. *kernels*: what of it was compiled, as the JIT would; the rest
  takes too long, could not be launched or was not reached in the time given. *rivals* of a winner, on average: the
  sample and as large a share of the other winners, as far as the tuner's rules let them through.
- *unfitted*: the analytic time of the layer's two GEMMs (benchmarks/moe/terms.py), with the constants of
  m3gen/evaluate/timing.py. One choice was made after a first look at bf16: tiles come at L2's rate, not the last
  level's.
- *calibrated*: a linear score of analytic times, facts of the machine code and options, fitted to the tables of all
  three sets (penalty {penalty}). Whatever has as many experts as the tested entry is left out of the fit, in every
  set.
- What is assumed: hidden size and experts per token, which the tables do not tell (benchmarks/moe/layer.py; tables of
  62 experts are left out), and uniform random routing. The winners were timed with other versions of Triton, and what
  came second is not known: a near tie counts as an error.

{pools}

## Across tiles

{across}

Of the calibrated ranking by number of tokens:

{loads}

## Inside a tile

Among the compiled configurations of the winner's own tile, which differ in warps, nonkdim and kpack; *first* is the
share of winners that nothing is ranked before. *tile unseen*: the tile is left out of the fit, the experts are not.

{inside}

How far the tables bear each other out: MI325X has MI300X's compute units and faster memory, and for the same layer
and tokens their two tables name

{agreement}

## What the terms are worth

Mean and median percentile of the unfitted ranking with one term switched off.

{terms}

And of the calibrated ranking:

{groups}

## Weights

Of a fit to all entries: what one standard deviation inside a pool adds to the score, higher ranking better, and the
correction for fp8.

{weights}
"""
