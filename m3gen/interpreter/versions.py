"""The Triton versions whose interpreter this layer is known to make right."""

from __future__ import annotations

from m3gen.errors import UserError

# The whole of tests/interpreter passes under each. A new version is added after running them under it.
KNOWN_RIGHT: tuple[str, ...] = ("3.6.0", "3.8.0", "3.9.0")


def check(version: str) -> None:
    """Refuse a Triton that the tests have not been run under; `UserError` naming those they have.

    A local suffix ("3.6.0+rocm7.0") names a build of the same release and is let through.
    """
    if version.partition("+")[0] not in KNOWN_RIGHT:
        raise UserError(
            f"cannot run kernels in the interpreter of Triton {version}: bf16 and fp8 are known to be right "
            f"only under {', '.join(KNOWN_RIGHT)}; install one of these, or run on a GPU"
        )
