"""Which instructions compiled kernels use, and whether the emulator runs them: a handler for worker processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from m3gen.compiler.candidate import compile_candidate, facts_cache
from m3gen.compiler.request import CompileRequest
from m3gen.emulator.faults import UnknownInstruction
from m3gen.emulator.machine import Machine
from m3gen.emulator.memory import Memory
from m3gen.emulator.program import Instruction, parse
from m3gen.emulator.table import find
from m3gen.errors import UserError
from m3gen.paths import cache_dir
from m3gen.spec import Status


@dataclass(frozen=True, slots=True)
class Use:
    """One mnemonic in one kernel: unit, cycles and section of its `table.Spec` ("" and 0 where there is none), and
    why the first line that the emulator cannot run is refused, or ""."""

    mnemonic: str
    unit: str = ""
    cycles: int = 0
    section: str = ""
    refused: str = ""


@dataclass(frozen=True, slots=True)
class Used:
    """The kernels of one candidate by the SHA-256 of their machine code; `reason` where `status` is not OK."""

    status: Status
    reason: str = ""
    kernels: Mapping[str, tuple[Use, ...]] = field(default_factory=dict)


def used_by(request: CompileRequest) -> Used:
    """The pool's handler: compile, or take from the facts cache, and read the machine code.

    `UserError` when the cache has facts of a kernel and not its assembly.
    """
    result = compile_candidate(request)
    cache = facts_cache(cache_dir() / "facts")
    kernels = {}
    for key, facts in result.facts.items():
        if (assembly := cache.assembly(key)) is None:
            raise UserError(f"{cache.root} has lost the assembly of {facts.kernel}: remove that folder, run again")
        try:
            kernels[facts.code_sha] = uses(assembly, request.problems[0].arch)
        except UnknownInstruction as error:
            return Used(Status.RUNTIME, str(error), kernels)
    return Used(result.status, result.reason, kernels)


def uses(assembly: str, arch: str) -> tuple[Use, ...]:
    """Every mnemonic of a kernel once, by name. `UnknownInstruction` for a line that cannot be read."""
    program = parse(assembly)
    machine = Machine(replace(program, instructions=()), arch, Memory())
    found: dict[str, Use] = {}
    for line in program.instructions:
        if line.mnemonic not in found or not found[line.mnemonic].refused:
            found[line.mnemonic] = _use(line, machine)
    return tuple(found[mnemonic] for mnemonic in sorted(found))


def _use(line: Instruction, machine: Any) -> Use:
    try:
        spec = find(line)
    except UserError as error:
        return Use(line.mnemonic, refused=str(error))
    refused = ""
    try:
        spec.build(line, machine)
    except UserError as error:
        refused = str(error)
    return Use(line.mnemonic, spec.unit, spec.cycles, spec.section, refused)
