"""Where the gate runs a kernel: what stands for the GPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from m3gen.errors import UserError
from m3gen.targets import Vendor, architecture

INTERPRETER = "interpreter"
MACHINE_CODE = "machine-code"
GPU = "gpu"
PLACES = (INTERPRETER, MACHINE_CODE)
STRONGEST_FIRST = (GPU, MACHINE_CODE, INTERPRETER)
"""What may have run the kernel of a verdict: its own GPU says more than an emulator, and that more than Triton's
interpreter."""


def gates(arch: str) -> tuple[str, ...]:
    """Where a candidate for this arch has to pass, in order; a winner's row names the last.

    The interpreter checks what a kernel means, 32-bit overflow among it, the machine code what the compiler made of
    it: for AMD both, at about the same cost.
    """
    return PLACES if architecture(arch).vendor is Vendor.AMD else (INTERPRETER,)


def suffices(on: str, arch: str) -> bool:
    """Whether a pass there is enough for a winner of this arch."""
    return on in at_least(gates(arch)[-1])


def at_least(on: str) -> tuple[str, ...]:
    """The places that say as much as this one."""
    return STRONGEST_FIRST[: STRONGEST_FIRST.index(on) + 1]


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


WORKER_ENVIRONMENT = {"TRITON_INTERPRET": "0"}
"""Of a worker process that runs kernels in any place: Triton compiles there unless `running` says otherwise."""
