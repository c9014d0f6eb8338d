"""The fit, and that it has never seen what it is tested on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.moe.campaign import CAMPAIGNS, GFX942_BF16
from benchmarks.moe.case import Case, cases
from benchmarks.moe.evaluation import Held, held_out, prepare
from benchmarks.moe.features import ALL
from benchmarks.moe.kernels import Kernels, kernels
from benchmarks.moe.pool import sample
from benchmarks.moe.ranker import Contest, fit
from benchmarks.moe.results import FOLDER, path, read, write
from benchmarks.moe.terms import SHAPES, TERMS, layer_terms
from tests.benchmarks.test_moe_pool import compiled, entry

WINNERS = tuple(sample(GFX942_BF16, [])[:2])


def test_the_fit_finds_the_feature_that_decides_and_ignores_the_others() -> None:
    generator = np.random.default_rng(0)
    contests = []
    for _ in range(200):
        rows = generator.normal(size=(30, 4)) * (1, 1, 100, 0)
        contests.append(Contest(rows, int(np.argmin(rows[:, 1]))))
    ranker = fit(contests, penalty=1.0)
    assert np.argmax(np.abs(ranker.standardised)) == 1
    assert ranker.weights[1] < 0
    assert abs(ranker.standardised[[0, 2]]).max() < 0.2 * abs(ranker.standardised[1])
    assert ranker.weights[3] == 0  # never differs, so nothing is known of it
    assert np.mean([np.argmin(ranker.cost(one.features)) == one.winner for one in contests]) > 0.9


def test_a_constant_added_to_a_pool_changes_nothing() -> None:
    generator = np.random.default_rng(1)
    contests = [Contest(generator.normal(size=(10, 3)), 0) for _ in range(50)]
    moved = [replace(one, features=one.features + 7.0 * n) for n, one in enumerate(contests)]
    np.testing.assert_allclose(fit(contests, 1.0).weights, fit(moved, 1.0).weights, rtol=1e-6)


def pools() -> Kernels:
    return kernels([compiled(config) for config in sample(GFX942_BF16, [])[:80]], 2)


def cases_won_by(winner: int) -> list[Case]:
    """Two cases of 8 experts, won by one of two configurations, and two of 60 and 16 that stay as they are."""
    shipped = [entry(WINNERS[winner], tokens, 8) for tokens in (128, 256)]
    shipped += [entry(WINNERS[0], 128, 60), entry(WINNERS[1], 128, 16)]
    return list(cases(GFX942_BF16, shipped, pools()))


@pytest.mark.parametrize("held", ["experts"])
def test_other_winners_of_the_tested_experts_change_no_cost(held: Held) -> None:
    costs = []
    for winner in (0, 1):
        prepared = prepare(cases_won_by(winner), ALL)
        tested = [one for one in prepared if one.case.entry.experts == 8]
        assert len(tested) == 2
        costs.append(held_out(tested, prepared, held))
    np.testing.assert_array_equal(costs[0], costs[1])


def test_a_tile_that_is_held_out_is_in_no_contest() -> None:
    """Facts of the tile that change by a factor of ten leave every cost of other tiles as it is."""
    tile = WINNERS[0].tile
    costs = []
    for factor in (1, 10):
        found = [compiled(config) for config in sample(GFX942_BF16, [])[:80]]
        for n, one in enumerate(found):
            if one.config.tile == tile and one.facts:
                found[n] = replace(one, facts=replace(one.facts, registers=40 * factor))
        shipped = [entry(winner, 128, experts) for winner in WINNERS for experts in (8, 16)]
        all_cases = list(cases(GFX942_BF16, shipped, kernels(found, 2)))
        prepared = prepare(all_cases, ALL)
        tested = [one for one in prepared if one.case.entry.winner.tile == tile]
        others = np.array([config.tile != tile for config in tested[0].case.kernels.configs])
        costs.append(held_out(tested, prepared, "tile")[0][others])
    np.testing.assert_array_equal(costs[0], costs[1])


@pytest.mark.parametrize("off", TERMS)
def test_a_term_switched_off_is_nothing_and_adds_to_no_total(off: str) -> None:
    shipped = entry(WINNERS[0], 4096)
    plain, without = layer_terms(shipped, pools()), layer_terms(shipped, pools(), (off,))
    assert (plain[off] > 0).all()
    assert (without[off] == 0).all()
    assert (without["total"] <= plain["total"]).all()


@pytest.mark.parametrize("off", SHAPES)
def test_how_programs_fall_counts(off: str) -> None:
    shipped = entry(WINNERS[0], 4096)
    assert (layer_terms(shipped, pools(), (off,))["total"] != layer_terms(shipped, pools())["total"]).any()


def test_facts_come_back_from_disk(tmp_path: Path) -> None:
    found = [compiled(config) for config in WINNERS]
    write(tmp_path, GFX942_BF16, found)
    assert read(tmp_path, GFX942_BF16) == {one.config: one for one in found}


def test_the_facts_in_the_repository_can_be_ranked() -> None:
    assert sum(path(FOLDER, campaign).stat().st_size for campaign in CAMPAIGNS) < 1 << 20
    for campaign in CAMPAIGNS:
        found = kernels(read(FOLDER, campaign).values(), campaign.element_bytes)
        assert len(found) > 50
        assert all(np.isfinite(column).all() for column in found.columns.values())
        assert (found.matrix_cycles > 0).all()
