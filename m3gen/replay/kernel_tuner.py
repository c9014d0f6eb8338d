"""Kernel Tuner's own strategies in its simulation mode, on the same recorded spaces and in the same accounting.

https://kerneltuner.github.io/kernel_tuner/stable/simulation.html
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import random
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from m3gen.errors import UserError
from m3gen.replay.recorded import Recorded
from m3gen.space import Value

PREFIX = "kernel_tuner:"
STRATEGIES = (
    "random_sample",
    "hybrid_vndx",
    "adaptive_tabu_greywolf",
    "bayes_opt",
    "pso",
    "genetic_algorithm",
    "diff_evo",
)
HOW_TO_GET_IT = "Kernel Tuner is not installed: pip install 'm3gen[bench]' puts its strategies beside these"
# Of the failures that files record; each is one of the errors that Kernel Tuner knows by name.
_ERRORS = {"compile": "CompilationFailedConfig", "CompilationFailedConfig": "CompilationFailedConfig"}
_OTHER_ERROR = "RuntimeFailedConfig"


def available() -> bool:
    """Whether Kernel Tuner is installed; imports nothing of it."""
    return importlib.util.find_spec("kernel_tuner") is not None


def version() -> str:
    """The installed one's."""
    from importlib.metadata import version as installed

    return installed("kernel-tuner")


def simulate(space: Recorded, strategy: str, budget: int, seed: int) -> list[float | None]:
    """The times of the first `budget` different configs that a strategy evaluates, in order, None for failures.

    With its default options. What a strategy asks for again costs it nothing, and what it asks for outside the
    space neither. `UserError` when this Kernel Tuner does not know the strategy.
    """
    import numpy as np
    from kernel_tuner import tune_kernel

    random.seed(seed)
    np.random.seed(seed % (1 << 32))  # its strategies draw from both of the global generators
    with _cache_file(space) as cache, contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            results, _ = tune_kernel(
                space.kernel,
                "",
                (1,),
                [],
                _parameters(space),
                restrictions=[_valid(space)],
                strategy=strategy,
                strategy_options={"max_fevals": budget},
                cache=str(cache),
                simulation_mode=True,
                quiet=True,
            )
        except ValueError as error:
            if "strategy" not in str(error):
                raise
            raise UserError(f"Kernel Tuner {version()} has no strategy {strategy!r}: {error}") from None
    return _trace(space, results)[:budget]


def _parameters(space: Recorded) -> dict[str, list[Value]]:
    return {parameter.name: list(parameter.values) for parameter in space.space.parameters}


@lru_cache(maxsize=4)
def _by_values(space: Recorded) -> dict[tuple[Value, ...], float | None]:
    names = list(_parameters(space))
    return {tuple(config[name] for name in names): value for config, value in space.by_config().items()}


def _valid(space: Recorded) -> Any:
    """Kernel Tuner's restriction: the config was recorded. Those that failed are in the space, as they are here."""
    known = _by_values(space)
    names = list(_parameters(space))

    def recorded(config: Mapping[str, Value]) -> bool:
        return tuple(config[name] for name in names) in known

    return recorded


def _trace(space: Recorded, results: list[dict[str, Any]]) -> list[float | None]:
    names = list(_parameters(space))
    known = _by_values(space)
    seen = dict.fromkeys(tuple(result[name] for name in names) for result in results)
    return [known[values] for values in seen if values in known]


@contextlib.contextmanager
def _cache_file(space: Recorded) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="m3gen-bench-") as folder:
        path = Path(folder) / "cache.json"
        path.write_text(_cache_text(space), encoding="utf-8")
        yield path


@lru_cache(maxsize=4)
def _cache_text(space: Recorded) -> str:
    """The space in the format of Kernel Tuner's cache files."""
    names = list(_parameters(space))
    entries = {}
    for id, (values, milliseconds) in enumerate(_by_values(space).items()):
        reason = space.failures.get(id, "")
        outcome = _ERRORS.get(reason, _OTHER_ERROR) if milliseconds is None else milliseconds
        costs = dict.fromkeys(("compile_time", "verification_time", "benchmark_time"), 0.0)
        entry: dict[str, Any] = {**dict(zip(names, values, strict=True)), "time": outcome, **costs}
        if milliseconds is not None:
            entry["times"] = [milliseconds]
        entries[",".join(map(str, values))] = entry
    head = {
        "device_name": space.device,
        "kernel_name": space.kernel,
        "problem_size": [1],
        "tune_params_keys": names,
        "tune_params": _parameters(space),
        "objective": "time",
    }
    return json.dumps({**head, "cache": entries})
