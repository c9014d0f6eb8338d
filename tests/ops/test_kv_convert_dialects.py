"""`kv_convert` between the two e4m3 dialects and for caches of keys alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from m3gen import ops
from m3gen.codegen import render, trace
from m3gen.compiler.compile import compile_launch
from m3gen.interpreter import interpreting
from m3gen.spec import Problem
from m3gen.targets import Device, architecture
from tests.ops import cache_problems

FN, FNUZ = torch.float8_e4m3fn, torch.float8_e4m3fnuz
ARCH = {FN: "gfx950", FNUZ: "gfx942"}
DIRECTIONS = ((FN, FNUZ), (FNUZ, FN))
PAIRS = torch.tensor([[0, 0]])

both_ways = pytest.mark.parametrize(("source", "target"), DIRECTIONS)
homes = pytest.mark.parametrize("home", [FN, FNUZ])


def problem(home: torch.dtype, scale: str = "none") -> tuple[Problem, Device]:
    """On the architecture whose dialect `home` is."""
    return cache_problems.problem(
        "kv_convert", ARCH[home], kv_dtype={FN: "e4m3fn", FNUZ: "e4m3fnuz"}[home], kv_scale=scale
    )


def every_code(of: torch.dtype) -> torch.Tensor:
    """A page whose every token holds, in two halves, all 256 codes."""
    codes = torch.arange(256, dtype=torch.uint8).reshape(2, 128).repeat(64, 1)
    return codes.view(of).reshape(1, 1, 128, 128)


def converted(home: torch.dtype, target: torch.dtype, page: torch.Tensor, **arguments: Any) -> torch.Tensor:
    """The page as keys alone in the other dtype."""
    out = torch.zeros((1, 1, 128, 128), dtype=torch.uint8).view(target)
    with interpreting():
        cache_problems.launcher(*problem(home))(page, None, out, None, PAIRS, **arguments)
    return out


@homes
@both_ways
def test_every_code_without_a_scale_is_torchs_cast(
    home: torch.dtype, source: torch.dtype, target: torch.dtype
) -> None:
    """Saturated first: torch's cast of what e4m3fnuz lacks is NaN."""
    page = every_code(source)
    found = converted(home, target, page)
    largest = torch.finfo(target).max
    assert torch.equal(found.view(torch.uint8), page.float().clamp(-largest, largest).to(target).view(torch.uint8))


def test_what_a_dialect_lacks_without_a_scale() -> None:
    """448 for 240, -0, both NaN codes of e4m3fn; 2^-10 and 3 * 2^-10, between numbers of e4m3fn, go to even."""
    codes = torch.tensor([0x7E, 0xFE, 0x77, 0x78, 0x80, 0x7F, 0xFF, 0x01], dtype=torch.uint8)
    page = every_code(FN)
    page.view(torch.uint8)[0, 0, 0, :8] = codes
    assert converted(FNUZ, FNUZ, page).view(torch.uint8)[0, 0, 0, :8].tolist() == [
        0x7F, 0xFF, 0x7F, 0x7F, 0x00, 0x80, 0x80, 0x02,
    ]  # fmt: skip
    codes = torch.tensor([0x7F, 0xFF, 0x80, 0x01, 0x03, 0x0F, 0x81, 0x00], dtype=torch.uint8)
    page.view(torch.uint8)[0, 0, 0, :8] = codes
    assert converted(FN, FN, page.view(FNUZ)).view(torch.uint8)[0, 0, 0, :8].tolist() == [
        0x77, 0xF7, 0x7F, 0x00, 0x02, 0x08, 0x80, 0x00,
    ]  # fmt: skip


@homes
@both_ways
def test_with_a_scale_per_token_every_code_means_the_same_before_and_after(
    home: torch.dtype, source: torch.dtype, target: torch.dtype
) -> None:
    """But for +-240 of e4m3fnuz: 480, which the code would be in e4m3fn, is none of its numbers."""
    page = every_code(source)
    out = torch.zeros((2, 1, 1, 128, 128), dtype=torch.uint8).view(target)
    scales = torch.rand(2, 1, 128, generator=torch.Generator().manual_seed(0)) + 0.1
    planes = torch.full((2, 1, 128), 7.0)
    with interpreting():
        cache_problems.launcher(*problem(home, "per_token_head"))(
            page,
            page,
            out[0],
            out[1],
            PAIRS,
            source_k_scale=scales[0],
            source_v_scale=scales[1],
            target_k_scale=planes[0],
            target_v_scale=planes[1],
        )
    for side in range(2):
        before = page.float() * scales[side][..., None]
        after = out[side].float() * planes[side][..., None]
        is_largest = (page.float().abs() == 240.0) & (source == FNUZ)
        assert torch.equal(after.isnan(), before.isnan())
        same = torch.where(before.isnan() | is_largest, 0.0, before)
        assert torch.equal(torch.where(before.isnan() | is_largest, 0.0, after), same)
        assert torch.allclose(after[is_largest].abs(), before[is_largest].abs() * (448 / 480))


