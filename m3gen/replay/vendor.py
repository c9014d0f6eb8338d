"""Who made the device of a recorded space: such devices are older or smaller than those of the catalogue."""

from __future__ import annotations

import re

from m3gen.targets import Vendor

# As recorded spaces name them: MI250X, "AMD Radeon PRO W7800", A100, "NVIDIA RTX A4000", GTX_1660S.
_MAKERS = {
    Vendor.AMD: r"amd|radeon|instinct|gfx\d|mi\d{2,3}|rx|w\d{4}",
    Vendor.NVIDIA: r"nvidia|geforce|tesla|quadro|rtx|gtx|sm|[abghlpvt]\d{1,4}|titan",
}


def vendor(device: str) -> Vendor | None:
    """By the first word that tells; None when none does."""
    for word in re.split(r"[^a-z0-9]+", device.lower()):
        for maker, pattern in _MAKERS.items():
            if re.match(f"(?:{pattern})", word):
                return maker
    return None
