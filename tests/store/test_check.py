"""`Store.check` finds what was tampered with, one test a tampering."""

from __future__ import annotations

import sqlite3

import pytest

from m3gen.evaluate.trace import Traces
from m3gen.store import Store
from tests.store import samples
from tests.store.samples import config, predicted, problem, verified


@pytest.fixture
def full(store: Store) -> Store:
    store.commit_facts("key", samples.facts())
    store.commit_traces("trace-0", Traces((), 0.0).to_bytes())
    session = store.begin({}, [problem()])
    store.commit_evaluation(session, problem(), config(), predicted(10.0, facts=("key", "key")))
    store.commit_verification(problem(), config(), verified())
    store.end(session, "budget")
    return store


def test_sound(full: Store) -> None:
    assert full.check() == []


@pytest.mark.parametrize(
    ("statement", "fault"),
    [
        ("UPDATE problems SET problem = replace(problem, '304', '80')", "its content has the sha"),
        ('UPDATE problems SET problem = \'{"op": "merge"}\'', "incomplete problem"),
        ("UPDATE problems SET arch = 'gfx950'", "signature, op or arch"),
        ("UPDATE configs SET config = '{\"BLOCK_N\": 32}'", "its content has the sha"),
        ("UPDATE kernel_facts SET facts = '{}'", "kernel facts key"),
        ("UPDATE kernel_facts SET compiler = 'triton-3.6.0'", "compiler or code"),
        ("UPDATE kernel_traces SET traces = x'00'", "traces trace-0: no traces"),
        ("UPDATE evaluations SET status = 'fine'", "no status is called 'fine'"),
        ("UPDATE evaluations SET stage = 'guessed'", "no stage is called 'guessed'"),
        ("UPDATE evaluations SET value_us = NULL", "ok and has no value"),
        ("UPDATE evaluations SET value_us = 0", "ok and has no value over zero"),
        ("UPDATE evaluations SET low_us = 99", "upside down"),
        ("DELETE FROM launches WHERE position = 0", "a launch is missing"),
        ("DELETE FROM kernel_facts", "launches row 1 refers to a row of kernel_facts that is not there"),
        ("DELETE FROM configs", "refers to a row of configs"),
        ("UPDATE verifications SET signature = 'none'", "no problem has the signature none"),
        ("UPDATE verifications SET status = 'fine'", "'fine' is not a valid Status"),
        ('UPDATE verifications SET cases = \'[{"name": "x"}]\'', "verification 1"),
    ],
)
def test_tampering_is_found(full: Store, statement: str, fault: str) -> None:
    with sqlite3.connect(str(full.location)) as connection:  # foreign keys are off here
        connection.execute(statement)
    assert any(fault in line for line in full.check()), full.check()