def test_a_scalar_scale_takes_the_factor_at_the_reader() -> None:
    page = every_code(FN)
    out = torch.zeros((1, 1, 128, 128), dtype=torch.uint8).view(FNUZ)
    scale = torch.tensor([0.3])
    with interpreting():
        cache_problems.launcher(*problem(FNUZ, "scalar"))(
            page, None, out, None, PAIRS, k_scale=scale, v_scale=scale
        )
    number = ~page.float().isnan()
    assert torch.equal((out.float() * (2 * scale))[number], (page.float() * scale)[number])
    assert out.float()[~number].isnan().all()


def test_index_keys_are_a_cache_of_keys_alone() -> None:
    """bf16 index keys to 8 bits, as the indexer's insert stores them: no scale, saturated."""
    index = torch.randn((3, 128, 128), generator=torch.Generator().manual_seed(0)).to(torch.bfloat16)
    index[1, 5] *= 3000
    out = torch.zeros((2, 128, 128), dtype=torch.uint8).view(FN)
    pairs = torch.tensor([[1, 0], [3, 1]])
    with interpreting():
        cache_problems.launcher(*problem(FN))(index[:, None], None, out[:, None], None, pairs)
    assert torch.equal(out[0].float(), index[1].float().clamp(-448, 448).to(FN).float())
    assert not out[1].float().any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"source_v": None}, "target_v is given alone, expected both or neither"),
        ({"target_v": None}, "source_v is given alone, expected both or neither"),
        ({"source_k": torch.empty(1, 1, 128, 128)}, "source_k is torch.float32 and target_k torch.float8_e4m3fn,"),
        (
            {"source_k": every_code(FNUZ), "target_k": torch.empty((1, 1, 128, 128), dtype=torch.bfloat16)},
            "source_k is torch.float8_e4m3fnuz and target_k torch.bfloat16, expected e4m3fn",
        ),
        ({"source_v": every_code(FNUZ)}, "source_v is torch.float8_e4m3fnuz, expected torch.float8_e4m3fn"),
        ({"target_k": every_code(FN)[0]}, "target_k has shape"),
    ],
)
def test_what_does_not_go_together_is_refused(change: dict[str, Any], message: str) -> None:
    page = every_code(FN)
    good = dict.fromkeys(("source_k", "source_v", "target_k", "target_v"), page)
    with pytest.raises(ValueError, match=message):
        cache_problems.launcher(*problem(FN))(**{**good, "pairs": PAIRS, **change})


@pytest.mark.parametrize("arch", ["gfx942", "gfx950", "sm_90"])
@pytest.mark.parametrize("scale", ["none", "per_token_head"])
def test_the_other_dialect_needs_nothing_of_the_hardware(arch: str, scale: str) -> None:
    """Codes are integers to the kernel, so that an architecture converts a dialect that it cannot compute in."""
    home = {"e4m3fn": FN, "e4m3fnuz": FNUZ}[architecture(arch).fp8]
    other = FNUZ if home == FN else FN
    of, device = cache_problems.problem("kv_convert", arch, kv_dtype=architecture(arch).fp8, kv_scale=scale)
    of = replace(of, rows=16)
    op, chosen = ops.get("kv_convert"), cache_problems.config(of, device)
    arguments = op.example(of, chosen)
    for name in ("source_k", "source_v"):
        arguments[name] = torch.empty(arguments[name].shape, dtype=other, device="meta")
    source = render(op, of, chosen)
    (launch,) = trace(source, arguments)
    facts = compile_launch(source, launch, architecture(arch)).facts
    assert facts.vector_spills == facts.scalar_spills == facts.scratch_bytes == 0
