"""`Instruction`: one line of machine code, already classified; and the sums over many of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from m3gen.compiler.facts import LoopFacts
from m3gen.compiler.loops import Loop

# Every unit that a mix may name, see `KernelFacts.mix`.
UNITS = (
    "matrix",
    "vector",
    "transcendental",
    "convert",
    "scalar",
    "load",
    "store",
    "atomic",
    "shared_read",
    "shared_write",
    "permute",
    "spill",
    "wait",
    "barrier",
    "branch",
    "other",
)


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction of one wave.

    `bytes` are bytes per lane that a memory instruction moves (None: it moves memory, how much is unknown),
    `cycles` the matrix unit's cycles (None: an unknown matrix instruction). `targets` are labels it may jump
    to; `falls` says whether the next instruction may follow it.
    """

    mnemonic: str
    operands: str
    unit: str
    bytes: int | None = 0
    cycles: int | None = 0
    to_shared: bool = False  # a load that goes to shared memory without passing registers
    targets: tuple[str, ...] = ()
    falls: bool = True


@dataclass(frozen=True, slots=True)
class Program:
    """The instructions of one kernel in address order; `labels` name the index they stand before."""

    instructions: tuple[Instruction, ...]
    labels: Mapping[str, int]


def loop_facts(program: Program, loops: Iterable[Loop]) -> tuple[LoopFacts, ...]:
    """Facts of each loop body, the largest first."""
    bodies = []
    for loop in loops:
        body = [program.instructions[index] for index in loop.instructions]
        sums = tally(body)
        mix = sums["mix"]
        bodies.append(
            LoopFacts(
                label=loop.label,
                depth=loop.depth,
                instructions=len(body),
                mix=mix,
                matrix_cycles=sums["matrix_cycles"],
                load_bytes_per_lane=sums["load_bytes"],
                load_widths=sums["load_widths"],
                shared_read_bytes_per_lane=sums["shared_read_bytes"],
                shared_write_bytes_per_lane=sums["shared_write_bytes"],
                waits=mix.get("wait", 0),
                barriers=mix.get("barrier", 0),
                branches=mix.get("branch", 0),
            )
        )
    return tuple(sorted(bodies, key=lambda facts: (-facts.instructions, facts.label)))


def tally(body: Sequence[Instruction]) -> dict[str, Any]:
    """Sums over instructions: mix, matrix_cycles, load_bytes, load_widths, shared_{read,write}_bytes."""
    mix = Counter(i.unit for i in body)
    loads = [i for i in body if i.unit == "load"]
    widths = Counter(str(i.bytes) for i in loads if i.bytes is not None)
    return {
        "mix": {unit: mix[unit] for unit in UNITS if mix[unit]},
        "matrix_cycles": sum(i.cycles or 0 for i in body),
        "load_bytes": sum(i.bytes or 0 for i in loads),
        "load_widths": dict(sorted(widths.items(), key=lambda item: int(item[0]))),
        "shared_read_bytes": sum(i.bytes or 0 for i in body if i.unit == "shared_read"),
        "shared_write_bytes": sum(i.bytes or 0 for i in body if i.unit == "shared_write" or i.to_shared),
    }


def unknowns(body: Iterable[Instruction]) -> dict[str, dict[str, int]]:
    """What the tables do not know, by mnemonic: `unknown_matrix` (no cycles) and `unknown_memory` (no width).

    Absent when empty, so that a fact with one of them is a fact to look into.
    """
    matrix = Counter(i.mnemonic for i in body if i.cycles is None)
    memory = Counter(i.mnemonic for i in body if i.bytes is None)
    found = {"unknown_matrix": dict(sorted(matrix.items())), "unknown_memory": dict(sorted(memory.items()))}
    return {name: counts for name, counts in found.items() if counts}
