"""Rank vLLM's shipped fused-MoE winners by what m3gen knows without a GPU, and say how far down they come.

    python benchmarks/moe_winners.py --vllm PATH [--compile CACHE [--jobs 2] [--minutes 60]] [--to PAGE]

PATH is the folder of an unpacked vLLM wheel: its tables and its kernel are read there. The facts of the compiled
kernels lie in benchmarks/moe; with --compile those that are missing are compiled by m3gen's compiler first (kept in
CACHE, 1 to 20 seconds of CPU each) and the files are written anew. Exit status 1 when a bar is missed, 2 when PATH
is not vLLM.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from moe import compiling, page, results
from moe.campaign import CAMPAIGNS, Campaign
from moe.case import Case, cases
from moe.config import MoeConfig
from moe.kernels import kernels
from moe.pool import pool
from moe.tables import HOW, Entry, NotVllm, entries

PAGE = Path(__file__).parents[1] / "docs/predictor_moe.md"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vllm", type=Path, required=True, metavar="PATH", help=f"else: {HOW}")
    parser.add_argument("--compile", type=Path, metavar="CACHE", help="compile what the facts lack")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=60.0, help="of compiling, at most")
    parser.add_argument("--to", type=Path, default=PAGE)
    given = parser.parse_args()
    try:
        shipped = {campaign: list(entries(given.vllm, campaign)) for campaign in CAMPAIGNS}
        if given.compile:
            compile_missing(given.vllm, shipped, given.compile, given.jobs, given.minutes)
    except NotVllm as refusal:
        print(refusal, file=sys.stderr)
        return 2
    found = {campaign: known(campaign, shipped[campaign]) for campaign in CAMPAIGNS}
    planned = {campaign: len(pool(campaign, tables)) for campaign, tables in shipped.items()}
    text, met = page.page({campaign: ranked for campaign, ranked in found.items() if ranked}, planned)
    given.to.write_text(text, encoding="utf-8")
    print(text)
    return 0 if met else 1


def known(campaign: Campaign, shipped: list[Entry]) -> list[Case]:
    """The cases that the facts on disk can rank."""
    facts = results.read(results.FOLDER, campaign)
    return list(cases(campaign, shipped, kernels(facts.values(), campaign.element_bytes)))


def compile_missing(
    wheel: Path, shipped: dict[Campaign, list[Entry]], cache: Path, jobs: int, minutes: float
) -> None:
    """Campaign by campaign, until the minutes are over; the files of facts are written after each."""
    until = time.monotonic() + 60 * minutes
    for campaign, tables in shipped.items():
        have = results.read(results.FOLDER, campaign)
        missing: list[MoeConfig] = [config for config in pool(campaign, tables) if config not in have]
        left = until - time.monotonic()
        for done in compiling.compile_all(wheel, campaign, missing, cache, jobs, left):
            have[done.config] = done
            print(f"{campaign.name}: {len(have)}, {done.config} {done.status} {done.reason}", file=sys.stderr)
        results.write(results.FOLDER, campaign, have.values())


if __name__ == "__main__":
    sys.exit(main())
