"""Features of a ranking: analytic times, facts of the machine code, and what the configuration itself says."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import numpy as np

from .case import Case
from .kernels import Column, Kernels
from .ranker import Array
from .terms import TERMS, layer_terms

_FLOOR_US = 1e-3

# What the machine code says, per unit of work where it grows with the tile. Nothing of the layer takes part.
FACTS: Mapping[str, Callable[[Kernels], Column]] = {
    "registers": lambda k: np.log(k.registers),
    "accumulation registers": lambda k: (k.accumulation > 0) * 1.0,
    "spills": lambda k: np.log1p(k.spills),
    "waves per SIMD": lambda k: np.log(k.waves),
    "workgroups per CU": lambda k: np.log(k.workgroups),
    "LDS bytes": lambda k: np.log(k.lds),
    "instructions": lambda k: np.log(k.instructions * k.warps / _work(k)),
    "vector instructions": lambda k: np.log((1 + k.valu) * k.warps / _work(k)),
    "scalar instructions": lambda k: np.log((1 + k.scalar) / k.block_k),
    "matrix cycles": lambda k: np.log(k.matrix_cycles * k.warps / _work(k)),
    "waits": lambda k: np.log((1 + k.waits) / k.block_k),
    "barriers": lambda k: (k.barriers > 0) * 1.0,
    "outside the loop": lambda k: np.log(k.outside),
    "unrolling": lambda k: np.log(k.unroll),
}

# What needs no compiler.
OPTIONS: Mapping[str, Callable[[Kernels], Column]] = {
    "warps": lambda k: np.log2(k.warps),
    "warps squared": lambda k: np.log2(k.warps) ** 2,
    "warps by tile": lambda k: np.log2(k.warps) * np.log2(k.block_m * k.block_n),
    "nonkdim 32": lambda k: (k.nonkdim == 32) * 1.0,
    "kpack 2": lambda k: (k.kpack == 2) * 1.0,
    **{f"BLOCK_{s.upper()}": lambda k, s=s: np.log2(getattr(k, f"block_{s}")) for s in "mnk"},
    **{f"BLOCK_{s.upper()} squared": lambda k, s=s: np.log2(getattr(k, f"block_{s}")) ** 2 for s in "mnk"},
}

_CLOCKS = ("total", "schedule", *(name for name in TERMS if name != "memory"))  # equal for all of a pool
TIMES = (*(f"{name} time" for name in _CLOCKS), "tail", "idle units", "padded rows")
GROUPS: Mapping[str, tuple[str, ...]] = {"times": TIMES, "facts": tuple(FACTS), "options": tuple(OPTIONS)}
ALL = tuple(name for names in GROUPS.values() for name in names)


def features(case: Case, names: Collection[str], off: Collection[str] = ()) -> Array:
    """[configurations, features], in the order of `names`; `off` switches analytic terms off."""
    columns = {name: make(case.kernels) for name, make in (*FACTS.items(), *OPTIONS.items()) if name in names}
    if any(name in TIMES for name in names):
        columns |= _times(case, off)
    return np.stack([columns[name] for name in names], axis=1)


def _times(case: Case, off: Collection[str]) -> dict[str, Column]:
    terms = layer_terms(case.entry, case.kernels, off)
    logs = {name: np.log(np.maximum(terms[name], _FLOOR_US)) for name in _CLOCKS}
    return {
        **{f"{name} time": column for name, column in logs.items()},
        "tail": terms["tail"] / np.maximum(terms["schedule"], _FLOOR_US),
        "idle units": np.log(np.minimum(1, terms["programs"] / terms["units"])),
        "padded rows": np.log(terms["padded_rows"]),
    }


def _work(kernels: Kernels) -> Column:
    return kernels.block_m * kernels.block_n * kernels.block_k
