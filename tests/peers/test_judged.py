"""A kernel of nobody's on both vendors: facts, a prediction, and on AMD a run of its machine code."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from m3gen.errors import UserError
from m3gen.evaluate.dynamics import dynamics_of
from m3gen.evaluate.timing import TIMINGS
from m3gen.peers import Peer, read
from m3gen.peers.judgement import judge
from m3gen.peers.reading import parse
from m3gen.peers.worker import PeerRequest, PeerResult, judge_peer
from m3gen.spec import Status
from m3gen.targets import Vendor, default_device

HERE = Path(__file__).parent
FILE = HERE / "gather.toml"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("M3GEN_CACHE", str(tmp_path / "cache"))


def worked(peer: Peer, arch: str, *rows: int, root: Path = HERE) -> PeerResult:
    return judge_peer(PeerRequest(peer, root, arch, tuple({"rows": one} for one in rows)))


def test_a_kernel_on_amd_is_run_and_predicted() -> None:
    peer, device = read(FILE), default_device("gfx942")
    result = worked(peer, "gfx942", 64, 128)
    assert (result.status, result.reason) == (Status.OK, "")
    assert (result.compiled, result.cached) == (1, 1)  # rows are no argument
    few, many = (judge(peer, device, {"rows": rows}, result, n) for n, rows in enumerate((64, 65536)))
    assert not few.not_run
    seen = dynamics_of(few.facts[0])
    assert seen is not None
    assert [one.trips for one in seen.samples] == [16, 48]
    assert seen.samples[1].clocks[1] > 2 * seen.samples[0].clocks[1] > 0  # three times the iterations
    assert few.evaluation.judge == TIMINGS[Vendor.AMD].version
    assert few.evaluation.value_us is not None
    assert many.evaluation.value_us is not None
    assert many.evaluation.value_us > few.evaluation.value_us > few.floor_us > 0
    again = worked(peer, "gfx942", 64)
    assert (again.compiled, again.cached) == (0, 1)
    assert dynamics_of(again.facts[0][0]) == seen  # what the run took included: it did not run again


def test_a_kernel_on_nvidia_is_predicted_from_its_instructions() -> None:
    peer, device = read(FILE), default_device("sm_90")
    result = worked(peer, "sm_90", 64)
    assert result.status is Status.OK
    found = judge(peer, device, {"rows": 64}, result)
    assert dynamics_of(found.facts[0]) is None
    assert found.evaluation.ok
    assert found.facts[0].registers > 0
    assert found.evaluation.judge == TIMINGS[Vendor.NVIDIA].version


def text(old: str, new: str) -> Peer:
    whole = FILE.read_text(encoding="utf-8")
    assert whole.count(old) == 1, old
    return parse(whole.replace(old, new), "mine.toml")


def test_a_sample_of_other_code_is_not_taken_for_the_load() -> None:
    """count is 64, which the compiler may take for a multiple of 16; 17 is none."""
    result = worked(text("count = 16", "count = 17"), "gfx942", 64)
    assert result.status is Status.OK
    assert "compiled to other code" in result.facts[0][0].extra["dynamics_failed"]
    assert "count" in result.facts[0][0].extra["dynamics_failed"]


def test_a_sample_that_reads_past_its_memory_is_told() -> None:
    result = worked(text('table = "block table"', 'table = "1000000"'), "gfx942", 64)
    assert result.status is Status.OK
    assert "MemoryFault" in result.facts[0][0].extra["dynamics_failed"]


def test_a_file_without_a_sample_says_so() -> None:
    result = worked(replace(read(FILE), sample=None), "gfx942", 64)
    assert result.facts[0][0].extra["dynamics_failed"] == "the file has no sample"


def test_a_kernel_that_does_not_compile_has_a_status() -> None:
    result = worked(text("BLOCK = 64", "BLOCK = 63"), "gfx942", 64)
    assert result.status is Status.COMPILE
    assert "gather" in result.reason
    assert "power of 2" in result.reason


def test_an_argument_that_is_no_parameter() -> None:
    result = worked(text("BLOCK = 64", "BLOCK = 64, spin = 3"), "gfx942", 64)
    assert (result.status, result.reason) == (Status.COMPILE, "gather: gather has no parameter spin")


def test_a_module_that_does_not_load(tmp_path: Path) -> None:
    (tmp_path / "toys.py").write_text("1 / 0\n")
    result = worked(read(FILE), "gfx942", 64, root=tmp_path)
    assert (result.status, result.reason) == (
        Status.COMPILE,
        "toys.py does not load: ZeroDivisionError: division by zero",
    )


def test_what_is_not_there_is_the_users_to_mend(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"there is no toys.py in .*--root"):
        worked(read(FILE), "gfx942", 64, root=tmp_path)
    (tmp_path / "toys.py").write_text("import nothing_of_the_sort\n")
    with pytest.raises(UserError, match=r"toys.py needs nothing_of_the_sort: install it, stub it"):
        worked(read(FILE), "gfx942", 64, root=tmp_path)
    (tmp_path / "toys.py").write_text("gathered = 3\n")
    with pytest.raises(UserError, match="has no gather: correct"):
        worked(read(FILE), "gfx942", 64, root=tmp_path)


def test_stubs_stand_in_for_the_rest_of_a_project(tmp_path: Path) -> None:
    ops = tmp_path / "big/ops"
    ops.mkdir(parents=True)
    (tmp_path / "big/__init__.py").write_text("raise RuntimeError('imports half the world')\n")
    kernel = (HERE / "toys.py").read_text(encoding="utf-8")
    head = "from big.platform import current\nfrom big.triton import tl, triton\n"
    head += "assert not current.is_gpu()\nassert current.limits().max_exp == 1024\n"
    body = kernel.replace("import triton.language as tl\n", "").replace("import triton\n", head, 1)
    (ops / "toys.py").write_text(body)
    peer = text(
        'path = "toys.py"\n',
        'module = "big.ops.toys"\n\n[stubs]\nbig = "package"\n"big.ops" = "package"\n'
        '"big.platform" = { current = { limits = "sys:float_info" } }\n'
        '"big.triton" = { triton = "triton", tl = "triton.language" }\n',
    )
    assert worked(peer, "sm_90", 64, root=tmp_path).status is Status.OK
