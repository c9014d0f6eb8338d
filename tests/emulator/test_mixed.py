"""fma of fp32 and fp16 sources into one half of a register."""

from __future__ import annotations

import numpy as np
import pytest

from tests.emulator.harness import LANES, run


def words(of: list[float], kind: type) -> list[int]:
    """fp32 values as words, fp16 values as the low half of one, over lanes that count on."""
    bits = {np.float32: np.uint32, np.float16: np.uint16}[kind]
    return [int(np.array(value, kind).view(bits)) for value in of]


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
@pytest.mark.parametrize("half", ["lo", "hi"])
def test_fma_mix_into_a_half(arch: str, half: str) -> None:
    a, b, c = ([start + lane / 7 for lane in range(LANES)] for start in (-3.0, 0.5, 2.0))
    vectors = {
        1: words(a, np.float32),
        2: [0x7E000000 >> 16 | word << 16 for word in words(b, np.float16)],  # the low half is NaN
        3: [0x7E000000 | word for word in words(c, np.float16)],
        4: [0x12345678] * LANES,
    }
    line = f"v_fma_mix{half}_f16 v4, v1, -v2, |v3| op_sel:[0,1,0] op_sel_hi:[0,1,1]"
    found = run(line, vectors, arch=arch, active=(1 << LANES) - 2).lanes(4)
    assert found[0] == 0x12345678  # not in EXEC
    for lane in range(1, LANES):
        exact = float(np.float32(a[lane])) * -float(np.float16(b[lane])) + abs(float(np.float16(c[lane])))
        answer = int(np.float16(np.float32(exact)).view(np.uint16))
        assert found[lane] == (answer | 0x12340000 if half == "lo" else answer << 16 | 0x5678)


def test_a_constant_beside_halves_is_one_of_fp16() -> None:
    """1.0 of fp32 has zeros where fp16 has its bits."""
    a, c = ([start + lane / 7 for lane in range(LANES)] for start in (0.5, 2.0))
    vectors = {2: words(a, np.float32), 3: words(c, np.float16)}
    found = run("v_fma_mix_f32 v1, -v2, 1.0, v3 op_sel_hi:[0,1,1]", vectors).lanes(1)
    answers = [np.float32(float(np.float16(c[lane])) - float(np.float32(a[lane]))) for lane in range(LANES)]
    assert found == [int(answer.view(np.uint32)) for answer in answers]
