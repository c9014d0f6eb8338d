"""The driver killed before or after any step of a session, and run again: only what is missing is done."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from m3gen.store import Store
from m3gen.testing.fake_session import GATE, JUDGE, done, problem
from tests.store import samples

EVALUATIONS = 12

# Kills itself before or after the nth call of one method of the store; never with n = 0.
TUNE = """
import os, signal, sys
from pathlib import Path
from m3gen.search.executor import LocalExecutor
from m3gen.store import Store
from m3gen.testing.fake_session import open_session

url, log, evaluations, method, nth, when = sys.argv[1:]
original, calls = getattr(Store, method), 0

def counted(*arguments, **keywords):
    global calls
    calls += 1
    if calls == int(nth) and when == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    result = original(*arguments, **keywords)
    if calls == int(nth) and when == "after":
        os.kill(os.getpid(), signal.SIGKILL)
    return result

setattr(Store, method, counted)
with Store.open(url) as store:
    result = open_session(store, LocalExecutor(2), Path(log), evaluations=int(evaluations)).run()
    print(result.ended, result.rows[0].config.sha)
"""

POINTS = [
    ("begin", 1, "after"),
    ("claim", 1, "after"),  # nothing handed out yet
    ("claim", 4, "before"),  # some in flight
    ("commit_facts", 1, "after"),  # facts without an evaluation
    ("commit_evaluations", 1, "before"),
    ("commit_evaluations", 7, "after"),  # stored, its claim not given up
    ("release_claims", 5, "after"),
    ("end", 1, "before"),  # everything found, nothing verified
    ("commit_verification", 1, "before"),
    ("commit_verification", 1, "after"),
]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The winner of a session that nobody kills."""
    folder = tmp_path_factory.mktemp("undisturbed")
    session = samples.start(TUNE, f"sqlite:///{folder}/store.db", folder / "log", EVALUATIONS, "end", 0, "never")
    return session.communicate(timeout=120)[0].split()[1]


@pytest.mark.parametrize(("method", "nth", "when"), POINTS, ids=lambda part: str(part))
def test_killed_at_any_point_does_only_what_is_missing(
    url: str, tmp_path: Path, undisturbed: str, method: str, nth: int, when: str
) -> None:
    first = samples.start(TUNE, url, tmp_path / "first", EVALUATIONS, method, nth, when)
    _, errors = first.communicate(timeout=120)
    assert first.returncode == -signal.SIGKILL, errors
    with Store.open(url) as store:
        assert store.check() == []
        stored = {record.config.sha for record in store.evaluations(problem())}
        verdicts = store._engine.connect().exec_driver_sql("SELECT count(*) FROM verifications").scalar()
    second = samples.start(TUNE, url, tmp_path / "second", EVALUATIONS, "end", 0, "never")
    output, errors = second.communicate(timeout=120)
    assert second.returncode == 0, errors
    again = [line.split()[1] for line in done(tmp_path / "second") if line.startswith(JUDGE)]
    assert len(again) == EVALUATIONS - len(stored)
    assert not stored & set(again)
    gates = [line for line in done(tmp_path / "second") if line.startswith(GATE)]
    assert len(gates) == 2 - (verdicts or 0)  # the interpreter, then the machine code
    with Store.open(url) as store:
        assert store.check() == []
        (winner,) = store.winners()
        assert len(store.evaluations(problem())) == EVALUATIONS
    undisturbed = samples.start(
        TUNE, f"sqlite:///{tmp_path}/other.db", tmp_path / "other", EVALUATIONS, "end", 0, "never"
    )
    assert undisturbed.communicate(timeout=120)[0].split()[1] == winner.config.sha == output.split()[1]
