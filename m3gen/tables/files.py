"""Writing so that a reader at any moment finds the old file or the new one, whole."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from m3gen.errors import UserError


def replace_text(path: Path, text: str) -> bool:
    """Put `text` into a file by an atomic replace; False when it was there. `UserError` on failure."""
    data = text.encode()
    try:
        with suppress(FileNotFoundError):
            if path.read_bytes() == data:
                return False
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
                os.fchmod(file.fileno(), 0o644)  # mkstemp makes files for their owner alone
            os.replace(name, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(name)
            raise
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}; the old file, if any, stands") from None
    return True


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Keep other writers out of a folder, made if need be; readers never wait. `UserError` on failure."""
    import fcntl

    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise UserError(
            f"cannot write to {folder}: {error.strerror or error}; choose a folder that can be written"
        ) from None
    try:
        with suppress(OSError):  # some network file systems lock no folders: then one writer is assumed
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)  # lets go of the lock
