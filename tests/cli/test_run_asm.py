"""`m3gen run-asm` on scripts of a user's own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run

SCRIPT = """
import sys
import torch
import triton
import triton.language as tl


@triton.jit
def scale(x, out, n, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, factor * tl.load(x + at, mask=at < n), mask=at < n)


if __name__ == "__main__":
    n = int(sys.argv[1])
    x, out = torch.randn(1000), torch.zeros(1000)
    scale[(triton.cdiv(n, 256),)](x, out, n, 2.0, BLOCK=256)
    print("right", torch.equal(out, 2 * x))
    sys.exit(int(sys.argv[2]) if len(sys.argv) > 2 else None)
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "own.py"
    path.write_text(SCRIPT)
    return path


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_a_table_of_launches_follows_what_the_script_prints(run: Run, script: Path, arch: str) -> None:
    ran = run("run-asm", script, "--arch", arch, "--", 1000)
    assert ran.status == 0
    first, heading, _, row = ran.out.splitlines()
    assert first == "right True"
    assert heading.split()[:4] == ["kernel", "grid", "waves", "instructions"]
    assert row.split()[:3] == ["scale", "4,1,1", "16"]
    assert "4,000" in row


def test_the_listing_and_the_file_tell_the_same(run: Run, script: Path, tmp_path: Path) -> None:
    ran = run("run-asm", script, "--listing", "scale", "--json", tmp_path / "out.json", "--", 1000)
    [launch] = json.loads((tmp_path / "out.json").read_text())["launches"]
    assert ran.status == 0
    assert "scale on gfx942: grid 4 x 1 x 1, 4 waves a workgroup" in ran.out
    assert "own.py:11  tl.store(out + at" in ran.out
    assert all(line["text"] in ran.out for line in launch["instructions"])


def test_an_access_past_a_tensor_is_one_line(run: Run, script: Path) -> None:
    ran = run("run-asm", script, "--", 1300)
    assert ran.status == 1
    [line] = ran.err.splitlines()
    assert line.startswith("m3gen: scale (launch 1): MemoryFault: 4 bytes at ")
    assert "own.py:11" in line


def test_the_status_of_the_script_is_kept(run: Run, script: Path) -> None:
    ran = run("run-asm", script, "--", 1000, 7)
    assert ran.status == 7
    assert "4,1,1" in ran.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nothing.py",), "m3gen: there is no script nothing.py"),
        (("{script}", "--listing", "other", "--", 1000), "m3gen: no launch of other; launched: scale"),
        (("{script}", "--json", "/nowhere/out.json"), "m3gen: there is no folder /nowhere to write out.json to"),
        (
            ("{script}", "--arch", "sm_90", "--", 1000),
            "m3gen: only AMD's machine code can be executed, sm_90 is not",
        ),
    ],
)
def test_what_is_refused(run: Run, script: Path, arguments: tuple[object, ...], message: str) -> None:
    ran = run("run-asm", *(str(one).format(script=script) for one in arguments))
    assert ran.status == 2
    assert ran.err.startswith(message)


def test_memory_that_completes_early_gives_the_same(run: Run, script: Path) -> None:
    assert "right True" in run("run-asm", script, "--early", "--seed", 3, "--", 1000).out
