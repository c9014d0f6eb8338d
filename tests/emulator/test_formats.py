"""8-bit floats, bf16 and fp16 bit for bit against torch, over every value that there is."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from m3gen.emulator.formats import encode, of_arch
from tests.emulator.harness import LANES, run

DTYPES = {
    ("gfx942", "fp8"): torch.float8_e4m3fnuz,
    ("gfx942", "bf8"): torch.float8_e5m2fnuz,
    ("gfx950", "fp8"): torch.float8_e4m3fn,
    ("gfx950", "bf8"): torch.float8_e5m2,
}


@pytest.mark.parametrize(("arch", "kind"), DTYPES)
def test_every_code_has_its_value(arch: str, kind: str) -> None:
    expected = torch.arange(256, dtype=torch.uint8).view(DTYPES[arch, kind]).float().numpy()
    assert np.array_equal(of_arch(arch, kind).values, expected, equal_nan=True)


@pytest.mark.parametrize(("arch", "kind"), DTYPES)
def test_numbers_are_rounded_to_the_nearest_code(arch: str, kind: str) -> None:
    """Every bf16 number and its neighbours in fp32, within the range."""
    form = of_arch(arch, kind)
    words = np.arange(1 << 16, dtype=np.uint32) << 16
    numbers = np.concatenate(
        [(words + np.uint32(d & 0xFFFFFFFF)).view(np.float32) for d in (0, 1, 0x7FFF, 0x8000)]
    )
    numbers = numbers[np.abs(numbers) <= form.largest]
    expected = torch.from_numpy(numbers).to(DTYPES[arch, kind]).view(torch.uint8).numpy()
    assert np.array_equal(encode(form, numbers), expected)


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_nan_stays_nan(arch: str) -> None:
    form = of_arch(arch, "fp8")
    assert np.isnan(form.values[encode(form, np.array([np.nan, -np.nan, np.inf, 1e9], np.float32))]).all()


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_pairs_from_either_word(arch: str) -> None:
    values = torch.arange(256, dtype=torch.uint8).view(DTYPES[arch, "fp8"]).float().numpy()
    for start in range(0, 256, LANES):
        codes = [(start + lane) % 256 for lane in range(LANES)]
        words = [code | (255 - code) << 8 | (code ^ 0x55) << 16 | (code ^ 0xAA) << 24 for code in codes]
        low = run("v_cvt_pk_f32_fp8 v[0:1], v2", {2: words}, arch=arch)
        high = run("v_cvt_pk_f32_fp8_sdwa v[0:1], v2 src0_sel:WORD_1", {2: words}, arch=arch)
        for after, first, second in (
            (low, lambda c: c, lambda c: 255 - c),
            (high, lambda c: c ^ 0x55, lambda c: c ^ 0xAA),
        ):
            for register, code_of in ((0, first), (1, second)):
                found = np.array(after.lanes(register), np.uint32).view(np.float32)
                assert np.array_equal(found, values[[code_of(code) for code in codes]], equal_nan=True)


def test_bf16_pairs_round_to_even() -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 1 << 32, 1 << 14, dtype=np.uint32)
    for start in range(0, len(x), LANES):
        words = x[start : start + LANES]
        found = np.array(
            run("v_cvt_pk_bf16_f32 v0, v1, v1", {1: words.tolist()}, arch="gfx950").lanes(0), np.uint32
        )
        expected = torch.from_numpy(words.view(np.float32).copy()).bfloat16()
        got = torch.from_numpy((found & 0xFFFF).astype(np.uint16).view(np.int16).copy()).view(torch.bfloat16)
        assert torch.equal(got.isnan(), expected.isnan())
        assert torch.equal(got[~got.isnan()], expected[~expected.isnan()])
        assert np.array_equal(found >> 16, found & 0xFFFF)


def test_fp16_both_ways() -> None:
    halves = np.arange(1 << 16, dtype=np.uint32)
    for start in range(0, 1 << 16, 64 * LANES):
        words = halves[start : start + LANES]
        wide = np.array(run("v_cvt_f32_f16 v0, v1", {1: words.tolist()}).lanes(0), np.uint32).view(np.float32)
        expected = words.astype(np.uint16).view(np.float16).astype(np.float32)
        assert np.array_equal(wide, expected, equal_nan=True)
        back = run("v_cvt_f16_f32 v0, v1", {1: wide.view(np.uint32).tolist()}).lanes(0)
        finite = ~np.isnan(expected)
        assert np.array_equal(np.array(back, np.uint32)[finite], words[finite])
