"""The store on a server. Runs where `M3GEN_TEST_POSTGRESQL` is the URL of a database to make schemas in."""

from __future__ import annotations

import os
import subprocess
import uuid
from collections.abc import Iterator
from dataclasses import replace

import pytest
from sqlalchemy import create_engine

from m3gen.errors import UserError
from m3gen.spec import Status
from m3gen.store import Store
from tests.store import samples
from tests.store.samples import config, measured, predicted, problem, verified
from tests.store.test_processes import WRITE

SERVER = os.environ.get("M3GEN_TEST_POSTGRESQL", "")
pytestmark = pytest.mark.skipif(not SERVER, reason="M3GEN_TEST_POSTGRESQL names no server")


@pytest.fixture
def url() -> Iterator[str]:
    schema = f"m3gen_{uuid.uuid4().hex}"
    engine = create_engine(SERVER, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(f"CREATE SCHEMA {schema}")
        yield f"{SERVER}{'&' if '?' in SERVER else '?'}options=-csearch_path%3D{schema}"
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


def test_six_processes_open_a_fresh_store_at_once(url: str) -> None:
    writers = [samples.start(WRITE, url, number, 5, stdin=subprocess.PIPE) for number in range(6)]
    for writer in writers:
        assert writer.stdin
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        _, errors = writer.communicate(timeout=120)
        assert writer.returncode == 0, errors
    with Store.open(url) as store:
        assert len(store.evaluations(problem())) == 30
