"""A listing shows each instruction once, with the numbers of the profile, under its source line."""

from __future__ import annotations

import re

import pytest
import torch

from m3gen.emulator import Profile, emulating
from m3gen.report.listing import WIDTH, listing
from tests.emulator import kernels


@pytest.fixture(scope="module", params=["gfx942", "gfx950"])
def profile(request: pytest.FixtureRequest) -> Profile:
    a, b = torch.randn(32, 128).bfloat16(), torch.randn(128, 64).bfloat16()
    with emulating(request.param, profile=True) as emulator:
        kernels.matmul[(1,)](a, b, torch.empty(32, 64), 128, M=32, N=64, TILE=32, num_warps=4)
    return emulator.profiles[0]


def line_of(text: str, number: int) -> str:
    [line] = [line for line in text.splitlines() if re.match(rf" *{number} ", line)]
    return line


def test_every_instruction_stands_in_it_once(profile: Profile) -> None:
    text = listing(profile)
    for number, one in enumerate(profile.program.instructions):
        assert one.text in line_of(text, number)
        assert f"{profile.counts.waves[number]:,}" in line_of(text, number)


def test_it_fits_its_width(profile: Profile) -> None:
    assert max(map(len, listing(profile).splitlines())) <= WIDTH


def test_source_lines_separate_instructions(profile: Profile) -> None:
    lines = listing(profile).splitlines()
    dot = next(n for n, line in enumerate(lines) if line.startswith("-- ") and "total = tl.dot(" in line)
    assert "kernels.py:" in lines[dot]
    assert any("v_mfma_" in line for line in lines)


def test_labels_stand_before_what_branches_to_them(profile: Profile) -> None:
    lines = listing(profile).splitlines()
    target = next(line.split()[-1] for line in lines if "s_cbranch" in line)
    assert f"{target}:" in lines


def test_shares_of_the_clocks_add_up(profile: Profile) -> None:
    shares = [float(share) for share in re.findall(r"^ *\d+ +[\d,]+ +([\d.]+) %", listing(profile), re.MULTILINE)]
    executed = int((profile.counts.waves > 0).sum())
    assert len(shares) == executed
    assert abs(sum(shares) - 100) < 0.05 * executed


def test_the_totals_stand_above(profile: Profile) -> None:
    head = listing(profile).partition("\n\n")[0]
    assert f"matmul on {profile.arch}: grid 1 x 1 x 1, 4 waves a workgroup" in head
    assert f"{profile.matrix_passes:,} passes of 4 clocks" in head
    assert f"global written {4 * 32 * 64:,}" in head


def test_memory_waits_and_conflicts_stand_beside_their_lines(profile: Profile) -> None:
    text = listing(profile)
    assert re.search(r"B in [\d,]+ lines, \d+ % used +(buffer|global)_load", text)
    assert re.search(r"passes, [\d,]+ conflicts +ds_read", text)
    assert re.search(r"waits for vm [\d.]+ of [\d.]+ +s_waitcnt vmcnt", text)
    assert re.search(r"taken by \d+ % +s_cbranch", text)
