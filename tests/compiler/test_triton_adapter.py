from __future__ import annotations

import os
import types

import pytest
import torch
import triton

from m3gen.codegen import Pointer, load_module
from m3gen.compiler import triton_adapter
from m3gen.compiler.triton_adapter import Refused
from m3gen.targets import architecture
from tests.compiler import kernels

TRITON = tuple(int(part) for part in triton.__version__.split(".")[:2])


@pytest.fixture(scope="module")
def module() -> types.ModuleType:
    return load_module(kernels.source(kernels.STEP, kernels.ATTEND, kernels.SCALE))


def specialise(module: types.ModuleType, launch: kernels.Launch, arch: str) -> triton_adapter.Specialised:
    kernel = triton_adapter.jit_function(module, launch.kernel)
    return triton_adapter.specialise(kernel, launch, architecture(arch))


@pytest.mark.parametrize(
    ("arch", "option"),
    [
        ("gfx942", {"maxnreg": 128}),
        ("sm_90", {"waves_per_eu": 2}),
        ("sm_100", {"matrix_instr_nonkdim": 16}),
        ("gfx950", {"num_wraps": 4}),
        ("gfx942", {"arch": "gfx90a"}),
        ("gfx942", {"warp_size": 32}),
    ],
)
def test_option_of_another_backend_is_refused_by_name(
    module: types.ModuleType, arch: str, option: dict[str, int]
) -> None:
    with pytest.raises(Refused, match=f"{next(iter(option))}=.*{arch}"):
        specialise(module, kernels.attend(**option), arch)


@pytest.mark.parametrize(
    ("arch", "option"),
    [
        ("gfx942", {"matrix_instr_nonkdim": 4}),
        ("gfx942", {"kpack": 4}),
        ("gfx950", {"kpack": 2}),
        ("gfx942", {"waves_per_eu": 9}),
        ("sm_90", {"max_num_imprecise_acc_default": 3}),
    ],
)
def test_value_that_triton_would_change_in_silence_is_refused(
    module: types.ModuleType, arch: str, option: dict[str, int]
) -> None:
    with pytest.raises(Refused, match=next(iter(option))):
        specialise(module, kernels.attend(**option), arch)


@pytest.mark.skipif(TRITON < (3, 8), reason="hints schedule in Triton 3.6")
def test_schedule_hint_without_effect_is_refused(module: types.ModuleType) -> None:
    with pytest.raises(Refused, match="schedule_hint"):
        specialise(module, kernels.attend(schedule_hint="attention"), "gfx942")


def test_options_of_the_backend_are_taken(module: types.ModuleType) -> None:
    options = {"waves_per_eu": 2, "matrix_instr_nonkdim": 16, "kpack": 2}
    resolved = specialise(module, kernels.attend(**options), "gfx942").options
    assert {name: resolved[name] for name in options} == options
    assert specialise(module, kernels.attend(maxnreg=128), "sm_90").options["maxnreg"] == 128


def test_fp_fusion_is_on_unless_the_launcher_says_otherwise(module: types.ModuleType) -> None:
    silent, on, off = (
        specialise(module, kernels.attend(**options), "gfx942").identity
        for options in ({}, {"enable_fp_fusion": True}, {"enable_fp_fusion": False})
    )
    assert silent == on != off


def test_arguments_that_are_no_parameters_and_missing_ones_are_refused(module: types.ModuleType) -> None:
    pointer = Pointer("fp32", 256, 1 << 20)
    arguments = {"x_ptr": pointer, "out_ptr": pointer, "factor": 0.5, "B": 256}
    with pytest.raises(Refused, match="no parameter stride"):
        specialise(module, kernels.launch("scale", arguments | {"stride": 3}), "gfx942")
    del arguments["factor"]
    with pytest.raises(Refused, match="factor"):
        specialise(module, kernels.launch("scale", arguments), "gfx942")


def test_parameter_named_like_an_option_is_refused() -> None:
    text = kernels.SCALE.replace("factor", "num_stages")
    arguments = {"x_ptr": None, "out_ptr": None, "num_stages": 2, "B": 256}
    with pytest.raises(Refused, match="num_stages"):
        specialise(load_module(kernels.source(text)), kernels.launch("scale", arguments), "sm_90")


