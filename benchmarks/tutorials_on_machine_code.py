"""The kernels of Triton's tutorials as machine code of gfx942 and gfx950, executed on the CPU, against float64.

    python benchmarks/tutorials_on_machine_code.py PATH [--only WORD]

PATH is the folder python/tutorials of github.com/triton-lang/triton: 01-vector-add.py to 06-fused-attention.py, those
that are there. The `@triton.jit` functions of a file are taken out of it, without its benchmarks and without
autotuning, and launched on inputs made here; arguments are bound by the names that the tutorials give them, of 06
the version with tensor descriptors. Prints a Markdown table; seconds go to stderr. Exit status 1 when anything is
wrong, 2 when PATH holds no tutorial.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import math
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import triton

from m3gen.emulator import EmulationError, Emulator, emulating
from m3gen.errors import UserError

ARCHS = ("gfx942", "gfx950")
LN2 = math.log(2.0)
HEADER = "import triton\nimport triton.language as tl\n"

Pair = tuple[torch.Tensor, torch.Tensor]  # what came out, and the float64 answer


@dataclass(frozen=True, slots=True)
class Result:
    """Outputs of one case, and the RMS error over the RMS of the answer that is allowed."""

    case: str
    outputs: dict[str, Pair]
    bound: float

    def errors(self) -> dict[str, float]:
        return {name: rms(found, answer) for name, (found, answer) in self.outputs.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", type=Path, metavar="PATH")
    parser.add_argument("--only", default="", metavar="WORD", help="files whose name holds it")
    given = parser.parse_args()
    rows, wrong = list[tuple[str, ...]](), False
    with tempfile.TemporaryDirectory() as scratch:
        for name, cases in TUTORIALS.items():
            if not (given.path / name).is_file() or given.only not in name:
                continue
            kernels = extracted(given.path / name, Path(scratch))
            for arch in ARCHS:
                found, is_wrong = executed(name, arch, kernels, cases)
                rows += found
                wrong = wrong or is_wrong
    if not rows:
        print(f"no tutorial in {given.path}: expected {', '.join(TUTORIALS)}", file=sys.stderr)
        return 2
    heads = ("tutorial", "arch", "case", "error over RMS", "instructions")
    print("\n".join(f"| {' | '.join(line)} |" for line in (heads, tuple("---" for _ in heads), *rows)))
    return 1 if wrong else 0


def executed(name: str, arch: str, kernels: ModuleType, cases: Any) -> tuple[list[tuple[str, ...]], bool]:
    """The rows of one tutorial on one arch, and whether any is wrong. A case that cannot be run ends it."""
    rows, wrong, started = list[tuple[str, ...]](), False, time.process_time()
    torch.manual_seed(0)
    with emulating(arch, profile=True) as emulator:
        try:
            for result in cases(kernels):
                errors = result.errors()
                is_right = all(error <= result.bound for error in errors.values())
                wrong = wrong or not is_right
                said = ", ".join(f"{output} {error:.1e}" for output, error in errors.items())
                rows.append((name, arch, result.case, said if is_right else f"wrong: {said}", counted(emulator)))
                print(
                    " | ".join(rows[-1]), f"| {time.process_time() - started:.0f} s", file=sys.stderr, flush=True
                )
                started = time.process_time()
        except (EmulationError, UserError) as error:
            rows.append((name, arch, "", f"wrong: {type(error).__name__}: {error}", counted(emulator)))
            print(" | ".join(rows[-1]), file=sys.stderr, flush=True)
            return rows, True
    return rows, wrong


def counted(emulator: Emulator) -> str:
    """Instructions of all waves, by launch, since the last time."""
    counts = " + ".join(f"{int(profile.counts.waves.sum()):,}" for profile in emulator.profiles)
    emulator.profiles.clear()
    return counts


def extracted(tutorial: Path, scratch: Path) -> ModuleType:
    """The jitted functions of a file as a module of their own."""
    source = tutorial.read_text()
    functions = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and any("jit" in ast.unparse(one) for one in node.decorator_list):
            body = "\n".join(source.splitlines()[node.lineno - 1 : node.end_lineno])
            functions.append(f"\n\n@triton.jit\n{body}\n")
    path = scratch / f"tutorial_{tutorial.stem.replace('-', '_')}.py"
    path.write_text(HEADER + "".join(functions))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def launch(kernel: Any, grid: tuple[int, ...], named: dict[str, Any], **options: int) -> None:
    """With those of the named values that the kernel takes."""
    if missing := [name for name in kernel.arg_names if name not in named]:
        raise UserError(f"{kernel.fn.__name__} takes {missing[0]}, which this version of the script does not know")
    kernel[grid](**{name: named[name] for name in kernel.arg_names}, **options)


def rms(found: torch.Tensor, answer: torch.Tensor) -> float:
    return float((found.double() - answer).square().mean().sqrt() / answer.square().mean().sqrt())


def nans(*shape: int, of: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.full(shape, float("nan"), dtype=of)


def vector_add(kernels: ModuleType) -> Iterator[Result]:
    x, y, out = torch.rand(5000), torch.rand(5000), nans(5000)
    named = {"x_ptr": x, "y_ptr": y, "output_ptr": out, "n_elements": 5000, "BLOCK_SIZE": 1024}
    launch(kernels.add_kernel, (5,), named)
    yield Result("5,000 elements", {"sum": (out, (x + y).double())}, 0.0)


def softmax(kernels: ModuleType) -> Iterator[Result]:
    x = torch.randn(37, 781)
    for warps, stages in ((8, 2), (4, 4)):
        out = nans(37, 781)
        named = {
            "output_ptr": out,
            "input_ptr": x,
            "input_row_stride": 781,
            "output_row_stride": 781,
            "n_rows": 37,
            "n_cols": 781,
            "BLOCK_SIZE": 1024,
            "num_stages": stages,
        }
        launch(kernels.softmax_kernel, (8,), named, num_warps=warps)
        yield Result(f"37 x 781, {warps} warps, {stages} stages", {"rows": (out, x.double().softmax(1))}, 1e-6)


def matmul(kernels: ModuleType) -> Iterator[Result]:
    """Tiles as the tutorial's own for HIP; sizes that no tile divides."""
    m, n, k = 136, 200, 72
    for dtype, tile, group, warps, activation in (
        (torch.float16, (64, 64, 32), 1, 4, ""),
        (torch.float16, (64, 128, 32), 8, 4, "leaky_relu"),
        (torch.float16, (128, 256, 16), 1, 4, ""),
        (torch.float16, (128, 128, 32), 1, 8, ""),
        (torch.float8_e5m2, (64, 64, 32), 8, 4, ""),
    ):
        a, b, c = torch.randn(m, k).to(dtype), torch.randn(k, n).to(dtype), nans(m, n, of=torch.float16)
        named = {"a_ptr": a, "b_ptr": b, "c_ptr": c, "M": m, "N": n, "K": k, "ACTIVATION": activation}
        named |= {"stride_am": k, "stride_ak": 1, "stride_bk": n, "stride_bn": 1, "stride_cm": n, "stride_cn": 1}
        named |= dict(zip(("BLOCK_SIZE_M", "BLOCK_SIZE_N", "BLOCK_SIZE_K"), tile, strict=True))
        grid = (triton.cdiv(m, tile[0]) * triton.cdiv(n, tile[1]),)
        launch(kernels.matmul_kernel, grid, named | {"GROUP_SIZE_M": group}, num_warps=warps, num_stages=2)
        answer = a.double() @ b.double()
        if activation:
            answer = torch.nn.functional.leaky_relu(answer)
        kind = str(dtype).removeprefix("torch.")
        case = f"{kind}, tiles {' x '.join(map(str, tile))}, {warps} warps {activation}".strip()
        yield Result(case, {"product": (c, answer)}, 3e-4)


