"""The three sets of tables that are ranked: one architecture and dtype each."""

from __future__ import annotations

from dataclasses import dataclass

from m3gen.targets import DEVICES, Device


@dataclass(frozen=True, slots=True, kw_only=True)
class Campaign:
    """`devices` are the names in the tables' file names; `table_dtype` is their dtype field, "" for none.

    `sampled` configurations of the space that no table holds stand for the rest of the space. `bars` are the
    mean and the median percentile that the calibrated ranking is held to.
    """

    arch: str
    dtype: str  # of activations and weights: m3gen's name
    devices: tuple[str, ...]
    table_dtype: str
    sampled: int
    bars: tuple[float, float]

    @property
    def name(self) -> str:
        return f"{self.arch}-{'bf16' if self.element_bytes == 2 else 'fp8'}"

    @property
    def element_bytes(self) -> int:
        return 2 if self.dtype == "bf16" else 1


GFX942_BF16 = Campaign(
    arch="gfx942",
    dtype="bf16",
    devices=("MI300X", "MI325X"),
    table_dtype="",
    sampled=305,
    bars=(4.0, 1.0),
)
GFX942_FP8 = Campaign(
    arch="gfx942",
    dtype="e4m3fnuz",
    devices=("MI300X", "MI325X"),
    table_dtype="fp8_w8a8",
    sampled=121,
    bars=(8.0, 2.0),
)
GFX950_FP8 = Campaign(
    arch="gfx950",
    dtype="e4m3fn",
    devices=("MI350X", "MI350_OAM", "MI355X", "MI355_OAM"),
    table_dtype="fp8_w8a8",
    sampled=132,
    bars=(5.0, 2.0),
)
CAMPAIGNS = (GFX942_BF16, GFX942_FP8, GFX950_FP8)

# The suffix of an OAM and the capacity of the memory say nothing about the compute units.
_PRODUCTS = {"MI350_OAM": "MI350X", "MI355_OAM": "MI355X"}


def device(name: str) -> Device:
    """m3gen's device for the name in a table's file name."""
    return DEVICES[_PRODUCTS.get(name, name)]
