"""Room on the disk that is kept for the last word of a session: a full disk must not take that, too."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from typing import IO

from m3gen.store.location import Location

_BYTES = 64 << 10  # a session's end writes a page of each table and index that it touches, 4 KiB each


class Reserve:
    """Space beside a SQLite file, taken until `release`; none for other databases, or where there is none left.

    A file without a name: whatever becomes of its process, nothing stays behind.
    """

    def __init__(self, location: Location) -> None:
        self._file: IO[bytes] | None = None
        if location.path is None:
            return
        with suppress(OSError):
            self._file = tempfile.TemporaryFile(dir=location.path.absolute().parent)  # noqa: SIM115 (held)
            self._file.write(os.urandom(_BYTES))  # zeros would take no room where the file system packs them
            self._file.flush()

    def release(self) -> None:
        """Give the space back; a second call does nothing."""
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
            self._file = None
