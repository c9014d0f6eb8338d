"""Rows a second into a fresh store by one writer: `python benchmarks/store.py [--rows N] [--batch N] [--url URL]`.

Evaluations of sixteen problems, each with two launches, the rows as wide as those of a real session. `--batch 1` is one
transaction a row; a session commits what became known at the same moment in one.

On two cores that ten other processes shared, SQLite in the write-ahead log:

    16000 evaluations, 256 a transaction: 1,523 rows/s, 9,268 a second of CPU
"""

from __future__ import annotations

import argparse
import tempfile
import time

from m3gen.evaluate.evaluation import Evaluation, Stage
from m3gen.space import Config
from m3gen.spec import Problem, Status
from m3gen.store import Store
from m3gen.testing.fake_facts import fake_facts

PROBLEMS = [
    Problem(op="sparse_decode", arch="gfx942", compute_units=304, rows=rows, context=context)
    for rows in (1, 16, 64, 256)
    for context in (2048, 8192, 32768, 131072)
]
FACTS = 100  # machine codes that the evaluations share


def write(store: Store, rows: int, batch: int) -> tuple[float, float]:
    """Seconds of wall clock and of this process's CPU."""
    session = store.begin({"benchmark": "store"}, PROBLEMS)
    for number in range(FACTS):
        store.commit_facts(f"key-{number}", fake_facts(64 + number))
    found = [evaluation(number) for number in range(rows)]
    started, used = time.perf_counter(), time.process_time()
    for first in range(0, rows, batch):
        store.commit_evaluations(session, found[first : first + batch])
    seconds = time.perf_counter() - started, time.process_time() - used
    store.end(session, "budget")
    return seconds


def evaluation(number: int) -> tuple[Problem, Config, Evaluation]:
    config = Config(
        {"tile_n": 16 << number % 4, "splits": number // len(PROBLEMS), "cache": ".cg", "merged": True}
    )
    value = 5.0 + number % 977
    return (
        PROBLEMS[number % len(PROBLEMS)],
        config,
        Evaluation(
            stage=Stage.PREDICTED,
            status=Status.OK,
            judge="predict-amd-2",
            value_us=value,
            low_us=0.7 * value,
            high_us=1.3 * value,
            terms={"memory": 0.7 * value, "issue": 0.2 * value, "matrix": 0.1 * value, "launch": 1.5},
            limit="memory",
            seconds=0.25,
            facts=(f"key-{number % FACTS}", f"key-{(number + 1) % FACTS}"),
            environment={"compiler": "triton-3.9.0-0123456789ab", "source_sha": f"{number:064x}"},
        ),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=16000)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--url", help="an empty database; a SQLite file in a temporary folder by default")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        Store.open(options.url or f"sqlite:///{folder}/store.db") as store,
    ):
        wall, cpu = write(store, options.rows, options.batch)
        assert store.check() == []
    what = f"{options.rows} evaluations, {options.batch} a transaction"
    print(f"{what}: {options.rows / wall:,.0f} rows/s, {options.rows / cpu:,.0f} a second of CPU")


if __name__ == "__main__":
    main()
