"""Why rows are not clear, by hand: what was tried on a kernel, and what stands in the way."""

from __future__ import annotations

from dataclasses import dataclass

from .rows import Row


@dataclass(frozen=True, slots=True)
class Reason:
    """What is to be said of the rows that it names; what it leaves out it holds for all of."""

    text: str
    op: str
    device: str = ""
    cache: str = ""
    rows: tuple[int, ...] = ()
    context: int = 0

    def holds(self, row: Row) -> bool:
        return (
            self.op == row.op
            and self.device in ("", row.device)
            and self.cache in ("", row.cache)
            and (not self.rows or row.rows in self.rows)
            and self.context in (0, row.context)
        )


_SECOND_LAUNCH = (
    "the second launch of a split sparse_decode under the field's constants, for comparison alone: in every pick of "
    "sparse_decode the last program merges, so none runs it"
)
_SUNK_LOAD = (
    "the pick inserts index K too, which the field's does not; LLVM moves the load of a row under the branch on its "
    "slot, where the store to a cache of over 2 GiB is no buffer store, so that it waits for the slot"
)
_ONE_TILE = (
    "a program copies one tile, so the chain of pair and page comes before all bytes, which the model adds up and the "
    "floor overlaps; with more tiles a program they overlap, and the candidates with those were slower"
)
_NOT_KNOWN = "the best of the candidates that a search of 60 found; what would be better is not known"
_ALL_KINDS = (
    "a program serves one kind of rows, and the model of NVIDIA charges it for the instructions of all kinds, which "
    "stand in branches"
)
REASONS: tuple[Reason, ...] = (
    Reason(_SECOND_LAUNCH, "merge"),
    *(Reason(_ALL_KINDS, "qk_norm_rope_insert", device=device) for device in ("H200", "B200")),
    Reason(_NOT_KNOWN, "index_topk", device="MI355X", context=131072),
    Reason(_NOT_KNOWN, "kv_convert", device="MI300X", cache="bf16", rows=(64,)),
    *(Reason(_SUNK_LOAD, "kv_insert", cache=cache) for cache in ("e4m3fnuz", "e4m3fn")),
    *(Reason(_ONE_TILE, "kv_copy", device=device, rows=(16,)) for device in ("MI300X", "MI355X")),
    *(Reason(_NOT_KNOWN, "kv_copy", device=device, rows=(64,)) for device in ("MI300X", "MI355X")),
)
"""The first that holds counts."""
