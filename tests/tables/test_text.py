from __future__ import annotations

import hashlib
import json

from m3gen.tables.export import merged
from m3gen.tables.load import parse
from m3gen.tables.text import dumps, sha
from tests.tables.winners import finding, fp8, problem

TABLE = merged(None, [finding(problem(rows=rows), us) for rows, us in ((1, 3.5), (16, 7.25))] + [finding(fp8())])


def test_what_is_written_is_read_back() -> None:
    assert parse(dumps(TABLE).encode(), "here") == TABLE
    assert dumps(parse(dumps(TABLE).encode(), "here")) == dumps(TABLE)


def test_keys_are_sorted_at_every_level() -> None:
    def keys_of(pairs: list[tuple[str, object]]) -> dict[str, object]:
        names = [name for name, _ in pairs]
        assert names == sorted(names)
        return dict(pairs)

    json.loads(dumps(TABLE), object_pairs_hook=keys_of)


def test_a_changed_time_changes_one_line() -> None:
    slower = merged(TABLE, [finding(problem(rows=16), 8.0)])
    before, after = dumps(TABLE).splitlines(), dumps(slower).splitlines()
    assert sum(a != b for a, b in zip(before, after, strict=True)) == 1


def test_a_new_config_moves_no_other_line() -> None:
    from tests.tables.winners import config

    new = problem(rows=64)
    grown = merged(TABLE, [finding(new, chosen=config(new, num_warps=1))])
    old_points = [line.rstrip(",") for line in dumps(TABLE).splitlines() if '"key"' in line]
    assert set(old_points) <= {line.rstrip(",") for line in dumps(grown).splitlines()}


def test_sha_is_that_of_the_file() -> None:
    assert sha(TABLE) == hashlib.sha256(dumps(TABLE).encode()).hexdigest()
