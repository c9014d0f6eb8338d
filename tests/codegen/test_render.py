from __future__ import annotations

import ast

import jinja2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from m3gen import ops
from m3gen.codegen import render, template_shas
from tests import problems

OP = ops.get("sparse_decode")


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(problems.ARCHS),
    st.sampled_from(["none", "scalar", "per_token_head"]),
    st.sampled_from([1, 4]),
    st.integers(0, 2**31),
)
def test_every_candidate_renders_to_a_module_with_its_launcher(
    arch: str, scale: str, query_len: int, draw: int
) -> None:
    problem, device = problems.sparse_decode(arch, fp8=scale != "none", query_len=query_len, rows=4)
    space = OP.space(problem, device)
    source = render(OP, problem, space.config(draw % len(space)))
    functions = [node.name for node in ast.parse(source.text).body if isinstance(node, ast.FunctionDef)]
    assert "sparse_decode_attend" in functions
    assert functions[-1] == source.entry
    assert not any(mark in source.text for mark in ("{{", "{%", "{#"))
    assert "\n\n\n\n" not in source.text
    assert not any(line != line.rstrip() for line in source.text.splitlines())


def test_the_text_does_not_know_the_load() -> None:
    small, device = problems.sparse_decode(rows=1, context=1024)
    large, _ = problems.sparse_decode(rows=512, context=1048576)
    config = OP.default(small, device)
    assert render(OP, small, config).sha == render(OP, large, config).sha


def test_the_text_knows_every_parameter_of_the_config() -> None:
    problem, device = problems.sparse_decode(query_len=4, rows=4)
    space = OP.space(problem, device)
    blind = {parameter.name for parameter in space.parameters}
    for identifier in range(0, len(space), len(space) // 40):
        config = space.config(identifier)
        for neighbour in map(space.config, space.neighbours(identifier)):
            differ = {name for name in {*config} & {*neighbour} if config[name] != neighbour[name]}
            if differ & blind and render(OP, problem, config).sha != render(OP, problem, neighbour).sha:
                blind -= differ
    assert not blind


def test_a_flag_the_op_forgot_is_an_error_not_an_empty_string() -> None:
    problem, device = problems.sparse_decode()

    class Forgetful(type(OP)):  # type: ignore[misc]
        def flags(self, *args: object) -> dict[str, object]:
            flags = dict(super().flags(*args))
            del flags["HEADS_IN"]
            return flags

    with pytest.raises(jinja2.UndefinedError, match="HEADS_IN"):
        render(Forgetful(), problem, OP.default(problem, device))


def test_provenance_changes_the_docstring_alone() -> None:
    problem, device = problems.sparse_decode()
    config = OP.default(problem, device)
    plain, shipped = render(OP, problem, config), render(OP, problem, config, provenance=["From row 7."])
    assert "From row 7." in (ast.get_docstring(ast.parse(shipped.text)) or "")

    def body(text: str) -> str:
        return ast.dump(ast.Module(ast.parse(text).body[1:], []))

    assert body(plain.text) == body(shipped.text)


def test_the_source_names_every_template_it_came_from() -> None:
    assert set(template_shas(OP.template)) == {
        "checks.py.jinja",
        "module.py.jinja",
        "sparse_decode.py.jinja",
        "arrive.jinja",
        "attend_checks.jinja",
        "attend_loop.jinja",
        "attend_queries.jinja",
        "attend_schedule.jinja",
        "attend_setup.jinja",
        "attend_store.jinja",
        "attend_tile.jinja",
        "merge_launch.jinja",
        "workspace.py.jinja",
        "merge.py.jinja",
        "macros/tiles.jinja",
    }
