"""Every shape of the matrix unit against a plain product. Which lane holds which element is written down here once
more, after AMD's matrix instruction calculator; that Triton means the same is what `test_kernels` says."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest
import torch

from m3gen.emulator.faults import UnknownInstruction
from tests.emulator.harness import LANES, machine
from tests.emulator.isa.memories import Wave, of_module, span

Array = npt.NDArray[np.float64]
ARCHS = ("gfx942", "gfx950")
FP4 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]  # by code, the fourth bit is the sign
FORMATS = {"fp8": 0, "bf8": 1, "fp4": 4}  # as cbsz and blgp name them


@dataclass(frozen=True)
class Shape:
    """`blocks` products of a (m by k) and b (k by n), each of `m` rows: n is m for every one."""

    m: int
    k: int
    a: str
    b: str
    result: str = "f32"
    blocks: int = 1


SHAPES = {
    **{f"v_mfma_f32_16x16x16_{one}": Shape(16, 16, one, one) for one in ("bf16", "f16")},
    **{f"v_mfma_f32_32x32x8_{one}": Shape(32, 8, one, one) for one in ("bf16", "f16")},
    **{f"v_mfma_f32_16x16x32_{one}": Shape(16, 32, one, one) for one in ("bf16", "f16")},
    **{f"v_mfma_f32_32x32x16_{one}": Shape(32, 16, one, one) for one in ("bf16", "f16")},
    **{f"v_mfma_f32_4x4x4_16b_{one}": Shape(4, 4, one, one, blocks=16) for one in ("bf16", "f16")},
    **{f"v_mfma_f32_16x16x32_{a}_{b}": Shape(16, 32, a, b) for a in ("fp8", "bf8") for b in ("fp8", "bf8")},
    **{f"v_mfma_f32_32x32x16_{a}_{b}": Shape(32, 16, a, b) for a in ("fp8", "bf8") for b in ("fp8", "bf8")},
    "v_mfma_f32_16x16x4_f32": Shape(16, 4, "f32", "f32"),
    "v_mfma_f32_32x32x2_f32": Shape(32, 2, "f32", "f32"),
    "v_mfma_f32_4x4x1_16b_f32": Shape(4, 1, "f32", "f32", blocks=16),
    "v_mfma_f32_16x16x8_xf32": Shape(16, 8, "xf32", "xf32"),
    "v_mfma_f32_32x32x4_xf32": Shape(32, 4, "xf32", "xf32"),
    "v_mfma_f64_16x16x4_f64": Shape(16, 4, "f64", "f64", "f64"),
    "v_mfma_i32_16x16x32_i8": Shape(16, 32, "i8", "i8", "i32"),
    "v_mfma_i32_32x32x16_i8": Shape(32, 16, "i8", "i8", "i32"),
    "v_mfma_i32_16x16x64_i8": Shape(16, 64, "i8", "i8", "i32"),
    "v_mfma_i32_32x32x32_i8": Shape(32, 32, "i8", "i8", "i32"),
}
# The same instruction with and without scales, for every pair of formats.
SIZES = {"16x16x128": (16, 128), "32x32x64": (32, 64)}
PAIRS = list(itertools.product(FORMATS, FORMATS))


def dtype(kind: str, arch: str) -> torch.dtype:
    fnuz = arch == "gfx942"
    return {
        "bf16": torch.bfloat16,
        "f16": torch.float16,
        "f32": torch.float32,
        "xf32": torch.float32,
        "f64": torch.float64,
        "i8": torch.int8,
        "fp8": torch.float8_e4m3fnuz if fnuz else torch.float8_e4m3fn,
        "bf8": torch.float8_e5m2fnuz if fnuz else torch.float8_e5m2,
    }[kind]


def values(rng: np.random.Generator, blocks: int, rows: int, k: int, kind: str) -> Array:
    """[blocks, rows, k] that every type holds exactly, so that sums are exact in any order."""
    if kind == "fp4":
        return rng.choice([sign * one for one in FP4 for sign in (1, -1)], (blocks, rows, k))
    return rng.integers(-3, 4, (blocks, rows, k)).astype(np.float64)


def packed(row: Array, kind: str, arch: str) -> list[int]:
    """Neighbouring elements of one lane as registers, the first in the lowest bits."""
    if kind == "fp4":
        codes = [FP4.index(abs(one)) | (8 if np.signbit(one) else 0) for one in row]
        return [sum(code << 4 * n for n, code in enumerate(codes[at : at + 8])) for at in range(0, len(codes), 8)]
    found = torch.from_numpy(row.copy()).to(dtype(kind, arch)).view(torch.uint8).numpy().view(np.uint32)
    return [int(word) for word in found]


def held(lane: int, shape: Shape, kind: str, scalable: bool) -> tuple[int, int, list[int]]:
    """Block, row and the k that a lane holds of a source, in order."""
    block, row, group = lane // shape.m % shape.blocks, lane % shape.m, lane // (shape.m * shape.blocks)
    groups = LANES // (shape.m * shape.blocks)
    each = shape.k // groups
    if scalable and kind != "fp4":  # two runs of 16, all lanes' first runs before the second ones
        return block, row, [16 * group + n % 16 + n // 16 * 16 * groups for n in range(each)]
    return block, row, [each * group + n for n in range(each)]


def fill(wave: Wave, first: int, of: Array, shape: Shape, kind: str, arch: str, scalable: bool = False) -> int:
    """A source into registers from `first` on; how many there are."""
    words = []
    for lane in range(LANES):
        block, row, places = held(lane, shape, kind, scalable)
        words.append(packed(of[block, row, places], kind, arch))
    for number in range(len(words[0])):
        wave.vector(first + number, [one[number] for one in words])
    return len(words[0])


def place(lane: int, number: int, shape: Shape) -> tuple[int, int, int]:
    """Block, row and column of result `number` of a lane."""
    if shape.result == "f64":
        return 0, lane // 16 + 4 * number, lane % 16
    if shape.m == 4:
        return lane // 4, number, lane % 4
    if shape.m == 16:
        return 0, 4 * (lane // 16) + number, lane % 16
    return 0, 8 * (number // 4) + 4 * (lane // 32) + number % 4, lane % 32


def result(wave: Wave, first: int, shape: Shape) -> npt.NDArray[np.generic]:
    """[blocks, m, m] out of registers."""
    kind = {"f32": np.float32, "f64": np.float64, "i32": np.int32}[shape.result]
    wide = 2 if shape.result == "f64" else 1
    count = shape.m * shape.m * shape.blocks // LANES
    words = np.array([wave.lanes(first + n) for n in range(count * wide)], np.uint32)
    found = np.zeros((shape.blocks, shape.m, shape.m), kind)
    for lane in range(LANES):
        of_lane = np.ascontiguousarray(words[:, lane]).view(kind)
        for number in range(count):
            found[place(lane, number, shape)] = of_lane[number]
    return found


def put_c(wave: Wave, first: int, c: Array, shape: Shape) -> int:
    """The inverse of `result`; how many registers there are."""
    kind = {"f32": np.float32, "f64": np.float64, "i32": np.int32}[shape.result]
    count = shape.m * shape.m * shape.blocks // LANES
    of_lanes = [[c[place(lane, n, shape)] for n in range(count)] for lane in range(LANES)]
    words = np.array(of_lanes).astype(kind).view(np.uint32)
    for number in range(words.shape[1]):
        wave.vector(first + number, words[:, number].tolist())
    return int(words.shape[1])


def product(a: Array, b: Array) -> Array:
    return a @ b.transpose(0, 2, 1)


@pytest.mark.parametrize("mnemonic", SHAPES)
@pytest.mark.parametrize("banks", ["vv", "va", "av", "aa"])
@pytest.mark.parametrize("arch", ARCHS)
def test_a_product(mnemonic: str, banks: str, arch: str) -> None:
    """Sources and results in vector or in accumulation registers; what EXEC says does not matter."""
    rng, shape = np.random.default_rng(0), SHAPES[mnemonic]
    wave = Wave(random.Random(0), active=random.Random(0).getrandbits(64))
    source, target = banks
    offset = {"v": 0, "a": 256}
    a, b = (values(rng, shape.blocks, shape.m, shape.k, kind) for kind in (shape.a, shape.b))
    count = fill(wave, offset[source], a, shape, shape.a, arch)
    fill(wave, offset[source] + 32, b, shape, shape.b, arch)
    c = rng.integers(-9, 10, (shape.blocks, shape.m, shape.m)).astype(np.float64)
    results = put_c(wave, offset[target] + 64, c, shape)
    operands = [
        span(target, 64, results),
        span(source, 0, count),
        span(source, 32, count),
        span(target, 64, results),
    ]
    wave.run(f"{mnemonic} {', '.join(operands)}", arch)
    assert np.array_equal(result(wave, offset[target] + 64, shape), product(a, b) + c)


@pytest.mark.parametrize("mnemonic", SHAPES)
def test_a_number_instead_of_c(mnemonic: str) -> None:
    rng, shape = np.random.default_rng(1), SHAPES[mnemonic]
    wave = Wave(random.Random(1))
    a, b = (values(rng, shape.blocks, shape.m, shape.k, kind) for kind in (shape.a, shape.b))
    count = fill(wave, 0, a, shape, shape.a, "gfx950")
    fill(wave, 32, b, shape, shape.b, "gfx950")
    results = put_c(wave, 64, np.zeros((shape.blocks, shape.m, shape.m)), shape)
    number = "3" if shape.result == "i32" else "2.0"
    wave.run(f"{mnemonic} {span('v', 64, results)}, {span('v', 0, count)}, {span('v', 32, count)}, {number}")
    assert np.array_equal(result(wave, 64, shape), product(a, b) + float(number))


@pytest.mark.parametrize("mnemonic", [name for name, shape in SHAPES.items() if shape.blocks > 1])
@pytest.mark.parametrize(("cbsz", "abid"), [(1, 1), (2, 3), (4, 0), (4, 9)])
def test_blocks_that_share_one_a(mnemonic: str, cbsz: int, abid: int) -> None:
    rng, shape, wave = np.random.default_rng(7), SHAPES[mnemonic], Wave(random.Random(7))
    a, b = (values(rng, shape.blocks, shape.m, shape.k, kind) for kind in (shape.a, shape.b))
    count = fill(wave, 0, a, shape, shape.a, "gfx942")
    fill(wave, 32, b, shape, shape.b, "gfx942")
    operands = ", ".join([span("v", 64, 4), span("v", 0, count), span("v", 32, count), "0"])
    wave.run(f"{mnemonic} {operands} cbsz:{cbsz} abid:{abid}", "gfx942")
    sources = [(block >> cbsz << cbsz) + abid for block in range(shape.blocks)]
    assert np.array_equal(result(wave, 64, shape), product(a[sources], b))


@pytest.mark.parametrize(("a_kind", "b_kind"), PAIRS)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("bytes_", [None, (0, 3), (2, 1)])
def test_formats_and_scales(size: str, a_kind: str, b_kind: str, bytes_: tuple[int, int] | None) -> None:
    """8-bit and 4-bit floats beside each other. With scales, each 32 neighbouring k of a row have one: byte `bytes_`
    of lane `row + m * n` for the n-th 32. Without, `bytes_` is None."""
    rng, (m, k) = np.random.default_rng(2), SIZES[size]
    shape, wave = Shape(m, k, a_kind, b_kind), Wave(random.Random(2))
    a, b = values(rng, 1, m, k, a_kind), values(rng, 1, m, k, b_kind)
    a_count = fill(wave, 0, a, shape, a_kind, "gfx950", scalable=True)
    b_count = fill(wave, 32, b, shape, b_kind, "gfx950", scalable=True)
    c = rng.integers(-9, 10, (1, m, m)).astype(np.float64)
    results = put_c(wave, 64, c, shape)
    target = span("v", 64, results)
    operands = f"{target}, {span('v', 0, a_count)}, {span('v', 32, b_count)}, {target}"
    formats = f"cbsz:{FORMATS[a_kind]} blgp:{FORMATS[b_kind]}"
    if bytes_ is None:
        wave.run(f"v_mfma_f32_{size}_f8f6f4 {operands} {formats}")
        assert np.array_equal(result(wave, 64, shape), product(a, b) + c)
        return
    exponents = rng.integers(-3, 4, (2, m, k // 32))
    for number in (0, 1):
        words = []
        for lane in range(LANES):
            others = random.Random(lane).getrandbits(32) & ~(0xFF << 8 * bytes_[number])
            words.append(others | 127 + int(exponents[number, lane % m, lane // m]) << 8 * bytes_[number])
        wave.vector(100 + number, words)
    low, high = ([one & 1 for one in bytes_], [one >> 1 for one in bytes_])
    selects = f"op_sel:[{low[0]},{low[1]},0] op_sel_hi:[{high[0]},{high[1]},0]"
    wave.run(f"v_mfma_scale_f32_{size}_f8f6f4 {operands}, v100, v101 {selects} {formats}")
    factors = 2.0 ** np.repeat(exponents, 32, axis=2)
    assert np.array_equal(result(wave, 64, shape), product(a * factors[0], b * factors[1]) + c)


def test_a_scale_of_255_is_not_a_number() -> None:
    wave, shape = Wave(random.Random(3)), Shape(16, 128, "fp8", "fp8")
    for first in (0, 8):
        fill(wave, first, np.ones((1, 16, 128)), shape, "fp8", "gfx950", scalable=True)
    wave.vector(16, [255 if lane == 16 + 5 else 127 for lane in range(LANES)])
    wave.vector(17, [127] * LANES)
    wave.run("v_mfma_scale_f32_16x16x128_f8f6f4 v[64:67], v[0:7], v[8:15], 0, v16, v17 op_sel_hi:[0,0,0]")
    found = result(wave, 64, shape)[0]
    assert np.isnan(found[5]).all()
    assert (np.delete(found, 5, axis=0) == 128).all()


def test_sums_of_integers_wrap() -> None:
    wave, shape = Wave(random.Random(4)), SHAPES["v_mfma_i32_16x16x32_i8"]
    fill(wave, 0, np.full((1, 16, 32), -128.0), shape, "i8", "gfx942")
    fill(wave, 32, np.full((1, 16, 32), -128.0), shape, "i8", "gfx942")
    put_c(wave, 64, np.full((1, 16, 16), 2.0**31 - 1), shape)
    wave.run("v_mfma_i32_16x16x32_i8 v[64:67], v[0:1], v[32:33], v[64:67]", "gfx942")
    assert (result(wave, 64, shape) == 32 * 128 * 128 + 2**31 - 1 - 2**32).all()


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("kind", ["fp8", "bf8"])
def test_every_code_of_an_8_bit_float_times_one(arch: str, kind: str) -> None:
    """In the arch's own dialect, NaN and infinities too: row i, k 0 holds the code and b is the unit matrix."""
    shape, wave = Shape(16, 32, kind, kind), Wave(random.Random(5))
    known = torch.arange(256, dtype=torch.uint8).view(dtype(kind, arch)).double().numpy()
    fill(wave, 32, np.eye(16, 32)[None], shape, kind, arch)
    for start in range(0, 256, 16):
        wave.vector(0, [start + lane if lane < 16 else 0 for lane in range(LANES)])
        wave.vector(1, [0] * LANES)
        wave.run(f"v_mfma_f32_16x16x32_{kind}_{kind} v[64:67], v[0:1], v[32:33], 0", arch)
        column = result(wave, 64, shape)[0, :, 0]
        assert np.array_equal(column, known[start : start + 16].astype(np.float32), equal_nan=True)


