from __future__ import annotations

from pathlib import Path

import pytest

from m3gen.errors import UserError
from m3gen.store.location import Location


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:////var/lib/m3gen.db", "/var/lib/m3gen.db"),
        ("sqlite:///m3gen.db", "m3gen.db"),
        ("sqlite:///file:/var/m3%20gen.db?uri=true", "/var/m3 gen.db"),
        ("sqlite:///file:///var/m3gen.db?mode=ro&uri=true", "/var/m3gen.db"),
        ("sqlite+pysqlite:///m3gen.db", "m3gen.db"),
    ],
)
def test_file_of_a_url(url: str, path: str) -> None:
    assert Location.parse(url).path == Path(path)


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "postgresql+psycopg://me@host/db"])
def test_no_file(url: str) -> None:
    assert Location.parse(url).path is None


def test_home_is_expanded() -> None:
    assert Location.parse("sqlite:///~/m3gen.db").path == Path.home() / "m3gen.db"


def test_options_of_the_user_win() -> None:
    url = Location.parse("sqlite:////m3gen.db?mode=ro&uri=true").file_url(mode="rwc")
    assert url.query["mode"] == "ro"


@pytest.mark.parametrize("url", ["", "m3gen.db", "/var/lib/m3gen.db", "mysql://host/db", "nosuch://host/db"])
def test_what_is_no_store_is_refused(url: str) -> None:
    with pytest.raises(UserError, match="expected sqlite:///"):
        Location.parse(url)


def test_password_is_not_shown() -> None:
    location = Location.parse("postgresql+psycopg://me:secret@host/db")
    assert "secret" not in str(location)
