from __future__ import annotations

import json
from dataclasses import replace

import pytest

from m3gen.codegen import load_module
from m3gen.compiler import compile as compile_module
from m3gen.compiler.compile import CompileError, compile_launch, prepare, resource_fault
from m3gen.compiler.facts import KernelFacts
from m3gen.compiler.instruction import UNITS
from m3gen.targets import Architecture, architecture
from tests.compiler import kernels
from tests.compiler.kernels import ARCHS, GIB, compiled

AMD = ("gfx942", "gfx950")


@pytest.mark.parametrize("arch", ARCHS)
def test_facts_of_a_dot_and_softmax_kernel(arch: str) -> None:
    facts = compiled(arch, kernels.attend()).facts
    assert facts.kernel == "attend"
    assert facts.arch == arch
    assert 32 < facts.registers <= architecture(arch).max_registers_per_lane
    assert facts.workgroups_per_cu >= 1
    assert facts.waves_per_simd == facts.workgroups_per_cu * 4 / architecture(arch).simds_per_cu
    assert 0 < facts.shared_bytes <= architecture(arch).shared_bytes_per_workgroup
    assert facts.vector_spills == facts.scratch_bytes == 0
    assert sum(facts.mix.values()) == facts.instructions
    assert set(facts.mix) <= set(UNITS)
    assert facts.mix["transcendental"] > 0
    assert not {"unknown_matrix", "unknown_memory"} & set(facts.extra)
    # K and V tiles are 64 x 128 bf16 each over 256 or 128 lanes, 16 bytes at a time.
    (loop,) = facts.loops
    lanes = 4 * architecture(arch).wave_size
    assert loop.load_bytes_per_lane == 2 * 64 * 128 * 2 // lanes
    assert set(loop.load_widths) == {"16"}
    assert loop.depth == 1
    assert 0 < loop.instructions < facts.instructions
    assert loop.shared_write_bytes_per_lane >= 2 * 64 * 128 * 2 // lanes
    assert loop.waits > 0 or arch.startswith("sm_")  # NVIDIA's scoreboards wait without an instruction
    assert facts.compiler.startswith("triton-3.")
    assert facts.code_bytes > 4 * facts.instructions


