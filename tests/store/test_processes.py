"""Several processes on one file, and processes that die."""

from __future__ import annotations

import itertools
import sqlite3
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

from m3gen.store import Store
from tests.store import samples
from tests.store.samples import problem

WRITE = """
import sys
from m3gen.store import Store
from tests.store.samples import config, facts, predicted, problem

sys.stdin.readline()  # all together
with Store.open(sys.argv[1]) as store:
    session = store.begin({"process": sys.argv[2]}, [problem()])
    for number in range(int(sys.argv[3])):
        store.commit_facts(f"key-{number}", facts(number))
        judge = f"judge-{sys.argv[2]}"
        evaluation = predicted(5.0 + number, judge=judge, facts=(f"key-{number}",))
        assert store.commit_evaluation(session, problem(), config(number), evaluation)
        print(number, flush=True)
    store.end(session, "budget")
"""


OPEN_EACH = """
import sys
from m3gen.store import Store
from tests.store.samples import config, predicted, problem

for line in sys.stdin:  # all together, one database after the other
    with Store.open(line.strip()) as store:
        session = store.begin({"process": sys.argv[1]}, [problem()])
        store.commit_evaluation(session, problem(), config(0), predicted(5.0, judge=f"judge-{sys.argv[1]}"))
        store.end(session, "budget")
    print("done", flush=True)
"""


def open_fresh_stores_at_once(urls: Sequence[str]) -> None:
    """Six processes make each of the databases together and write a row into it."""
    writers = [samples.start(OPEN_EACH, number, stdin=subprocess.PIPE) for number in range(6)]
    for url in urls:
        for writer in writers:
            assert writer.stdin
            writer.stdin.write(f"{url}\n")
            writer.stdin.flush()
        for writer in writers:
            assert writer.stdout
            assert writer.stdout.readline() == "done\n", writer.communicate()[1]
    for writer in writers:
        _, errors = writer.communicate(timeout=120)
        assert writer.returncode == 0, errors
    for url in urls:
        with Store.open(url) as store:
            assert len(store.evaluations(problem())) == 6
            assert store.check() == []


def test_six_processes_open_a_fresh_store_at_once_ten_times(tmp_path: Path) -> None:
    open_fresh_stores_at_once([f"sqlite:///{tmp_path / f'store-{number}.db'}" for number in range(10)])


def test_six_processes_write_to_one_store(url: str) -> None:
    writers = [samples.start(WRITE, url, number, 20, stdin=subprocess.PIPE) for number in range(6)]
    for writer in writers:
        assert writer.stdin
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        _, errors = writer.communicate(timeout=120)
        assert writer.returncode == 0, errors
    with Store.open(url) as store:
        assert len(store.evaluations(problem())) == 6 * 20
        assert store.check() == []


def test_killed_process_has_lost_nothing(url: str) -> None:
    writer = samples.start(WRITE, url, "killed", 100_000, stdin=subprocess.PIPE)
    assert writer.stdin
    assert writer.stdout
    writer.stdin.write("go\n")
    writer.stdin.flush()
    seen = list(itertools.islice(writer.stdout, 40))
    writer.kill()  # SIGKILL, somewhere inside a commit
    seen += writer.communicate(timeout=60)[0].splitlines()
    with Store.open(url) as store:
        assert store.check() == []
        # One commit may have ended before its line was printed.
        assert len(store.evaluations(problem())) in (len(seen), len(seen) + 1)
        (session,) = store._engine.connect().exec_driver_sql("SELECT state, seconds FROM sessions")
    assert session.state == "running"
    assert session.seconds > 0


def test_fresh_file_that_another_is_just_writing_to(url: str, tmp_path: Path) -> None:
    """SQLite does not wait here by itself: switching to the write-ahead log fails at once."""
    other = sqlite3.connect(tmp_path / "store.db", isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    release = threading.Timer(0.3, other.execute, ["ROLLBACK"])
    release.start()
    with Store.open(url) as store:
        assert store.check() == []
    release.join()
    other.close()
