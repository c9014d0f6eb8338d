"""Other people's tuned configurations, read for comparison and as seeds: never trusted, nothing of them run."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from m3gen.errors import UserError
from m3gen.ops.base import Op
from m3gen.space import Config
from m3gen.spec import Problem
from m3gen.tables import merge
from m3gen.targets import Device

MAX_BYTES = 64 << 20
MAX_ROWS = 100_000

Plain = str | int | float | bool | None

# What the projects call parameters that ops here have by another name.
_ALIASES = {
    "tile_n": ("BLOCK_SIZE_N", "BLOCK_N", "BLOCK_SIZE_K", "TILE_SIZE"),
    "splits": ("NUM_SPLITS", "NUM_KSPLIT", "SPLIT_K", "splitK", "NUM_KV_SPLITS"),
}
_CSV_CONFIG = re.compile(r"(?i)kernel|split|solution|solidx|block|num_|libtype|xbf16|bpreshuffle")
_CSV_RESULT = re.compile(r"(?i)us\d?|tflops|bw|err\w*|time\w*|_tag|tag")


@dataclass(frozen=True, slots=True)
class ForeignRow:
    """One configuration of somebody's kernel. `shape` is what it was tuned for, as they name it; `us` is theirs,
    None where they keep no time."""

    format: str
    kernel: str
    shape: Mapping[str, Plain]
    config: Mapping[str, Plain]
    us: float | None


def read(path: Path, kind: str | None = None) -> list[ForeignRow]:
    """The rows of a file. `kind` is one of `KINDS`, None to tell it by its content. `UserError` naming the place
    that is wrong."""
    if kind is not None and kind not in KINDS:
        raise UserError(f"unknown kind of table {kind!r}: there are {', '.join(KINDS)}")
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise ValueError(f"larger than {MAX_BYTES} bytes")
        text = data.decode("utf-8-sig")
        if kind == "aiter-csv" or (kind is None and path.suffix == ".csv"):
            content: Any = text
            kind = "aiter-csv"
        else:
            content = json.loads(text, parse_constant=_constant)
            kind = kind or _kind_of(content, path)
        rows = []
        for row in KINDS[kind](content, path):
            rows.append(row)
            if len(rows) > MAX_ROWS:
                raise ValueError(f"more than {MAX_ROWS} rows")
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        wanted = f"a table of kind {kind}" if kind else "a table of a known kind"
        raise UserError(f"{path} is not {wanted}: {error}; --kind names one of {', '.join(KINDS)}") from None
    if not rows:
        raise UserError(f"{path} has no rows of kind {kind}: --kind names one of {', '.join(KINDS)}")
    return rows


def seeds(rows: list[ForeignRow], op: Op, problem: Problem, device: Device) -> list[Config]:
    """Where these rows point to in the space of a problem: the op's default with what parameters they share, each
    once, those that no rule refuses."""
    default = op.default(problem, device)
    known = {parameter.name: parameter for parameter in op.space(problem, device).parameters}
    found: dict[Config, None] = {}
    for row in rows:
        taken: dict[str, Any] = {}
        for name, parameter in known.items():
            held = next((row.config[a] for a in (name, *_ALIASES.get(name, ())) if a in row.config), None)
            if any(type(held) is type(value) and held == value for value in parameter.values):
                taken[name] = held
        values = {**{name: p.default for name, p in known.items()}, **default, **taken}
        if not taken:
            continue
        config = op.space(problem, device).canonical(values)
        if merge.refusal(op, problem, config) is None and config != default:
            found[config] = None
    return list(found)


def _vllm(content: Any, path: Path) -> Iterator[ForeignRow]:
    """vLLM's fused MoE: configurations by number of tokens; the file's name holds the rest of the shape."""
    named = dict(part.split("=", 1) for part in path.stem.split(",") if "=" in part)
    for tokens, config in _object(content, "the whole").items():
        if tokens.isdecimal():
            shape = {"tokens": int(tokens), **{name: _number(text) for name, text in named.items()}}
            yield ForeignRow("vllm", "fused_moe", shape, _plain(config, tokens), None)


def _aiter_json(content: Any, path: Path) -> Iterator[ForeignRow]:
    """AITER's Triton kernels: configurations by a name for the range of rows; the file's name is arch and kernel."""
    arch, _, kernel = path.stem.partition("-")
    for label, config in _object(content, "the whole").items():
        yield ForeignRow("aiter-json", kernel, {"arch": arch, "rows": label}, _plain(config, label), None)


def _aiter_csv(content: str, path: Path) -> Iterator[ForeignRow]:
    """AITER's tuned GEMMs and MoE: one row a shape, with compute units, the kernel's number and its time."""
    reader = csv.DictReader(io.StringIO(content), strict=True)
    try:
        for row in reader:
            if None in row or None in row.values():
                raise ValueError(
                    f"line {reader.line_num} has not the {len(reader.fieldnames or ())} fields of the first"
                )
            values = {str(name).strip(): _number(text.strip()) for name, text in row.items()}
            config = {n: v for n, v in values.items() if _CSV_CONFIG.search(n)}
            shape = {n: v for n, v in values.items() if n not in config and not _CSV_RESULT.fullmatch(n)}
            us = values.get("us")
            kernel = str(config.get("kernelName") or path.stem)
            yield ForeignRow("aiter-csv", kernel, shape, config, _time(us, f"line {reader.line_num}.us"))
    except csv.Error as error:
        raise ValueError(f"line {reader.line_num}: {error}") from None


def _triton(content: Any, path: Path) -> Iterator[ForeignRow]:
    """What Triton's autotuner leaves in its cache: every configuration with its times in milliseconds."""
    whole = _object(content, "the whole")
    key = {str(number): one for number, one in enumerate(_array(whole.get("key"), "key")) if _is_plain(one)}
    for number, pair in enumerate(_array(whole.get("configs_timings"), "configs_timings")):
        place = f"configs_timings.{number}"
        if len(_array(pair, place)) != 2:
            raise ValueError(f"{place}: expected a configuration and its times")
        config, times = _object(pair[0], place), pair[1]
        kwargs = _plain(config.get("kwargs", {}), f"{place}.kwargs")
        rest = {name: value for name, value in config.items() if name != "kwargs" and _is_plain(value)}
        median = times[0] if isinstance(times, list) and times else times
        us = _time(median, f"{place}.1", 1000.0)
        yield ForeignRow("triton", path.name.removesuffix(".autotune.json"), key, {**kwargs, **rest}, us)


