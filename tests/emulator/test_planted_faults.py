"""Faults planted into the text of compiled kernels are seen: that is what running the code is for."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
import torch

from m3gen.emulator import Code, Emulator, MemoryFault, MissingWait, UnknownInstruction, UnwrittenRead, parse
from tests.emulator import kernels
from tests.emulator.harness import machine

ARCHS = ["gfx942", "gfx950"]


class Planted:
    """A kernel that was launched once, to be launched again with its text edited."""

    def __init__(
        self, arch: str, kernel: Any, grid: tuple[int, ...], arguments: Mapping[str, Any], **options: Any
    ):
        self.emulator = Emulator(arch)
        self.emulator.run(kernel, grid, **arguments, **options)
        (self.code,) = self.emulator._codes.values()
        self.grid, self.arguments = (*grid, 1, 1)[:3], arguments

    def run(self, edit: Callable[[str], str] = lambda text: text, **options: Any) -> None:
        text = edit(self.code.assembly)
        code: Code = replace(self.code, assembly=text, program=parse(text))
        emulator = replace(self.emulator, **options)
        emulator.execute(code, self.grid, self.arguments)


def dropped(pattern: str, number: int = 0) -> Callable[[str], str]:
    """The text without one line that matches, counted from 0; with -1 without the last."""

    def edit(text: str) -> str:
        lines = text.splitlines()
        found = [at for at, line in enumerate(lines) if re.match(rf"\s+{pattern}", line)]
        del lines[found[number]]
        return "\n".join(lines)

    return edit


def replaced(pattern: str, by: str, number: int = 0) -> Callable[[str], str]:
    def edit(text: str) -> str:
        found = list(re.finditer(pattern, text))
        match = found[number]
        return text[: match.start()] + match.expand(by) + text[match.end() :]

    return edit


@pytest.fixture(params=ARCHS)
def product(request: pytest.FixtureRequest) -> tuple[Planted, torch.Tensor, torch.Tensor]:
    """A matrix product through shared memory by four waves; its output and what it should be."""
    a, b = torch.randn(32, 64).bfloat16(), torch.randn(64, 64).bfloat16()
    out = torch.zeros(32, 64)
    arguments = {"a": a, "b": b, "out": out, "K": 64, "M": 32, "N": 64, "TILE": 32}
    return Planted(request.param, kernels.matmul, (1,), arguments, num_warps=4), out, a.float() @ b.float()


def is_right(out: torch.Tensor, expected: torch.Tensor) -> bool:
    return bool(torch.allclose(out, expected, atol=1e-3, rtol=1e-3))


def test_nothing_planted_is_right(product: tuple[Planted, torch.Tensor, torch.Tensor]) -> None:
    planted, out, expected = product
    for options in ({}, {"late": False}, {"seed": 5}):
        out.fill_(float("nan"))
        planted.run(**options)
        assert is_right(out, expected)


def test_a_removed_wait_for_memory() -> None:
    x, y, out = torch.randn(256), torch.randn(256), torch.empty(256)
    planted = Planted("gfx942", kernels.add, (1,), {"x": x, "y": y, "out": out, "n": 256, "BLOCK": 256})
    with pytest.raises(MissingWait, match=r"v\d+ is used while a load that writes it is under way, line \d+: \S+"):
        planted.run(dropped(r"s_waitcnt vmcnt"))


def test_removed_waits_for_tiles(product: tuple[Planted, torch.Tensor, torch.Tensor]) -> None:
    """On gfx942 tiles pass through registers, on gfx950 they go to shared memory by themselves."""
    planted, out, expected = product

    def run() -> None:
        planted.run(lambda text: re.sub(r"vmcnt\(\d+\)", "vmcnt(63)", text))

    if planted.emulator.arch == "gfx942":
        with pytest.raises(MissingWait):
            run()
    else:
        run()
        assert not is_right(out, expected)


def test_a_removed_wait_for_arguments(product: tuple[Planted, torch.Tensor, torch.Tensor]) -> None:
    planted, _, _ = product
    with pytest.raises(MissingWait, match=r"s\d+ is used while"):
        planted.run(lambda text: text.replace("s_waitcnt lgkmcnt(0)", "s_nop 0"))


def test_dropped_barriers(product: tuple[Planted, torch.Tensor, torch.Tensor]) -> None:
    """Waves read what others have not written: for some order of the waves the product is wrong."""
    planted, out, expected = product
    wrong = 0
    for seed in range(4):
        out.fill_(float("nan"))
        planted.run(lambda text: re.sub(r"\n\s+s_barrier\b", "", text), seed=seed)
        wrong += not is_right(out, expected)
    assert wrong


def test_an_offset_out_of_bounds() -> None:
    x, out = torch.randn(1024), torch.empty(1024)
    planted = Planted("gfx942", kernels.reversed_through_shared, (1,), {"x": x, "out": out, "BLOCK": 1024})
    with pytest.raises(
        MemoryFault,
        match=r"of the LDS, which has \d+ bytes, lane \d+ of wave \d of workgroup 0, line \d+: ds_write",
    ):
        planted.run(replaced(r"(\n\s+ds_write\S+ [^\n]*)", r"\1 offset:65000"))


def test_shared_memory_that_nothing_wrote(product: tuple[Planted, torch.Tensor, torch.Tensor]) -> None:
    """One of the stores into shared memory is gone. Without `strict` the product is wrong and the read is reported."""
    planted, out, expected = product
    store = r"(ds_write|buffer_load_\S+ .* lds|global_load_lds)"
    place = (
        r"\d+ bytes at \d+ of the LDS, .*, lane \d+ of wave \d of workgroup 0, line \d+: ds_read.*kernels.py:\d+"
    )
    planted.run(strict=True)
    assert planted.emulator.unwritten == []
    with pytest.raises(UnwrittenRead, match=place):
        planted.run(dropped(store), strict=True)
    planted.run(dropped(store))
    assert not is_right(out, expected)
    (line,) = planted.emulator.unwritten
    assert re.match(rf"matmul: \d+ bytes, first {place}", line)


def test_a_pointer_past_a_tensor() -> None:
    x, out = torch.randn(64, 300), torch.empty(64, 300)
    planted = Planted("gfx942", kernels.softmax, (64,), {"x": x, "out": out, "columns": 300, "BLOCK": 512})
    smaller = {**planted.arguments, "out": out[:60].clone()}
    planted.arguments = smaller
    with pytest.raises(
        MemoryFault,
        match=r"bytes from the start of out, which has 72000, lane \d+ of wave \d+ of workgroup 6\d, line",
    ):
        planted.run()


def test_swapped_operands(product: tuple[Planted, torch.Tensor, torch.Tensor]) -> None:
    planted, out, expected = product
    planted.run(replaced(r"(v_mfma_\S+ \S+) (v\S+), (v\S+),", r"\1 \3, \2,"))
    assert not is_right(out, expected)


def test_waves_that_ended_are_not_waited_for() -> None:
    """The first of two waves leaves before the barrier."""
    text = """
        v_readfirstlane_b32 s4, v0
        s_cmp_eq_u32 s4, 0
        s_cbranch_scc1 .LBB0_1
        s_barrier
        .LBB0_1:
        s_endpgm
    """
    lines = "\n".join(line.strip() for line in text.strip().splitlines())
    recording = machine(lines, profile=True).launch((3, 1, 1), 2, 0, 0)
    assert recording is not None
    assert recording.counts.waves.tolist() == [6, 6, 6, 3, 6]


def test_an_unknown_mnemonic_names_its_line(product: tuple[Planted, torch.Tensor, torch.Tensor]) -> None:
    planted, _, _ = product
    with pytest.raises(UnknownInstruction, match=r"does not know v_wonder_b32, line \d+: v_wonder_b32 v0, v1"):
        planted.run(replaced(r"\n\s+s_endpgm", "\n\tv_wonder_b32 v0, v1\n\ts_endpgm"))
