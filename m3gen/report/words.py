"""The plain words for what the rooms below say in names and numbers."""

from __future__ import annotations

from collections.abc import Mapping

from m3gen import ops
from m3gen.evaluate.evaluation import Stage
from m3gen.evaluate.timing import TIMINGS
from m3gen.space import Config
from m3gen.space.config import Value
from m3gen.spec import CONTEXT_BUCKETS, MINIMAX_M3, Problem, Status, dtype
from m3gen.targets import ARCHITECTURES, Device, Vendor, default_device

STATUSES: Mapping[Status, str] = {
    Status.OK: "ok",
    Status.CONSTRAINT: "refused by a rule",
    Status.COMPILE: "compiler error",
    Status.COMPILE_ABORT: "compiler crashed",
    Status.TIMEOUT: "ran past its deadline",
    Status.RESOURCES: "does not fit the device",
    Status.RUNTIME: "raised an error",
    Status.CORRECTNESS: "wrong result",
    Status.NONDETERMINISTIC: "two runs differ",
    Status.IMPLAUSIBLE: "impossible time",
}

_RANKS = (1, 2, 4, 8, 16)
_SHARD_FIELDS = ("group_size", "kv_heads", "head_dim")

_LIMITS = {
    "memory": "memory",
    "issue": "issue",
    "matrix": "matrix unit",
    "latency": "latency",
    "launch": "launch",
}


def limit(name: str, arch: str) -> str:
    """What bounds a time, for the name of the term of an evaluation."""
    if name == "shared":
        return "shared mem" if _is_nvidia(arch) else "LDS"
    return _LIMITS.get(name, name)


def occupancy_units(arch: str) -> tuple[str, str]:
    """What resides on a quarter of a compute unit and on a whole one, in the vendor's terms."""
    return ("warps/SMSP", "blocks/SM") if _is_nvidia(arch) else ("waves/SIMD", "groups/CU")


def judged(stage: Stage, judge: str, value_us: float, high_us: float | None) -> str:
    """On what authority a time stands: "predicted by predict-amd-1 (±35 %)" or "measured"."""
    if stage is Stage.MEASURED:
        return "measured"
    if high_us is None or value_us <= 0:
        return f"{stage} by {judge}"
    return f"{stage} by {judge} (±{100 * (high_us / value_us - 1):.0f} %)"


def predictor(device: Device) -> str:
    """The version of the model that predicts times on a device."""
    return TIMINGS[device.architecture.vendor].version


def tensor_parallel(problem: Problem) -> int | None:
    """The fewest ranks over which MiniMax-M3 is sharded when one of them has this problem; None for another
    model's. Heads that are replicated look alike on all ranks that share them."""
    if problem.op not in ops.names():
        return None
    op, device = ops.get(problem.op), default_device(problem.arch)
    cache = ops.Cache(problem.kv_dtype, problem.kv_scale)
    for ranks in _RANKS:
        made = op.problem(device, MINIMAX_M3.shard(ranks), cache, problem.query_len)
        if made and all(getattr(made, name) == getattr(problem, name) for name in _SHARD_FIELDS):
            return ranks
    return None


def shard(problem: Problem) -> str:
    """ "4" ranks, or "12q/2kv" heads for what is no shard of MiniMax-M3."""
    ranks = tensor_parallel(problem)
    return str(ranks) if ranks else f"{problem.q_heads}q/{problem.kv_heads}kv"


def kv(problem: Problem) -> str:
    """ "bf16", "e4m3fnuz", or "e4m3fnuz/token" with scales per token and head."""
    return problem.kv_dtype + ("/token" if problem.kv_scale == "per_token_head" else "")


def dtypes(problem: Problem) -> str:
    """`kv`, with the scales that an fp8 cache lacks, and with the model's dtype where it is not bf16 or the
    cache's: "bf16", "e4m3fn", "e4m3fn/token", "e4m3fn/unscaled", "fp32 on e4m3fn"."""
    unscaled = "/unscaled" if dtype(problem.kv_dtype).is_fp8 and problem.kv_scale == "none" else ""
    model = "" if problem.q_dtype in ("bf16", problem.kv_dtype) else f"{problem.q_dtype} on "
    return model + kv(problem) + unscaled


def context(problem: Problem) -> str:
    """ "1,024", or "2,048 and up" where the op does the same work for every longer context."""
    longest = problem.with_load(problem.rows, CONTEXT_BUCKETS[-1])
    folded = problem.op in ops.names() and ops.get(problem.op).canonical(longest) == problem
    return f"{problem.context:,}" + (" and up" if folded and longest != problem else "")


def problem_line(problem: Problem) -> str:
    """A problem in a line: "sparse_decode TP 4 bf16 rows 16"."""
    ranks = tensor_parallel(problem)
    width = f"TP {ranks}" if ranks else shard(problem)
    return f"{problem.op} {width} {kv(problem)} rows {problem.rows}"


def config_line(config: Config, field: Config | None = None) -> str:
    """A config in a line: all of it, or what differs from `field`; "loads=apart, masked_loads=false"."""
    if field is None:
        return _settings(config)
    missing = object()
    # By text: True and 1 are different values of a parameter.
    changed = {name: v for name, v in config.items() if repr(v) != repr(field.get(name, missing))}
    return _settings(changed) or "as the field"


def microseconds(value: float | None) -> str:
    """Three figures or so, without the unit; "-" for None."""
    if value is None:
        return "-"
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 1000 else f"{value:,.0f}"


def ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}x"


def duration(seconds: float) -> str:
    """ "0.9 s", "42 s", "3 min 05 s", "1 h 02 min"."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"


def count(number: int, noun: str, plural: str = "") -> str:
    """ "1 row", "1,024 rows"."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def counts(by_reason: Mapping[str, int]) -> str:
    """ "load_width 1,200, lds 34", the most frequent first; "none" for nothing."""
    order = sorted((item for item in by_reason.items() if item[1]), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{name} {count:,}" for name, count in order) or "none"


def failures(by_status: Mapping[Status, int]) -> str:
    """`counts` of statuses in words."""
    return counts({STATUSES[status]: count for status, count in by_status.items()})


def stopped(by_stage: Mapping[Stage, int]) -> str:
    """`counts` of the rungs on which candidates ended that could not win."""
    names = {Stage.PRIOR: "before compiling", Stage.ANALYTIC: "before running"}
    return counts({names[stage]: count for stage, count in by_stage.items()})


def _is_nvidia(arch: str) -> bool:
    known = ARCHITECTURES.get(arch)
    return known is not None and known.vendor is Vendor.NVIDIA


def _settings(values: Mapping[str, Value]) -> str:
    return ", ".join(
        f"{name}={str(value).lower() if isinstance(value, bool) else value}" for name, value in values.items()
    )
