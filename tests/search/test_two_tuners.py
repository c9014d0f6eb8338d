"""Two processes that tune the same problem on the same store at the same time."""

from __future__ import annotations

import subprocess
from pathlib import Path

from m3gen.search.executor import LocalExecutor
from m3gen.store import Store
from m3gen.testing import fake_session
from m3gen.testing.fake_session import done, open_session, problem
from tests.store import samples

EVALUATIONS = 120

TUNE = """
import sys
from pathlib import Path
from m3gen.search.executor import LocalExecutor
from m3gen.store import Store
from m3gen.testing.fake_session import open_session

sys.stdin.readline()  # both together
with Store.open(sys.argv[1]) as store:
    session = open_session(store, LocalExecutor(2), Path(sys.argv[2]), evaluations=int(sys.argv[3]), seconds=0.1)
    result = session.run()
    print(result.ended, len(result.rows), result.rows[0].config.sha, result.progress.evaluated)
"""


def test_two_tuners_share_the_work(url: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    tuners = [samples.start(TUNE, url, log, EVALUATIONS, stdin=subprocess.PIPE) for _ in range(2)]
    for tuner in tuners:
        assert tuner.stdin
        tuner.stdin.write("go\n")
        tuner.stdin.flush()
    said = []
    for tuner in tuners:
        output, errors = tuner.communicate(timeout=300)
        assert tuner.returncode == 0, errors
        said.append(output.split())
    judged = [line for line in done(log) if line.startswith(fake_session.JUDGE)]
    assert EVALUATIONS <= len(judged) < 1.2 * EVALUATIONS  # one alone makes as many as its budget
    assert len(set(judged)) == len(judged)  # and none of them twice
    gated = [line for line in done(log) if line.startswith(fake_session.GATE)]
    assert len(set(gated)) == len(gated)
    with Store.open(url) as store:
        assert store.check() == []
        assert len(store.evaluations(problem())) == len(judged)
        assert [session.state for session in store.sessions()] == ["budget", "budget"]
        (winner,) = store.winners()
        by_session = store._engine.connect().exec_driver_sql(
            "SELECT count(*) FROM evaluations GROUP BY session_id"
        )
        assert min(count for (count,) in by_session) > EVALUATIONS // 10  # neither only looked on
        assert store._engine.connect().exec_driver_sql("SELECT count(*) FROM claims").scalar() == 0
    assert {words[2] for words in said} == {winner.config.sha}


def test_a_candidate_that_another_is_at_is_waited_for(url: str, tmp_path: Path) -> None:
    """The other gives its claim up without an evaluation: then it is this session's after all."""
    with Store.open(url) as store:
        other = store.begin({"other": "session"}, [problem()])
        first = open_session(store, LocalExecutor(1), tmp_path / "first", evaluations=10, sampler="exhaustive")
        works = [
            fake_work(first, config) for config in (first._studies[0].field, first._studies[0].space.config(3))
        ]
        assert store.claim(other, works) == set(works)

        class GivesUp:
            def update(self, progress: object) -> None:
                if progress.evaluated == 8:  # type: ignore[attr-defined]
                    store.release_claims(other)

        first._listener = GivesUp()
        result = first.run()
    assert result.ended == "budget"
    judged = [line for line in done(tmp_path / "first") if line.startswith(fake_session.JUDGE)]
    assert len(judged) == len(set(judged)) == 10


def fake_work(session: object, config: object) -> str:
    from m3gen.search.schedule import Candidate
    from m3gen.search.sharing import Sharing

    group = session._groups[0]  # type: ignore[attr-defined]
    sharing = Sharing(session._store, session._judge, [group], 1)  # type: ignore[attr-defined]
    return sharing._work(Candidate(group, config, tuple(group.studies), False))  # type: ignore[arg-type]
