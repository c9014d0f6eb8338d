"""Local search: the neighbours of the best config, then of the next best."""

from __future__ import annotations

from functools import lru_cache
from itertools import islice

from m3gen.search.history import History
from m3gen.search.random import shuffled
from m3gen.space import Space

STARTUP = 10  # random configs before the first neighbourhood is worth its size


class LocalSampler:
    """Asks for what differs in one parameter from the best config known, in an order that the seed fixes, and goes
    down the ranks when a neighbourhood is used up. A failed candidate has none."""

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed

    def ask(self, space: Space, history: History, count: int) -> list[int]:
        taken = history.taken
        order = shuffled(len(space), self._seed)
        found: list[int] = []
        if len(history.observed) >= STARTUP:
            place = {id: position for position, id in enumerate(order)}
            for centre in best_first(history):
                fresh = [id for id in neighbours(space, centre) if id not in taken]
                fresh = sorted(fresh, key=place.__getitem__)[: count - len(found)]
                found += fresh
                taken.update(fresh)
                if len(found) == count:
                    return found
        return found + list(islice((id for id in order if id not in taken), count - len(found)))


def best_first(history: History) -> list[int]:
    """The ids that have a value, the least value first, equals in the order in which they became known."""
    timed = {id: value for id, value in history.observed.items() if value is not None}
    return sorted(timed, key=timed.__getitem__)


@lru_cache(maxsize=4096)
def neighbours(space: Space, id: int) -> tuple[int, ...]:
    """`Space.neighbours`, which takes a millisecond; a search asks for those of the same few ids again and again."""
    return space.neighbours(id)
