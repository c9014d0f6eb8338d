"""`Machine`: a program, its memory, and the waves that run it."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from m3gen.emulator.faults import EmulationError, Hang, MemoryFault, MissingWait, UnknownInstruction, UnwrittenRead
from m3gen.emulator.group import I64, U32, Array, Group, Pending, Queue
from m3gen.emulator.memory import Memory
from m3gen.emulator.profile import space
from m3gen.emulator.program import Instruction, Program
from m3gen.emulator.recorder import Recorder
from m3gen.emulator.recording import Recording
from m3gen.emulator.registers import touched, written_in_order
from m3gen.emulator.shared import Shared
from m3gen.emulator.table import Spec, Step, find

_MOST_WORKGROUPS = 64  # that run in step
_MOST_STEPS = 5_000_000
_TURN = 128  # branches after which the other groups have theirs
_WAVE = 64
# What vmcnt (6 bits) and lgkmcnt (4 bits) of gfx9 can count: LLVM, "Syntax of AMDGPU Instruction Operands", waitcnt.
_MOST_VM, _MOST_LGKM = 63, 15


class Machine:
    """Runs launches of one program.

    `late`: memory completes at the last moment that the waits allow, so that a missing one shows; else at once.
    `seed` orders the waves of a workgroup. `profile` records.

    `strict` makes reading LDS that nothing wrote an `UnwrittenRead`; otherwise it gives NaN and is counted. A correct
    kernel may do so in lanes whose value it masks afterwards, hence it is not the default.
    """

    def __init__(
        self,
        program: Program,
        arch: str,
        memory: Memory,
        *,
        late: bool = True,
        seed: int = 0,
        profile: bool = False,
        strict: bool = False,
    ) -> None:
        if program.descriptor.fp32_denormals != 3 or program.descriptor.fp16_denormals != 3:
            raise UnknownInstruction(
                "the kernel's descriptor flushes denormals, which is not modelled: compile without allow_flush_denorm"
            )
        self.program, self.arch, self.memory = program, arch, memory
        self.late, self.seed, self.profile, self.strict = late, seed, profile, strict
        self._random = random.Random(seed)
        self.specs: list[Spec] = [find(line) for line in program.instructions]
        self._steps: list[Step] = []
        for line, spec in zip(program.instructions, self.specs, strict=True):
            self._steps.append(spec.build(line, self))
        self._touched = [touched(line) for line in program.instructions]
        self._in_order = [written_in_order(line) for line in program.instructions]
        self._recorder: Recorder | None = None
        self.unwritten_shared = 0  # bytes of the LDS that the last launch read before anybody wrote them
        self.first_unwritten = ""  # where the first of them
        self._shared = Shared(1, 0)
        self._left = np.zeros(0, I64)  # waves of each workgroup that have not ended

    def launch(
        self,
        grid: Sequence[int],
        waves: int,
        shared_bytes: int,
        kernarg: int,
        packet: int = 0,
        *,
        most: int | None = None,
    ) -> Recording | None:
        """Run `grid` workgroups of `waves` waves; `kernarg` is the address of the arguments, `packet` that of the
        dispatch packet; `most`: only so many run, see `_chosen`. What they did, when `profile` is on.

        Raises an `EmulationError` for what no kernel may do.
        """
        x, y, z = (*grid, 1, 1)[:3]
        chosen = self._chosen((x, y, z), most or x * y * z)
        self._random = random.Random(self.seed)
        self.unwritten_shared, self.first_unwritten = 0, ""
        self._recorder = Recorder(self.program.instructions, self.specs, self.arch) if self.profile else None
        for start in range(0, len(chosen), _MOST_WORKGROUPS):
            numbers = chosen[start : start + _MOST_WORKGROUPS]
            self._shared = Shared(len(numbers), shared_bytes + self.program.descriptor.lds_bytes)
            ids = np.stack([numbers % x, numbers // x % y, numbers // (x * y)])
            self._left = np.full(len(numbers), waves)
            pointers = {"kernarg_segment_ptr": kernarg, "dispatch_ptr": packet}
            with np.errstate(all="ignore"):  # GPUs do not trap
                self._run([self._group(numbers, ids, wave, pointers) for wave in range(waves)])
            self.unwritten_shared += self._shared.unwritten
        return self._recorder.recording(self.unwritten_shared) if self._recorder else None

    def _chosen(self, grid: tuple[int, int, int], most: int) -> Array:
        """The workgroups that run, by number: all, or the first `most`. Where a program counts arrivals, the first ones
        never see the last: then those at x = 0 in their place, which count each other along y or z, however many."""
        x, y, z = grid
        if x * y * z <= most:
            return np.arange(x * y * z)
        if any(space(line) == "global_atomic" for line in self.program.instructions):
            return np.arange(y * z) * x
        return np.arange(most)

    def _group(self, numbers: Array, ids: Array, wave: int, pointers: Mapping[str, int]) -> Group:
        """One wave of each workgroup, as the descriptor starts it."""
        descriptor = self.program.descriptor
        group = Group(numbers, np.arange(len(numbers)), np.full(len(numbers), wave))
        group.v[0] = np.arange(_WAVE * wave, _WAVE * (wave + 1), dtype=U32)[None, :]
        for name, register in descriptor.user_sgprs:
            if name in pointers:
                group.put_scalar64(register, np.full((1, 1), pointers[name], np.uint64))
        length, offset = descriptor.kernarg_preload
        if length:
            first = descriptor.user_sgpr_count - length
            at = pointers["kernarg_segment_ptr"] + 4 * offset
            words = self.memory.load(np.array([at]), 4 * length).view(U32)
            for number in range(length):
                group.s[first + number] = words[:, number : number + 1]
        register = descriptor.user_sgpr_count
        for axis, enabled in enumerate(descriptor.workgroup_ids):
            if enabled:
                group.s[register] = ids[axis].astype(U32)[:, None]
                register += 1
        if descriptor.scratch_bytes:
            group.scratch = np.full((len(numbers), _WAVE, descriptor.scratch_bytes), 0xFF, np.uint8)
        return group

    # the scheduler

    def _run(self, groups: list[Group]) -> None:
        """Until every wave has ended. The group that is furthest behind goes first, so that waves which parted meet
        again, but for one that has had more turns than others: it may be waiting for them. Of the waves of a
        workgroup, whichever the seed says."""
        ready, blocked = list(groups), list[Group]()
        while ready or blocked:
            if not ready:
                ready, blocked = self._released(blocked)
                continue
            group = self._next(ready)
            for part in self._advance(group):
                (blocked if part.arrived else ready).append(part)

    def _next(self, ready: list[Group]) -> Group:
        numbers = sorted({int(group.wave[0]) for group in ready})
        wave = self._random.choice(numbers)
        mine = sorted(
            (group for group in ready if group.wave[0] == wave), key=lambda group: (group.steps // _TURN, group.pc)
        )
        first = mine[0]
        ready.remove(first)
        for other in mine[1:]:
            if first.can_meet(other):
                ready.remove(other)
                first = first.meet(other)
        return first

    def _released(self, blocked: list[Group]) -> tuple[list[Group], list[Group]]:
        """Groups whose workgroups have arrived whole go on; waves that have ended are not waited for."""
        arrived = np.bincount(np.concatenate([group.row for group in blocked]), minlength=len(self._left))
        whole = (arrived == self._left).nonzero()[0]
        ready, waiting = list[Group](), list[Group]()
        for group in blocked:
            released = np.isin(group.row, whole)
            if released.all():
                parts = [(group, True)]
            elif not released.any():
                parts = [(group, False)]
            else:
                parts = [(group.take(released.nonzero()[0]), True), (group.take((~released).nonzero()[0]), False)]
            for part, free in parts:
                part.arrived = not free
                (ready if free else waiting).append(part)
        return ready, waiting

    def _advance(self, group: Group) -> list[Group]:
        """Run a group to its next barrier, its end, a branch that parts it, or the end of its turn; what is left of
        it."""
        steps, touched_, lines = self._steps, self._touched, self.program.instructions
        recorder = self._recorder
        if recorder is not None:
            recorder.begin(group)
        while True:
            at = group.pc
            if recorder is not None:
                recorder.step(group, at)
            if group.vm.writes or group.lgkm.writes:
                self._check(group, at, touched_[at])
            group.pc = at + 1
            try:
                found = steps[at](group)
            except EmulationError as error:
                raise type(error)(_placed(error, lines[at])) from None
            if found is None:
                continue
            if found == "barrier":
                group.arrived = True
                return [group]
            if found == "end":
                group.vm.drain(group, 0)
                group.lgkm.drain(group, 0)
                np.subtract.at(self._left, group.row, 1)
                return []
            group.steps += 1
            if group.steps > _MOST_STEPS:
                raise Hang(f"more than {_MOST_STEPS} branches, {lines[at].where}")
            target, taken = found
            if recorder is not None:
                recorder.branched(at, group.size if taken is None else int(np.count_nonzero(taken)))
            if taken is None:
                group.pc = target
                if group.steps % _TURN == 0:
                    return [group]
                continue
            gone, stayed = group.take(taken.nonzero()[0]), group.take((~taken).nonzero()[0])
            gone.pc = target
            return [gone, stayed]

    def _check(self, group: Group, at: int, registers: int) -> None:
        late = (group.vm.writes & ~self._in_order[at] | group.lgkm.writes) & registers
        if late:
            line = self.program.instructions[at]
            number = (late & -late).bit_length() - 1
            name = f"v{number}" if number < 256 else f"a{number - 256}" if number < 512 else f"s{number - 512}"
            raise MissingWait(f"{name} is used while a load that writes it is under way, {line.where}")

    def issue(self, group: Group, queue: Queue, one: Pending) -> None:
        """Start a memory operation. One more than the counter can count waits for the oldest, which LLVM relies on."""
        if self._recorder is not None:
            self._recorder.issued(one)
        most = _MOST_VM if queue is group.vm else _MOST_LGKM
        if len(queue.waiting) >= most:
            queue.drain(group, most - 1)
        queue.push(one)
        if not self.late:
            queue.drain(group, 0)

    # memory, for the instructions

    def load(self, group: Group, line: Instruction, addresses: Array, width: int) -> Array:
        """uint8 [n, width]."""
        try:
            return self.memory.load(addresses, width)
        except MemoryFault as fault:
            raise self._located(fault, line, group) from None

    def store(self, group: Group, line: Instruction, addresses: Array, data: Array) -> None:
        try:
            self.memory.store(addresses, data)
        except MemoryFault as fault:
            raise self._located(fault, line, group) from None

    def load_lanes(self, group: Group, line: Instruction, where: Array, active: Array, width: int) -> Array:
        """uint32 [size, 64, words]; lanes that are not active get 0."""
        self.note_memory(group, line, where, active, width, reads=True)
        return self._spread(self.load, group, line, where, active, width)

    def store_lanes(
        self, group: Group, line: Instruction, where: Array, active: Array, words: Array, width: int
    ) -> None:
        self.note_memory(group, line, where, active, width, writes=True)
        data = np.ascontiguousarray(words).view(np.uint8).reshape(group.size, _WAVE, -1)[:, :, :width]
        if active.any():
            try:
                self.memory.store(where[active], data[active])
            except MemoryFault as fault:
                raise self._located(fault, line, group, active) from None

    def _spread(
        self, read: Any, group: Group, line: Instruction, where: Array, active: Array, width: int
    ) -> Array:
        words = max(1, width // 4)
        out = np.zeros((group.size, _WAVE, 4 * words), np.uint8)
        if active.all():
            out[:, :, :width] = self._loaded(group, line, where.reshape(-1), width, active).reshape(
                group.size, _WAVE, width
            )
        elif active.any():
            out[active, :width] = self._loaded(group, line, where[active], width, active)
        return out.view(U32)

    def _loaded(self, group: Group, line: Instruction, addresses: Array, width: int, active: Array) -> Array:
        try:
            return self.memory.load(addresses, width)
        except MemoryFault as fault:
            raise self._located(fault, line, group, active) from None

    def load_scratch(self, group: Group, line: Instruction, where: Array, active: Array, width: int) -> Array:
        at = self._scratch(group, line, where, active, width)
        assert group.scratch is not None
        found = np.take_along_axis(group.scratch, at, axis=2)
        out = np.zeros((group.size, _WAVE, max(4, width)), np.uint8)
        out[:, :, :width] = found
        return out.view(U32)

    def store_scratch(
        self, group: Group, line: Instruction, where: Array, active: Array, words: Array, width: int
    ) -> None:
        at = self._scratch(group, line, where, active, width)
        assert group.scratch is not None
        data = np.ascontiguousarray(words).view(np.uint8).reshape(group.size, _WAVE, -1)[:, :, :width]
        rows, lanes = np.nonzero(active)
        group.scratch[rows[:, None], lanes[:, None], at[rows, lanes]] = data[rows, lanes]

    def _scratch(self, group: Group, line: Instruction, where: Array, active: Array, width: int) -> Array:
        if self._recorder is not None:
            self._recorder.scratch(group, line, active, width)
        size = self.program.descriptor.scratch_bytes
        outside = active & ((where < 0) | (where + width > size))
        if outside.any():
            raise MemoryFault(f"{width} bytes of scratch past its {size}, {line.where}")
        at: Array = np.where(active, where, 0)[:, :, None] + np.arange(width)
        return at

    def read_shared(self, group: Group, line: Instruction, where: Array, active: Array, width: int) -> Array:
        """uint32 [size, 64, words]; lanes that are not active get 0."""
        self.note_shared(group, line, where, active, width)
        words = max(1, width // 4)
        out = np.zeros((group.size, _WAVE, 4 * words), np.uint8)
        rows = np.broadcast_to(group.row[:, None], (group.size, _WAVE))
        before = self._shared.unwritten
        try:
            if active.all():
                found = self._shared.load(rows.reshape(-1), where.reshape(-1), width)
                out[:, :, :width] = found.reshape(group.size, _WAVE, width)
            elif active.any():
                out[active, :width] = self._shared.load(rows[active], where[active], width)
        except MemoryFault as fault:
            raise self._located(fault, line, group, active) from None
        if self._shared.unwritten > before:
            self._unwritten(group, line, where, active, width)
        return out.view(U32)

    def _unwritten(self, group: Group, line: Instruction, where: Array, active: Array, width: int) -> None:
        row = self._shared.unwritten_row
        address = int(where[active][row]) & 0xFFFFFFFF
        lane = _lane(group, active, row)
        place = f"{width} bytes at {address} of the LDS, not all written before{lane}, {line.where}"
        if self.strict:
            raise UnwrittenRead(place)
        self.first_unwritten = self.first_unwritten or place

    def write_shared(
        self, group: Group, line: Instruction, where: Array, active: Array, words: Array, width: int
    ) -> None:
        self.note_shared(group, line, where, active, width, write=True)
        data = np.ascontiguousarray(words).view(np.uint8).reshape(group.size, _WAVE, -1)[:, :, :width]
        rows = np.broadcast_to(group.row[:, None], (group.size, _WAVE))
        try:
            if active.any():
                self._shared.store(rows[active], where[active], data[active])
        except MemoryFault as fault:
            raise self._located(fault, line, group, active) from None

    def _located(
        self, fault: MemoryFault, line: Instruction, group: Group, active: Array | None = None
    ) -> MemoryFault:
        row = int(getattr(fault, "row", 0))
        lane = "" if active is None else _lane(group, active, row)
        return MemoryFault(f"{fault}{lane}, {line.where}")

    # what the profile wants to know

    def note_memory(
        self,
        group: Group,
        line: Instruction,
        where: Array,
        active: Array,
        width: int,
        *,
        reads: bool = False,
        writes: bool = False,
    ) -> None:
        """An access of memory by a lane, or by a wave: int64 and bool [size, lanes]."""
        if self._recorder is not None:
            self._recorder.memory(group, line, where, active, width, reads=reads, writes=writes)

    def note_shared(
        self,
        group: Group,
        line: Instruction,
        where: Array,
        active: Array,
        width: int,
        *,
        write: bool = False,
        atomic: bool = False,
    ) -> None:
        """An access of the LDS. An atomic is noted down whole, and not again for each lane that it reads and writes."""
        if self._recorder is not None and atomic == (space(line) == "shared_atomic"):
            self._recorder.shared(group, line, where, active, width, write=write)


def _lane(group: Group, active: Array, row: int) -> str:
    """Of an access that the active lanes make, number `row`."""
    at, lane = (int(found[row]) for found in np.nonzero(active))
    return f", lane {lane} of wave {group.wave[at]} of workgroup {group.workgroup[at]}"


def _placed(error: EmulationError, line: Instruction) -> str:
    """With the place where it was noticed, unless it names its own: that of an access, which completes later."""
    return str(error) if ", line " in str(error) else f"{error}, {line.where}"
