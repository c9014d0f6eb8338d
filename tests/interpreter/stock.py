"""Run as a script in a fresh process: which faults of Triton's own interpreter show, as JSON.

With the argument "corrected" the corrections are installed first.
"""

from __future__ import annotations

import json
import sys

import torch

from m3gen import interpreter

from . import kernels  # decorated by whatever TRITON_INTERPRET says

BF16, E4M3 = torch.bfloat16, torch.float8_e4m3fn


def dot_of_bf16() -> bool:
    a, b, c = torch.ones(16, 16).to(BF16), torch.ones(16, 16).to(BF16), torch.zeros(16, 16)
    out = torch.empty_like(c)
    kernels.dot[(1,)](a, b, c, out, 16, 16, 16)
    return bool((out != 16).any())


def sum_of_two_bf16() -> bool:
    x, out = torch.full((16,), 1.5, dtype=BF16), torch.empty(16, dtype=BF16)
    kernels.binary[(1,)](x, x, out, "add", 16)
    return bool((out != 3).any())


def rounding_to_bf16() -> bool:
    x, out = torch.full((16,), 1.06), torch.empty(16, dtype=BF16)
    kernels.cast[(1,)](x, out, 16)
    return not torch.equal(out, x.to(BF16))


def saturation_to_e4m3fn() -> bool:
    x, out = torch.full((16,), 1000.0), torch.empty(16, dtype=E4M3)
    kernels.cast[(1,)](x, out, 16)
    return bool((out.float() != 448).any())


FAULTS = (dot_of_bf16, sum_of_two_bf16, rounding_to_bf16, saturation_to_e4m3fn)

if __name__ == "__main__":
    if "corrected" in sys.argv:
        interpreter.install()
        interpreter.require()
    print(json.dumps({fault.__name__: fault() for fault in FAULTS}))
