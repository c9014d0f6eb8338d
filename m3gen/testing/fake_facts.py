"""Facts of machine code that nobody compiled."""

from __future__ import annotations

from m3gen.compiler.facts import KernelFacts


def fake_facts(registers: int, *, compiler: str = "triton-fake") -> KernelFacts:
    """Plausible facts of a small kernel on gfx942."""
    return KernelFacts(
        kernel="fake",
        arch="gfx942",
        num_warps=4,
        registers=registers,
        accumulation_registers=0,
        scalar_registers=32,
        vector_spills=0,
        scalar_spills=0,
        scratch_bytes=0,
        shared_bytes=0,
        workgroups_per_cu=2,
        waves_per_simd=2.0,
        occupancy_limit="registers",
        instructions=100,
        mix={},
        matrix_instructions={},
        matrix_cycles=0,
        load_widths={},
        loops=(),
        code_bytes=400,
        compile_seconds=0.5,
        compiler=compiler,
        code_sha="0" * 64,
    )
