"""The store on a real server, which the tests start themselves: see `tests.store.server`."""

from __future__ import annotations

import subprocess
import threading
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import create_engine

from m3gen.errors import UserError
from m3gen.spec import Status
from m3gen.store import Store
from m3gen.testing.fake_session import done
from tests.search.test_two_tuners import EVALUATIONS, TUNE
from tests.store import samples, server
from tests.store.samples import config, measured, predicted, problem, verified
from tests.store.test_processes import open_fresh_stores_at_once

pytestmark = pytest.mark.skipif(bool(server.why_not()), reason=server.why_not())


@pytest.fixture(scope="module")
def running() -> Iterator[str]:
    with server.running() as url:
        yield url


@pytest.fixture
def url(running: str) -> Iterator[str]:
    with fresh_schema(running) as url:
        yield url


@contextmanager
def fresh_schema(running: str) -> Iterator[str]:
    schema = f"m3gen_{uuid.uuid4().hex}"
    engine = create_engine(running, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(f"CREATE SCHEMA {schema}")
        yield f"{running}{'&' if '?' in running else '?'}options=-csearch_path%3D{schema}"
        connection.exec_driver_sql(f"DROP SCHEMA {schema} CASCADE")
    engine.dispose()


def test_life_of_a_store(url: str) -> None:
    case = replace(verified().cases[0], row_rms=float("inf"))
    with Store.open(url) as store:
        assert store.commit_facts("key", samples.facts())
        assert not store.commit_facts("key", samples.facts(1))
        session = store.begin({"budget": "200"}, [problem()])
        evaluation = predicted(10.0, facts=("key", "key"), reason="\0")
        assert store.commit_evaluation(session, problem(), config(), evaluation)
        assert not store.commit_evaluation(session, problem(), config(), evaluation)
        assert store.commit_evaluation(session, problem(), config(1), measured(11.0))
        assert store.commit_verification(problem(), config(), verified())
        assert store.commit_verification(problem(), config(1), verified(Status.CORRECTNESS, cases=(case,)))
        store.end(session, "budget")
    with Store.open(url, read_only=True) as store:
        (winner,) = store.winners(arch="gfx942")
        assert winner.evaluation == replace(evaluation, reason=r"\x00")
        found = store.verification(problem(), config(1), "source-1")
        assert found is not None
        assert found.cases == (case,)
        assert store.facts("key") == samples.facts()
        assert store.check() == []
        with pytest.raises(UserError, match="cannot be written"):
            store.commit_facts("other", samples.facts())


def test_six_processes_open_a_fresh_store_at_once_ten_times(running: str) -> None:
    with ExitStack() as stack:
        open_fresh_stores_at_once([stack.enter_context(fresh_schema(running)) for _ in range(10)])


def test_claims(url: str) -> None:
    with Store.open(url) as store, Store.open(url) as other:
        mine, theirs = store.begin({}, [problem()]), other.begin({}, [problem()])
        assert store.claim(mine, {"a", "b"}) == {"a", "b"}
        assert other.claim(theirs, {"b", "c"}) == {"c"}
        store.renew_claims(mine)
        store.release_claims(mine)
        assert other.claim(theirs, {"a", "b"}) == {"a", "b"}


def test_many_at_a_time_from_two_sides(url: str) -> None:
    """The same problems and configs in opposite orders: whoever waits for the other must not be waited for."""
    found = [(problem(rows=1 << n % 4), config(n), predicted(5.0 + n)) for n in range(200)]

    def write(order: int) -> None:
        with Store.open(url) as store:
            session = store.begin({"order": order}, [problem()])
            for first in range(0, 200, 50):
                batch = [
                    (p, c, replace(e, judge=f"judge-{order}")) for p, c, e in found[::order][first : first + 50]
                ]
                assert store.commit_evaluations(session, batch) == 50

    failures: list[BaseException] = []
    threading.excepthook = lambda raised: failures.append(raised.exc_value or AssertionError())
    try:
        writers = [threading.Thread(target=write, args=(order,)) for order in (1, -1)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
    finally:
        threading.excepthook = threading.__excepthook__
    assert failures == []
    with Store.open(url) as store:
        assert sum(len(store.evaluations(problem(rows=1 << n))) for n in range(4)) == 400


def test_two_tuners_share_the_work(url: str, tmp_path: Path) -> None:
    tuners = [samples.start(TUNE, url, tmp_path / "log", EVALUATIONS, stdin=subprocess.PIPE) for _ in range(2)]
    for tuner in tuners:
        assert tuner.stdin
        tuner.stdin.write("go\n")
        tuner.stdin.flush()
    for tuner in tuners:
        _, errors = tuner.communicate(timeout=300)
        assert tuner.returncode == 0, errors
    lines = done(tmp_path / "log")
    assert len(lines) == len(set(lines)) < 1.2 * EVALUATIONS
    with Store.open(url) as store:
        assert store.check() == []


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="does not answer"):
        Store.open(f"postgresql+psycopg://m3gen@/postgres?host={tmp_path}")
