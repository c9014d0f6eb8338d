"""`benchmarks/moe_winners.py` where there is no vLLM, and where there is one of two entries."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from benchmarks.moe.campaign import CAMPAIGNS
from benchmarks.moe.results import FOLDER, read
from m3gen.spec import Status
from tests.benchmarks.wheel import table_entry, write_table

ROOT = Path(__file__).parents[2]


def run(wheel: Path, page: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "benchmarks/moe_winners.py"), "--vllm", str(wheel), "--to", str(page)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def test_a_folder_that_is_not_vllm_is_named_with_the_way_out(tmp_path: Path) -> None:
    done = run(tmp_path, tmp_path / "page.md")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert f"{tmp_path} has no tables for gfx942-bf16" in done.stderr
    assert not (tmp_path / "page.md").exists()


def test_a_winner_that_nothing_speaks_for_misses_the_bars(tmp_path: Path) -> None:
    """Exit 1, and the page says so: for 8 experts the kernel with most registers, for all others that with fewest."""
    for campaign in CAMPAIGNS:
        facts = {
            c: one.facts for c, one in read(FOLDER, campaign).items() if one.status is Status.OK and one.facts
        }
        narrow = sorted((c for c in facts if c.block_m == 16), key=lambda config: facts[config].registers)
        dtype = f",dtype={campaign.table_dtype}" if campaign.table_dtype else ""
        for experts, columns, c in ((8, 7168, narrow[-1]), (16, 1024, narrow[0]), (160, 192, narrow[0])):
            name = f"E={experts},N={columns},device_name=AMD_Instinct_{campaign.devices[0]}{dtype}.json"
            entry = table_entry(*c.tile, c.num_warps, matrix_instr_nonkdim=c.nonkdim, kpack=c.kpack)
            write_table(tmp_path, name, {"8": entry})
    done = run(tmp_path, tmp_path / "page.md")
    assert (done.returncode, done.stderr) == (1, "")
    page = (tmp_path / "page.md").read_text()
    assert "**missed**" in page
    assert page == done.stdout.removesuffix("\n")
    assert page.count("| calibrated |") >= len(CAMPAIGNS)