def dropout(kernels: ModuleType) -> Iterator[Result]:
    x, keep, out, p = torch.randn(3000), (torch.rand(3000) > 0.3).int(), nans(3000), 0.3
    named = {"x_ptr": x, "x_keep_ptr": keep, "output_ptr": out, "n_elements": 3000, "p": p, "BLOCK_SIZE": 1024}
    launch(kernels._dropout, (3,), named)
    yield Result("3,000 elements, a mask", {"kept": (out, torch.where(keep > 0, x.double() / (1 - p), 0.0))}, 1e-6)
    out = nans(3000)
    launch(kernels._seeded_dropout, (3,), named | {"output_ptr": out, "seed": 123})
    kept = uniform(123, 3000) > p
    yield Result("3,000 elements, a seed", {"kept": (out, torch.where(kept, x.double() / (1 - p), 0.0))}, 1e-6)


def uniform(seed: int, count: int) -> torch.Tensor:
    """tl.rand: the first word of Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011),
    folded to 31 bits."""
    word = 0xFFFFFFFF
    c = [torch.arange(count), *(torch.zeros(count, dtype=torch.int64) for _ in range(3))]
    key = [seed & word, seed >> 32]
    for _ in range(10):
        (high_a, low_a), (high_b, low_b) = product(c[0], 0xD2511F53), product(c[2], 0xCD9E8D57)
        c = [high_b ^ c[1] ^ key[0], low_b, high_a ^ c[3] ^ key[1], low_a]
        key = [(key[0] + 0x9E3779B9) & word, (key[1] + 0xBB67AE85) & word]
    signed = torch.where(c[0] >> 31 > 0, c[0] - (1 << 32), c[0])
    return torch.where(signed < 0, -signed - 1, signed).float() * 4.6566127342e-10


def product(a: torch.Tensor, b: int) -> Pair:
    """High and low word of 32 by 32 bits, in int64 without its overflow."""
    low, high = a * (b & 0xFFFF), a * (b >> 16)
    carry = (low >> 16) + (high & 0xFFFF)
    return (high >> 16) + (carry >> 16), (carry & 0xFFFF) << 16 | low & 0xFFFF


