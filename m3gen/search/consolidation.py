"""Few modules instead of many: among configs that tie, those that serve the most points."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass

from m3gen import ops
from m3gen.evaluate.evaluation import Stage
from m3gen.evaluate.ranking import TIE
from m3gen.ops.base import Op
from m3gen.search.portfolio import cover
from m3gen.space import Config
from m3gen.spec import Problem
from m3gen.store import Store, Winner
from m3gen.tables.export import unsound


@dataclass(frozen=True, slots=True)
class Rival:
    """A config that may stand in a table for one problem: through the gate, and evaluated to the end for it."""

    config: Config
    us: float
    stage: Stage


Rivals = Mapping[Problem, Sequence[Rival]]
"""By problem those that one judge found OK at one stage, as `ranked` has them: the winner first."""


def consolidated(
    rivals: Rivals, text: Callable[[Problem], Hashable], regret: float = TIE
) -> dict[Problem, Config]:
    """The config of each problem, such that as few modules as can be serve them all.

    A module is a config and the `text` of a problem, what else it depends on. The config of a problem is its winner, or
    one within `regret` of its fastest rival; a measured winner stays. Of sets of configs as small goes the one whose
    configs win most often, on all problems of the op and arch, then that of the least regrets. It depends on nothing
    but the rivals, not on their order.
    """
    times = {problem: _tied(rivals[problem], regret) for problem in sorted(rivals)}
    wins = Counter((problem.op, problem.arch, found[0].config) for problem, found in rivals.items())
    alike: dict[tuple[str, str, Hashable], list[Problem]] = {}
    for problem in times:
        alike.setdefault((problem.op, problem.arch, text(problem)), []).append(problem)
    chosen = {}
    for (op, arch, _), problems in alike.items():
        of = {problem: times[problem] for problem in problems}
        liked = {config: wins[op, arch, config] for tied in of.values() for config in tied}
        members = cover(of, liked)
        for problem in problems:
            serving = members & times[problem].keys()
            chosen[problem] = next(one.config for one in rivals[problem] if one.config in serving)
    return chosen


def text_of(op: Op, problem: Problem) -> Hashable:
    """What the text of a problem's module depends on beside its config."""
    return json.dumps(dict(op.variant(problem)), sort_keys=True)


def consolidated_winners(
    verified: Sequence[Sequence[Winner]], text: Callable[[Problem], Hashable], regret: float = TIE
) -> list[Winner]:
    """Of the candidates of each problem, as `Store.verified` has them, the one that `consolidated` names."""
    held = {found[0].problem: {one.config: one for one in reversed(found)} for found in verified}
    rivals = {found[0].problem: [_rival(one) for one in found] for found in verified}
    chosen = consolidated(rivals, text, regret)
    return [held[problem][chosen[problem]] for problem in held]


def stored_winners(
    store: Store, *, arch: str | None = None, names: Collection[str] | None = None, regret: float = TIE
) -> list[Winner]:
    """The store's winners, consolidated, in the order of the problems; of one architecture or some ops if asked for.

    Where a table would refuse all candidates of a problem the winner stays as it is: who writes the table says why.
    """
    wanted = [found for found in store.verified(arch=arch) if names is None or found[0].problem.op in names]
    sound = [_sound(found, regret) for found in wanted]
    return consolidated_winners(sound, lambda problem: text_of(ops.get(problem.op), problem), regret)


def _tied(found: Sequence[Rival], regret: float) -> dict[Config, float]:
    """Microseconds of those that may be named."""
    winner = found[0]
    if winner.stage is Stage.MEASURED:
        return {winner.config: winner.us}
    most = (1 + regret) * min(one.us for one in found)
    return {one.config: one.us for one in found if one is winner or one.us <= most}


def _sound(found: Sequence[Winner], regret: float) -> list[Winner]:
    """The best that a table would take, and those that it would take in its place; the winner alone where there is
    none, so that who writes the table says why. What was found under older templates gives way to what holds."""
    sound = [one for one in found if not unsound(one)]
    if not sound:
        return [found[0]]
    winner, *others = sound
    slowest = (1 + regret) * _us(winner)  # the fastest is no slower than the winner
    return [winner, *(one for one in others if one.compiler == winner.compiler and _us(one) <= slowest)]


def _rival(winner: Winner) -> Rival:
    return Rival(winner.config, _us(winner), winner.evaluation.stage)


def _us(winner: Winner) -> float:
    assert winner.evaluation.value_us is not None  # the store's winners have a value
    return winner.evaluation.value_us
