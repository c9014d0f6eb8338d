"""Machine code from a bundle: what the JIT finds, and everything that leaves it to compile."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from m3gen import runtime
from m3gen.cli.bundle import pack, requests
from m3gen.compiler.bundle import BundleResult
from m3gen.compiler.fingerprint import fingerprint
from m3gen.runtime.bundle import MANIFEST, install
from m3gen.tables.load import load

TABLE = load(Path(str(files("m3gen.tuning_db"))) / "gfx942" / "sparse_decode.json")

LAUNCHES = 1  # of the table's first row

BUILD = """
import pickle, sys
from m3gen.compiler.bundle import build_entries
request = pickle.load(sys.stdin.buffer)
sys.stdout.buffer.write(pickle.dumps(build_entries(request)))
"""

# What the JIT does on a gfx942, up to the launch: the driver names the GPU, and each launch stops once its kernel is
# found or compiled.
JIT = """
import json, pickle, sys
from importlib import import_module
import triton
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.runtime.driver import driver
from triton.runtime.jit import JITFunction
from m3gen import ops

class Driver:
    def get_current_device(self): return 0
    def get_current_stream(self, device): return 0
    def get_current_target(self): return GPUTarget("hip", "gfx942", 64)

def warmed(kernel, grid):
    return lambda *args, **kwargs: kernel.run(*args, grid=grid, warmup=True, **kwargs)

