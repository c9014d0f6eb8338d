"""Source and launch in, machine code and facts out. For a process of its own: LLVM may take it down."""

from __future__ import annotations

import hashlib
import tempfile
import time
import types
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from m3gen.codegen.launch import Launch
from m3gen.codegen.module import load_module
from m3gen.codegen.source import KernelSource
from m3gen.compiler import amd, facts, instruction, loops, matrix, nvidia, triton_adapter
from m3gen.compiler.facts import KernelFacts
from m3gen.compiler.fingerprint import fingerprint
from m3gen.errors import UserError
from m3gen.targets import Architecture, Vendor, occupancy

_REASON_CHARACTERS = 400


class CompileError(Exception):
    """The kernel does not compile for this launch. One line."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """`assembly` is what the facts were read from, amdgcn or SASS text; `binary` is the hsaco or cubin."""

    facts: KernelFacts
    assembly: str
    binary: bytes


@dataclass(frozen=True, slots=True)
class Prepared:
    """A launch bound to its kernel, ready to compile. Equal keys mean equal machine code and equal facts."""

    launch: Launch
    architecture: Architecture
    specialised: triton_adapter.Specialised
    key: str


def compile_launch(source: KernelSource, launch: Launch, architecture: Architecture) -> Compiled:
    """Machine code and facts of the kernel that `launch` would run.

    Raises `CompileError`. That a kernel needs more than the architecture has is no error here: its facts say
    0 workgroups per CU, and `resource_fault` says why.
    """
    return compile_prepared(prepare(load_module(source), launch, architecture))


def prepare(
    module: types.ModuleType, launch: Launch, architecture: Architecture, *, checked: bool = True
) -> Prepared:
    """Specialise the launch as the JIT would and compute its key; raises `CompileError`. `checked` as in
    `triton_adapter.specialise`."""
    try:
        kernel = triton_adapter.jit_function(module, launch.kernel)
        specialised = triton_adapter.specialise(kernel, launch, architecture, checked=checked)
        text = triton_adapter.kernel_text(kernel)
    except triton_adapter.Refused as refusal:
        raise CompileError(str(refusal)) from None
    except UserError:
        raise
    except Exception as error:
        raise CompileError(one_line(error)) from error
    numbers = {name: value for name, value in asdict(architecture).items() if name != "sources"}
    identity = "\n".join((fingerprint(), _reader_sha(), repr(numbers), specialised.identity, text))
    return Prepared(launch, architecture, specialised, hashlib.sha256(identity.encode()).hexdigest())


def compile_prepared(prepared: Prepared) -> Compiled:
    """Compile and read the machine code; raises `CompileError` for whatever Triton, LLVM or ptxas raise.

    `UserError` when the system refuses files or processes (a full disk, say), which is no candidate's fault.
    """
    try:
        return _compile(prepared)
    except OSError as error:
        raise UserError(
            f"the compiler cannot work in {tempfile.gettempdir()} ({error}): free some space there, or set TMPDIR "
            "to another folder, and run again; all that was stored before is kept"
        ) from error


def _compile(prepared: Prepared) -> Compiled:
    started = time.perf_counter()
    try:
        build = triton_adapter.build(prepared.specialised)
    except OSError:
        raise
    except Exception as error:
        raise CompileError(one_line(error)) from error
    seconds = time.perf_counter() - started
    kernel, target, compiler = prepared.launch.kernel, prepared.architecture, fingerprint()
    if target.vendor is Vendor.AMD:
        read = amd.facts(build, kernel, target, seconds=seconds, compiler=compiler)
        return Compiled(read, build.text, build.binary)
    sass = nvidia.disassemble(build.binary)
    read = nvidia.facts(build, sass, kernel, target, seconds=seconds, compiler=compiler)
    return Compiled(read, sass.text, build.binary)


def resource_fault(kernel: KernelFacts, architecture: Architecture) -> str:
    """Why no workgroup of the kernel can start ("shared: ...", "registers: ...", "threads: ..."), or ""."""
    threads = kernel.num_warps * architecture.wave_size
    if threads > (limit := architecture.max_threads_per_workgroup):
        return f"threads: {threads} per workgroup, {architecture.name} allows {limit}"
    if kernel.shared_bytes > (limit := architecture.shared_bytes_per_workgroup):
        return f"shared: {kernel.shared_bytes} bytes per workgroup, {architecture.name} allows {limit}"
    if kernel.workgroups_per_cu < 1:
        need = f"{kernel.num_warps} waves of {kernel.registers} registers"
        return f"{kernel.occupancy_limit}: {need} do not fit a CU of {architecture.name}"
    return ""


def one_line(error: BaseException) -> str:
    """Type, first and last line of an exception: Triton prints an excerpt of the source in between."""
    lines = [line.strip() for line in str(error).splitlines()]
    lines = [line for line in lines if line and not line.startswith("Repro command")]
    text = " ".join(dict.fromkeys((*lines[:1], *lines[-1:])))
    return f"{type(error).__name__}: {text}"[:_REASON_CHARACTERS]


@cache
def _reader_sha() -> str:
    """SHA-256 of the code that reads facts off machine code: what is kept never outlives its reader."""
    modules = (amd, facts, instruction, loops, matrix, nvidia)
    files = [*(module.__file__ for module in modules), occupancy.__code__.co_filename]
    digest = hashlib.sha256()
    for file in files:
        digest.update(Path(str(file)).read_bytes())
    return digest.hexdigest()
