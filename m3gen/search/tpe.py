"""Optuna's tree-structured Parzen estimator, by ask and tell on a study in memory.

The estimator models all parameters together ("multivariate"; one at a time it collapses onto duplicates),
each as a category. https://optuna.readthedocs.io/en/stable/reference/samplers/generated/optuna.samplers.TPESampler.html
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from m3gen.search.history import History
from m3gen.search.random import shuffled
from m3gen.space import Space, Value

if TYPE_CHECKING:
    import optuna

# Optuna's own default; until then its proposals would be random ones, among them invalid ones.
STARTUP = 10
# Proposals per id that may be invalid or taken before a random unseen id is taken instead. Of recorded spaces
# with four or five points in ten valid, an id takes three to four on average over the first hundred.
ATTEMPTS = 8


class TPESampler:
    """Proposes what resembles the better candidates, never what is invalid or taken.

    A failed candidate is told as pruned without a value: Optuna ranks it behind every candidate that has one,
    so it teaches where not to look, and no time has to be invented for it.
    """

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed
        self._space_sha = ""
        self._told: list[tuple[int, float | None]] = []
        self._study: optuna.Study | None = None

    def ask(self, space: Space, history: History, count: int) -> list[int]:
        taken = history.taken
        found: list[int] = []
        # In a space half taken the estimator repeats itself, and what is left is what it has passed over.
        if len(history.observed) >= STARTUP and 2 * (len(taken) + count) <= len(space):
            found = self._propose(space, history, count)
        unseen = (id for id in shuffled(len(space), self._seed) if id not in taken and id not in found)
        return found + list(islice(unseen, count - len(found)))

    def _propose(self, space: Space, history: History, count: int) -> list[int]:
        """Up to `count` ids from the estimator, fewer when it insists on what cannot be used."""
        import optuna

        study = self._learn(space, history)
        taken = history.taken
        # A fresh generator per call: what comes next depends on the history, not on how it was reached.
        study.sampler = optuna.samplers.TPESampler(
            multivariate=True, n_startup_trials=0, seed=(self._seed * 1_000_003 + len(taken)) % (1 << 32)
        )
        distributions = _distributions(space)
        found: list[int] = []
        for _ in range(ATTEMPTS * count):
            if len(found) == count:
                break
            trial = study.ask(distributions)
            study.tell(trial, state=optuna.trial.TrialState.FAIL)  # the estimator ignores failed trials
            id = _id(space, trial.params)
            if id is not None and id not in taken:
                taken.add(id)
                found.append(id)
        return found

    def _learn(self, space: Space, history: History) -> optuna.Study:
        """The study of this history: the one at hand when it knows a beginning of it, else a new one."""
        import optuna

        observed = list(history.observed.items())
        known = len(self._told)
        if self._study is None or self._space_sha != space.sha or observed[:known] != self._told:
            optuna.logging.set_verbosity(optuna.logging.WARNING)  # one line per trial otherwise
            self._study = optuna.create_study(storage=None)
            self._space_sha = space.sha
            known = 0
        self._study.add_trials([_trial(space, id, value) for id, value in observed[known:]])
        self._told = observed
        return self._study


def _trial(space: Space, id: int, value: float | None) -> optuna.trial.FrozenTrial:
    from optuna.trial import TrialState, create_trial

    config = space.config(id)
    params = {p.name: p.index(config[p.name]) if p.name in config else len(p.values) for p in space.parameters}
    state = TrialState.PRUNED if value is None else TrialState.COMPLETE
    return create_trial(state=state, value=value, params=params, distributions=_distributions(space))


def _distributions(space: Space) -> dict[str, Any]:
    """Per parameter the positions of its values, and one more for inactive where it can be."""
    from optuna.distributions import CategoricalDistribution

    return {
        p.name: CategoricalDistribution(tuple(range(len(p.values) + (p.active is not None))))
        for p in space.parameters
    }


def _id(space: Space, positions: dict[str, Any]) -> int | None:
    """The id of a proposal, None when it is invalid. What it leaves out though active takes its default."""
    raw: dict[str, Value] = {
        p.name: p.values[positions[p.name]] if positions[p.name] < len(p.values) else p.default
        for p in space.parameters
    }
    config = space.canonical(raw)
    return space.id(config) if config in space else None