request = pickle.load(sys.stdin.buffer)
driver.set_active(Driver())
hits = []
knobs.compilation.listener = lambda *, cache_hit, **_: hits.append(cache_hit)
knobs.cache.dir = sys.argv[1]
module = import_module(request.module)
JITFunction.__getitem__ = warmed
getattr(module, request.op)(**ops.get(request.op).example(request.problem, request.config))
print(json.dumps(hits))
"""


def run(script: str, request: Any, *arguments: object) -> bytes:
    import pickle

    command = [sys.executable, "-c", script, *map(str, arguments)]
    done = subprocess.run(command, input=pickle.dumps(request), capture_output=True, timeout=600)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    """A request, and the bundle of its kernels."""
    import pickle

    folder = tmp_path_factory.mktemp("staging")
    request = next(one for one, _ in requests(TABLE, str(folder)))
    result: BundleResult = pickle.loads(run(BUILD, request))
    assert (result.reason, len(result.entries)) == ("", LAUNCHES)
    entries = [
        {"op": request.op, "module": request.module, "facts": {}, **asdict(entry)} for entry in result.entries
    ]
    path = folder / "gfx942.zip"
    pack(path, "gfx942", entries, folder)
    return request, path


def test_the_jit_finds_what_the_bundle_holds(built: tuple[Any, Path], tmp_path: Path) -> None:
    request, bundle = built
    done = install(bundle, arch="gfx942", compiler=fingerprint(), cache_dir=tmp_path)
    assert (done.entries, done.known, done.reasons) == (LAUNCHES, 0, ())
    assert json.loads(run(JIT, request, tmp_path)) == [True] * LAUNCHES


def test_the_jit_compiles_what_it_does_not_find(built: tuple[Any, Path], tmp_path: Path) -> None:
    """Else the test above would show nothing."""
    request, bundle = built

    def all_but_the_last(name: str, data: bytes) -> bytes:
        if name != MANIFEST:
            return data
        manifest = json.loads(data)
        return json.dumps({**manifest, "entries": manifest["entries"][:-1]}).encode()

    part = changed(bundle, tmp_path / "part.zip", all_but_the_last)
    assert (
        install(part, arch="gfx942", compiler=fingerprint(), cache_dir=tmp_path / "cache").entries == LAUNCHES - 1
    )
    assert json.loads(run(JIT, request, tmp_path / "cache")) == [True] * (LAUNCHES - 1) + [False]


def test_packing_again_gives_the_same_bytes(built: tuple[Any, Path], tmp_path: Path) -> None:
    _, bundle = built
    with zipfile.ZipFile(bundle) as archive:
        entries = json.loads(archive.read(MANIFEST))["entries"]
    pack(tmp_path / "again.zip", "gfx942", entries, bundle.parent)
    assert (tmp_path / "again.zip").read_bytes() == bundle.read_bytes()


def test_installing_again_leaves_what_is_there(built: tuple[Any, Path], tmp_path: Path) -> None:
    install(built[1], arch="gfx942", compiler=fingerprint(), cache_dir=tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    done = install(built[1], arch="gfx942", compiler=fingerprint(), cache_dir=tmp_path)
    assert (done.entries, done.known) == (LAUNCHES, LAUNCHES)
    assert before == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}


@pytest.mark.parametrize(
    ("here", "reason"),
    [
        ({"arch": "gfx950"}, "is for arch gfx942, here is gfx950"),
        ({"arch": None}, "is for arch gfx942, here is None"),
        ({"compiler": "triton-3.6.0-0123"}, "is for compiler triton-.*, here is triton-3.6.0-0123"),
    ],
)
def test_another_device_or_compiler_is_left_to_the_jit(
    built: tuple[Any, Path], tmp_path: Path, here: dict[str, Any], reason: str
) -> None:
    import re

    done = install(built[1], **{"arch": "gfx942", "compiler": fingerprint(), "cache_dir": tmp_path, **here})
    assert done.entries == 0
    assert re.search(reason, done.reasons[0])
    assert list(tmp_path.iterdir()) == []


def changed(bundle: Path, target: Path, change: Callable[[str, bytes], bytes | None]) -> Path:
    """The bundle with its files changed; None leaves one out."""
    with zipfile.ZipFile(bundle) as source, zipfile.ZipFile(target, "w") as made:
        for name in source.namelist():
            if (data := change(name, source.read(name))) is not None:
                made.writestr(name, data)
    return target


FAULTS: dict[str, tuple[Callable[[str, bytes], bytes | None], str]] = {
    "damaged code": (lambda n, d: d[:-1] + b"?" if n.endswith(".hsaco") else d, "is damaged"),
    "missing code": (lambda n, d: None if n.endswith(".hsaco") else d, "cannot be used"),
    "no manifest": (lambda n, d: None if n == MANIFEST else d, "cannot be used"),
    "manifest of text": (lambda n, d: b"x" if n == MANIFEST else d, "cannot be used"),
    "path upwards": (
        lambda n, d: d.replace(b'"folder": "', b'"folder": "../') if n == MANIFEST else d,
        "not usable",
    ),
    "newer format": (lambda n, d: d.replace(b'"format": 1', b'"format": 2') if n == MANIFEST else d, "not usable"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_damaged_bundle_is_a_reason_and_no_end(built: tuple[Any, Path], tmp_path: Path, fault: str) -> None:
    change, reason = FAULTS[fault]
    bundle = changed(built[1], tmp_path / "changed.zip", change)
    done = install(bundle, arch="gfx942", compiler=fingerprint(), cache_dir=tmp_path / "cache")
    assert done.entries == 0
    assert reason in done.reasons[0]
    assert not list(tmp_path.glob("cache/*/*.hsaco"))


def test_no_zip_and_no_file(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(b"PK")
    for path in (tmp_path / "a.zip", tmp_path / "none.zip"):
        done = install(path, arch="gfx942", compiler=fingerprint(), cache_dir=tmp_path / "cache")
        assert "cannot be used" in done.reasons[0]


def test_load_says_why_a_bundle_is_of_no_use_and_goes_on(
    built: tuple[Any, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime.backend, "live_architecture", lambda: None)
    with pytest.warns(RuntimeWarning, match="here is None; kernels are compiled"):
        kernels = runtime.load("gfx942", bundle=built[1])
    assert "is for arch gfx942" in kernels.faults[0]
    assert kernels.sparse_decode.select(TABLE.points[0].problem).rung is runtime.Rung.RELEASE
