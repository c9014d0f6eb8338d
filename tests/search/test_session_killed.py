"""`m3gen tune` killed in the middle of its work, and run again: nothing that was finished is done twice."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from m3gen.store import Store
from tests.processes import processes_with
from tests.store.samples import ROOT

BUDGET, ENOUGH = 5, 3
PATIENCE_S = 300.0  # a busy machine compiles slowly


class Run:
    """One command, whose store, cache and worker processes can be told from all others."""

    def __init__(self, folder: Path) -> None:
        self.database, self.cache = folder / "m3gen.db", folder / "cache"
        self.setting = f"M3GEN_CACHE={self.cache}"
        self.environment = {**os.environ, "M3GEN_HOME": str(folder), "M3GEN_CACHE": str(self.cache)}
        problem = ("--arch", "gfx942", "--kv", "bf16", "--rows", "1")
        search = ("--budget", str(BUDGET), "--sampler", "random", "--jobs", "2", "--no-export", "--json")
        self.command = [sys.executable, "-m", "m3gen.cli.main", "tune", *problem, *search]

    def start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command, env=self.environment, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    def rows(self, query: str) -> list[tuple[object, ...]]:
        """What the database answers; nothing while there is none."""
        with closing(sqlite3.connect(f"file:{self.database}?mode=ro", uri=True)) as connection:
            return connection.execute(query).fetchall()

    def evaluations(self) -> list[tuple[object, ...]]:
        try:
            return self.rows("SELECT id, session_id, config_sha, created_at FROM evaluations ORDER BY id")
        except sqlite3.OperationalError:
            return []

    def kernels(self) -> dict[str, int]:
        """Whatever was compiled to the end, stored or not; compiled again it would be another file."""
        return {path.name: path.stat().st_ino for path in self.cache.glob("facts/*/*.json")}


def wait_for(done: Callable[[], bool], patience_s: float) -> bool:
    until = time.monotonic() + patience_s
    while not done() and time.monotonic() < until:
        time.sleep(0.02)
    return done()


def test_killed_and_run_again(tmp_path: Path) -> None:
    run = Run(tmp_path)
    first = run.start()
    try:
        assert wait_for(lambda: len(run.evaluations()) >= ENOUGH, PATIENCE_S), first.poll()
        assert len(processes_with(run.setting)) == 3  # the command and its two workers
    finally:
        first.send_signal(signal.SIGKILL)
        first.communicate()
    assert wait_for(lambda: processes_with(run.setting) == set(), 10.0)
    finished, kernels = run.evaluations(), run.kernels()
    assert len(finished) >= ENOUGH

    second = run.start()
    output, errors = second.communicate(timeout=PATIENCE_S)
    assert second.returncode == 0, errors
    found = json.loads(output)
    everything = run.evaluations()
    assert everything[: len(finished)] == finished
    assert {session for _, session, _, _ in everything[len(finished) :]} == {2}
    assert len({config for _, _, config, _ in everything}) == len(everything) == found["evaluated"]
    assert found["evaluated"] - found["stopped"].get("prior", 0) == BUDGET  # what costs nothing counts for nothing
    assert kernels.items() <= run.kernels().items()
    assert len(run.kernels()) - len(kernels) <= found["compiled"]
    with Store.open(f"sqlite:///{run.database}") as store:
        assert store.check() == []
        assert [session.state for session in store.sessions()] == ["running", "budget"]
        assert len(store.winners()) == len(found["winners"]) == 1
    assert processes_with(run.setting) == set()
