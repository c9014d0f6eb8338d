"""Everything that differs between Triton 3.6 and 3.9, or that only Triton's internals tell, in one place.

No other module of m3gen calls into `triton.runtime`, `triton.compiler` or `triton.knobs`.
"""

from __future__ import annotations

import tempfile
import types
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any

from m3gen.codegen.launch import Argument, Launch, Pointer
from m3gen.errors import UserError
from m3gen.targets import Architecture

# Set by the target, or a way to swap the code behind our back: no launcher may give them.
_RESERVED = frozenset({"arch", "backend_name", "warp_size", "ir_override", "extern_libs", "ptx_version"})

# Values outside these are accepted by Triton without a word and act as another value, or as none:
# nonkdim 4, 8 and 64 drop the matrix unit, kpack 4 acts as 2, waves_per_eu over 8 cannot be met by any CDNA.
_EFFECTIVE: Mapping[str, Mapping[str, tuple[int, ...]]] = {
    "hip": {"matrix_instr_nonkdim": (0, 16, 32), "kpack": (1, 2), "waves_per_eu": tuple(range(9))},
    "cuda": {},
}

# Options that these versions take and ignore: hints schedule in 3.6 alone, and CDNA has no WGP mode.
_INERT: Mapping[str, tuple[str, ...]] = {"schedule_hint": ("3.8", "3.9"), "wgp_cu_mode": ("3.9",)}


class Refused(ValueError):
    """An option or argument that Triton would ignore, change or misread. One line."""


class FakeTensor:
    """What specialisation looks at in a tensor: dtype, address and, on HIP, the size of the storage."""

    __slots__ = ("_pointer", "dtype")

    def __init__(self, pointer: Pointer) -> None:
        self._pointer = pointer
        self.dtype = torch_dtype(pointer.dtype)

    def data_ptr(self) -> int:
        return self._pointer.alignment

    def ptr_range(self) -> int:
        """Triton's own name for the bytes behind a pointer, asked before it looks for a torch storage."""
        return self._pointer.storage_bytes


@dataclass(frozen=True, slots=True)
class Specialised:
    """A kernel as the JIT would compile it for one launch.

    `identity` is canonical text of all that specialisation decided: types, constants, attributes, options.
    """

    kernel: Any  # triton.JITFunction
    source: Any  # triton.compiler.ASTSource
    target: Any  # triton GPUTarget
    options: Mapping[str, Any]
    identity: str


@dataclass(frozen=True, slots=True)
class Build:
    """Machine code. `text` is amdgcn assembly or PTX; `shared_bytes` is per workgroup, dynamic included."""

    text: str
    binary: bytes
    shared_bytes: int
    num_warps: int
    stage_seconds: Mapping[str, float]


def version() -> str:
    """Triton's version, e.g. "3.9.0"."""
    import triton

    return str(triton.__version__)


def require_compiler() -> None:
    """`UserError` when this process interprets kernels, and could only run them."""
    from triton import knobs

    if knobs.runtime.interpret:
        raise UserError("TRITON_INTERPRET is set, so nothing can be compiled here: unset it, or set it to 0")


def jit_function(module: types.ModuleType, name: str) -> Any:
    """The `@triton.jit` function called `name`; `Refused` when there is none."""
    from triton.runtime.jit import JITFunction

    require_compiler()
    kernel = getattr(module, name, None)
    if not isinstance(kernel, JITFunction):
        raise Refused(f"{name} is no @triton.jit function of the module, but {type(kernel).__name__}")
    return kernel


def accepted_options(architecture: Architecture) -> frozenset[str]:
    """Names of the compile options that a launcher may give on this architecture under this Triton."""
    short = ".".join(version().split(".")[:2])
    names = {f.name for f in fields(_option_class(architecture))} - _RESERVED
    return frozenset(names - {name for name, versions in _INERT.items() if short in versions})


def specialise(kernel: Any, launch: Launch, architecture: Architecture, *, checked: bool = True) -> Specialised:
    """Bind the launch's arguments as `kernel[grid](...)` would: alignment, constants and pointer ranges.

    Raises `Refused` for arguments that are not parameters and, where `checked`, for options that Triton would not
    honour; else these are what Triton makes of them, as for anybody's kernel.
    """
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource, make_backend
    from triton.runtime.jit import create_function_from_signature

    target = GPUTarget(architecture.backend, architecture.backend_arch, architecture.wave_size)
    backend = make_backend(target)
    if checked:
        options = _checked_options(kernel, launch, architecture, backend)
    else:
        options = {**dict(launch.options), "debug": bool(dict(launch.options).get("debug") or kernel.debug)}
    known = set(kernel.arg_names)
    if unknown := sorted(name for name, _ in launch.arguments if name not in known):
        raise Refused(f"{launch.kernel} has no parameter {', '.join(unknown)}")
    binder = create_function_from_signature(kernel.signature, kernel.params, backend)
    try:
        bound, specialisation, _ = binder(**{name: _value(value) for name, value in launch.arguments})
    except TypeError as error:
        raise Refused(f"{launch.kernel}: {error}".replace("dynamic_func()", "the launch")) from None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        resolved, signature, constants, attributes = kernel._pack_args(
            backend, dict(options), bound, specialisation, None
        )
    settings = {k: v for k, v in vars(resolved).items() if k != "extern_libs"}  # paths of this installation
    parts = (list(signature.items()), _canonical(constants), _canonical(attributes), _canonical(settings))
    source = ASTSource(kernel, signature, constants, attributes)
    return Specialised(kernel, source, target, vars(resolved), repr(parts))


