from __future__ import annotations

from dataclasses import replace

from m3gen import ops
from m3gen.evaluate.ablation import CONTEXTS, ROWS, ablate, requests
from m3gen.evaluate.predict import SWITCHES, TERMS
from m3gen.targets import default_device
from tests.evaluate.compiled import compiled, result
from tests.store import samples


def test_candidates_are_valid_and_the_same_every_time() -> None:
    found = requests(3, ("sm_90",))
    assert found == requests(3, ("sm_90",))
    assert [one.op for one in found] == [name for name in CONTEXTS for _ in range(3)]
    for one in found:
        assert [problem.rows for problem in one.problems] == list(ROWS)
        space = ops.get(one.op).space(one.problems[0], default_device("sm_90"))
        assert not space.violations(one.config)


def test_every_problem_is_judged_without_every_term() -> None:
    found = ablate(compiled(requests(3, ("sm_90",))))
    assert len(found) == len(CONTEXTS) * len(ROWS) * (len(TERMS) + 1)
    assert {one.term for one in found} == {*TERMS, "residents"} < set(SWITCHES)
    assert all(one.regret >= 0 and one.candidates == 3 for one in found)


def test_a_pick_that_the_missing_term_decides_has_regret() -> None:
    """Two candidates that differ in shared-memory traffic alone: without that term nothing tells them apart, and
    the first by name is the slow one."""
    pair = requests(2, ("gfx942",))[:2]
    same = sorted((replace(one, config=pair[0].config) for one in pair), key=lambda one: one.config.sha)
    light = samples.facts()
    heavy = replace(light, loops=(replace(light.loops[0], shared_read_bytes_per_lane=1 << 22),))
    answers = [(same[0], result(same[0], heavy)), (same[1], result(same[1], light))]
    by_term = {one.term: one for one in ablate(answers) if one.problem.rows == 256}
    assert by_term["shared"].regret > 1
    assert by_term["launch"].regret == 0
