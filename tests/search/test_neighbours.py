from __future__ import annotations

import math

import pytest

from m3gen import ops
from m3gen.search.neighbours import distance, fitted
from m3gen.space import Choice, Config, Constraint, PowerOfTwo, Space
from m3gen.targets import default_device
from tests.problems import dense_decode, sparse_decode

HERE = sparse_decode(rows=16)[0]


@pytest.mark.parametrize(
    ("nearer", "farther"),
    [
        (sparse_decode(rows=16)[0], sparse_decode(rows=32)[0]),
        (sparse_decode(rows=32)[0], sparse_decode(rows=64)[0]),
        (sparse_decode(rows=64)[0], sparse_decode(rows=512)[0]),
        (sparse_decode(rows=16, query_len=2)[0], sparse_decode(rows=16, q_dtype="fp16")[0]),
        (sparse_decode(rows=256)[0], sparse_decode("gfx950", rows=16)[0]),
        (sparse_decode("sm_90", rows=16)[0], dense_decode(rows=16)[0]),
    ],
)
def test_what_is_nearer(nearer: object, farther: object):
    assert distance(HERE, nearer) < distance(HERE, farther)  # type: ignore[arg-type]


def test_the_dialects_of_fp8_are_one_dtype():
    from tests.problems import decode

    one, other = (decode("sparse_decode", arch, fp8=True, rows=16)[0] for arch in ("gfx942", "gfx950"))
    assert distance(one, other) == distance(HERE, sparse_decode("gfx950", rows=16)[0])
    assert distance(HERE, HERE) == 0
    assert distance(HERE, dense_decode(rows=16)[0]) == math.inf


def test_a_config_of_a_sibling_arch_gets_what_it_lacks():
    op = ops.get("sparse_decode")
    spaces = {
        arch: op.space(sparse_decode(arch, rows=16)[0], default_device(arch)) for arch in ("gfx942", "gfx950")
    }
    theirs = op.field(sparse_decode("gfx950", rows=16)[0], default_device("gfx950"))
    ours = fitted(theirs, spaces["gfx942"])
    assert ours is not None
    assert ours == Config({**theirs, "kpack": 1})
    assert fitted(ours, spaces["gfx950"]) == theirs


def test_a_value_that_is_not_there_is_as_by_default_and_a_broken_rule_fits_nothing():
    space = Space(
        [PowerOfTwo("tile", 16, 64, default=32), Choice("merge", ("none", "last"), default="none")],
        [Constraint("small", ("tile", "merge"), lambda c: c["merge"] == "none" or c["tile"] < 64, "too large")],
    )
    assert fitted(Config({"tile": 128, "merge": "last", "extra": 1}), space) == Config(
        {"tile": 32, "merge": "last"}
    )
    assert fitted(Config({"tile": 64, "merge": "last"}), space) is None
