"""`qk_norm_rope_insert`: from one fused row to queries and cache, QK norm, RoPE and quantising in one launch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from m3gen.ops import cache_space, launch_space, norm_rope_inputs
from m3gen.ops.base import Cache, Case, Tolerance, Work
from m3gen.ops.powers import power_of_two_at_least
from m3gen.space import Choice, Config, PowerOfTwo, Space
from m3gen.spec import MINIMAX_M3, Problem, Shard, dtype
from m3gen.targets import Device, Vendor

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class QkNormRopeInsert:
    """qkv [rows, q | k | v | index q | index k], in dense layers [rows, q | k | v]; heads of head_dim elements.

    Each head of q, k, index q and index k becomes x * rsqrt(mean(x^2) + eps) * (1 + weight), one weight vector per
    kind; then its elements i and i + 32, i < 32, turn by the angle of the row's position (NeoX RoPE on the first
    64 elements): lo cos - hi sin and hi cos + lo sin. V is taken as it is. All of it in fp32, and rounded once,
    when stored: q and index q as rows, K, V and index K into the slots of their row.

    A stored K or V is its value over the scale that a reader multiplies by, saturated at the largest number of an
    8-bit cache. `scalar`: the scale is given. `per_token_head`: it is the head's largest magnitude over the
    largest number of the dtype, 1 where that is 0, and is stored in the scale plane. Index K is stored without a
    scale, saturated likewise. What is quantised is the fp32 value, not one rounded to the model's dtype first.

    A row whose slot is negative, or past the cache, is not inserted and its q and index q come out all the same.
    The two caches have a slot mapping each. A position outside the table makes the rotated elements NaN. NaN in
    makes its head NaN; it is left out of a head's scale. No other slot is touched, nor qkv. The sum of squares is
    fp32's: a head in which it overflows, of elements over about 1e18, comes out zero, an infinite element of it NaN.

    Problem: group_size and kv_heads as in attention (the cases have kv_heads index heads), rows are tokens;
    query_len, topk and context do not matter.
    """

    name: str = "qk_norm_rope_insert"
    title: str = "QK norm, RoPE and cache insert of fused QKV rows."
    template: str = "qk_norm_rope_insert.py.jinja"

    def problem(self, device: Device, shard: Shard, cache: Cache, query_len: int) -> Problem | None:
        return cache_space.cache_problem(self.name, device, shard, cache)

    def canonical(self, problem: Problem) -> Problem:
        return cache_space.without_context(problem)

    def space(self, problem: Problem, device: Device) -> Space:
        most_heads = min(16, power_of_two_at_least(problem.q_heads))
        return Space(
            [
                Choice(
                    "kinds",
                    ("apart", "together"),
                    default="apart",
                    doc="q, k, v, index q and index k in programs of their own, or one after the other",
                ),
                PowerOfTwo("rows", 1, 8, default=1, doc="rows of one program"),
                PowerOfTwo("heads", 1, most_heads, default=most_heads, doc="heads of one tile"),
                cache_space.num_warps(device, default=4),
            ],
            cache_space.lane_constraints(device, problem.head_dim, items=("rows", "heads")),
        )

    def default(self, problem: Problem, device: Device) -> Config:
        """vLLM's fused_minimax_m3_qknorm_rope_kv_insert: 256 threads, 32 of them to a head of one row."""
        heads = min(8, power_of_two_at_least(problem.q_heads))
        warps = 4 if device.architecture.vendor is Vendor.AMD else 8
        return self.space(problem, device).canonical(
            {"kinds": "apart", "rows": 1, "heads": heads, "num_warps": max(1, warps * heads // 8)}
        )

    def variant(self, problem: Problem) -> Mapping[str, Any]:
        return {**cache_space.dtypes(problem), "ROTARY": MINIMAX_M3.rotary_dim}

    def flags(self, problem: Problem, config: Config) -> Mapping[str, Any]:
        return {
            "KINDS": config["kinds"],
            "ROWS": config["rows"],
            "HEADS": config["heads"],
            "OPTIONS": launch_space.options(config),
        }

    def work(self, problem: Problem, config: Config) -> tuple[Work, ...]:
        """qkv has just been written by the projection, so none of it streams from memory."""
        q_bytes, kv_bytes = dtype(problem.q_dtype).bytes, dtype(problem.kv_dtype).bytes
        index_heads = problem.kv_heads
        normed_heads = problem.q_heads + index_heads
        row = (normed_heads + 2 * problem.kv_heads + 1) * problem.head_dim * q_bytes
        angles = MINIMAX_M3.rotary_dim * q_bytes
        inserted = 2 * problem.kv_heads * problem.head_dim * kv_bytes + problem.head_dim * q_bytes
        scales = 2 * problem.kv_heads * 4 if problem.kv_scale == "per_token_head" else 0
        tiles = -(-problem.q_heads // int(config["heads"]))
        return (
            Work(
                kernel="norm_rope_insert",
                read_bytes=problem.rows * (row + angles + 3 * 8),
                written_bytes=problem.rows * (normed_heads * problem.head_dim * q_bytes + inserted + scales),
                streamed_bytes=0,
                flops=0,
                loop_trips=tiles if config["kinds"] == "together" else 1,
            ),
        )

    def example(self, problem: Problem, config: Config) -> dict[str, Any]:
        return norm_rope_inputs.example(problem)

    def cases(self, problem: Problem, config: Config, seed: int) -> Iterator[Case]:
        return norm_rope_inputs.cases(problem, seed)

    def reference(self, case: Case) -> dict[str, torch.Tensor]:
        return norm_rope_inputs.reference(case)

    def tolerance(self, problem: Problem, grid: str) -> Tolerance:
        """The float64 result rounded once, give or take 2^-18 of the row's RMS for fp32 arithmetic: what lies near
        a tie may go either way, so an element is within one unit in the last place of the rounded reference. V and
        its scales are exact. The peers' bounds (vLLM test_fused_minimax_m3_qknorm_rope_kv_insert.py) of 1e-2
        absolute plus 1e-2 relative allow what this does not."""
        return Tolerance(past_rounding=2.0**-18, source="m3gen")


OP = QkNormRopeInsert()
