"""Arithmetic in named dimensions: a whitelist of Python's expressions, walked and never executed."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

from m3gen.peers.tensor import SIZES, Tensor

Value = int | float | bool | str | Tensor | None
Expression = str | int | float | bool
"""What may stand in a file: a number, or a text of arithmetic."""

_MOST_CHARACTERS = 1000
_MOST_DEPTH = 50
_LARGEST = 1 << 63
_MOST_POWER = 64


class Wrong(ValueError):
    """The expression cannot be read, or has no value here. One line."""


def evaluate(expression: Expression, names: Mapping[str, Value]) -> Value:
    """The value of an expression; `Wrong` when it has none. Results outside of 64 bits are refused."""
    if not isinstance(expression, str):
        return expression
    try:
        return _value(_parsed(expression), names)
    except Wrong as error:
        raise Wrong(f"{expression!r}: {error}") from None
    except ZeroDivisionError:
        raise Wrong(f"{expression!r}: a division by zero") from None
    except (TypeError, OverflowError) as error:
        raise Wrong(f"{expression!r}: {error}") from None


def check(expression: Expression) -> None:
    """`Wrong` when the text is no arithmetic, whatever the names in it stand for."""
    if isinstance(expression, str):
        try:
            for node in ast.walk(_parsed(expression)):
                if isinstance(node, ast.expr):
                    _known(node)
        except Wrong as error:
            raise Wrong(f"{expression!r}: {error}") from None


def _parsed(text: str) -> ast.expr:
    if len(text) > _MOST_CHARACTERS:
        raise Wrong(f"longer than {_MOST_CHARACTERS} characters")
    try:
        body = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise Wrong("not an expression") from None
    if _depth(body) > _MOST_DEPTH:
        raise Wrong(f"nested deeper than {_MOST_DEPTH}")
    return body


def _depth(node: ast.AST) -> int:
    deepest, level = 0, [node]
    while level:
        deepest, level = deepest + 1, [child for one in level for child in ast.iter_child_nodes(one)]
    return deepest


def _known(node: ast.expr) -> None:
    """`Wrong` for a kind of expression that is not arithmetic."""
    if isinstance(node, ast.Call):
        if not isinstance(node.func, ast.Name) or node.func.id not in FUNCTIONS or node.keywords:
            raise Wrong(f"{ast.unparse(node.func)} is no function here: there are {', '.join(FUNCTIONS)}")
    elif isinstance(node, ast.Constant):
        if type(node.value) not in (int, float, bool, str, type(None)):
            raise Wrong(f"a {type(node.value).__name__} is no value here")
    elif not isinstance(node, _WALKED) or not _OPERATORS.issuperset(map(type, _operators(node))):
        raise Wrong(f"{ast.unparse(node)} is not arithmetic")


def _operators(node: ast.expr) -> list[ast.AST]:
    if isinstance(node, ast.Compare):
        return list(node.ops)
    return [node.op] if isinstance(node, ast.UnaryOp | ast.BinOp) else []


def _value(node: ast.expr, names: Mapping[str, Value]) -> Value:
    _known(node)
    match node:
        case ast.Constant():
            return _bounded(node.value)
        case ast.Name():
            if node.id not in names:
                raise Wrong(f"there is no {node.id}")
            return names[node.id]
        case ast.UnaryOp():
            return _unary(node, names)
        case ast.BinOp():
            left, right = _number(node.left, names), _number(node.right, names)
            return _bounded(_BINARY[type(node.op)](left, right))
        case ast.BoolOp():
            stops = isinstance(node.op, ast.Or)
            value: Value = not stops
            for part in node.values:
                value = _value(part, names)
                if bool(value) is stops:
                    break
            return value
        case ast.Compare():
            return _compared(node, names)
        case ast.IfExp():
            return _value(node.body if _value(node.test, names) else node.orelse, names)
        case ast.Call(func=ast.Name(id=name)):
            return _bounded(FUNCTIONS[name](*(_value(one, names) for one in node.args)))
    raise Wrong(f"{ast.unparse(node)} is not arithmetic")


def _unary(node: ast.UnaryOp, names: Mapping[str, Value]) -> Value:
    if isinstance(node.op, ast.Not):
        return not _value(node.operand, names)
    operand = _number(node.operand, names)
    return -operand if isinstance(node.op, ast.USub) else +operand


def _compared(node: ast.Compare, names: Mapping[str, Value]) -> bool:
    left = _value(node.left, names)
    for op, part in zip(node.ops, node.comparators, strict=True):
        right = _value(part, names)
        if not _COMPARISONS[type(op)](left, right):
            return False
        left = right
    return True


def _number(node: ast.expr, names: Mapping[str, Value]) -> int | float:
    value = _value(node, names)
    if not isinstance(value, int | float):
        raise Wrong(f"{ast.unparse(node)} is no number")
    return value


def _bounded(value: Any) -> Value:
    if isinstance(value, float) and not math.isfinite(value):
        raise Wrong("a result that is not finite")
    if isinstance(value, int) and abs(value) >= _LARGEST:
        raise Wrong("a result of more than 63 bits")
    if not isinstance(value, int | float | str | Tensor | None):
        raise Wrong(f"a result of type {type(value).__name__}")
    return value


def _power(base: int | float, exponent: int | float) -> Any:
    if abs(exponent) > _MOST_POWER:
        raise Wrong(f"a power of more than {_MOST_POWER}")
    return base**exponent


def _natural(value: Value) -> int:
    if not isinstance(value, int) or value < 1:
        raise Wrong(f"expected a positive integer, got {value!r}")
    return value


def _of_tensor(what: str) -> Callable[[Value, Value], int]:
    def look(tensor: Value, dimension: Value) -> int:
        if not isinstance(tensor, Tensor) or not isinstance(dimension, int):
            raise Wrong(f"{what} takes a tensor and a dimension")
        numbers: tuple[int, ...] = getattr(tensor, "shape" if what == "shape" else "strides")
        if not -len(numbers) <= dimension < len(numbers):
            raise Wrong(f"{tensor.name} has {len(numbers)} dimensions, not {dimension}")
        return numbers[dimension]

    return look


def _bytes(dtype: Value) -> int:
    if not isinstance(dtype, str) or dtype not in SIZES:
        raise Wrong(f"bytes takes a dtype, one of {', '.join(SIZES)}, got {dtype!r}")
    return SIZES[dtype]


def _least(*values: Any) -> Any:
    return min(values)


def _most(*values: Any) -> Any:
    return max(values)


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "min": _least,
    "max": _most,
    "cdiv": lambda a, b: -(-a // b),
    "round_up": lambda a, b: -(-a // b) * b,
    "next_power_of_2": lambda a: 1 << (_natural(a) - 1).bit_length(),
    "floor_power_of_2": lambda a: 1 << (_natural(a).bit_length() - 1),
    "bytes": _bytes,
    "stride": _of_tensor("stride"),
    "shape": _of_tensor("shape"),
}
"""What an expression may call."""

_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
}
_COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_WALKED = (ast.Name, ast.UnaryOp, ast.BinOp, ast.BoolOp, ast.Compare, ast.IfExp)
_OPERATORS = {*_BINARY, *_COMPARISONS, ast.Not, ast.USub, ast.UAdd}