def test_what_is_no_kernel_is_refused(module: types.ModuleType) -> None:
    with pytest.raises(Refused, match=r"tl is no @triton\.jit function"):
        triton_adapter.jit_function(module, "tl")


@pytest.mark.parametrize("arch", kernels.ARCHS)
def test_alignment_and_values_specialise(module: types.ModuleType, arch: str) -> None:
    launches = [
        kernels.attend(),
        kernels.attend(alignment=8),
        kernels.attend(stride=1),
        kernels.attend(stride=130),
        kernels.attend(num_warps=8),
    ]
    assert len({specialise(module, launch, arch).identity for launch in launches}) == len(launches)
    # Any multiple of 16 is as good as another.
    assert specialise(module, kernels.attend(alignment=16, stride=144), arch).identity == (
        specialise(module, kernels.attend(), arch).identity
    )


@pytest.mark.parametrize(("arch", "matters"), [("gfx942", True), ("gfx950", True), ("sm_90", False)])
def test_storage_over_two_gib_matters_on_hip_alone(module: types.ModuleType, arch: str, matters: bool) -> None:
    below, above = (
        specialise(module, kernels.attend(kv_bytes=size), arch).identity for size in (2**31 - 1, 2**31)
    )
    assert (below != above) is matters


class _Driver:
    """As much of a driver as `JITFunction.run(warmup=True)` asks for."""

    def __init__(self, target: object) -> None:
        self._target = target

    def get_current_target(self) -> object:
        return self._target

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0


@pytest.mark.parametrize("arch", ["gfx942", "sm_90"])
@pytest.mark.parametrize("kv_elements", [1 << 16, 1 << 31])
def test_machine_code_is_what_the_jit_itself_compiles(
    arch: str, kv_elements: int, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Real tensors through the real `JITFunction.run` on a driver that has no device."""
    q = torch.empty(16 * 128, dtype=torch.bfloat16)
    kv = torch.empty(kv_elements, dtype=torch.bfloat16)[8:]  # untouched memory costs nothing; 16 bytes in
    module = load_module(kernels.source(kernels.STEP, kernels.ATTEND))
    launch = kernels.attend(kv_bytes=kv_elements * 2)
    specialised = specialise(module, launch, arch)
    ours = triton_adapter.build(specialised)

    from triton.runtime import driver

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TRITON_DISABLE_LINE_INFO", "1")
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "1")
    monkeypatch.setattr(driver, "_active", _Driver(specialised.target))
    theirs = module.attend.warmup(q, kv, kv, q, 4096, 128, M=16, N=64, D=128, num_warps=4, num_stages=1, grid=(1,))
    assert ours.binary == theirs.kernel
    assert ours.shared_bytes == theirs.metadata.shared


def test_the_users_triton_settings_neither_act_nor_change(
    module: types.ModuleType, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    specialised = specialise(module, kernels.scale(), "gfx942")
    plain = triton_adapter.build(specialised)
    for name, value in {
        "TRITON_CACHE_DIR": str(tmp_path),
        "TRITON_OVERRIDE_ARCH": "gfx90a",
        "TRITON_KERNEL_DUMP": "1",
        "TRITON_STORE_BINARY_ONLY": "1",
    }.items():
        monkeypatch.setenv(name, value)
    before = dict(os.environ)
    assert triton_adapter.build(specialised).binary == plain.binary
    assert dict(os.environ) == before
    assert os.listdir(str(tmp_path)) == []


def test_kernel_text_holds_callees_and_globals_and_nothing_else() -> None:
    constant = "LIMIT = tl.constexpr(7)\n"
    helper = "@triton.jit\ndef helper(x):\n    return x * LIMIT\n"
    kernel = "@triton.jit\ndef kernel(x_ptr):\n    tl.store(x_ptr, helper(tl.load(x_ptr)))\n"

    def text(*parts: str) -> str:
        return triton_adapter.kernel_text(load_module(kernels.source(*parts)).kernel)

    base = text(constant, helper, kernel)
    assert "def helper" in base
    assert text("# moved\n\n", constant, kernels.SCALE, helper, kernel) == base
    assert text(constant.replace("7", "8"), helper, kernel) != base
    assert text(constant, helper.replace("*", "+"), kernel) != base
