"""How a candidate ended: a closed set, so that a failure is a value and never the end of a session."""

from enum import StrEnum


class Status(StrEnum):
    OK = "ok"
    CONSTRAINT = "constraint"  # a rule of the space or of the device refuses it before any work
    COMPILE = "compile"  # the compiler raised an error
    COMPILE_ABORT = "compile_abort"  # the compiler took its process down (abort, segfault, out of memory)
    TIMEOUT = "timeout"  # a stage ran past its deadline and was killed
    RESOURCES = "resources"  # compiled, but cannot launch (LDS, registers, threads)
    RUNTIME = "runtime"  # the launch raised
    CORRECTNESS = "correctness"  # the output is outside the op's tolerances
    NONDETERMINISTIC = "nondeterministic"  # two launches on one input differ
    IMPLAUSIBLE = "implausible"  # a score at or under zero, or under the physical floor
