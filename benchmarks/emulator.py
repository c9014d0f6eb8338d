"""How fast machine code is executed on this CPU.

    python benchmarks/emulator.py [ARCH]

Runs the default `sparse_decode` (bf16, TP 4: 16 heads, one KV head) for 4 requests of 1,024 tokens and prints CPU
seconds of one launch and wave-instructions a second, the best of five launches; compiling and decoding, which happen
once, apart.
"""

from __future__ import annotations

import sys
import time

from m3gen import ops
from m3gen.codegen import load_module, render
from m3gen.emulator import Emulator, emulating
from m3gen.ops import decode_inputs
from m3gen.ops.base import Cache
from m3gen.spec import MINIMAX_M3
from m3gen.targets import default_device

LENGTHS = [1024] * 4


def main(arch: str = "gfx942") -> int:
    device, op = default_device(arch), ops.get("sparse_decode")
    problem = op.problem(device, MINIMAX_M3.shard(4), Cache("bf16"), 1)
    assert problem is not None
    problem = problem.with_load(rows=len(LENGTHS), context=max(LENGTHS))
    config = op.default(problem, device)
    launcher = getattr(load_module(render(op, problem, config)), op.name)
    builder = decode_inputs.CaseBuilder(
        problem, op.flags(problem, config), decode_inputs.Layout(), seed=0, lists=True
    )
    arguments = builder.case("bench", LENGTHS).arguments

    started = time.process_time()
    with emulating(arch, profile=True) as counting:
        launcher(**arguments)
    instructions = sum(int(profile.counts.waves.sum()) for profile in counting.profiles)
    with emulating(arch) as emulator:
        launcher(**arguments)
        once = time.process_time() - started
        best = min(_seconds(emulator, launcher, arguments) for _ in range(5))
    print(f"{op.name} on {arch}, {config.to_dict()}")
    print(f"{instructions:,} wave-instructions in {best:.2f} CPU seconds: {instructions / best:,.0f} a second")
    print(f"compiling, decoding and counting once: {once:.1f} CPU seconds")
    return 0


def _seconds(emulator: Emulator, launcher: object, arguments: dict[str, object]) -> float:
    started = time.process_time()
    launcher(**arguments)  # type: ignore[operator]
    return time.process_time() - started


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