def test_a_row_of_a_is_a_row_of_the_result() -> None:
    """One element each: the product of a[3, 5] and b[5, 9] is at row 3, column 9 and nowhere else."""
    shape, wave = SHAPES["v_mfma_f32_16x16x16_bf16"], Wave(random.Random(6))
    a, b = np.zeros((1, 16, 16)), np.zeros((1, 16, 16))
    a[0, 3, 5], b[0, 9, 5] = 2, 3
    fill(wave, 0, a, shape, "bf16", "gfx942")
    fill(wave, 32, b, shape, "bf16", "gfx942")
    wave.run("v_mfma_f32_16x16x16_bf16 v[64:67], v[0:1], v[32:33], 0", "gfx942")
    assert np.argwhere(result(wave, 64, shape)).tolist() == [[0, 3, 9]]
    assert wave.lanes(64 + 3)[9] == 0x40C00000  # row 3, column 9 in lane 9, register 3


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[4:9], v[10:15], 0 cbsz:2 blgp:2", "6-bit floats are not known"),
        ("v_mfma_f32_16x16x16_bf16 v[0:3], v[4:5], v[6:7], 0 cbsz:1", "no broadcast of block 0 to 2 blocks"),
        ("v_mfma_f32_4x4x4_16b_f16 v[0:3], v[4:5], v[6:7], 0 cbsz:1 abid:2", "no broadcast of block 2 to 2"),
        ("v_mfma_f32_4x4x4_16b_f16 v[0:3], v[4:5], v[6:7], 0 blgp:1", "permutations of B's lanes are not known"),
    ],
)
def test_what_is_not_known_is_refused(line: str, reason: str) -> None:
    with pytest.raises(UnknownInstruction, match=reason):
        machine(line, "gfx950")


def test_every_mnemonic_is_here() -> None:
    scalable = {f"v_mfma_{scale}f32_{size}_f8f6f4" for scale in ("", "scale_") for size in SIZES}
    assert of_module("matrix") == set(SHAPES) | scalable
