"""A fresh store in a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from m3gen.store import Store


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'store.db'}"


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with Store.open(url) as store:
        yield store