def _t4(content: Any, path: Path) -> Iterator[ForeignRow]:
    """Kernel Tuner's T4: every configuration that was tried; the failed ones are left out."""
    units = {"s": 1e6, "ms": 1e3, "us": 1.0, "ns": 1e-3, "": 1e3}
    for number, result in enumerate(_array(_object(content, "the whole").get("results"), "results")):
        place = f"results.{number}"
        entry = _object(result, place)
        if entry.get("invalidity") != "correct":
            continue
        config = _plain(entry.get("configuration"), f"{place}.configuration")
        us = None
        for measured in _array(entry.get("measurements", []), f"{place}.measurements"):
            one = _object(measured, f"{place}.measurements")
            scale = units.get(str(one.get("unit", "")))
            if one.get("name") == "time" and scale is not None:
                us = _time(one.get("value"), f"{place}.measurements.time", scale)
        yield ForeignRow("t4", path.stem, {}, config, us)


KINDS: Mapping[str, Callable[[Any, Path], Iterator[ForeignRow]]] = {
    "vllm": _vllm,
    "aiter-csv": _aiter_csv,
    "aiter-json": _aiter_json,
    "triton": _triton,
    "t4": _t4,
}


def _kind_of(content: Any, path: Path) -> str:
    whole = _object(content, "the whole")
    if "configs_timings" in whole:
        return "triton"
    if "results" in whole and "schema_version" in whole:
        return "t4"
    if any(name.isdecimal() for name in whole):
        return "vllm"
    if whole and all(isinstance(value, dict) for value in whole.values()):
        return "aiter-json"
    raise ValueError("its content is of no kind known here")


def _object(value: Any, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{place}: expected an object, not {type(value).__name__}")
    return value


def _array(value: Any, place: str) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{place}: expected an array, not {type(value).__name__}")
    return value


def _plain(value: Any, place: str) -> dict[str, Plain]:
    for name, held in _object(value, place).items():
        if not _is_plain(held):
            raise ValueError(f"{place}.{name}: expected a plain value, not {type(held).__name__}")
    return dict(value)


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float | bool)


def _number(text: str) -> Plain:
    for kind in (int, float):
        try:
            made = kind(text)
        except ValueError:
            continue
        return made if math.isfinite(made) else text
    return text


def _time(value: Any, place: str, scale: float = 1.0) -> float | None:
    """Microseconds; None for what says that there is none (a failed configuration has an infinite time)."""
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{place}: expected a time, not {value!r}"[:200])
    us = float(value) * scale
    return us if math.isfinite(us) and us > 0 else None


def _constant(name: str) -> float:
    return math.inf  # Triton writes Infinity for a configuration that did not run
