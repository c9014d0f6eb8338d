"""Where the gate runs a kernel: what stands for the GPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from m3gen.errors import UserError
from m3gen.targets import Vendor, architecture

INTERPRETER = "interpreter"
MACHINE_CODE = "machine-code"
PLACES = (INTERPRETER, MACHINE_CODE)


def check(on: str, arch: str) -> None:
    """`UserError` for a place that cannot stand for a GPU of this arch."""
    if on not in PLACES:
        raise UserError(f"unknown gate {on!r}: there are {', '.join(PLACES)}")
    if on == MACHINE_CODE and architecture(arch).vendor is not Vendor.AMD:
        raise UserError(f"only AMD's machine code can be executed, {arch} is not: verify on the {INTERPRETER}")


@contextmanager
def running(on: str, arch: str) -> Iterator[None]:
    """Kernels launched inside run there: by Triton's interpreter in this process, or compiled for `arch` and
    executed by the emulator, every launch with its waves in another order."""
    check(on, arch)
    if on == MACHINE_CODE:
        from m3gen.emulator import emulating

        with emulating(arch):
            yield
        return
    from m3gen.interpreter import interpreting

    with interpreting():
        yield


def unchecked(on: str) -> AbstractContextManager[None]:
    """For launches that repeat a checked one: without what only the interpreter checks."""
    if on == MACHINE_CODE:
        return nullcontext()
    from m3gen.interpreter import overflow_unchecked

    return overflow_unchecked()


def worker_environment(on: str) -> dict[str, str]:
    """What a worker process needs to run kernels there."""
    return {"TRITON_INTERPRET": "1" if on == INTERPRETER else "0"}
