"""The tuner's rules, the sample, and the percentile."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from benchmarks.moe.campaign import CAMPAIGNS, GFX942_BF16, Campaign
from benchmarks.moe.case import Case, cases, percentile
from benchmarks.moe.compiling import Compiled
from benchmarks.moe.config import MoeConfig
from benchmarks.moe.kernels import kernels
from benchmarks.moe.layer import Gemm, gemms, tokens_per_expert
from benchmarks.moe.pool import allows, completions, pool, sample, space
from benchmarks.moe.tables import Entry
from m3gen.compiler.facts import KernelFacts, LoopFacts
from m3gen.spec import Status

LARGE, SMALL = Gemm(8192, 14336, 4096), Gemm(24, 14336, 4096)


def entry(winner: MoeConfig, tokens: int = 64, experts: int = 8) -> Entry:
    return Entry(GFX942_BF16, "MI300X", experts, 7168, tokens, winner)


def compiled(config: MoeConfig, sha: str = "", unroll: int = 1) -> Compiled:
    """As many bytes loaded as `unroll` steps take; all else small and equal."""
    per_lane = (config.block_m + config.block_n) * config.block_k * 2 // (64 * config.num_warps)
    loop = LoopFacts(
        label="loop",
        depth=1,
        instructions=100 * unroll,
        mix={"matrix": 8 * unroll, "vector": 20 * unroll, "scalar": 4 * unroll, "load": 4 * unroll},
        matrix_cycles=128 * unroll,
        load_bytes_per_lane=per_lane * unroll,
        load_widths={"16": 4 * unroll},
        shared_read_bytes_per_lane=64 * unroll,
        shared_write_bytes_per_lane=64 * unroll,
        waits=2 * unroll,
        barriers=2 * unroll,
        branches=1,
    )
    facts = KernelFacts(
        kernel="fused_moe_kernel",
        arch="gfx942",
        num_warps=config.num_warps,
        registers=64,
        accumulation_registers=0,
        scalar_registers=32,
        vector_spills=0,
        scalar_spills=0,
        scratch_bytes=0,
        shared_bytes=8192,
        workgroups_per_cu=2,
        waves_per_simd=2.0,
        occupancy_limit="registers",
        instructions=100 * unroll + 500,
        mix={},
        matrix_instructions={},
        matrix_cycles=128 * unroll,
        load_widths={},
        loops=(loop,),
        code_bytes=1000,
        compile_seconds=1.0,
        compiler="triton",
        code_sha=sha or repr(config),
    )
    return Compiled(config, Status.OK, "", facts)


def ranked(winner: MoeConfig, found: Sequence[Compiled]) -> Case:
    (case,) = cases(GFX942_BF16, [entry(winner)], kernels(found, 2))
    return case


@pytest.mark.parametrize("campaign", CAMPAIGNS, ids=lambda campaign: campaign.name)
def test_the_sample_is_drawn_from_the_space_without_the_winners(campaign: Campaign) -> None:
    everything = set(space(campaign))
    winners = sorted(everything)[:20]
    drawn = sample(campaign, winners)
    assert len(set(drawn)) == campaign.sampled
    assert set(drawn) <= everything - set(winners)
    assert sample(campaign, winners) == drawn


def test_the_space_has_the_sizes_of_the_tuners() -> None:
    assert [len(set(space(campaign))) for campaign in CAMPAIGNS] == [1288, 364, 364]


@pytest.mark.parametrize(
    ("config", "gemm", "allowed"),
    [
        (MoeConfig(64, 64, 64, 4, 16, 1), LARGE, True),
        (MoeConfig(64, 64, 32, 4, 16, 1), LARGE, False),  # a large GEMM is not tried with small steps,
        (MoeConfig(32, 64, 64, 4, 16, 1), LARGE, False),  # small tiles
        (MoeConfig(64, 64, 64, 2, 16, 1), LARGE, False),  # or few warps
        (MoeConfig(32, 64, 64, 2, 16, 1), SMALL, True),
        (MoeConfig(64, 64, 64, 2, 16, 1), SMALL, False),  # more than twice the rows there are
        (MoeConfig(16, 64, 64, 2, 32, 1), SMALL, False),  # the wide instruction needs 32 rows
        (MoeConfig(16, 64, 256, 2, 16, 1), Gemm(16, 4096, 1408), False),  # 1,408 is no multiple of 256
    ],
)
def test_what_the_tuner_tries(config: MoeConfig, gemm: Gemm, allowed: bool) -> None:
    assert allows(config, gemm, 2) is allowed


def test_the_tiles_that_win_most_are_completed() -> None:
    often, seldom = MoeConfig(16, 64, 128, 4, 16, 2), MoeConfig(128, 128, 64, 8, 16, 2)
    shipped = [entry(often)] * 9 + [entry(seldom)]
    tiles = {config.tile for config in completions(GFX942_BF16, shipped)}
    assert tiles == {often.tile}
    assert len(pool(GFX942_BF16, shipped)) == len(set(pool(GFX942_BF16, shipped)))
    assert pool(GFX942_BF16, shipped)[:2] == sorted([often, seldom])


def test_a_percentile_counts_ties_by_half() -> None:
    winner = MoeConfig(16, 64, 128, 4, 16, 2)
    case = ranked(winner, [compiled(config) for config in [winner, *sample(GFX942_BF16, [winner])]])
    flat = np.zeros(len(case.kernels))
    assert percentile(case, flat, case.rivals) == 50
    best, worst = flat.copy(), flat.copy()
    best[case.winner], worst[case.winner] = -1, 1
    assert (percentile(case, best, case.rivals), percentile(case, worst, case.rivals)) == (0, 100)


def test_the_same_machine_code_is_no_rival() -> None:
    winner, twin = MoeConfig(16, 64, 128, 4, 16, 2), MoeConfig(16, 64, 128, 4, 16, 1)
    rest = [compiled(config) for config in sample(GFX942_BF16, [winner]) if config != twin]
    case = ranked(winner, [compiled(winner, "same"), compiled(twin, "same"), *rest])
    assert not case.siblings[case.kernels.configs.index(twin)]
    other = ranked(winner, [compiled(winner, "one"), compiled(twin, "two"), *rest])
    assert other.siblings[other.kernels.configs.index(twin)]


@pytest.mark.parametrize("unroll", [1, 2, 4])
def test_counts_are_per_step_however_often_the_loop_is_unrolled(unroll: int) -> None:
    once = kernels([compiled(MoeConfig(64, 64, 64, 4, 16, 1))], 2)
    many = kernels([compiled(MoeConfig(64, 64, 64, 4, 16, 1), unroll=unroll)], 2)
    assert many.unroll[0] == unroll
    for name in ("matrix_cycles", "vector", "load_bytes", "shared_bytes", "waits"):
        assert many.columns[name] == once.columns[name]


def test_every_routed_copy_of_a_token_goes_to_one_expert() -> None:
    counts = tokens_per_expert(60, 4, 100)
    assert (len(counts), sum(counts), max(counts) <= 100) == (60, 400, True)
    assert gemms(60, 1408, 100) == (Gemm(400, 2816, 2048), Gemm(400, 2048, 1408))
