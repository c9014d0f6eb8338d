"""The vendor of a recorded space's device."""

from __future__ import annotations

import pytest

from m3gen.replay.vendor import vendor
from m3gen.targets import Vendor


@pytest.mark.parametrize(
    "device", ["MI250X", "W6600", "W7800", "AMD Instinct MI300X", "Radeon RX 7900 XTX", "gfx942"]
)
def test_amd(device: str):
    assert vendor(device) is Vendor.AMD


@pytest.mark.parametrize(
    "device",
    ["A100", "A4000", "NVIDIA A100-PCIE-40GB", "GTX_1660S", "RTX_2070", "H100", "T4", "Tesla K20c", "sm_90"],
)
def test_nvidia(device: str):
    assert vendor(device) is Vendor.NVIDIA


@pytest.mark.parametrize("device", ["one", "other", "", "CPU"])
def test_unknown(device: str):
    assert vendor(device) is None
