"""The catalogue: its figures against data sheets, its sources, and the names that find an entry."""

from __future__ import annotations

import dataclasses
import pickle

import pytest

from m3gen.errors import UserError
from m3gen.spec import DTYPES
from m3gen.targets import (
    ARCHITECTURES,
    DEVICES,
    Architecture,
    Device,
    UnknownTarget,
    Vendor,
    architecture,
    default_device,
    device,
)

# Dense TFLOP/s as the data sheets state them (AMD: MI300A/X, MI325X, MI350X, MI355X product pages; NVIDIA:
# H100 white paper, H200 and DGX B200 data sheets). MI308X has no public sheet.
DATA_SHEET_TFLOPS = {
    ("MI300X", "bf16"): 1307.4,
    ("MI300X", "fp16"): 1307.4,
    ("MI300X", "e4m3fnuz"): 2614.9,
    ("MI300X", "fp32"): 163.4,
    ("MI300A", "bf16"): 980.6,
    ("MI300A", "e4m3fnuz"): 1961.2,
    ("MI300A", "fp32"): 122.6,
    ("MI325X", "bf16"): 1307.4,
    ("MI325X", "e4m3fnuz"): 2614.9,
    ("MI350X", "bf16"): 2300.0,
    ("MI350X", "e4m3fn"): 4600.0,
    ("MI350X", "fp32"): 144.2,
    ("MI355X", "fp16"): 2516.6,
    ("MI355X", "e4m3fn"): 5033.2,
    ("MI355X", "fp32"): 157.3,
    ("H100_SXM", "bf16"): 989.4,
    ("H100_SXM", "e4m3fn"): 1978.9,
    ("H200", "fp16"): 989.0,
    ("H200", "e4m3fn"): 1979.0,
    ("B200", "bf16"): 2250.0,
    ("B200", "e4m3fn"): 4500.0,
}

COMPUTE_UNITS = {
    "MI300X": 304,
    "MI300A": 228,
    "MI325X": 304,
    "MI308X": 80,
    "MI350X": 256,
    "MI355X": 256,
    "H100_SXM": 132,
    "H200": 132,
    "B200": 148,
}


def test_compute_units() -> None:
    assert {name: d.compute_units for name, d in DEVICES.items()} == COMPUTE_UNITS


@pytest.mark.parametrize(("name", "dtype"), DATA_SHEET_TFLOPS)
def test_matrix_rate_is_that_of_the_data_sheet(name: str, dtype: str) -> None:
    stated = DATA_SHEET_TFLOPS[name, dtype] * 1e12
    assert DEVICES[name].matrix_flops(dtype) == pytest.approx(stated, rel=0.03)


def test_a_dtype_the_matrix_unit_lacks_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        DEVICES["MI300X"].matrix_flops("e4m3fn")


@pytest.mark.parametrize(
    ("name", "l2", "last_level"),
    [("MI300X", 34.4e12, 17.2e12), ("MI325X", 34.4e12, 17.2e12)],
)
def test_cache_bandwidths_against_the_white_paper(name: str, l2: float, last_level: float) -> None:
    d = DEVICES[name]
    assert d.l2_bytes_per_s == pytest.approx(l2, rel=0.01)
    assert d.memory_bytes_per_s < d.last_level_bytes_per_s < last_level  # measured, so under the peak


@pytest.mark.parametrize("entry", [*ARCHITECTURES.values(), *DEVICES.values()], ids=lambda e: e.name)
def test_every_number_has_a_source(entry: Architecture | Device) -> None:
    numbers = {
        f.name
        for f in dataclasses.fields(entry)
        if isinstance(getattr(entry, f.name), int | float) and f.name != "backend_arch"
    }
    if isinstance(entry, Architecture):
        numbers.add("matrix_flops_per_clock")
    assert set(entry.sources) == numbers
    assert all("http" in text or text.startswith("derived: ") for text in entry.sources.values())


