"""What the judge says of somebody's kernels: tables for a terminal, and the same for machines."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from m3gen.evaluate.evaluation import Evaluation
from m3gen.evaluate.predict import TERMS
from m3gen.peers.judgement import Judgement
from m3gen.peers.tensor import Tensor
from m3gen.report import layout, words


def report(found: Judgement) -> RenderableType:
    waves, groups = words.occupancy_units(found.device.arch)
    facts = [
        (
            launch.kernel,
            "x".join(map(str, launch.grid)),
            str(one.num_warps),
            str(one.registers),
            str(one.vector_spills),
            str(one.shared_bytes),
            f"{one.waves_per_simd:g}",
            str(one.workgroups_per_cu),
            one.occupancy_limit,
        )
        for launch, one in zip(found.loaded.launches, found.facts, strict=True)
    ]
    columns = ("kernel", ">grid", ">warps", ">registers", ">spills", ">shared", f">{waves}", f">{groups}", "limit")
    times = [
        (launch.kernel, *_times(part)) for launch, part in zip(found.loaded.launches, found.parts, strict=True)
    ]
    if len(times) > 1:
        times.append(("all", *_times(found.evaluation)))
    return Group(
        Text(f"{found.peer.name} on {found.device.name} ({found.device.arch}): {found.peer.what}"),
        Text(f"{load(found)}; {found.peer.source}"),
        Text(""),
        layout.table(columns, facts),
        Text(""),
        Text("microseconds, predicted"),
        layout.table(("launch", ">time", *(f">{name}" for name in (*TERMS, "start"))), times),
        Text(""),
        Text(verdict(found)),
        *(Text(f"not run, predicted from its instructions: {k}: {why}") for k, why in found.not_run.items()),
    )


def load(found: Judgement) -> str:
    """ "rows 64, context 2048": every dimension."""
    values = {**found.peer.dimensions, **found.load}
    return ", ".join(f"{name} {value}" for name, value in values.items() if not isinstance(value, Tensor))


def verdict(found: Judgement) -> str:
    """ "predicted: 21.3 us (13.8 to 28.8) by predict-amd-2, limited by memory; floor ..."."""
    one = found.evaluation
    if not one.ok or one.value_us is None or one.low_us is None or one.high_us is None:
        return f"predicted: {words.STATUSES[one.status]}: {one.reason}"
    value, low, high = map(words.microseconds, (one.value_us, one.low_us, one.high_us))
    floor = "none, nothing streams"
    if found.floor_us:
        floor = f"{words.microseconds(found.floor_us)} us, its bytes at peak rate"
    limit = words.limit(one.limit, found.device.arch)
    return f"predicted: {value} us ({low} to {high}) by {one.judge}, limited by {limit}; physical floor: {floor}"


def report_object(found: Judgement) -> dict[str, Any]:
    """All of it as plain data; times in microseconds."""
    one = found.evaluation
    return {
        "peer": found.peer.name,
        "what": found.peer.what,
        "source": found.peer.source,
        "device": found.device.name,
        "arch": found.device.arch,
        "load": {**found.peer.dimensions, **found.load},
        "stage": str(one.stage),
        "status": str(one.status),
        "reason": one.reason,
        "judge": one.judge,
        "value_us": one.value_us,
        "low_us": one.low_us,
        "high_us": one.high_us,
        "floor_us": found.floor_us,
        "limit": one.limit,
        "terms": dict(one.terms),
        "not_run": dict(found.not_run),
        "launches": [
            {
                "kernel": launch.kernel,
                "grid": list(launch.grid),
                "key": key,
                "value_us": part.value_us,
                "terms": dict(part.terms),
                "facts": {name: value for name, value in fact.to_dict().items() if name not in ("extra", "loops")},
            }
            for launch, key, part, fact in zip(
                found.loaded.launches, found.keys, found.parts, found.facts, strict=True
            )
        ],
    }


def _times(one: Evaluation) -> tuple[str, ...]:
    value = "-" if one.value_us is None else words.microseconds(one.value_us)
    return (value, *(words.microseconds(one.terms.get(name, 0.0)) for name in (*TERMS, "start")))
