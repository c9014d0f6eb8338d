"""The enumeration against brute force, ids, neighbours, and the errors of a person's typing."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
from hypothesis import given, settings

from m3gen.space import Choice, Config, Constraint, Flag, Ordinal, PowerOfTwo, Space
from tests.space.spaces import spaces


def raw_points(space: Space):
    names = [p.name for p in space.parameters]
    for values in itertools.product(*(p.values for p in space.parameters)):
        yield dict(zip(names, values, strict=True))


@given(spaces())
@settings(max_examples=150, deadline=None)
def test_enumeration_is_the_canonical_product_without_the_refused(space: Space):
    valid: dict[Config, None] = {}
    refused: Counter[str] = Counter()
    for raw in raw_points(space):
        if broken := space.violations(raw):
            refused[broken[0].code] += 1
        else:
            valid[space.canonical(raw)] = None
    assert set(space) == set(valid)
    assert len(space) == len(valid)
    assert dict(space.refused) == dict(refused)
    assert space.raw_size == sum(1 for _ in raw_points(space))


@given(spaces())
@settings(max_examples=80, deadline=None)
def test_id_and_config_are_inverse(space: Space):
    for id in range(len(space)):
        config = space.config(id)
        assert config in space
        assert space.id(config) == id
        assert space.canonical(config) == config
        assert space.violations(config) == ()


@given(spaces())
@settings(max_examples=80, deadline=None)
def test_neighbours_are_mutual_and_differ_in_one_shared_parameter(space: Space):
    configs = list(space)
    near = [set(space.neighbours(id)) for id in range(len(space))]
    for a, b in itertools.product(range(len(space)), repeat=2):
        shared = configs[a].keys() & configs[b].keys()
        differ = sum((type(configs[a][n]), configs[a][n]) != (type(configs[b][n]), configs[b][n]) for n in shared)
        assert (b in near[a]) == (differ == 1)


@given(spaces())
@settings(max_examples=60, deadline=None)
def test_adjacent_are_mutual_neighbours(space: Space):
    for id in range(len(space)):
        adjacent = space.adjacent(id)
        assert set(adjacent) <= set(space.neighbours(id))
        assert all(id in space.adjacent(other) for other in adjacent)


def example() -> Space:
    return Space(
        [
            Choice("SPLIT", ("none", "kernel"), "kernel"),
            PowerOfTwo("NUM_SPLITS", 2, 8, 4, active=lambda v: v["SPLIT"] == "kernel"),
            PowerOfTwo("BLOCK_N", 16, 64, 32),
            Flag("WHOLE", True),
        ],
        [
            Constraint(
                "tile",
                ("NUM_SPLITS", "BLOCK_N"),
                lambda v: int(v["NUM_SPLITS"]) * int(v["BLOCK_N"]) <= 128,
                "big",
            )
        ],
    )


def test_counts_of_a_space_that_can_be_counted_by_hand():
    space = example()
    # none: 3 * 2; kernel: (2: 16 32 64), (4: 16 32), (8: 16) times WHOLE.
    assert len(space) == 6 + 12
    assert space.raw_size == 2 * 3 * 3 * 2
    assert space.refused == {"tile": 6}


def test_ids_follow_the_declaration_with_the_last_parameter_fastest():
    space = example()
    assert space.config(0) == Config({"SPLIT": "none", "BLOCK_N": 16, "WHOLE": False})
    assert space.config(1) == Config({"SPLIT": "none", "BLOCK_N": 16, "WHOLE": True})
    assert space.config(len(space) - 1) == Config(
        {"SPLIT": "kernel", "NUM_SPLITS": 8, "BLOCK_N": 16, "WHOLE": True}
    )
    with pytest.raises(IndexError):
        space.config(len(space))
    with pytest.raises(IndexError):
        space.config(-1)


def test_canonical_drops_what_is_inactive():
    space = example()
    raw = {"SPLIT": "none", "NUM_SPLITS": 8, "BLOCK_N": 64, "WHOLE": True}
    assert "NUM_SPLITS" not in space.canonical(raw)
    assert raw not in space
    with pytest.raises(KeyError):
        space.id(raw)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"BLOCK_M": 16}, "unknown parameter 'BLOCK_M': did you mean BLOCK_N"),
        ({"BLOCK_N": 17}, "BLOCK_N=17: expected one of 16, 32, 64"),
        ({"WHOLE": 1}, "WHOLE=1: expected one of False, True"),
    ],
)
def test_canonical_says_what_is_wrong(change: dict[str, int], message: str):
    with pytest.raises(ValueError, match=message):
        example().canonical({"SPLIT": "none", "BLOCK_N": 64, "WHOLE": True, **change})


def test_canonical_of_known_leaves_out_what_the_space_does_not_have():
    values = {"SPLIT": "none", "BLOCK_N": 64, "WHOLE": True}
    assert example().canonical_of_known({**values, "of_another_space": 1}) == example().canonical(values)
    with pytest.raises(ValueError, match="BLOCK_N is missing"):
        example().canonical_of_known({"SPLIT": "none", "WHOLE": True})


def test_canonical_misses_an_active_parameter():
    with pytest.raises(ValueError, match="NUM_SPLITS is missing"):
        example().canonical({"SPLIT": "kernel", "BLOCK_N": 64, "WHOLE": True})


def test_a_default_that_breaks_a_rule_is_refused():
    assert example().default()["NUM_SPLITS"] == 4
    broken = Space([Flag("A", True)], [Constraint("off", ("A",), lambda v: not v["A"], "A must be off")])
    with pytest.raises(ValueError, match="A must be off"):
        broken.default()


def test_activity_sees_only_earlier_parameters():
    space = Space([Flag("A", True, active=lambda v: bool(v.get("B"))), Flag("B", True)])
    with pytest.raises(ValueError, match="activity of 'A' reads 'B'"):
        len(space)


def test_an_empty_space_is_a_space():
    space = Space([Flag("A", True)], [Constraint("no", ("A",), lambda v: False, "never")])
    assert len(space) == 0
    assert space.refused == {"no": 2}
    assert list(space) == []
    assert {"A": True} not in space


def test_names_must_differ():
    with pytest.raises(ValueError, match="share a name"):
        Space([Flag("A", True), Flag("A", False)])


def test_a_space_without_end_is_refused():
    with pytest.raises(ValueError, match="too large"):
        Space([Ordinal(f"p{i}", tuple(range(10)), 0) for i in range(19)])
    with pytest.raises(ValueError, match="constrain the space earlier"):
        len(Space([Ordinal(f"p{i}", tuple(range(300)), 0) for i in range(3)]))


def test_sha_changes_with_everything_that_changes_the_points():
    base = [Flag("A", True), Ordinal("B", (1, 2), 1)]
    shas = {
        Space(base).sha,
        Space([Flag("A", True), Ordinal("C", (1, 2), 1)]).sha,
        Space([Flag("A", True), Ordinal("B", (1, 3), 1)]).sha,
        Space([Flag("A", True), Ordinal("B", (1, 2), 1, active=lambda v: bool(v["A"]))]).sha,
        Space(base, [Constraint("c", ("B",), lambda v: v["B"] == 1, "")]).sha,
    }
    assert len(shas) == 5
    assert Space(base).sha == Space([Flag("A", False), Ordinal("B", (1, 2), 2, doc="other")]).sha


def test_a_million_points_are_counted_without_a_call_for_each():
    calls = 0

    def holds(v) -> bool:
        nonlocal calls
        calls += 1
        return v["p4"] != v["p5"]

    space = Space(
        [Ordinal(f"p{i}", tuple(range(10)), 0) for i in range(6)], [Constraint("c", ("p4", "p5"), holds, "")]
    )
    assert len(space) == 900_000
    assert calls == 100
