"""Run Triton kernels on CPU tensors as the machine code that an AMD GPU would run.

    with emulating("gfx942") as emulator:
        kernel[grid](...)          # any @triton.jit function, on CPU tensors
    emulator.profiles              # what each launch did

    emulator = Emulator("gfx942")
    kernels = m3gen.runtime.load("gfx942", adapt=emulator.emulated)  # those of a ModelState

A launch is specialised and compiled as the JIT would for this GPU, and its code is executed.
"""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Self

from m3gen.codegen.launch import Launch
from m3gen.codegen.trace import argument
from m3gen.compiler import triton_adapter
from m3gen.emulator.arguments import Value, dispatch_packet, pack
from m3gen.emulator.faults import UnknownInstruction
from m3gen.emulator.machine import Machine
from m3gen.emulator.memory import Memory
from m3gen.emulator.profile import Profile
from m3gen.emulator.program import Program, parse
from m3gen.errors import UserError
from m3gen.targets import Architecture, Vendor, architecture


@dataclass(frozen=True, slots=True)
class Code:
    """A kernel as compiled for one specialisation; `parameters` are those that the code takes, in order."""

    name: str
    assembly: str
    program: Program
    waves: int
    shared_bytes: int
    parameters: tuple[str, ...]


@dataclass
class Emulator:
    """Compiles and runs launches for one arch. `late`, `seed`, `profile` and `strict` as in `Machine`; compiled code is
    kept from launch to launch. Of a launch only so many `workgroups` run, see `Machine.launch`. `profiles` has an
    entry for each launch when `profile` is on; `unwritten` a line for each launch that read LDS which nothing had
    written, with the first place."""

    arch: str
    late: bool = True
    seed: int = 0
    profile: bool = False
    strict: bool = False
    workgroups: int | None = None
    profiles: list[Profile] = field(default_factory=list)
    unwritten: list[str] = field(default_factory=list)
    launches: int = 0
    running: str = ""  # the kernel that was launched last

    def __post_init__(self) -> None:
        self._architecture: Architecture = architecture(self.arch)
        if self._architecture.vendor is not Vendor.AMD:
            raise UserError(f"only AMD's machine code can be executed, {self.arch} is not: use the interpreter")
        self.arch = self._architecture.name
        self._codes: dict[str, Code] = {}
        self._machines: dict[int, tuple[Code, Machine]] = {}  # by the code's identity: its text is long

    @contextmanager
    def attached(self) -> Iterator[Self]:
        """Every `@triton.jit` kernel launched inside runs here; one thread at a time. `UserError` where kernels are
        interpreted, which would run without it."""
        from triton.runtime.jit import JITFunction

        triton_adapter.require_compiler()

        def run(kernel: Any, *args: Any, grid: Any, warmup: bool, **keywords: Any) -> None:
            self.run(kernel, grid, *args, **keywords)

        own = JITFunction.run
        JITFunction.run = run
        try:
            yield self
        finally:
            JITFunction.run = own

    def emulated(self, launcher: Callable[..., None]) -> Callable[..., None]:
        """The launcher with its kernels run here: `adapt` of `m3gen.runtime.load`."""

        @functools.wraps(launcher)
        def launch(*arguments: Any, **keywords: Any) -> None:
            with self.attached():
                launcher(*arguments, **keywords)

        return launch

    def run(self, kernel: Any, grid: Any, *args: Any, **keywords: Any) -> None:
        """`kernel[grid](*args, **keywords)`."""
        names = inspect.signature(kernel.fn).parameters
        both = triton_adapter.accepted_options(self._architecture)  # a parameter may be named like an option
        options = {name: value for name, value in keywords.items() if name not in names or name in both}
        bound = inspect.signature(kernel.fn).bind(*args, **{k: v for k, v in keywords.items() if k in names})
        bound.apply_defaults()
        shape = grid(dict(bound.arguments)) if callable(grid) else grid
        x, y, z = (*shape, 1, 1)[:3]
        launch = Launch(
            kernel=kernel.fn.__name__,
            arguments=tuple((name, argument(value)) for name, value in bound.arguments.items()),
            options=tuple(sorted(options.items())),
            grid=(int(x), int(y), int(z)),
        )
        code = self.code(kernel, launch)
        self.execute(code, launch.grid, bound.arguments)

    def code(self, kernel: Any, launch: Launch) -> Code:
        """Compiled once for each specialisation. `UserError` when the kernel does not compile."""
        specialised = triton_adapter.specialise(kernel, launch, self._architecture, checked=False)
        key = specialised.identity + triton_adapter.kernel_text(kernel)
        if (known := self._codes.get(key)) is None:
            build = triton_adapter.build(specialised, line_info=True)
            signature = specialised.source.signature
            known = self._codes[key] = Code(
                name=launch.kernel,
                assembly=build.text,
                program=parse(build.text),
                waves=build.num_warps,
                shared_bytes=build.shared_bytes,
                parameters=tuple(name for name, kind in signature.items() if kind != "constexpr"),
            )
        return known

    def execute(self, code: Code, grid: tuple[int, int, int], arguments: Mapping[str, Any]) -> None:
        """Run code on tensors and numbers by parameter name."""
        memory = Memory()
        values = [_value(memory, name, arguments[name]) for name in code.parameters]
        threads = 64 * code.waves
        data = pack(code.assembly, code.program.descriptor, values, grid, threads)
        kernarg = memory.register_array("the kernel's arguments", data)
        packet = memory.register_array("the dispatch packet", dispatch_packet(grid, threads))
        machine = self._machine(code)
        machine.memory, machine.seed = memory, self.seed + self.launches
        self.launches, self.running = self.launches + 1, code.name
        started = time.perf_counter()
        recording = machine.launch(
            grid, code.waves, code.shared_bytes, kernarg.start, packet.start, most=self.workgroups
        )
        if recording is not None:
            seconds = time.perf_counter() - started
            self.profiles.append(Profile(code.name, self.arch, grid, code.waves, code.program, recording, seconds))
        if machine.unwritten_shared:
            self.unwritten.append(
                f"{code.name}: {machine.unwritten_shared} bytes, first {machine.first_unwritten}"
            )

    def _machine(self, code: Code) -> Machine:
        """Decoded once for each code."""
        known = self._machines.get(id(code))
        if known is None or known[0] is not code:
            machine = Machine(
                code.program, self.arch, Memory(), late=self.late, profile=self.profile, strict=self.strict
            )
            known = self._machines[id(code)] = (code, machine)
        return known[1]


def _value(memory: Memory, name: str, value: Any) -> Value:
    """A tensor's storage becomes memory that the kernel may touch."""
    if hasattr(value, "data_ptr"):
        if value.device.type != "cpu":
            raise UserError(f"{name} is on {value.device}: the emulator runs on CPU tensors")
        storage = value.untyped_storage()
        region = memory.register(name, storage.data_ptr(), storage.nbytes())
        return region.start + int(value.storage_offset() * value.element_size())
    if isinstance(value, bool | int | float):
        return value
    raise UnknownInstruction(f"the argument {name} is {type(value).__name__}: expected a tensor or a number")


@contextmanager
def emulating(arch: str, **options: Any) -> Iterator[Emulator]:
    """Every `@triton.jit` kernel launched inside runs as machine code of `arch`. Options as in `Emulator`."""
    with Emulator(arch, **options).attached() as emulator:
        yield emulator
