"""cubin, through the disassembler that comes with Triton, to `KernelFacts`."""

from __future__ import annotations

import hashlib
import re
import subprocess
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from m3gen.compiler.facts import KernelFacts
from m3gen.compiler.instruction import Instruction, Program, loop_facts, tally, unknowns
from m3gen.compiler.loops import natural_loops
from m3gen.compiler.matrix import nvidia_cycles
from m3gen.compiler.triton_adapter import Build, nvidia_tool
from m3gen.targets import Architecture, occupancy

_INSTRUCTION_BYTES = 16  # every SASS instruction since Volta
_TOOL_SECONDS = 60

# Opcode, the part before the first dot -> unit; whatever is absent is vector, U... is scalar.
# Source: CUDA Binary Utilities, "Instruction Set Reference" for Hopper and Blackwell.
_OPCODES: dict[str, str] = {
    opcode: unit
    for unit, opcodes in {
        "matrix": "HMMA QMMA IMMA DMMA BMMA OMMA HGMMA QGMMA IGMMA BGMMA UTCHMMA UTCQMMA UTCIMMA UTCOMMA",
        "transcendental": "MUFU",
        "convert": "F2F F2FP F2I F2IP I2F I2FP I2I FRND",
        "load": "LD LDG LDGSTS UTMALDG UBLKCP",
        "store": "ST STG UTMASTG",
        "atomic": "ATOM ATOMG ATOMS RED REDG REDAS UTMAREDG",
        "shared_read": "LDS LDSM",
        "shared_write": "STS STSM",
        "spill": "LDL STL",
        "permute": "SHFL REDUX CREDUX MOVM VOTE MATCH",
        "wait": "DEPBAR LDGDEPBAR SYNCS UTMACMDFLUSH WARPGROUP UTCBAR",
        "barrier": "BAR",
        "branch": "BRA BRX BRXU JMP JMX CALL RET EXIT KILL BSSY BSYNC BREAK WARPSYNC YIELD",
        "scalar": "S2UR R2UR LDCU ULDC",
        "other": "NOP LDC S2R CS2R B2R R2B ERRBAR MEMBAR FENCE CCTL ACQBULK ELECT NANOSLEEP LDTM STTM UTCCP",
    }.items()
    for opcode in opcodes.split()
}
_WIDTHS = {"256": 32, "128": 16, "96": 12, "64": 8, "U16": 2, "S16": 2, "16": 2, "U8": 1, "S8": 1}
_LINE = re.compile(
    r"^\s*/\*[0-9a-f]{4,}\*/\s+(?P<guard>@!?U?P\w+\s+)?(?P<mnemonic>[A-Z][A-Z0-9_.]*)\s*(?P<operands>[^;]*);"
)
_LABEL = re.compile(r"^(\.L_x_\d+):")
_TARGET = re.compile(r"`\((\.L_x_\d+)\)")
_USAGE = re.compile(r"REG:(\d+) STACK:(\d+)")


@dataclass(frozen=True, slots=True)
class Sass:
    """A disassembled cubin: SASS with labels, registers per thread, bytes of stack per thread."""

    text: str
    registers: int
    stack_bytes: int


def facts(
    build: Build, sass: Sass, kernel: str, architecture: Architecture, *, seconds: float, compiler: str
) -> KernelFacts:
    """What the cubin says. Spills show as a stack and as LDL and STL: ptxas reports no local memory."""
    program = parse(sass.text, architecture)
    body = program.instructions
    sums = tally(body)
    resident = occupancy(architecture, sass.registers, build.shared_bytes, build.num_warps)
    extra: dict[str, Any] = {"stage_seconds": dict(build.stage_seconds), **unknowns(body)}
    return KernelFacts(
        kernel=kernel,
        arch=architecture.name,
        num_warps=build.num_warps,
        registers=sass.registers,
        accumulation_registers=0,
        scalar_registers=0,
        vector_spills=sums["mix"].get("spill", 0),
        scalar_spills=0,
        scratch_bytes=sass.stack_bytes,
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
        code_bytes=len(body) * _INSTRUCTION_BYTES,
        compile_seconds=seconds,
        compiler=compiler,
        code_sha=code_sha(program, sass),
        extra=extra,
    )