@pytest.mark.parametrize("arch", ARCHITECTURES.values(), ids=lambda a: a.name)
def test_architectures_agree_with_themselves(arch: Architecture) -> None:
    assert set(arch.matrix_flops_per_clock) <= set(DTYPES)
    assert [name for name in arch.matrix_flops_per_clock if DTYPES[name].is_fp8] == [arch.fp8]
    assert arch.matrix_flops_per_clock[arch.fp8] == 2 * arch.matrix_flops_per_clock["bf16"]
    assert arch.shared_bytes_per_workgroup + arch.shared_reserved <= arch.shared_bytes_per_cu
    assert arch.shared_bytes_per_cu % arch.shared_granule == 0
    assert arch.registers_per_simd % arch.register_granule == 0
    assert arch.backend == {Vendor.AMD: "hip", Vendor.NVIDIA: "cuda"}[arch.vendor]
    assert str(arch.backend_arch) == arch.name.removeprefix("sm_")


@pytest.mark.parametrize("d", DEVICES.values(), ids=lambda d: d.name)
def test_devices_agree_with_themselves(d: Device) -> None:
    assert ARCHITECTURES[d.arch] is d.architecture
    assert d.compute_units % d.chiplets == 0
    assert d.memory_bytes_per_s < d.l2_bytes_per_s
    assert (d.last_level_bytes == 0) == (d.last_level_bytes_per_s == 0)


def test_entries_can_be_hashed_and_sent_to_a_child() -> None:
    for entry in (*ARCHITECTURES.values(), *DEVICES.values()):
        assert pickle.loads(pickle.dumps(entry)) == entry
    assert len(set(DEVICES.values())) == len(DEVICES)


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("gfx942", "gfx942"),
        ("GFX950", "gfx950"),
        ("gfx942:sramecc+:xnack-", "gfx942"),
        (" sm_90 ", "sm_90"),
        ("sm90", "sm_90"),
        ("sm_90a", "sm_90"),
        ("90", "sm_90"),
        ("SM_100", "sm_100"),
        ("sm_100f", "sm_100"),
    ],
)
def test_architecture_spellings(asked: str, found: str) -> None:
    assert architecture(asked).name == found


@pytest.mark.parametrize("asked", ["gfx94x", "gfx941", "gfx942:", "gfx942:fast+", "sm_80", "9", "MI300X", ""])
def test_unknown_architectures_are_refused(asked: str) -> None:
    with pytest.raises(UnknownTarget, match="unknown architecture"):
        architecture(asked)


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("mi300x", "MI300X"),
        ("MI300X_OAM", "MI300X"),
        ("MI300X-O", "MI300X"),
        ("AMD_Instinct_MI300X_OAM", "MI300X"),
        ("AMD Instinct MI300A", "MI300A"),
        ("MI325_OAM", "MI325X"),
        ("AMD_Instinct_MI325X", "MI325X"),
        ("AMD_Instinct_MI308X", "MI308X"),
        ("MI350_OAM", "MI350X"),
        ("AMD_Instinct_MI355_OAM", "MI355X"),
        ("NVIDIA_H100_80GB_HBM3", "H100_SXM"),
        ("h100", "H100_SXM"),
        ("H100 SXM", "H100_SXM"),
        ("NVIDIA_H200", "H200"),
        ("NVIDIA B200", "B200"),
    ],
)
def test_device_spellings(asked: str, found: str) -> None:
    assert device(asked).name == found


@pytest.mark.parametrize("asked", ["H100_PCIe", "NVIDIA_H100_NVL", "MI300", "MI250X", "NVIDIA", "gfx942"])
def test_unknown_devices_are_refused(asked: str) -> None:
    with pytest.raises(UnknownTarget, match="unknown device"):
        device(asked)


def test_every_name_and_alias_finds_its_own_device() -> None:
    for d in DEVICES.values():
        assert all(device(spelling) is d for spelling in (d.name, d.name.lower(), *d.aliases))


def test_an_unknown_name_gets_one_line_with_what_to_do() -> None:
    with pytest.raises(UnknownTarget) as error:
        device("MI301X")
    text = str(error.value)
    assert isinstance(error.value, UserError)
    assert "\n" not in text
    assert "'MI301X'" in text
    assert "MI300X" in text.split("nearest ")[1].split(";")[0]
    assert all(name in text for name in DEVICES)
    assert "m3gen targets" in text


def test_default_devices() -> None:
    assert {arch: default_device(arch).name for arch in ARCHITECTURES} == {
        "gfx942": "MI300X",
        "gfx950": "MI355X",
        "sm_90": "H200",
        "sm_100": "B200",
    }
    assert default_device("sm_90a").name == "H200"
    with pytest.raises(UnknownTarget):
        default_device("gfx90a")
