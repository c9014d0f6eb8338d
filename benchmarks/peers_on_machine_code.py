"""vLLM's kernels of MiniMax-M3 as machine code of gfx942 and gfx950, executed on the CPU: do they come out right?

    python benchmarks/peers_on_machine_code.py --vllm PATH [--arch ARCH] [--only WORD]

PATH is a folder that holds vLLM's Python files, as for `beside_vllm.py`. Runs its sparse decode with its merge under
several numbers of warps and stages, its sparse prefill, its block scores and top-k lists (common and AMD's) and the
insert into the index cache, compiled for each arch as its own launchers launch them there, on inputs of m3gen's, and
holds them against float64 references. Prints a Markdown table; what each row cost on this machine goes to stderr.
Some ten minutes of one core. Exit status 1 when anything is wrong, 2 when PATH is not vLLM.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import triton
from peers import attend_cases, select_cases, vllm

from m3gen.emulator import EmulationError, Emulator, emulating
from m3gen.errors import UserError
from m3gen.spec import dtype
from m3gen.targets import architecture

ARCHS = ("gfx942", "gfx950")
# vLLM's default first; 8 warps are more than 16 rows of queries need.
LAUNCHES = ({}, {"num_warps": 1, "num_stages": 1}, {"num_warps": 2}, {"num_stages": 1}, {"num_warps": 8})
SCORE_BOUND = 1e-5  # of a score over the RMS of all: sums of 128 exact products in fp32

Row = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """`said` goes into the table."""

    said: str
    right: bool


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vllm", type=Path, required=True, metavar="PATH", help=f"else: {vllm.HOW}")
    parser.add_argument("--arch", choices=ARCHS, action="append", help="default: both")
    parser.add_argument("--only", default="", metavar="WORD", help="kernels or cases whose name holds it")
    given = parser.parse_args()
    rows, right = list[Row](), True
    try:
        for arch in given.arch or ARCHS:
            theirs = vllm.load(given.vllm, arch)
            for kernel, case, run in runs(theirs, arch):
                if given.only in f"{kernel} {case}":
                    row, is_right = measured(kernel, arch, case, run)
                    rows.append(row)
                    right = right and is_right
    except vllm.NotVllm as refusal:
        print(refusal, file=sys.stderr)
        return 2
    print(f"vLLM {theirs.version}, Triton {triton.__version__}, torch {torch.__version__}\n")
    print(table(("kernel", "arch", "case", "error", "instructions"), rows))
    return 0 if right else 1


def measured(kernel: str, arch: str, case: str, run: Callable[[], Outcome]) -> tuple[Row, bool]:
    """The row of one launch, and whether it came out right."""
    started = time.process_time()
    with emulating(arch, profile=True) as emulator:
        try:
            outcome = run()
        except (EmulationError, UserError) as error:
            outcome = Outcome(f"{type(error).__name__}: {error}", right=False)
    row = (kernel, arch, case, outcome.said if outcome.right else f"wrong: {outcome.said}", executed(emulator))
    print(" | ".join(row), f"| {time.process_time() - started:.0f} s", file=sys.stderr, flush=True)
    return row, outcome.right


def executed(emulator: Emulator) -> str:
    """Instructions of all waves, by launch."""
    return " + ".join(f"{int(profile.counts.waves.sum()):,}" for profile in emulator.profiles)


def runs(theirs: vllm.Vllm, arch: str) -> Iterator[tuple[str, str, Callable[[], Outcome]]]:
    """Kernel, case, and what launches it and judges."""
    attend = theirs.modules["attend"]
    for name, case in attended(arch):
        for launch in LAUNCHES if "1 request" in name else LAUNCHES[:1]:
            shape = "".join(f", {number} {option[4:]}" for option, number in launch.items())
            yield (
                "sparse decode + merge",
                name + shape,
                lambda case=case, launch=launch: decoded(theirs, case, launch),
            )
        for half in ("attend", "attend_amd"):
            module = theirs.modules.get(half)
            if module is not None:
                label = "sparse prefill" + ("" if module is attend else ", AMD")
                yield label, name, lambda case=case, module=module: prefilled(module, case)
    for name, chosen in selected(arch):
        for launcher, half in ((theirs.select, "select"), (theirs.select_amd, "select_amd")):
            if launcher is not None:
                module = theirs.modules[half]
                label = "block scores + " + ("bitonic top-k" if half == "select" else "fused top-k, AMD")
                yield (
                    label,
                    name,
                    lambda case=chosen, launcher=launcher, module=module: listed(launcher, module, case),
                )
    if pages := theirs.modules.get("pages_amd"):
        for kind in ("bf16", architecture(arch).fp8):
            yield "index cache insert, AMD", kind, lambda kind=kind: inserted(pages, kind)


def attended(arch: str) -> Iterator[tuple[str, attend_cases.AttendCase]]:
    fp8 = architecture(arch).fp8
    for kind, scale in (("bf16", "none"), (fp8, "scalar")):
        fields: dict[str, Any] = {"kv_dtype": kind, "kv_scale": scale}
        for name, lengths, query_len in (
            ("1 request, length 513", [513], 1),
            ("4 requests, lengths 256 257 640 1023", [256, 257, 640, 1023], 1),
            ("2 requests of 2 tokens, lengths 129 384", [129, 384], 2),
        ):
            yield f"{kind}, {name}", attend_cases.make(name, "", lengths, arch, query_len=query_len, **fields)


def selected(arch: str) -> Iterator[tuple[str, select_cases.SelectCase]]:
    fp8 = architecture(arch).fp8
    for kind, name, lengths, fields in (
        ("bf16", "1 request, length 1024", [1024], {}),
        ("bf16", "4 requests, lengths 257 640 1023 2500", [257, 640, 1023, 2500], {}),
        ("bf16", "2 requests of 2 tokens, 2 heads, lengths 129 2433", [129, 2433], {"heads": 2, "query_len": 2}),
        (fp8, "2 requests, lengths 256 2305", [256, 2305], {"init_blocks": 1, "local_blocks": 2}),
    ):
        yield f"{kind}, {name}", select_cases.make(name, "", lengths, of=kind, **fields)


def decoded(theirs: vllm.Vllm, case: attend_cases.AttendCase, launch: dict[str, int]) -> Outcome:
    with vllm.watching(theirs.modules["attend"], "_gqa_sparse_decode_kernel", **launch):
        return attention(case, vllm.attend(theirs, case.arguments))


def prefilled(module: Any, case: attend_cases.AttendCase) -> Outcome:
    """The same rows as a prefill: the last tokens of each request."""
    given, query_len = case.arguments, case.arguments["query_len"]
    k, out = given["k_cache"], torch.full_like(given["q"], float("nan"))
    requests = len(given["seq_lens"])
    module.minimax_m3_sparse_attn(
        given["q"],
        k.as_strided((*k.shape[:3], 2 * k.shape[3]), k.stride(), k.storage_offset()),
        given["topk_ids"],
        given["block_table"],
        torch.arange(requests + 1, dtype=torch.int32) * query_len,
        given["seq_lens"],
        given["seq_lens"] - query_len,
        query_len,
        k.shape[1],
        given["softmax_scale"],
        out,
        given.get("k_scale"),
        given.get("v_scale"),
    )
    return attention(case, out)


def attention(case: attend_cases.AttendCase, out: torch.Tensor) -> Outcome:
    if fault := attend_cases.fault(case, out):
        return Outcome(fault, right=False)
    return Outcome(f"{float(attend_cases.errors(case, out).max()):.1e} of RMS", right=True)


def listed(launcher: Any, module: Any, case: select_cases.SelectCase) -> Outcome:
    """Both the scores on the way and the lists."""
    names = [name for name in vars(module) if name in SCORE_KERNELS]
    ids = case.buffer()
    with vllm.watching(module, *names) as kernels:
        vllm.select(launcher, case.arguments, ids, case.max_seq_lens[0])
    scores = next(kernel.arguments[2] for kernel in kernels if kernel.arguments).double()
    blocks = case.scores.shape[2]
    seen = case.scores.isfinite() & (case.scores.abs() < 1e28)  # visible, not forced
    right = case.scores[seen]
    error = float(((scores[:, :, :blocks][seen] - right).abs() / right.square().mean().sqrt()).max())
    if error > SCORE_BOUND or error != error:
        return Outcome(f"scores off by {error:.1e}", right=False)
    if fault := select_cases.fault(case, [ids]):
        return Outcome(fault, right=False)
    return Outcome(f"scores {error:.1e}, lists equal", right=True)


SCORE_KERNELS = ("_decode_index_score_kernel", "_decode_index_score_balanced_kernel")


def inserted(pages: Any, kind: str) -> Outcome:
    """Tokens to slots in any order, one of them padding."""
    generator = torch.Generator().manual_seed(0)
    keys = torch.randn((7, 128), generator=generator).bfloat16()
    slots = torch.tensor([300, 0, 127, 128, -1, 255, 511])
    cache = torch.zeros((4, 128, 128), dtype=dtype(kind).torch())
    wanted = cache.clone()
    for key, slot in zip(keys, slots.tolist(), strict=True):
        if slot >= 0:
            wanted[slot // 128, slot % 128] = key.to(wanted.dtype)
    pages.minimax_m3_insert_index_cache(keys, cache, slots)
    wrong = int((cache.view(torch.uint8) != wanted.view(torch.uint8)).sum())
    return Outcome("equal, bit for bit" if wrong == 0 else f"{wrong} bytes differ", right=wrong == 0)


def table(heads: Row, rows: list[Row]) -> str:
    lines = [heads, tuple("---" for _ in heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    sys.exit(main())
