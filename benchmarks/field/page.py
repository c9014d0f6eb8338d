"""docs/against_field.md, made of the rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from math import exp, log

from m3gen.evaluate.predict import TERMS
from m3gen.report.words import microseconds

from .matches import BY_CONTEXT, MERGE
from .rows import Row
from .verdict import NEAR, RATIO, Verdict, reason, verdict

COMMAND = "python -m benchmarks.against_field"

HEAD = """Made by `{command}` with {compiler}. Do not edit.

# Against the field

vLLM {version}'s decode kernels of MiniMax-M3 beside m3gen's, at TP 4 and one query row a request. Every time here is
**predicted**, in microseconds, from the machine code of both, both sides of a row by the same version of one model
({judges}).
Nothing was measured.

- *pick*: m3gen's kernel, of `tuning_db/` ({tabled}) or the op's default. *field*: vLLM's kernels with the
  constants that vLLM's launchers hard-code for this load; of several, and of what its autotuner would choose among,
  the best predicted.
- *floor*: the keys and values that must be read, at the memory's peak rate. A top-k, a merge and an insert read what
  was just written, and have none.
- *reachable*: the floor that a kernel could come to: one launch, the shortest chain of accesses that wait for each
  other (a length, a list entry or a slot; its page; the data; the store; what merging parts takes where a program
  alone would be slower), and the bytes at the rate that the memory was seen to give, {efficiency}. All at the
  predictor's constants (`m3gen/evaluate/timing.py`), so that the model cannot say less of any kernel; a top-k is
  charged the log2(blocks) comparisons that end with the greatest. No other instruction is counted.
- *terms*: where the difference comes from, the field's less the pick's. Terms overlap: they do not add up to the
  difference of the times.
- *bar*: the first that holds of: at least {ratio}x as fast as the field's; within {near}x of the floor; within {near}x
  of the reachable floor, and where a kernel at that floor would not be {ratio}x as fast as the field's either, that it
  cannot be. Else **NO**, and why.

What the comparison leaves out:

- Kind to the field: its tables are as wide as the context, as for an engine that serves no longer one. Unkind: on
  NVIDIA its launches overlap by programmatic dependent launch, which is compiled in and which the model does not know.
- Only Triton kernels can be judged. On NVIDIA vLLM runs layers 0 to 2 with FlashAttention or FlashInfer unless the
  Triton backend is chosen, which is what `dense_decode` stands beside; on B200 its sparse attention and indexer are
  CUTLASS kernels where these take the load. On AMD it may run AITER's assembly in the place of each.
- `dense_decode` on AMD: *unified* is the Triton backend's kernel, *rocm* that of the default backend, whose C++ kernel
  does not take pages of 128 tokens.
- `kv_insert`: m3gen's inserts the index key too, vLLM's does not. *flash* and *packed* are the cache layouts of its
  Triton and its ROCm backend.
- `{merge}`: the second launch of a split `sparse_decode`, on both sides with the field's splits and partial outputs.
- `index_select`: score and top-k together; vLLM's are its two ops one after the other.
- `kv_gather`: on AMD the Triton kernel of vLLM's AITER backend; `kv_zero`: vLLM's for one layer, though its launcher
  takes all layers at once.
- C++ in vLLM, or torch: `qk_norm_rope_insert`, `kv_copy`, `kv_convert`, and on NVIDIA `kv_gather`. These have floors
  alone.
