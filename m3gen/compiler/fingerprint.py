"""The compiler's identity: what must be equal for two compiles of one kernel to give the same machine code.

Imports neither torch nor triton: the parent process asks for it too.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from functools import cache
from importlib import metadata

# Triton under the names that PyTorch's own indexes give it.
_DISTRIBUTIONS = ("triton", "pytorch-triton", "pytorch-triton-rocm", "triton-rocm")

# Any variable of these families may change code; that an unknown one changes the fingerprint costs a compile.
_FAMILIES = ("TRITON_", "AMDGCN_", "PTXAS_", "NVPTX_")
_OTHERS = frozenset(
    {
        "ALLOW_LHS_TMEM_LAYOUT_CONVERSION",
        "DISABLE_LLVM_OPT",
        "DISABLE_MMA_V3",
        "DISABLE_MMA_V5",
        "DISABLE_PTXAS_OPT",
        "LLVM_PASS_PLUGIN_PATH",
    }
)
# Where files go, what is printed, what the compile step sets itself or m3gen always writes out as an option.
_NEUTRAL = re.compile(
    r"TRITON_(HOME|CACHE_\w+|DUMP_DIR|OVERRIDE_DIR|OVERRIDE_ARCH|INTERPRET|ALWAYS_COMPILE|DISABLE_LINE_INFO"
    r"|KERNEL_DUMP|KERNEL_OVERRIDE|STORE_BINARY_ONLY|REMOTE_CACHE_BACKEND|REDIS_\w+|PRINT_AUTOTUNING"
    r"|CACHE_AUTOTUNING|FRONT_END_DEBUGGING|REPRODUCER_PATH|ENABLE_PYTHON_STACKTRACE|DUMP_PTXAS_LOG"
    r"|LIBCUDA_PATH|LIBHIP_PATH|PROTON_\w+|CUOBJDUMP_PATH|NVDISASM_PATH|DEFAULT_FP_FUSION)"
    r"|\w+_ENABLE_DUMP"
)


def fingerprint() -> str:
    """E.g. "triton-3.9.0-5f0c1a2b3c4d", with the settings that can change code behind it when there are any.

    The hex digits are of the installed files' own hashes: a rebuilt Triton of the same version differs.
    """
    settings = code_settings(os.environ)
    suffix = "".join(f" {name}={value}" for name, value in settings.items())
    return f"{_installation()}{suffix}"


def code_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables of an environment that may change what Triton generates, sorted by name."""
    return {
        name: value
        for name, value in sorted(environment.items())
        if (name.startswith(_FAMILIES) or name in _OTHERS) and not _NEUTRAL.fullmatch(name)
    }


@cache
def _installation() -> str:
    for name in _DISTRIBUTIONS:
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        return f"{name}-{distribution.version}-{_files_sha(distribution)[:12]}"
    return "triton-none"


def _files_sha(distribution: metadata.Distribution) -> str:
    """SHA-256 over the wheel's RECORD (path and hash of every file), or over the code of a source install."""
    record = distribution.read_text("RECORD") or ""
    lines = sorted(line for line in record.splitlines() if line.startswith("triton/") and ",sha256=" in line)
    if not lines:  # an editable build has no hashes: ask Triton for the one that its own cache uses
        from triton.runtime.cache import triton_key

        return hashlib.sha256(triton_key().encode()).hexdigest()
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