def disassemble(cubin: bytes) -> Sass:
    """The only kernel of a cubin; the tools take about 0.7 s, nearly all of it nvdisasm's own start."""
    with tempfile.TemporaryDirectory(prefix="m3gen-cubin-") as directory:
        path = Path(directory) / "kernel.cubin"
        path.write_bytes(cubin)
        usage = _USAGE.search(_run("cuobjdump", "-res-usage", str(path)))
        text = _run("nvdisasm", "-c", str(path))
    if not usage:
        raise ValueError("cuobjdump reports no resource usage for the cubin")
    return Sass(text, int(usage[1]), int(usage[2]))


def parse(sass: str, architecture: Architecture) -> Program:
    """Instructions and labels; the endless branch and the padding behind the last exit are dropped."""
    instructions: list[Instruction] = []
    labels: dict[str, int] = {}
    reconvergence: dict[str, str] = {}  # barrier register -> label that BSSY named
    for line in sass.splitlines():
        if label := _LABEL.match(line):
            labels[label[1]] = len(instructions)
        elif match := _LINE.match(line):
            guard = (match["guard"] or "").strip()
            instructions.append(
                _decode(match["mnemonic"], guard, match["operands"].strip(), architecture, reconvergence)
            )
    return Program(tuple(_without_padding(instructions, labels)), labels)


def code_sha(program: Program, sass: Sass) -> str:
    """SHA-256 of the instructions, their labels and the registers; no file name or line takes part."""
    lines = [f"{i.mnemonic} {i.operands}" for i in program.instructions]
    usage = (sass.registers, sass.stack_bytes)
    return hashlib.sha256(repr((lines, sorted(program.labels.items()), usage)).encode()).hexdigest()


def _decode(
    mnemonic: str, guard: str, operands: str, architecture: Architecture, reconvergence: dict[str, str]
) -> Instruction:
    opcode = mnemonic.partition(".")[0]
    unit = _OPCODES.get(opcode) or ("scalar" if opcode.startswith("U") else "vector")
    text = f"{guard} {operands}".strip()
    if unit == "branch":
        return Instruction(mnemonic, text, unit, **_flow(opcode, guard, operands, reconvergence))
    if unit == "matrix":
        rates, subpartitions = architecture.matrix_flops_per_clock, architecture.simds_per_cu
        return Instruction(mnemonic, text, unit, cycles=nvidia_cycles(mnemonic, rates, subpartitions))
    if unit in ("load", "store", "shared_read", "shared_write", "spill"):
        return Instruction(mnemonic, text, unit, bytes=_bytes(opcode, mnemonic), to_shared=opcode == "LDGSTS")
    return Instruction(mnemonic, text, unit)


def _flow(opcode: str, guard: str, operands: str, reconvergence: dict[str, str]) -> dict[str, Any]:
    target = _TARGET.search(operands)
    targets = (target[1],) if target else ()
    # A branch may also carry its condition as an operand: BRA.U !UP0, `(.L_x_1).
    conditional = bool(guard) or not operands.startswith("`(")
    if opcode == "BSSY":
        reconvergence[operands.partition(",")[0]] = targets[0] if targets else ""
        return {}
    if opcode == "BSYNC":
        label = reconvergence.get(operands, "")
        return {"targets": (label,) if label else ()}
    if opcode in ("EXIT", "RET", "KILL"):
        return {"falls": bool(guard)}
    if opcode == "BRA":
        return {"targets": targets, "falls": conditional}
    return {}  # calls come back; WARPSYNC, BREAK and YIELD go on


def _bytes(opcode: str, mnemonic: str) -> int | None:
    fields = mnemonic.split(".")[1:]
    if opcode in ("LDSM", "STSM"):  # 8x8 matrices of 16 bits: 4 bytes a lane each
        return 4 * max((int(f) for f in fields if f in ("2", "4")), default=1)
    if opcode in ("UTMALDG", "UTMASTG", "UBLKCP"):  # the size stands in a descriptor
        return None
    return next((_WIDTHS[f] for f in fields if f in _WIDTHS), 4)


def _without_padding(instructions: list[Instruction], labels: dict[str, int]) -> list[Instruction]:
    end = len(instructions)
    while end and instructions[end - 1].mnemonic == "NOP":
        end -= 1
    if end and instructions[end - 1].targets and labels.get(instructions[end - 1].targets[0]) == end - 1:
        end -= 1
    return instructions[:end]


def _run(tool: str, *arguments: str) -> str:
    command = [nvidia_tool(tool), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_TOOL_SECONDS, check=False)
    if done.returncode:
        raise RuntimeError(f"{tool} failed with {done.returncode}: {done.stderr.strip()[:200]}")
    return done.stdout
