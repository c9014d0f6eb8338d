"""Files of points: what they may say, and the one clear line about what is wrong in one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from m3gen.errors import UserError
from m3gen.evaluate.points import Split, read, reading, shipped
from m3gen.evaluate.validation import candidate, of_arch
from m3gen.targets import device

TERM = {"op": "index_score", "tp": 4, "rows": 64, "context": 8192}
POINT = {"id": "a", "group": "score", "device": "MI300X", "published_us": 10.0, "terms": [TERM]}
CHOICE = {
    "id": "c",
    "device": "MI355X",
    "what": "warps",
    "term": TERM,
    "parameter": "num_warps",
    "shipped": 2,
    "alternatives": [1, 2],
}


def file_of(tmp_path: Path, **changes: Any) -> Path:
    head = {"format": 1, "source": "https://example.org", "licence": "CC0", "what": "a score"}
    path = tmp_path / "points.json"
    path.write_text(json.dumps({**head, "points": [POINT], **changes}))
    return path


def refused(path: Path) -> str:
    """What is said of a bad file, after its name."""
    with pytest.raises(UserError) as refusal:
        read([path])
    line = str(refusal.value)
    assert str(path) in line
    assert "\n" not in line
    return line


def test_a_point_takes_from_its_file_what_it_does_not_say(tmp_path: Path) -> None:
    [point] = read([file_of(tmp_path)]).points
    assert (point.source, point.what) == ("https://example.org", "a score")
    assert (point.tolerance, point.split, point.context_only) == (0.30, Split.HELD_OUT, "")
    [term] = point.terms
    assert (term.sign, term.kv, term.kv_scale, term.query_len, dict(term.config)) == (1, "bf16", "none", 1, {})


def test_several_times_of_a_point_count_as_their_geometric_mean(tmp_path: Path) -> None:
    [point] = read([file_of(tmp_path, points=[{**POINT, "published_us": [2, 8]}])]).points
    assert point.published_us == (2.0, 8.0)
    assert point.microseconds == pytest.approx(4.0)


def test_a_difference_of_two_measurements(tmp_path: Path) -> None:
    point = {**POINT, "published_us": {"of": "long", "less": "short"}}
    [found] = read([file_of(tmp_path, points=[point], measured={"long": 111.2, "short": 54.0})]).points
    assert found.microseconds == pytest.approx(57.2)


def test_an_order_joins_two_points(tmp_path: Path) -> None:
    points = [POINT, {**POINT, "id": "b", "published_us": 5}]
    order = {"what": "a slower than b", "slower": "a", "faster": "b"}
    [found] = read([file_of(tmp_path, points=points, orders=[order])]).orders
    assert found.ratio == 2.0


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"format": 2}, "format 2: this m3gen reads format 1"),
        ({"licence": None}, "licence: expected a text, got None"),
        ({"point": []}, "unknown field 'point'"),
        ({"points": {}}, "points: expected a list"),
        ({"points": [1]}, "points[0]: expected an object, got 1"),
        ({"points": [{"id": "a"}]}, "points[0] (a): device is missing"),
        ({"measured": {"x": -1}}, "measured['x']: expected a positive number, got -1"),
        ({"orders": [{"what": "w", "slower": "a", "faster": "z"}]}, "faster: 'z' is no point of this file"),
        ({"orders": [{"what": "w", "slower": "a", "faster": "a"}]}, "not published as slower"),
        (
            {"choices": [{**CHOICE, "shipped": 4}]},
            "choices[0] (c): alternatives: expected a list of values with 4",
        ),
        ({"choices": [{**CHOICE, "parameter": "warps"}]}, "unknown parameter 'warps'"),
        ({"choices": [{**CHOICE, "alternatives": [2, 3]}]}, "choices[0] (c): terms[1]: config: "),
    ],
)
def test_a_bad_file_is_refused_in_one_line(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    assert said in refused(file_of(tmp_path, **changes))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"device": "MI30"}, "device: unknown device 'MI30'"),
        ({"published_us": 0}, "published_us: expected a positive number, got 0"),
        ({"published_us": True}, "published_us: expected a positive number, got True"),
        ({"published_us": []}, "published_us: expected a positive number, got []"),
        ({"published_us": {"of": "x", "less": "y"}}, "does not stand in measured"),
        ({"split": "train"}, "split: expected fit or held-out, got 'train'"),
        ({"tolerance": -0.3}, "tolerance: expected a positive number"),
        ({"context_only": ""}, "context_only: expected a text"),
        ({"terms": []}, "terms: expected at least one"),
    ],
)
def test_a_bad_point_is_named(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    line = refused(file_of(tmp_path, points=[{**POINT, **changes}]))
    assert "points[0] (a): " in line
    assert said in line


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"op": "index_scores"}, "did you mean index_score?"),
        ({"tp": 3}, "tp=3 does not divide"),
        ({"rows": 0}, "rows: expected a positive integer, got 0"),
        ({"rows": True}, "rows: expected a positive integer, got True"),
        ({"rows": 6, "query_len": 4}, "6 are no whole requests of 4"),
        ({"kv": "bf17"}, "bf17"),
        ({"kv_scale": "row"}, "kv_scale: expected one of none, scalar"),
        ({"sign": "x"}, "sign: expected '+' or '-'"),
        ({"config": "vllm"}, 'config: expected "field" or an object'),
        ({"config": {"num_warps": 3}}, "config: "),
        ({"config": {"kpak": 1}}, "unknown parameter 'kpak'"),
    ],
)
def test_a_bad_term_is_named(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    line = refused(file_of(tmp_path, points=[{**POINT, "terms": [{**TERM, **changes}]}]))
    assert "points[0] (a): terms[0]" in line
    assert said in line


def test_files_that_are_none(tmp_path: Path) -> None:
    assert "cannot read points" in refused(tmp_path / "absent.json")
    path = tmp_path / "text.json"
    path.write_text("{")
    assert "holds no JSON" in refused(path)
    path.write_bytes(b"\xff")
    assert "cannot read points" in refused(path)


def test_an_id_stands_once(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="'a' twice"):
        read([file_of(tmp_path, points=[POINT, POINT])])


@pytest.mark.parametrize("arch", ["gfx942", "gfx950", "sm_90", "sm_100"])
def test_every_shipped_point_is_a_candidate_of_its_device(arch: str) -> None:
    found = of_arch(shipped(), arch)
    assert found.points
    for point in found.points:
        for term in point.terms:
            one = candidate(term, device(point.device))
            assert (one.problem.rows, one.problem.context) == (term.rows, term.context)


def test_shipped_differences_are_those_that_were_published() -> None:
    """The figures of ai-dynamo/aiconfigurator#1507 at 4 ranks, 16 query heads."""
    times = {point.id: point.microseconds for point in shipped().points}
    slopes = [times[f"h200-score-{rows}-2K-32K"] for rows in (32, 64, 128, 256)]
    assert slopes == pytest.approx([57.2, 113.0, 227.8, 451.3])
    bf16 = [times[f"h200-attend-tp4-bf16-{rows}"] for rows in (64, 128, 256)]
    assert bf16 == pytest.approx([27.1, 43.6, 87.0])
    fp8 = [times[f"h200-attend-tp1-fp8-{rows}"] for rows in (64, 128, 256)]
    assert fp8 == pytest.approx([74.8, 139.3, 283.4])


def test_points_of_another_kernel_are_not_judged() -> None:
    assert all(point.context_only for point in shipped().points if point.device == "B200")


def test_the_format_is_written_down() -> None:
    text = (Path(reading.__file__).parent / "README.md").read_text(encoding="utf-8")
    fields = reading._FILE | reading._POINT | reading._TERM | reading._ORDER | reading._CHOICE
    assert [field for field in sorted(fields) if f"`{field}`" not in text] == []


def test_a_shipped_file_says_whose_data_it_is() -> None:
    folder = Path(__file__).parents[2] / "m3gen/evaluate/points"
    for path in folder.glob("*.json"):
        data = json.loads(path.read_text(encoding="utf-8"))
        assert data["source"].startswith("https://")
        assert len(data["licence"]) > 10