"""
COLUMNS = (
    "op",
    "cache",
    "rows",
    "context",
    "pick",
    "us",
    "field us",
    "ratio",
    "floor us",
    "us / floor",
    "reachable us",
    "us / reachable",
    "field / reachable",
    "terms",
    "bar",
    "why",
)


def page(rows: Sequence[Row], efficiency: str) -> str:
    """`efficiency` says the memory's reachable rates in words."""
    tabled = sorted({row.op for row in rows if row.origin == "table"})
    head = HEAD.format(
        command=f"{COMMAND} --vllm PATH",
        compiler=_several(rows, lambda row: row.compiler),
        version=_several(rows, lambda row: row.vllm),
        judges=_several(rows, lambda row: row.judge),
        tabled=", ".join(tabled) or "none yet",
        efficiency=efficiency,
        ratio=RATIO,
        near=NEAR,
        merge=MERGE,
    )
    parts = [head, totals(rows) + "\n", summary(rows) + "\n"]
    for where, arch in dict.fromkeys((row.device, row.arch) for row in rows):
        those = [row for row in rows if row.device == where]
        parts.append(f"## {where} ({arch})\n\n{table(COLUMNS, [cells(row) for row in those])}\n")
    if remarks := sorted({remark for row in rows for remark in row.remarks}):
        parts.append("Predicted from instructions alone, for the emulator did not run them:\n")
        parts.append("\n".join(f"- {one}" for one in remarks) + "\n")
    return "\n".join(parts)


def totals(rows: Sequence[Row]) -> str:
    """How many rows come to which verdict."""
    counted = Counter(verdict(row) for row in rows)
    return table(("of all rows", str(len(rows))), [(one.value, str(counted[one])) for one in Verdict])


def summary(rows: Sequence[Row]) -> str:
    """By device and op: the ratios to the field, and the verdicts."""
    made = []
    for key in dict.fromkeys((row.device, row.op) for row in rows):
        those = [row for row in rows if (row.device, row.op) == key]
        ratios = [row.ratio for row in those if row.ratio is not None]
        mean = f"{exp(sum(map(log, ratios)) / len(ratios)):.2f}x" if ratios else "no field"
        counted = Counter(verdict(row) for row in those)
        made.append(
            (*key, mean, f"{min(ratios):.2f}x" if ratios else "-", *(str(counted[one]) for one in Verdict))
        )
    heads = ("device", "op", "ratio, geometric mean", "least", *(one.value for one in Verdict))
    return table(heads, made)


def cells(row: Row) -> tuple[str, ...]:
    has_cache = row.op not in ("index_topk", "index_select", MERGE)
    context = "any" if row.op not in BY_CONTEXT else f"{row.context:,}"
    if row.op in ("sparse_decode", MERGE):
        context = "2,048 and up"
    said, why = verdict(row), reason(row)
    return (
        row.op,
        row.cache if has_cache else "-",
        str(row.rows),
        f"{row.context:,}" if row.op == "kv_gather" else context,
        row.origin,
        _time(row.us),
        rival(row),
        f"{row.ratio:.2f}x" if row.ratio else "-",
        _time(row.floor_us),
        f"{row.us / row.floor_us:.2f}" if row.us and row.floor_us else "-",
        _time(row.reachable_us),
        f"{row.us / row.reachable_us:.2f}" if row.us and row.reachable_us else "-",
        f"{row.rival_us / row.reachable_us:.2f}" if row.rival_us and row.reachable_us else "-",
        differences(row) if row.rival_us else "-",
        f"**{said}**" if said is Verdict.NO else said.value,
        why or "-",
    )


def rival(row: Row) -> str:
    """The field's time, with the others' where vLLM has several kernels."""
    if not row.others:
        return _time(row.rival_us)
    others = ", ".join(f"{name} {_time(us)}" for name, us in row.others.items())
    return f"{_time(row.rival_us)} ({row.rival}; {others})"


def differences(row: Row) -> str:
    """The largest three, those under a fiftieth of the field's time left out."""
    found = {name: row.rival_terms.get(name, 0.0) - row.terms.get(name, 0.0) for name in (*TERMS, "start")}
    told = sorted(found.items(), key=lambda item: -abs(item[1]))[:3]
    least = 0.02 * row.rival_us
    return ", ".join(f"{name} {value:+.1f}" for name, value in told if abs(value) >= max(0.05, least)) or "none"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---" for _ in heads], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _time(us: float) -> str:
    return microseconds(us) if us else "-"


def _several(rows: Sequence[Row], of: Callable[[Row], str]) -> str:
    return ", ".join(sorted({found for row in rows if (found := of(row))}))
