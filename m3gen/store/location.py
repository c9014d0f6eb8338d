"""`Location`: where a store is, out of its URL."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote

from sqlalchemy import URL
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from m3gen.errors import UserError

EXAMPLES = "sqlite:////absolute/path.db, sqlite:///relative.db or postgresql+psycopg://user@host/database"


@dataclass(frozen=True, slots=True)
class Location:
    """`path` is the file of a SQLite store, None for one in memory or on a server.

    `options` are those of a SQLite `file:` URI (mode, immutable, ...).
    """

    url: URL
    path: Path | None = None
    options: tuple[tuple[str, str], ...] = ()

    @classmethod
    def parse(cls, text: str) -> Location:
        """From a SQLAlchemy URL of a SQLite or PostgreSQL database. `UserError` for anything else."""
        try:
            url = make_url(text)
        except ArgumentError:
            raise UserError(f"{text!r} is not the URL of a store: expected {EXAMPLES}") from None
        if url.get_backend_name() not in ("sqlite", "postgresql"):
            raise UserError(f"m3gen keeps no store in {url.get_backend_name()!r}: expected {EXAMPLES}")
        if url.get_backend_name() != "sqlite":
            return cls(url)
        if url.database in (None, "", ":memory:") or url.query.get("mode") == "memory":
            return cls(url)
        assert url.database is not None
        database, _, query = url.database.partition("?") if "uri" in url.query else (url.database, "", "")
        options = dict(parse_qsl(query))
        for name in ("mode", "immutable", "cache", "nolock"):
            if name in url.query:
                options[name] = str(url.query[name])
        if "uri" in url.query:
            database = unquote(database.removeprefix("file:"))
            if database.startswith("//"):
                database = "/" + database.lstrip("/")
        return cls(url, Path(database).expanduser(), tuple(sorted(options.items())))

    def file_url(self, **options: str) -> URL:
        """The URL that opens the file with these options of a SQLite `file:` URI; the user's own win."""
        assert self.path is not None
        query = {**options, **dict(self.options), "uri": "true"}
        return URL.create(self.url.drivername, database=f"file:{quote(str(self.path.absolute()))}", query=query)

    def __str__(self) -> str:
        return str(self.path) if self.path else self.url.render_as_string(hide_password=True)
