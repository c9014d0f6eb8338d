"""Where vLLM's tuned sparse prefill ranks among its alternatives, by m3gen's prediction.

    python -m benchmarks.prefill_choices --vllm PATH [--device MI300X ...] [--rows 4096] [--context 32768] [--jobs 2]

PATH is a folder that holds vLLM's Python files: see benchmarks/against_field.py. The alternatives are the tokens of a
sub-tile (16, 32, 64, 128), warps (1, 2, 4) and stages (1, 2): 24, of which vLLM ships one on each architecture.
m3gen has no prefill op, so the kernel comes through the door for peers. Nothing is measured.
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path

from m3gen.cli import work
from m3gen.evaluate.ranking import TIE
from m3gen.peers import read
from m3gen.peers.judgement import judge
from m3gen.peers.worker import PeerRequest
from m3gen.targets import device

PEER = Path(__file__).parent / "peers/sparse_prefill_amd.toml"
SUB_TILES, WARPS, STAGES = (16, 32, 64, 128), (1, 2, 4), (1, 2)
SHIPPED = {"gfx942": (32, 1, 1), "gfx950": (64, 1, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--vllm", type=Path, metavar="PATH", required=True, help="a folder that holds vLLM's files"
    )
    parser.add_argument("--device", action="append", metavar="DEVICE", help="default: MI300X and MI355X")
    parser.add_argument("--rows", type=int, default=4096, help="query rows of the one request")
    parser.add_argument("--context", type=int, default=32768, help="its tokens, the query rows among them")
    parser.add_argument("--kv", default="bf16")
    parser.add_argument("--jobs", type=int, default=2, metavar="N")
    given = parser.parse_args()
    peer, choices = read(PEER), list(itertools.product(SUB_TILES, WARPS, STAGES))
    for where in (device(name) for name in given.device or ("MI300X", "MI355X")):
        loads = [
            {"rows": given.rows, "context": given.context, "kv": given.kv, "sub_k": tile, "warps": w, "stages": s}
            for tile, w, s in choices
        ]
        requests = [PeerRequest(peer, given.vllm.resolve(), where.arch, (load,)) for load in loads]
        found = {}
        for choice, load, result in zip(choices, loads, work.judged(requests, given.jobs), strict=True):
            if result.facts:
                found[choice] = judge(peer, where, load, result)
            else:
                print(f"{where.name}: {choice}: {result.status}: {result.reason}")
        times = {choice: one.evaluation.value_us or 0.0 for choice, one in found.items()}
        shipped = times[SHIPPED[where.arch]]
        place = 1 + sum(us < shipped for us in times.values())
        tied = 1 + sum(us < shipped * (1 - TIE) for us in times.values())
        judged_by = found[SHIPPED[where.arch]].evaluation.judge
        print(f"{where.name}, {judged_by}: what is shipped is {place} of {len(times)}, with ties of 2 % {tied}")
        print("sub-tile warps stages  predicted us  registers  issue  matrix  shared  latency")
        for (tile, warps, stages), us in sorted(times.items(), key=lambda one: one[1]):
            one = found[tile, warps, stages]
            terms = "".join(
                f"{one.evaluation.terms[name]:8.1f}" for name in ("issue", "matrix", "shared", "latency")
            )
            star = "  shipped" if (tile, warps, stages) == SHIPPED[where.arch] else ""
            print(f"{tile:8} {warps:5} {stages:6}  {us:12.1f}  {one.facts[0].registers:9} {terms}{star}")


if __name__ == "__main__":
    main()