@pytest.mark.parametrize(
    ("arch", "mnemonic", "cycles"),
    [("gfx942", "v_mfma_f32_16x16x16_bf16", 16), ("gfx950", "v_mfma_f32_16x16x32_bf16", 16)],
)
def test_every_wave_computes_the_scores_and_its_share_of_the_output(arch: str, mnemonic: str, cycles: int) -> None:
    """M = 16 cannot be split over waves: 16 x 64 x 128 for QK in each, a quarter of 16 x 128 x 64 for PV."""
    facts = compiled(arch, kernels.attend()).facts
    per_instruction = 16 * 16 * int(mnemonic.split("x")[2].split("_")[0])
    (loop,) = facts.loops
    expected = (16 * 64 * 128 + 16 * 128 * 64 // 4) // per_instruction
    assert facts.matrix_instructions == {mnemonic: expected}
    assert loop.matrix_cycles == facts.matrix_cycles == expected * cycles


def test_hmma_counts_on_nvidia() -> None:
    facts = compiled("sm_90", kernels.attend()).facts
    assert facts.matrix_instructions == {"HMMA.16816.F32.BF16": 32}
    assert facts.matrix_cycles == 32 * 4  # m16n8k16 at 1024 FLOP per clock and sub-partition


@pytest.mark.parametrize("arch", ARCHS)
def test_unaligned_pointers_cost_narrow_loads(arch: str) -> None:
    """What a plain signature would have compiled: the JIT's alignment is what makes loads wide."""
    assert set(compiled(arch, kernels.attend(alignment=2)).facts.load_widths) == {"2"}


@pytest.mark.parametrize("arch", AMD)
def test_storage_over_two_gib_changes_the_code_of_hip(arch: str) -> None:
    small, large = (compiled(arch, kernels.attend(kv_bytes=size)) for size in (GIB, 3 * GIB))
    assert "buffer_load_dwordx4" in small.assembly
    assert small.facts.code_sha != large.facts.code_sha
    # Without a 32-bit range masks become branches, and the loop grows.
    assert large.facts.loops[0].branches > small.facts.loops[0].branches
    assert large.facts.loops[0].instructions > small.facts.loops[0].instructions


@pytest.mark.parametrize("arch", ["gfx942", "sm_100"])
def test_nested_loops_are_part_of_their_parents(arch: str) -> None:
    outer, *inner = compiled(arch, kernels.sum_rows()).facts.loops
    assert outer.depth == 1
    assert inner
    assert {loop.depth for loop in inner} == {2}
    assert outer.instructions > sum(loop.instructions for loop in inner)
    assert outer.load_bytes_per_lane >= sum(loop.load_bytes_per_lane for loop in inner)


@pytest.mark.parametrize("arch", ["gfx950", "sm_90"])
def test_kernel_without_loop(arch: str) -> None:
    facts = compiled(arch, kernels.scale()).facts
    assert facts.loops == ()
    assert facts.matrix_instructions == {}
    assert facts.mix["load"] == facts.mix["store"] == 1


@pytest.mark.parametrize("arch", ["gfx942", "sm_90"])
def test_same_kernel_elsewhere_is_the_same_code_under_the_same_key(arch: str) -> None:
    """Another module name, another line, other kernels around it."""
    here = compiled(arch, kernels.scale())
    elsewhere = kernels.source("# a comment\n" * 7, kernels.STEP, kernels.SCALE, kernels.SUM_ROWS)
    there = compile_launch(elsewhere, kernels.scale(), architecture(arch))
    assert there.facts.code_sha == here.facts.code_sha
    everything = kernels.source(kernels.STEP, kernels.ATTEND, kernels.SUM_ROWS, kernels.SCALE)
    keys = {
        prepare(load_module(module), kernels.scale(), architecture(arch)).key for module in (elsewhere, everything)
    }
    assert len(keys) == 1


def test_key_knows_callees_arguments_options_and_architecture() -> None:
    def key(step: str = kernels.STEP, arch: str = "gfx942", **change: int) -> str:
        module = load_module(kernels.source(step, kernels.ATTEND))
        return prepare(module, kernels.attend(**change), architecture(arch)).key

    keys = [
        key(),
        key(step=kernels.STEP.replace("1)", "1, return_indices=False)")),
        key(arch="gfx950"),
        key(n=32),
        key(alignment=8),
        key(kv_bytes=3 * GIB),
        key(num_warps=8),
        key(enable_fp_fusion=0),
    ]
    assert len(set(keys)) == len(keys)
    assert key() == keys[0]
    assert key(num_stages=1, waves_per_eu=0) == keys[0]  # written out or left to the default


def test_key_knows_the_architectures_numbers_and_how_facts_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Facts hold occupancy and cycles, so they must not outlive the tables they were worked out with."""
    module, target = load_module(kernels.source(kernels.SCALE)), architecture("gfx942")

    def key(target: Architecture = target) -> str:
        return prepare(module, kernels.scale(), target).key

    assert key(replace(target, sources={})) == key()
    assert key(replace(target, register_granule=1024)) != key()
    before = key()
    monkeypatch.setattr(compile_module, "_reader_sha", lambda: "another")
    assert key() != before


def test_shared_memory_over_the_limit_is_a_resource_fault() -> None:
    facts = compiled("gfx942", kernels.attend(n=128, num_warps=8, num_stages=3)).facts
    assert facts.shared_bytes > 65536
    assert facts.workgroups_per_cu == 0
    assert resource_fault(facts, architecture("gfx942")).startswith("shared: ")
    assert resource_fault(compiled("gfx942", kernels.attend()).facts, architecture("gfx942")) == ""


def test_too_many_threads_are_a_resource_fault() -> None:
    facts = compiled("gfx942", kernels.scale(num_warps=32)).facts
    assert resource_fault(facts, architecture("gfx942")) == "threads: 2048 per workgroup, gfx942 allows 1024"


def test_spills_are_seen_on_both_vendors() -> None:
    amd = compiled("gfx942", kernels.attend(n=16, waves_per_eu=8, num_warps=1)).facts
    assert amd.vector_spills > 0
    assert amd.scratch_bytes > 0
    assert amd.mix["spill"] > 0
    nvidia = compiled("sm_90", kernels.attend(n=32, maxnreg=40)).facts
    assert nvidia.registers <= 40
    assert nvidia.vector_spills == nvidia.mix["spill"] > 0
    assert nvidia.scratch_bytes > 0


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        ("    tl.store(x_ptr, tl.arange(0, 100))", "power of 2"),
        ("    tl.store(x_ptr, missing)", "missing"),
        ("    tl.nonsense(x_ptr)", "nonsense"),
    ],
)
def test_kernel_that_does_not_compile_says_why_on_one_line(kernel: str, message: str) -> None:
    module = kernels.source(f"@triton.jit\ndef bad(x_ptr):\n{kernel}\n")
    with pytest.raises(CompileError, match=message) as caught:
        compile_launch(
            module, kernels.launch("bad", {"x_ptr": kernels.Pointer("i32", 256, 4096)}), architecture("sm_90")
        )
    assert "\n" not in str(caught.value)


def test_unknown_option_is_a_compile_error() -> None:
    with pytest.raises(CompileError, match="instruction_sched_variant"):
        compile_launch(
            kernels.source(kernels.SCALE),
            kernels.scale(instruction_sched_variant="none"),
            architecture("gfx942"),
        )


@pytest.mark.parametrize("arch", ["gfx942", "sm_90"])
def test_facts_survive_json(arch: str) -> None:
    facts = compiled(arch, kernels.attend()).facts
    assert KernelFacts.from_dict(json.loads(json.dumps(facts.to_dict()))) == facts