def layer_norm(kernels: ModuleType) -> Iterator[Result]:
    """Forward, then the gradients: rows add to few sums, under locks that they spin on."""
    rows, columns, groups, eps = 20, 500, 4, 1e-5
    weight, bias = (torch.rand(columns, dtype=torch.float16) for _ in range(2))
    x, dy = (torch.randn(rows, columns, dtype=torch.float16) for _ in range(2))
    y, dx = nans(rows, columns, of=torch.float16), nans(rows, columns, of=torch.float16)
    mean, rstd = nans(rows), nans(rows)
    named = {"X": x, "Y": y, "W": weight, "B": bias, "Mean": mean, "Rstd": rstd, "stride": columns, "N": columns}
    launch(kernels._layer_norm_fwd_fused, (rows,), named | {"eps": eps, "BLOCK_SIZE": 512}, num_warps=2)
    exact = [one.double().requires_grad_() for one in (x, weight, bias)]
    answer = torch.nn.functional.layer_norm(exact[0], (columns,), exact[1], exact[2], eps)
    answer.backward(dy.double())
    yield Result("20 x 500 of fp16, forward", {"y": (y, answer.detach())}, 3e-4)
    partial_dw, partial_db = (torch.zeros(groups, columns) for _ in range(2))
    locks = torch.zeros(2 * groups, dtype=torch.int32)
    named |= {"DX": dx, "DY": dy, "DW": partial_dw, "DB": partial_db, "Lock": locks}
    for warps in (1, 4):
        for one in (partial_dw, partial_db, locks):
            one.zero_()
        sizes = {"GROUP_SIZE_M": groups, "BLOCK_SIZE_N": 512}
        launch(kernels._layer_norm_bwd_dx_fused, (rows,), named | sizes, num_warps=warps)
        dw, db = nans(columns), nans(columns)
        sums = {"FINAL_DW": dw, "FINAL_DB": db, "M": groups, "BLOCK_SIZE_M": 32, "BLOCK_SIZE_N": 128}
        launch(kernels._layer_norm_bwd_dwdb, (triton.cdiv(columns, 128),), named | sums)
        gradients = [one.grad for one in exact]
        outputs = dict(zip(("dx", "dw", "db"), zip((dx, dw, db), gradients, strict=True), strict=True))
        yield Result(f"20 x 500 of fp16, backward, 4 locks, {warps} warps", outputs, 5e-4)


def attention(kernels: ModuleType) -> Iterator[Result]:
    """256 queries, 64 wide. V of 8 bits lies transposed, as the tutorial has it, and there is one head of it: the
    kernel's view of V has as many columns as K has rows, so further heads would lie outside."""
    for dtype, heads, causal, tile, warps, bound in (
        (torch.float16, 2, True, (64, 32), 4, 1e-3),
        (torch.float16, 2, False, (128, 64), 4, 1e-3),
        (torch.float16, 2, True, (128, 64), 8, 1e-3),
        (torch.float8_e5m2, 1, True, (64, 64), 4, 0.1),
    ):
        q, k, v = (torch.randn(1, heads, 256, 64).to(dtype) for _ in range(3))
        is_fp8 = dtype != torch.float16
        out, largest = nans(1, heads, 256, 64, of=dtype), nans(1, heads, 256)
        named = {
            "desc_q": q,
            "desc_k": k,
            "desc_v": v.transpose(2, 3).contiguous() if is_fp8 else v,
            "desc_o": out,
        }
        named |= {"sm_scale": 0.125, "M": largest, "Z": 1, "H": heads, "N_CTX": 256, "HEAD_DIM": 64}
        named |= {"BLOCK_M": tile[0], "BLOCK_N": tile[1], "STAGE": 3 if causal else 1, "FP8_OUTPUT": is_fp8}
        named |= {"warp_specialize": False, "IS_HOPPER": False}
        launch(kernels._attn_fwd, (256 // tile[0], heads), named, num_warps=warps, num_stages=1)
        scores = q.double() @ k.double().transpose(2, 3) * 0.125
        if causal:
            scores = scores.masked_fill(torch.ones(256, 256, dtype=torch.bool).triu(1), -torch.inf)
        outputs = {
            "out": (out, scores.softmax(3) @ v.double()),
            "log2 of sums": (largest, scores.logsumexp(3) / LN2),
        }
        kind = str(dtype).removeprefix("torch.")
        case = f"{kind}, {'causal' if causal else 'all'}, tiles {tile[0]} x {tile[1]}, {warps} warps"
        yield Result(case, outputs, bound)


TUTORIALS = {
    "01-vector-add.py": vector_add,
    "02-fused-softmax.py": softmax,
    "03-matrix-multiplication.py": matmul,
    "04-low-memory-dropout.py": dropout,
    "05-layer-norm.py": layer_norm,
    "06-fused-attention.py": attention,
}


if __name__ == "__main__":
    sys.exit(main())
