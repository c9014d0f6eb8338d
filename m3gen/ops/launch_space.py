"""The launch options every Triton kernel shares: their parameters, what fits, and the field's defaults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from m3gen.space import Choice, Config, Constraint, Flag, Parameter, PowerOfTwo
from m3gen.spec import Problem
from m3gen.targets import Device, Vendor, architecture

Values = Mapping[str, Any]

# Names under which a config holds what Triton takes as keyword options of a launch.
_OPTIONS = ("num_warps", "num_stages", "waves_per_eu", "matrix_instr_nonkdim", "kpack", "maxnreg")


def parameters(device: Device) -> list[Parameter]:
    """Launch options worth searching on this vendor.

    AMD: waves_per_eu over 2 only spills (it caps VGPRs at 168 and 128), kpack exists on gfx942 alone. NVIDIA:
    maxnreg 0 leaves the register count to ptxas.
    """
    arch = device.architecture
    common: list[Parameter] = [PowerOfTwo("num_warps", 1, 8, default=4)]
    if arch.vendor is Vendor.NVIDIA:
        return [
            *common,
            Choice("num_stages", (1, 2, 3), default=3),
            Choice("maxnreg", (0, 128), default=0),
        ]
    amd: list[Parameter] = [
        *common,
        Choice("num_stages", (1, 2), default=2),
        Choice("waves_per_eu", (0, 1, 2), default=0),
        Choice("matrix_instr_nonkdim", (16, 32), default=16),
    ]
    if arch.name == "gfx942":
        amd.append(Choice("kpack", (1, 2), default=1))
    return [*amd, Flag("fp_fusion", default=True, doc="contract multiply and add")]


def schedules(device: Device) -> list[Parameter]:
    """How LLVM orders a kernel's instructions on AMD: `amdgpu-sched-strategy`, which Triton takes from 3.8 on.

    Predicted on the winners of gfx942, each strategy in the place of LLVM's own (Triton 3.9, predict-amd-3): attention
    0.92 to 1.04 of the time, scorers and selectors 0.98 to 1.02, so that only attention has it. max-memory-clause,
    left out, was 0.98 to 1.24 and never the best by more than a hundredth.
    """
    if device.architecture.vendor is not Vendor.AMD:
        return []
    return [Choice("schedule", ("default", "iterative-ilp", "max-ilp"), default="default", doc="LLVM's strategy")]


def constraints(
    device: Device,
    *,
    tile_m: Callable[[Values], int],
    tile_m_needs: tuple[str, ...] = (),
    bytes_per_token: int,
) -> list[Constraint]:
    """What cannot launch, or what would multiply padding, refused before any work.

    The loop's tiles are [tile_n, ...] of K and of V, `bytes_per_token` each; `tile_m`, read from the parameters
    `tile_m_needs`, is the other side of the matrix product.
    """
    limit = device.architecture.shared_bytes_per_workgroup
    rules = [
        Constraint(
            "shared_bytes",
            ("tile_n", "num_stages"),
            # With one stage K and V take turns in one buffer; each further stage holds both.
            lambda c: c["tile_n"] * bytes_per_token * max(1, 2 * (c["num_stages"] - 1)) <= limit,
            f"the tiles of all stages exceed the {limit} bytes of shared memory of a workgroup",
        )
    ]
    if device.architecture.vendor is Vendor.AMD:
        rules.append(
            Constraint(
                "matrix_shape",
                ("tile_n", "matrix_instr_nonkdim", *tile_m_needs),
                lambda c: c["matrix_instr_nonkdim"] <= min(tile_m(c), c["tile_n"]),
                "a 32x32 matrix instruction on a tile of 16 multiplies padding",
            )
        )
    return rules


def options(config: Config) -> list[tuple[str, int | bool]]:
    """The config's launch options as Triton's keyword arguments, in a fixed order."""
    found: list[tuple[str, Any]] = [(name, config[name]) for name in _OPTIONS if name in config]
    if "fp_fusion" in config:
        found.append(("enable_fp_fusion", config["fp_fusion"]))
    return [(name, value) for name, value in found if not (name == "maxnreg" and value == 0)]


def field_default(device: Device) -> dict[str, Any]:
    """Triton's own defaults, which vLLM's decode kernels run with."""
    return {parameter.name: parameter.default for parameter in (*parameters(device), *schedules(device))}


def is_amd(problem: Problem) -> bool:
    """Whether the problem is for a GPU of AMD's."""
    return architecture(problem.arch).vendor is Vendor.AMD
