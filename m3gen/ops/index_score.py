"""`index_score`: how well each index query matches each block of its sequence, the indexer's first half."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from m3gen.errors import UserError
from m3gen.ops import index_inputs, launch_space
from m3gen.ops.base import Cache, Case, Tolerance, Work
from m3gen.ops.powers import power_of_two_at_least, power_of_two_at_most
from m3gen.space import Choice, Config, Constraint, Flag, Parameter, PowerOfTwo, Space
from m3gen.spec import MINIMAX_M3, Problem, Shard, dtype
from m3gen.targets import Device, Vendor

if TYPE_CHECKING:
    import torch

Values = Mapping[str, Any]

# A vector product of more elements a lane than this spills on every architecture.
_VECTOR_ELEMENTS_PER_LANE = 128
# The vector unit takes one pair after the other; the matrix unit 16 at once.
_MOST_VECTOR_PAIRS = 8


@dataclass(frozen=True, slots=True)
class IndexScore:
    """q [rows, heads, head_dim] against K [pages, page_size, head_dim], one head for all, through block_table
    [requests, max_blocks]; scores fp32 [heads, rows, width].

    Row r belongs to request r // query_len and sees kv_len = max(seq_len - query_len + r % query_len + 1, 0)
    tokens, so num_blocks = ceil(kv_len / page_size) blocks. The score of a visible block is the largest unscaled
    dot product of q with its visible tokens; NaN when one of these products is. Then, of the visible blocks, the
    first `init_blocks` score 1e30, and the last `local_blocks` 1e29, which wins where both hold. Every other
    column up to width is -inf. What lies in a page past kv_len never reaches a score, NaN included.

    Queries and keys of one dtype are multiplied as they are; of two dtypes both are first rounded to bf16. Two
    dialects of fp8 do not mix. Of a `Problem`, `group_size` is the index heads of a rank, `kv_heads` 1 and
    `kv_dtype` the dtype of the index keys, which have no scale; `topk` plays no part.
    """

    name: str = "index_score"
    title: str = "Block scores of the lightning indexer over paged index keys."
    template: str = "index_score.py.jinja"

    def problem(self, device: Device, shard: Shard, cache: Cache, query_len: int) -> Problem | None:
        """Index queries are stored like the index keys: in fp8 beside an fp8 cache, else in bf16."""
        return Problem(
            op=self.name,
            arch=device.arch,
            compute_units=device.compute_units,
            q_dtype=cache.dtype,
            kv_dtype=cache.dtype,
            group_size=shard.index_heads,
            head_dim=MINIMAX_M3.index_dim,
            page_size=MINIMAX_M3.page_size,
            topk=MINIMAX_M3.topk,
            query_len=query_len,
        )

    def space(self, problem: Problem, device: Device) -> Space:
        operand = _operand(problem)

        def is_matrix(c: Values) -> bool:
            return bool(c["scorer"] == "matrix")

        structure: list[Parameter] = [
            Choice("scorer", ("matrix", "vector"), default="matrix", doc="what multiplies queries and keys"),
            Choice(
                "heads_in", ("m", "n"), default="m", active=is_matrix, doc="which side of the matrix unit q takes"
            ),
            PowerOfTwo("tile_n", 16, problem.page_size, default=problem.page_size, doc="tokens per iteration"),
            Choice(
                "share", ("splits", "blocks"), default="splits", doc="what is fixed: programs, or blocks of one"
            ),
            PowerOfTwo(
                "splits", 1, 256, default=64, active=lambda c: c["share"] == "splits", doc="programs a tile"
            ),
            PowerOfTwo(
                "blocks", 1, 64, default=8, active=lambda c: c["share"] == "blocks", doc="blocks a program"
            ),
            Flag("keys_ahead", default=False, doc="load the keys of a tile while the ones before are multiplied"),
            Flag("masked_loads", default=False, doc="mask dead tokens in the load, or load whole tiles"),
        ]
        if problem.group_size > 1:
            structure.append(Choice("heads", ("together", "apart"), default="together", doc="in one tile or not"))
        if problem.query_len > 1:
            most = min(16, power_of_two_at_least(problem.query_len))
            structure.append(PowerOfTwo("rows_packed", 1, most, default=most, doc="query rows in one tile"))

        def pairs(c: Values) -> int:
            """(Query row, head) pairs in one tile, rounded up as the kernel does."""
            heads = 1 if problem.group_size == 1 or c["heads"] == "apart" else problem.group_size
            return power_of_two_at_least(heads * (c["rows_packed"] if problem.query_len > 1 else 1))

        shape = tuple(p.name for p in structure if p.name in ("heads", "rows_packed"))
        launch = [
            replace(p, active=is_matrix) if p.name in ("matrix_instr_nonkdim", "kpack") else p
            for p in launch_space.parameters(device)
        ]
        wave = device.architecture.wave_size
        constraints = [
            Constraint(
                "load_width",
                ("tile_n", "num_warps"),
                lambda c: (
                    c["tile_n"] * problem.head_dim * dtype(problem.kv_dtype).bytes >= 16 * wave * c["num_warps"]
                ),
                "a lane would load less than 16 bytes of a tile",
            ),
            Constraint(
                "vector_pairs",
                ("scorer", *shape),
                lambda c: is_matrix(c) or pairs(c) <= _MOST_VECTOR_PAIRS,
                f"more than {_MOST_VECTOR_PAIRS} queries are the matrix unit's work",
            ),
            Constraint(
                "vector_registers",
                ("scorer", "tile_n", "num_warps"),
                lambda c: (
                    is_matrix(c)
                    or c["tile_n"] * problem.head_dim <= _VECTOR_ELEMENTS_PER_LANE * wave * c["num_warps"]
                ),
                f"a lane would hold more than {_VECTOR_ELEMENTS_PER_LANE} products",
            ),
            *launch_space.constraints(
                device,
                tile_m=lambda c: max(16, pairs(c)),
                tile_m_needs=shape,
                # The rule is of a K and a V tile; here is K alone.
                bytes_per_token=problem.head_dim * operand.bytes // 2,
            ),
        ]
        return Space([*structure, *launch], constraints)

    def default(self, problem: Problem, device: Device) -> Config:
        """Whole pages, all heads and query rows of a request in one tile; programs as in vLLM's launchers.

        NVIDIA (vllm/models/minimax_m3/common/ops/index_topk.py): the matrix unit, TARGET_GRID 4096 programs over
        at most 256 splits. AMD (vllm/models/minimax_m3/amd/ops/index_topk.py): a target of 512 programs and the
        vector unit for a single pair. Of that the best predicted: few requests, whose time is the first keys', and
        many pages a program load keys ahead; in between two waves, of which more programs fit a compute unit, do
        not. Several pairs run 4 warps and two stages. vLLM has no fp32 keys, whose whole pages fit no LDS, and no
        fp8 ones on sm_100, where Triton's third stage spills: these take 32 tokens at a time, and two stages.
        """
        requests = max(1, problem.rows // problem.query_len)
        launch = launch_space.field_default(device)
        amd = device.architecture.vendor is Vendor.AMD
        splits = power_of_two_at_most(max(1, min(256, (512 if amd else 4096) // requests)))
        scorer, ahead = "matrix", False
        if amd and problem.group_size * problem.query_len == 1:
            scorer = "vector"
            ahead = requests <= 8 or problem.context >= 16 * splits * problem.page_size
            launch |= {"num_warps": 4 if ahead else 2, "num_stages": 1}
        if problem.group_size > 1 and problem.query_len > 1:
            launch |= {"num_warps": 4, "num_stages": 2}
        if (dtype(problem.kv_dtype).is_fp8 or problem.kv_dtype == "fp32") and scorer == "matrix":
            launch["num_stages"] = 2
        return self._whole_pages(problem, device, scorer, splits, launch, keys_ahead=ahead)

    def field(self, problem: Problem, device: Device) -> Config:
        """vLLM's scorers: whole pages, all heads and query rows of a request in one tile.

        NVIDIA (vllm/models/minimax_m3/common/ops/index_topk.py): the matrix unit, TARGET_GRID 4096 programs over
        at most 256 splits. AMD (vllm/models/minimax_m3/amd/ops/index_topk.py): a target of 512 programs and the
        vector unit for a single pair; with bf16 keys on gfx950 1024 of 2 warps and one stage up to 8 and from 20
        to 64 requests, 768 up to 11. Several heads with several query rows run 4 warps and two stages. vLLM has no
        fp32 keys, whose whole pages fit no LDS, and no fp8 ones on sm_100, where Triton's third stage spills:
        these take 32 tokens at a time, and two stages.
        """
        requests = max(1, problem.rows // problem.query_len)
        launch = launch_space.field_default(device)
        target, scorer = 4096, "matrix"
        if device.architecture.vendor is Vendor.AMD:
            target = 512
            scorer = "vector" if problem.group_size * problem.query_len == 1 else "matrix"
            few, many = requests <= 11, 20 <= requests <= 64
            if device.arch == "gfx950" and problem.kv_dtype == "bf16" and (few or many):
                target = 768 if 8 < requests <= 11 else 1024
                launch |= {"num_warps": 2, "num_stages": 1}
        if problem.group_size > 1 and problem.query_len > 1:
            launch |= {"num_warps": 4, "num_stages": 2}
        if dtype(problem.kv_dtype).is_fp8 or problem.kv_dtype == "fp32":
            launch["num_stages"] = 2
        splits = power_of_two_at_most(max(1, min(256, target // requests)))
        return self._whole_pages(problem, device, scorer, splits, launch)

    def _whole_pages(
        self,
        problem: Problem,
        device: Device,
        scorer: str,
        splits: int,
        launch: Values,
        *,
        keys_ahead: bool = False,
    ) -> Config:
        """Whole pages where LDS holds them, all heads and query rows of a request in one tile."""
        values: dict[str, Any] = {
            "scorer": scorer,
            "heads_in": "m",
            "tile_n": 32 if problem.kv_dtype == "fp32" else problem.page_size,
            "share": "splits",
            "splits": splits,
            "keys_ahead": keys_ahead,
            "masked_loads": False,
            "heads": "together",
            "rows_packed": min(16, power_of_two_at_least(problem.query_len)),
            **launch,
        }
        return self.space(problem, device).canonical_of_known(values)

    def canonical(self, problem: Problem) -> Problem:
        """Every load is its own: the work grows with the context."""
        return problem

    def variant(self, problem: Problem) -> Mapping[str, str | int | bool]:
        operand = _operand(problem)
        return {
            "Q_DTYPE": problem.q_dtype,
            "Q_TORCH": dtype(problem.q_dtype).torch_name,
            "KV_DTYPE": problem.kv_dtype,
            "KV_TORCH": dtype(problem.kv_dtype).torch_name,
            "CONVERT": problem.q_dtype != problem.kv_dtype,
            "OPERAND": operand.name,
            "OPERAND_FP8": operand.is_fp8,
            "HEAD_DIM": problem.head_dim,
            "PAGE": problem.page_size,
            "INIT_SCORE": f"{index_inputs.INIT_SCORE:.0e}".replace("+", ""),
            "LOCAL_SCORE": f"{index_inputs.LOCAL_SCORE:.0e}".replace("+", ""),
        }

    def flags(self, problem: Problem, config: Config) -> Mapping[str, Any]:
        return {
            "SCORER": config["scorer"],
            "HEADS_IN": config.get("heads_in", "m"),
            "TILE_N": config["tile_n"],
            "SHARE": config["share"],
            "SPLITS": config.get("splits", 0),
            "BLOCKS": config.get("blocks", 0),
            "KEYS_AHEAD": config["keys_ahead"],
            "MASKED_LOADS": config["masked_loads"],
            "HEADS_TOGETHER": config.get("heads", "together") == "together",
            "PACK": config.get("rows_packed", 1),
            "OPTIONS": launch_space.options(config),
        }

    def work(self, problem: Problem, config: Config) -> tuple[Work, ...]:
        requests = max(1, problem.rows // problem.query_len)
        pairs = problem.rows * problem.group_size
        blocks = -(-problem.context // problem.page_size)
        keys = requests * problem.context * problem.head_dim * dtype(problem.kv_dtype).bytes
        queries = pairs * problem.head_dim * dtype(problem.q_dtype).bytes
        tiles = problem.page_size // int(config["tile_n"])
        splits = int(config["splits"]) if config["share"] == "splits" else -(-blocks // int(config["blocks"]))
        each = int(config["blocks"]) if config["share"] == "blocks" else -(-blocks // splits)
        return (
            Work(
                kernel="score_blocks",
                read_bytes=keys + queries + 4 * requests * blocks,
                written_bytes=4 * pairs * blocks,
                streamed_bytes=keys,
                flops=2.0 * pairs * problem.context * problem.head_dim,
                loop_trips=min(each, blocks) * tiles,
                loads_ahead=int(config["num_stages"]) - 1,
                lookups=1.0 / tiles,
                idle=1 - -(-blocks // each) / splits,
            ),
        )

    def example(self, problem: Problem, config: Config) -> dict[str, Any]:
        return index_inputs.example(problem)

    def cases(self, problem: Problem, config: Config, seed: int) -> Iterator[Case]:
        return index_inputs.cases(problem, seed)

    def reference(self, case: Case) -> dict[str, torch.Tensor]:
        return {"scores": index_inputs.reference(case.problem, case.arguments)}

    def tolerance(self, problem: Problem, grid: str) -> Tolerance:
        """Products of the operands are exact in fp32 (but for fp32 operands), sums of 128 are not: 5e-5 over
        scores of up to some fifty. A forced score has no error, so no bound is relative to a row.

        The peers' grid has MiniMax's bound (MSA, tests/inference/msa_v1/indexer/decode: 1e-4 absolute).
        """
        if grid == "peers":
            return Tolerance(max_abs=1e-4, source="MiniMax-AI/MSA indexer decode tests")
        return Tolerance(max_abs=5e-5, source="m3gen")


def _operand(problem: Problem) -> Any:
    """The dtype in which queries and keys meet."""
    q, kv = dtype(problem.q_dtype), dtype(problem.kv_dtype)
    if q.is_fp8 and kv.is_fp8 and q is not kv:
        raise UserError(
            f"index_score takes queries and keys of one fp8 dialect, got {q.name} and {kv.name}: cast one of them"
        )
    return q if q is kv else dtype("bf16")


OP = IndexScore()
