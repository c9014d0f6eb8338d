"""Expressions: as Python has them where they are arithmetic, and refused where they are anything else."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from m3gen.peers.arithmetic import FUNCTIONS, Value, Wrong, check, evaluate
from m3gen.peers.tensor import Tensor

NAMES: dict[str, Value] = {"rows": 7, "context": 8192, "share": 0.25, "arch": "gfx950"}
OPERATORS = st.sampled_from(["+", "-", "*", "//", "%", "/", "==", "<", ">=", "and", "or"])
LEAVES = st.one_of(
    st.integers(0, 1000).map(str),
    st.floats(0.01, 100).map(repr),
    st.sampled_from(["rows", "context", "share", "True"]),
)


def grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(inner, OPERATORS, inner).map(lambda parts: f"({parts[0]} {parts[1]} {parts[2]})"),
        inner.map(lambda one: f"(-{one})"),
        inner.map(lambda one: f"(not {one})"),
        st.tuples(inner, inner, inner).map(lambda parts: f"({parts[0]} if {parts[1]} else {parts[2]})"),
        st.tuples(st.sampled_from(["min", "max"]), inner, inner).map(lambda p: f"{p[0]}({p[1]}, {p[2]})"),
    )


# Four leaves stay within 63 bits.
@given(st.recursive(LEAVES, grown, max_leaves=4))
def test_the_value_is_what_python_says(text: str) -> None:
    try:
        expected = eval(text, {"__builtins__": {"min": min, "max": max}}, dict(NAMES))
    except ZeroDivisionError:
        with pytest.raises(Wrong):
            evaluate(text, NAMES)
        return
    found = evaluate(text, NAMES)
    assert type(found) is type(expected)
    assert found == expected


@given(st.integers(1, 1 << 40), st.integers(1, 1 << 20))
def test_the_functions(a: int, b: int) -> None:
    names: dict[str, Value] = {"a": a, "b": b}
    assert evaluate("cdiv(a, b)", names) == math.ceil(a / b) == -(-a // b)
    up = evaluate("round_up(a, b)", names)
    assert isinstance(up, int)
    assert up % b == 0
    assert 0 <= up - a < b
    least, most = evaluate("floor_power_of_2(a)", names), evaluate("next_power_of_2(a)", names)
    assert isinstance(least, int)
    assert isinstance(most, int)
    assert least <= a <= most < 2 * a + 1
    assert least.bit_count() == most.bit_count() == 1
    assert least == most or 2 * least == most


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')",
        "rows.bit_length()",
        "(lambda: 1)()",
        "[1 for _ in range(3)]",
        "rows[0]",
        "f'{rows}'",
        "rows @ rows",
        "rows & 1",
        "~rows",
        "1 in (1, 2)",
        "(rows := 3)",
        "print(rows)",
        "min(rows, default=3)",
        "b'x'",
        "...",
        "1j",
        "rows = 3",
        "",
        "(" * 80 + "1" + ")" * 80 + " +",
        "-" * 60 + "1",
        "1 + " * 400 + "1",
    ],
)
def test_what_is_no_arithmetic_is_refused_before_any_name_has_a_value(text: str) -> None:
    with pytest.raises(Wrong):
        check(text)
    with pytest.raises(Wrong):
        evaluate(text, NAMES)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rows + missing", "there is no missing"),
        ("rows // 0", "a division by zero"),
        ("2 ** 63", "more than 63 bits"),
        ("2 ** 99999999", "a power of more than 64"),
        ("1e308 * 1e308", "not finite"),
        ("arch + 1", "arch is no number"),
        ("arch < 1", "not supported"),
        ("bytes(rows)", "bytes takes a dtype"),
        ("next_power_of_2(0)", "expected a positive integer"),
        ("stride(rows, 0)", "takes a tensor"),
        ("cdiv(rows)", "argument"),
    ],
)
def test_what_has_no_value_says_why(text: str, said: str) -> None:
    with pytest.raises(Wrong, match=said) as error:
        evaluate(text, NAMES)
    assert repr(text) in str(error.value)


def test_texts_can_be_told_apart_and_tensors_asked() -> None:
    cache = Tensor.of("cache", "bf16", (10, 128), (256, 1), None, 128)
    names = {**NAMES, "cache": cache}
    assert evaluate("2 if arch == 'gfx950' else 4", names) == 2
    assert evaluate("stride(cache, 0) * shape(cache, -1) * bytes('bf16')", names) == 256 * 128 * 2
    assert cache.storage_bytes == (128 + 9 * 256 + 128) * 2
    assert cache.pointer.alignment == 256
    with pytest.raises(Wrong, match="2 dimensions"):
        evaluate("stride(cache, 2)", names)


def test_a_branch_that_is_not_taken_has_no_value() -> None:
    assert evaluate("1 if rows else rows // 0", NAMES) == 1
    assert evaluate("rows or rows // 0", NAMES) == 7


def test_every_function_is_told_in_the_refusal() -> None:
    with pytest.raises(Wrong) as error:
        check("hypot(rows, 1)")
    assert all(name in str(error.value) for name in FUNCTIONS)
