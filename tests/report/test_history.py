"""Sessions and failures."""

from __future__ import annotations

from m3gen.report import history
from m3gen.spec import Status
from m3gen.store import FailureCount, SessionRecord
from tests.report.rows import printed


def session(**changes: object) -> SessionRecord:
    values = {
        "id": 7,
        "state": "budget",
        "started_at": "2026-03-01T10:20:30.123456+00:00",
        "seconds": 61.0,
        "problems": 8,
        "arguments": {"sampler": "tpe", "budget": "200"},
    }
    return SessionRecord(**{**values, **changes})  # type: ignore[arg-type]


def test_a_session_in_a_line() -> None:
    line = next(line for line in printed(history.sessions([session()]), 120).splitlines() if "2026" in line)
    cells = ("7", "2026-03-01 10:20:30", "budget", "1 min 01 s", "8", "sampler tpe, budget 200")
    assert line.split() == " ".join(cells).split()


def test_a_session_that_has_not_ended_may_have_been_killed() -> None:
    assert "running or killed" in printed(history.sessions([session(state="running")]))


def test_a_failure_names_its_rule_and_an_example() -> None:
    count = FailureCount(
        op="sparse_decode",
        arch="gfx942",
        stage="static",
        status=Status.CONSTRAINT,
        code="load_width",
        count=3,
        example="a lane would load less",
    )
    text = printed(history.failures([count]), 120)
    assert "refused by a rule (load_width)" in text
    assert "a lane would load less" in text
    assert history.failure_object(count)["status"] == "constraint"


def test_nothing_is_said_in_words() -> None:
    assert "no sessions" in printed(history.sessions([]))
    assert "no failed candidates" in printed(history.failures([]))
