from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from m3gen.compiler.loops import natural_loops


@dataclass(frozen=True)
class Line:
    targets: tuple[str, ...] = ()
    falls: bool = True


def program(*lines: tuple[tuple[int, ...], bool]) -> tuple[list[Line], dict[str, int]]:
    """Lines as (indices jumped to, whether the next line may follow); every index is its own label."""
    return [Line(tuple(f"L{t}" for t in targets), falls) for targets, falls in lines], {
        f"L{i}": i for i in range(len(lines))
    }


NEXT = ((), True)
END = ((), False)


def test_a_straight_line_has_no_loop() -> None:
    assert natural_loops(*program(NEXT, NEXT, END)) == ()
    assert natural_loops([], {}) == ()


def test_inner_loops_belong_to_their_parents() -> None:
    inner, outer = ((2,), True), ((1,), True)
    loops = natural_loops(*program(NEXT, NEXT, NEXT, inner, NEXT, outer, END))
    assert [(loop.label, loop.depth, loop.instructions) for loop in loops] == [
        ("L1", 1, (1, 2, 3, 4, 5)),
        ("L2", 2, (2, 3)),
    ]


def test_two_back_edges_to_one_header_are_one_loop() -> None:
    """`continue` is a second way back, not a second loop."""
    loops = natural_loops(*program(NEXT, ((1,), True), ((1,), True), END))
    assert [loop.instructions for loop in loops] == [(1, 2)]


def test_an_outlined_block_that_jumps_back_is_no_loop() -> None:
    """A cold block behind the end goes back to the hot path, whose block does not dominate it."""
    loops = natural_loops(*program(((3,), True), NEXT, END, ((1,), False)))
    assert loops == ()


def test_a_loop_whose_block_stands_outside_is_whole() -> None:
    loops = natural_loops(*program(NEXT, ((4,), True), ((1,), True), END, ((2,), False)))
    assert [loop.instructions for loop in loops] == [(1, 2, 4)]


def test_unreachable_code_takes_no_part() -> None:
    loops = natural_loops(*program(((2,), False), ((2,), False), ((2,), True), END))
    assert [loop.instructions for loop in loops] == [(2,)]


lines = st.integers(2, 9).flatmap(
    lambda n: st.lists(
        st.tuples(st.lists(st.integers(0, n - 1), max_size=1).map(tuple), st.booleans()),
        min_size=n,
        max_size=n,
    )
)


@given(lines)
def test_bodies_are_natural_loops_by_definition(code: list[tuple[tuple[int, ...], bool]]) -> None:
    """By definition: edges whose target dominates their source, that is, cuts it off when removed."""
    successors = {
        i: [*targets, *([i + 1] if falls and i + 1 < len(code) else [])] for i, (targets, falls) in enumerate(code)
    }

    def reach(start: int, without: int | None = None) -> set[int]:
        seen: set[int] = set()
        pending = [start] if start != without else []
        while pending:
            node = pending.pop()
            if node not in seen:
                seen.add(node)
                pending += [s for s in successors[node] if s != without]
        return seen

    reached = reach(0)
    expected: dict[int, set[int]] = {}
    for tail in reached:
        for header in successors[tail]:
            if tail == header or tail not in reach(0, without=header):
                body = {n for n in reached if n == header or (n != header and tail in reach(n, without=header))}
                expected.setdefault(header, {header}).update(body | {tail})
    found = {int(loop.label[1:]): loop for loop in natural_loops(*program(*code))}
    headers = {header: set(loop.instructions) for header, loop in found.items()}
    assert headers == expected
    for loop in found.values():
        header = int(loop.label[1:])
        assert loop.depth == sum(header in body for body in expected.values())
