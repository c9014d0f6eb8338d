"""`Refused`: why a model cannot have the specialised path, all reasons at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from m3gen.errors import UserError


class RefusalCode(StrEnum):
    """What a refusal is about."""

    SHARD = "shard"
    SHAPE = "shape"
    DTYPE = "dtype"
    LIMITS = "limits"
    FEATURE = "feature"
    DEVICE = "device"
    VERSION = "version"
    KERNEL = "kernel"


@dataclass(frozen=True, slots=True)
class Refusal:
    """One reason; `text` says what was found and what is needed."""

    code: RefusalCode
    text: str


class Refused(UserError):
    """Construction found reasons against the specialised path; `refusals` are all of them."""

    def __init__(self, refusals: Sequence[Refusal]) -> None:
        self.refusals = tuple(refusals)
        count = f"{len(refusals)} reasons" if len(refusals) > 1 else "1 reason"
        super().__init__(f"no specialised decode, {count}: " + "; ".join(one.text for one in self.refusals))