def kernel_text(kernel: Any) -> str:
    """Source of the function, of every jitted function it reaches, and the globals they read.

    Neither file nor line nor anything else of the module takes part: elsewhere it has the same text.
    """
    parts: list[str] = []
    seen: set[int] = set()
    pending = [kernel]
    while pending:
        function = pending.pop()
        if id(function) in seen:
            continue
        seen.add(id(function))
        callees, values = _references(function)
        noinline = bool(getattr(function, "noinline", False))
        parts.append(f"{function.__name__} noinline={noinline} {values}\n{function.src}")
        pending.extend(callees)
    return "\n".join(parts)


def build(specialised: Specialised, *, line_info: bool = False) -> Build:
    """Compile to machine code, without a GPU or Triton's caches; with `line_info` its text names the lines of the
    source. Triton's exceptions pass through."""
    import triton

    seconds: dict[str, float] = {}

    def listener(*, times: Any, **_: Any) -> None:
        microseconds = {"ir": times.ir_initialization, **dict(times.lowering_stages)}
        seconds.update({stage: value / 1e6 for stage, value in microseconds.items()})

    with (
        tempfile.TemporaryDirectory(prefix="m3gen-triton-") as directory,
        _hermetic(directory, listener, line_info),
    ):
        compiled = triton.compile(specialised.source, target=specialised.target, options=dict(specialised.options))
    text, binary = {"hip": ("amdgcn", "hsaco"), "cuda": ("ptx", "cubin")}[specialised.target.backend]
    return Build(
        text=compiled.asm[text],
        binary=compiled.asm[binary],
        shared_bytes=int(compiled.metadata.shared),
        num_warps=int(compiled.metadata.num_warps),
        stage_seconds=seconds,
    )


def nvidia_tool(name: str) -> str:
    """Path of "cuobjdump" or "nvdisasm": `TRITON_<NAME>_PATH` or the one that comes with Triton."""
    from triton import knobs

    return str(getattr(knobs.nvidia, name).path)


@contextmanager
def _hermetic(directory: str, listener: Any, line_info: bool) -> Iterator[None]:
    """Set aside the user's Triton settings that cache, dump or swap code."""
    from triton import knobs
    from triton.runtime.cache import FileCacheManager

    with knobs.compilation.scope(), knobs.cache.scope(), knobs.runtime.scope(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compilation = knobs.compilation
        compilation.always_compile, compilation.disable_line_info = True, not line_info
        compilation.override, compilation.dump_ir, compilation.store_binary_only = False, False, False
        compilation.use_ir_loc, compilation.listener = None, listener
        knobs.runtime.override_arch = None
        knobs.cache.dir, knobs.cache.manager_class = directory, FileCacheManager
        yield


def _option_class(architecture: Architecture) -> Any:
    if architecture.backend == "hip":
        from triton.backends.amd.compiler import HIPOptions

        return HIPOptions
    from triton.backends.nvidia.compiler import CUDAOptions

    return CUDAOptions


def _checked_options(kernel: Any, launch: Launch, architecture: Architecture, backend: Any) -> dict[str, Any]:
    """The launch's options with the defaults that Triton changes between versions written out."""
    options: dict[str, Any] = dict(launch.options)
    accepted = accepted_options(architecture)
    for name, value in options.items():
        where = f"Triton {version()} for {architecture.name}"
        if name not in accepted:
            raise Refused(f"option {name}={value!r} has no effect under {where}: leave it out")
        if value not in _EFFECTIVE[architecture.backend].get(name, (value,)):
            allowed = _EFFECTIVE[architecture.backend][name]
            raise Refused(f"option {name}={value!r} is ignored by {where}: expected one of {allowed}")
    if clash := sorted(accepted.intersection(kernel.arg_names)):
        raise Refused(f"{launch.kernel} has parameters named like compile options: {', '.join(clash)}")
    # The default of 3.6 to 3.9 is True, that of 3.10 False.
    options.setdefault("enable_fp_fusion", True)
    options["debug"] = bool(options.get("debug") or kernel.debug)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        resolved = backend.parse_options(dict(options))
    for name, value in options.items():
        actual = getattr(resolved, name)
        if name != "llvm_fn_attrs" and actual != value:
            raise Refused(f"option {name}={value!r} becomes {actual!r} on {architecture.name}")
    return options


def _references(function: Any) -> tuple[list[Any], list[str]]:
    """Jitted functions that `function` calls and the globals it reads, by Triton's own dependency walk."""
    import inspect

    from triton.runtime.jit import DependenciesFinder

    callees: list[Any] = []

    class Finder(DependenciesFinder):  # type: ignore[misc]
        def _update_hash(self, func: Any) -> None:
            callees.append(func)

    nonlocals = inspect.getclosurevars(function.fn).nonlocals
    finder = Finder(name=function.__name__, globals=function.__globals__, nonlocals=nonlocals, src=function.src)
    finder.visit(function.parse())
    values = sorted(f"{name}={value!r}" for (name, _), (value, _) in finder.used_global_vals.items())
    return callees, values


def _value(argument: Argument) -> Any:
    return FakeTensor(argument) if isinstance(argument, Pointer) else argument


def _canonical(mapping: Mapping[Any, Any]) -> list[tuple[str, str]]:
    return sorted((str(key), repr(value)) for key, value in mapping.items())


def torch_dtype(name: str) -> Any:
    """The `torch.dtype` of a pointer's dtype; `Refused` when there is none."""
    import torch

    from m3gen.spec import DTYPES

    integers = {"i1": "bool"} | {f"{s[0]}{n}": f"{s}{n}" for s in ("int", "uint") for n in (8, 16, 32, 64)}
    torch_name = DTYPES[name].torch_name if name in DTYPES else integers.get(name, name)
    dtype = getattr(torch, torch_name, None)
    if not isinstance(dtype, torch.dtype):
        raise Refused(f"pointer dtype {name!r} is unknown")
    return dtype
