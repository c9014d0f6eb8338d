"""Whether a row clears the bar: 1.2x as fast as the field, or within 1.25x of a floor; and what is said where not."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from .reasons import REASONS, Reason
from .rows import Row

RATIO, NEAR = 1.2, 1.25


class Verdict(StrEnum):
    """The first of these that holds."""

    FASTER = f">= {RATIO}x field"
    FLOOR = f"within {NEAR}x of floor"
    BOUND = f"within {NEAR}x of the reachable floor: cannot be {RATIO}x"
    REACHED = f"within {NEAR}x of the reachable floor"
    NO = "NO"


def verdict(row: Row) -> Verdict:
    """`BOUND`: even a kernel at the reachable floor would not be 1.2x as fast as the field's."""
    if row.error or not row.us:
        return Verdict.NO
    if row.ratio is not None and row.ratio >= RATIO:
        return Verdict.FASTER
    if row.us <= NEAR * row.floor_us:
        return Verdict.FLOOR
    if row.us <= NEAR * row.reachable_us:
        is_bound = bool(row.rival_us) and row.rival_us < RATIO * row.reachable_us
        return Verdict.BOUND if is_bound else Verdict.REACHED
    return Verdict.NO


def reason(row: Row, known: Sequence[Reason] = REASONS) -> str:
    """Of a row that is not clear: its error, else the first reason that holds, else that it was not tuned."""
    if row.error:
        return row.error
    if verdict(row) is not Verdict.NO:
        return ""
    said = next((one.text for one in known if one.holds(row)), "")
    if not said and row.origin == "default":
        said = "the op's default, not tuned"
    return "; ".join(filter(None, (said, _uncounted(row))))


def _uncounted(row: Row) -> str:
    """What of the pick's own terms the floor does not count, where that alone is more than what is missing."""
    instructions, shared = row.terms.get("issue", 0.0), row.terms.get("shared", 0.0)
    if row.us - instructions - shared > NEAR * row.reachable_us:
        return ""
    return (
        f"{instructions:.2f} us are its instructions and {shared:.2f} us its shared memory, which the floor does not "
        f"count: {(row.us - instructions - shared) / row.reachable_us:.2f}x without"
    )
