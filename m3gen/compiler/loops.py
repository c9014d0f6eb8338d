"""Natural loops of machine code, found from its branches alone (Aho, Lam, Sethi, Ullman, section 9.6).

Works on what the hardware will run, so it needs neither comments nor debug information, and sees peeled
iterations, unrolled copies and outlined blocks for what they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


class Flow(Protocol):
    """What loops look at in an instruction."""

    @property
    def targets(self) -> tuple[str, ...]: ...

    @property
    def falls(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Loop:
    """One loop: its header's label, its depth (1 is outermost), and the indices of its instructions.

    The body of an inner loop belongs to the outer one too.
    """

    label: str
    depth: int
    instructions: tuple[int, ...]


def natural_loops(instructions: Sequence[Flow], labels: Mapping[str, int]) -> tuple[Loop, ...]:
    """The loops of a program entered at its first instruction, outermost and earliest first.

    Jumps to a label that `labels` lacks leave the program. Blocks that cannot be reached have no part in it.
    """
    if not instructions:
        return ()
    starts = _leaders(instructions, labels)
    successors = _successors(instructions, labels, starts)
    order = _reverse_postorder(successors)
    reached = set(order)
    successors = [targets if block in reached else [] for block, targets in enumerate(successors)]
    dominator = _dominators(successors, order)
    bodies: dict[int, set[int]] = {}
    predecessors = _predecessors(successors)
    for block in order:
        for header in successors[block]:
            if _dominates(dominator, header, block):
                bodies.setdefault(header, {header}).update(_body(header, block, predecessors))
    names: dict[int, str] = {}
    for label, index in labels.items():
        names.setdefault(index, label)
    bounds = [*starts, len(instructions)]
    loops = [
        Loop(
            label=names.get(starts[header], f"@{starts[header]}"),
            depth=sum(1 for other in bodies.values() if header in other),
            instructions=tuple(i for block in sorted(body) for i in range(bounds[block], bounds[block + 1])),
        )
        for header, body in bodies.items()
    ]
    return tuple(sorted(loops, key=lambda loop: (loop.depth, loop.instructions[0])))


def _leaders(instructions: Sequence[Flow], labels: Mapping[str, int]) -> list[int]:
    """Index of the first instruction of each basic block."""
    leaders = {0, *(index for index in labels.values() if index < len(instructions))}
    for index, instruction in enumerate(instructions[:-1]):
        if instruction.targets or not instruction.falls:
            leaders.add(index + 1)
    return sorted(leaders)


def _successors(instructions: Sequence[Flow], labels: Mapping[str, int], starts: Sequence[int]) -> list[list[int]]:
    block_at = {start: block for block, start in enumerate(starts)}
    successors = []
    for block in range(len(starts)):
        end = starts[block + 1] if block + 1 < len(starts) else len(instructions)
        last = instructions[end - 1]
        following = [block_at[labels[t]] for t in last.targets if labels.get(t) in block_at]
        if last.falls and block + 1 < len(starts):
            following.append(block + 1)
        successors.append(following)
    return successors


def _predecessors(successors: Sequence[Sequence[int]]) -> list[list[int]]:
    predecessors: list[list[int]] = [[] for _ in successors]
    for block, following in enumerate(successors):
        for target in following:
            predecessors[target].append(block)
    return predecessors


def _reverse_postorder(successors: Sequence[Sequence[int]]) -> list[int]:
    """Blocks that the entry reaches; without recursion, for kernels have thousands of blocks."""
    postorder: list[int] = []
    seen = {0}
    stack = [(0, iter(successors[0]))]
    while stack:
        block, following = stack[-1]
        target = next((t for t in following if t not in seen), None)
        if target is None:
            postorder.append(block)
            stack.pop()
        else:
            seen.add(target)
            stack.append((target, iter(successors[target])))
    return postorder[::-1]


def _dominators(successors: Sequence[Sequence[int]], order: Sequence[int]) -> dict[int, int]:
    """Immediate dominators (Cooper, Harvey, Kennedy: A Simple, Fast Dominance Algorithm, 2001)."""
    position = {block: index for index, block in enumerate(order)}
    predecessors = _predecessors(successors)
    immediate = {order[0]: order[0]}

    def meet(a: int, b: int) -> int:
        while a != b:
            while position[a] > position[b]:
                a = immediate[a]
            while position[b] > position[a]:
                b = immediate[b]
        return a

    changed = True
    while changed:
        changed = False
        for block in order[1:]:
            candidates = [p for p in predecessors[block] if p in immediate]
            best = candidates[0]
            for other in candidates[1:]:
                best = meet(best, other)
            if immediate.get(block) != best:
                immediate[block] = best
                changed = True
    return immediate


def _dominates(immediate: Mapping[int, int], above: int, below: int) -> bool:
    while below != above and immediate[below] != below:
        below = immediate[below]
    return below == above


def _body(header: int, tail: int, predecessors: Sequence[Sequence[int]]) -> set[int]:
    """Blocks that reach `tail` without passing `header`."""
    body = {header}
    pending = [tail]
    while pending:
        block = pending.pop()
        if block not in body:
            body.add(block)
            pending.extend(predecessors[block])
    return body
