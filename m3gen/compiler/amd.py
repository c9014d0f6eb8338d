"""amdgcn assembly, as LLVM prints it for gfx942 and gfx950, to `KernelFacts`."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from typing import Any

from m3gen.compiler.facts import KernelFacts
from m3gen.compiler.instruction import Instruction, Program, loop_facts, tally, unknowns
from m3gen.compiler.loops import natural_loops
from m3gen.compiler.matrix import amd_cycles
from m3gen.compiler.triton_adapter import Build
from m3gen.targets import Architecture, occupancy

# First match wins. Names: AMD Instinct MI300 "CDNA3" ISA Reference Guide, section 12.
_UNITS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (unit, re.compile(pattern))
    for unit, pattern in (
        ("matrix", r"v_(s?mfmac?)_"),
        ("spill", r"scratch_"),
        ("atomic", r"(global|buffer|flat)_atomic_"),
        ("load", r"(global|buffer|flat)_load_"),
        ("store", r"(global|buffer|flat)_store_"),
        ("shared_read", r"ds_(read|load)"),
        ("shared_write", r"ds_(write|store)"),
        ("permute", r"ds_(b?permute|swizzle)|v_(permlane|readlane|writelane|readfirstlane)|v_\w+_dpp$"),
        ("atomic", r"ds_"),
        ("wait", r"s_wait"),
        ("barrier", r"s_barrier"),
        ("branch", r"s_(c?branch|setpc|swappc)"),
        ("other", r"s_(nop|sleep|endpgm|setprio|icache|dcache|sethalt|trap|code_end)|buffer_(wbl2|inv)"),
        ("transcendental", r"v_(exp|log|rcp|rsq|sqrt|sin|cos)_"),
        ("convert", r"v_cvt_"),
        ("vector", r"v_"),
        ("scalar", r"s_"),
    )
)
# Bytes per lane by the part of the name behind load_ or store_, or behind ds_read_ or ds_write_.
_MEMORY_WIDTHS = {
    "ubyte": 1,
    "sbyte": 1,
    "byte": 1,
    "ubyte_d16": 1,
    "sbyte_d16": 1,
    "ubyte_d16_hi": 1,
    "sbyte_d16_hi": 1,
    "byte_d16_hi": 1,
    "ushort": 2,
    "sshort": 2,
    "short": 2,
    "short_d16": 2,
    "short_d16_hi": 2,
    "dword": 4,
    "dwordx2": 8,
    "dwordx3": 12,
    "dwordx4": 16,
}
_SHARED = re.compile(r"ds_(?:read|write)(2?)(?:st64)?_(?:addtid_)?[biu](\d+)(?:_tr_\w+)?(?:_d16(?:_hi)?)?$")
_LABEL = re.compile(r"^([.\w$]+):")
_MNEMONIC = re.compile(r"^\s+((?:s|v|ds|global|buffer|flat|scratch)_\w+)\s*(.*)$")
_ENCODING = re.compile(r"_e(32|64)$")
_FAR_TARGET = re.compile(r"\((\.\w+)-\.Lpost_getpc\d+\)")


def facts(build: Build, kernel: str, architecture: Architecture, *, seconds: float, compiler: str) -> KernelFacts:
    """What `build.text` says. Shared memory is `build`'s: Triton's LDS is dynamic and the text says 0."""
    program = parse(build.text, architecture.name)
    body = program.instructions
    sums = tally(body)
    metadata = _metadata(build.text)
    resident = occupancy(architecture, metadata["vgpr_count"], build.shared_bytes, build.num_warps)
    extra: dict[str, Any] = {"stage_seconds": dict(build.stage_seconds), **unknowns(body)}
    return KernelFacts(
        kernel=kernel,
        arch=architecture.name,
        num_warps=build.num_warps,
        registers=metadata["vgpr_count"],
        accumulation_registers=metadata["agpr_count"],
        scalar_registers=metadata["sgpr_count"],
        vector_spills=metadata["vgpr_spill_count"],
        scalar_spills=metadata["sgpr_spill_count"],
        scratch_bytes=metadata["private_segment_fixed_size"],
        shared_bytes=build.shared_bytes,
        workgroups_per_cu=resident.workgroups_per_cu,
        waves_per_simd=resident.waves_per_simd,
        occupancy_limit=resident.limit,
        instructions=len(body),
        mix=sums["mix"],
        matrix_instructions=dict(sorted(Counter(i.mnemonic for i in body if i.unit == "matrix").items())),
        matrix_cycles=sums["matrix_cycles"],
        load_widths=sums["load_widths"],
        loops=loop_facts(program, natural_loops(body, program.labels)),
        code_bytes=_code_bytes(build.text),
        compile_seconds=seconds,
        compiler=compiler,
        code_sha=code_sha(build.text),
        extra=extra,
    )


def parse(assembly: str, arch: str) -> Program:
    """Instructions and labels of the only function in the text; comments and directives are dropped."""
    instructions: list[Instruction] = []
    labels: dict[str, int] = {}
    far_target = ""
    for line in _code_lines(assembly):
        if label := _LABEL.match(line):
            labels[label[1]] = len(instructions)
        elif match := _MNEMONIC.match(line):
            mnemonic, operands = _ENCODING.sub("", match[1]), match[2].strip()
            if far := _FAR_TARGET.search(operands):
                far_target = far[1]
            instructions.append(_decode(mnemonic, operands, arch, far_target))
    return Program(tuple(instructions), labels)


def code_sha(assembly: str) -> str:
    """SHA-256 of labels, instructions and register counts; comments, lines and file names are left out."""
    counts = sorted(_metadata(assembly).items())
    return hashlib.sha256("\n".join([*_code_lines(assembly), repr(counts)]).encode()).hexdigest()


def _code_lines(assembly: str) -> list[str]:
    lines = []
    for line in assembly.partition("\n.Lfunc_end")[0].splitlines():
        code = line.partition(";")[0].rstrip()
        if _LABEL.match(code) or _MNEMONIC.match(code):
            lines.append(code)
    return lines


def _decode(mnemonic: str, operands: str, arch: str, far_target: str) -> Instruction:
    unit = next((unit for unit, pattern in _UNITS if pattern.match(mnemonic)), "other")
    if unit == "branch":
        return Instruction(mnemonic, operands, unit, **_flow(mnemonic, operands, far_target))
    if mnemonic == "s_endpgm":
        return Instruction(mnemonic, operands, unit, falls=False)
    if unit == "matrix":
        return Instruction(mnemonic, operands, unit, cycles=amd_cycles(arch, mnemonic, operands))
    if unit in ("load", "store", "spill"):
        to_shared = unit == "load" and ("_lds_" in mnemonic or operands.endswith(" lds"))
        return Instruction(mnemonic, operands, unit, bytes=_memory_bytes(mnemonic), to_shared=to_shared)
    if unit in ("shared_read", "shared_write"):
        return Instruction(mnemonic, operands, unit, bytes=_shared_bytes(mnemonic))
    return Instruction(mnemonic, operands, unit)


def _flow(mnemonic: str, operands: str, far_target: str) -> dict[str, Any]:
    if mnemonic == "s_setpc_b64":  # a branch too far for 16 bits: its target stands in address arithmetic
        return {"targets": (far_target,) if far_target else (), "falls": False}
    if mnemonic == "s_swappc_b64":  # a call
        return {}
    return {"targets": (operands.split()[0],), "falls": mnemonic != "s_branch"}


def _memory_bytes(mnemonic: str) -> int | None:
    _, _, rest = mnemonic.partition("_")
    return _MEMORY_WIDTHS.get(rest.partition("_")[2].removeprefix("lds_"))


def _shared_bytes(mnemonic: str) -> int | None:
    match = _SHARED.match(mnemonic)
    return int(match[2]) // 8 * (2 if match[1] else 1) if match else None


def _metadata(assembly: str) -> dict[str, int]:
    """The counts of the `.amdgpu_metadata` block; `ValueError` when one is missing."""
    block = assembly.partition(".amdgpu_metadata")[2].partition(".end_amdgpu_metadata")[0]
    names = (
        "vgpr_count",
        "agpr_count",
        "sgpr_count",
        "vgpr_spill_count",
        "sgpr_spill_count",
        "private_segment_fixed_size",
    )
    counts = {}
    for name in names:
        found = re.search(rf"^\s*(?:- )?\.{name}:\s+(\d+)\s*$", block, re.MULTILINE)
        if not found:
            raise ValueError(f"the assembly's metadata has no .{name}")
        counts[name] = int(found[1])
    return counts


def _code_bytes(assembly: str) -> int:
    found = re.search(r"^; codeLenInByte = (\d+)", assembly, re.MULTILINE)
    return int(found[1]) if found else 0
