"""docs/predictor.md: what the predictor is worth, as `m3gen validate --write` found it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from m3gen.evaluate.ablation import Ablated
from m3gen.evaluate.validation import Validation
from m3gen.report import validation
from m3gen.report.validation import Sheet

HEAD = """Made by `m3gen validate {arguments}` with {judges}. Do not edit.

# The predictor against published times

Times are microseconds. *Published* ones others measured; *predicted* ones are the model's, from machine code and the
numbers of the device. Nothing here was measured by m3gen. A point is a published time and the sum of op times that it
is; *within* says whether the prediction is off by no more than the point's tolerance, *dominant* names the term of the
model that is largest in the sum. A constant of the model was fitted on the points marked *fit*; the others are
*held-out*. Points that are *context only* are of another kernel or leave something open: they are shown and not judged.

{summary}.
"""

# Written by hand: what a reader should know that no table shows.
KNOWN_WRONG = """## What is known to be wrong

- Four constants are fitted, to the points marked so, the rate of fp8 conversions on NVIDIA by hand. The shape of the
  model was settled with all points in view: that programs without work are not counted, that a launch has a start.
  "Held out" says that no number was fitted to a point, not that nobody had looked at it.
- No AMD point is of an attention kernel. That a bank conflict costs two clocks rests on one kernel's reads. The
  latencies of AMD's caches, its LDS and its memory are assumed.
- gfx950 has no point that is judged. Those of its selector, for context, come out 1.3 to 1.6 times too slow: a launch
  in a graph seems to cost under 2 us, and most of the rest is latency, which is assumed.
- Every workgroup of a launch takes as long as the one that executes most. Where the last of a row's programs to arrive
  merges what the others found, all of them are predicted to merge.
- On AMD a barrier costs a wave no more than an instruction once all have arrived, and workgroups start at no cost.
- On AMD memory is a roofline beside the simulation, not in it: a kernel that is short of bytes in flight only at times
  is predicted too fast. Address translation, channel conflicts and the fabric between chiplets are not modelled.
- On AMD a vector load of one line or less is taken for a lookup, which a cache answers. A kernel each of whose waves
  reads 128 bytes of a page is predicted up to 0.6 us too fast, which tiles of eight 8-bit tokens over eight waves do;
  the ops that copy pages have no such tiles. By width they cannot be told apart: queries, which a cache does answer,
  come 2 bytes a lane too.
- On NVIDIA spills cost an issue slot and no latency, so that a candidate with more than 16 loads and stores of spilled
  registers is not predicted at all.
- On NVIDIA waves are not simulated: units are counted from the instructions, bank conflicts are not, and what is
  outside the main loop runs once, in whichever branch it lies: a program of `qk_norm_rope_insert` that serves one kind
  of rows is charged for all kinds.
- The ablation on AMD switches a unit off in the simulation; only "simulation" falls back on counting instructions.
- Loops other than the one that streams, and atomics that many programs contend for, are charged once or not at all.

## What is left out

- m3gen has no prefill op, so what vLLM tuned of its sparse prefill on AMD is no point. Through the door for peers
  (`python -m benchmarks.prefill_choices --vllm PATH`; 4,096 rows of one request of 32,768 tokens, compiled by Triton
  3.9.0), predict-amd-5 puts what is shipped 7th of 24 on MI300X and 11th of 24 on MI355X, 1.34 and 1.74 times behind
  the fastest; compiled by Triton 3.6.0 9th and 7th. By which compiler vLLM tuned is not published, and the order is as
  much the compiler's as the chip's. With these two in the place of the query length of 4 and the stages, 3 of 5
  shipped choices are first.
"""


def page(found: Validation, ablated: Sequence[Ablated], arguments: Sequence[str]) -> str:
    head = HEAD.format(
        arguments=shlex.join(arguments), judges=validation.judges(found), summary=validation.summary(found)
    )
    tables = [_section(sheet) for sheet in validation.sheets(found, ablated)]
    return "\n".join([head, KNOWN_WRONG, *tables, _sources(found)])


def _section(sheet: Sheet) -> str:
    names = [name.removeprefix(">") for name in sheet.columns]
    rules = ["---:" if name.startswith(">") else "---" for name in sheet.columns]
    lines = [f"| {' | '.join(cells)} |" for cells in (names, rules, *sheet.rows)]
    note = f"{sheet.note[0].upper()}{sheet.note[1:]}.\n\n" if sheet.note else ""
    return f"## {sheet.title}\n\n{note}" + "\n".join(lines) + "\n"


def _sources(found: Validation) -> str:
    """Every point in words, by source."""
    lines = ["## Points", ""]
    for source in dict.fromkeys(one.point.source for one in found.outcomes):
        of_source = [one.point for one in found.outcomes if one.point.source == source]
        lines += [f"From {source}:", "", *(f"- `{one.id}`: {one.what}" for one in of_source), ""]
    return "\n".join(lines)
