"""The bench of fakes that most tests of sessions run on, and a store in a file of the test's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from m3gen.store import Store
from tests.search.fakes import Bench, problem


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with Store.open(f"sqlite:///{tmp_path / 'm3gen.db'}") as store:
        yield Bench(store)
        assert store.check() == []


@pytest.fixture
def store_session(bench: Bench) -> Iterator[int]:
    """A session that is under way in the bench's store."""
    number = bench.store.begin({}, [problem()])
    yield number
    bench.store.end(number, "budget")


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'store.db'}"
