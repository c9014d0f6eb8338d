"""`SamplerSuite`: what every sampler promises, as tests to inherit."""

from __future__ import annotations

from collections.abc import Mapping

from m3gen.search.history import History
from m3gen.search.prior import NOTHING_KNOWN, Prior
from m3gen.search.sampler import Sampler
from m3gen.space import Choice, Config, Constraint, Flag, PowerOfTwo, Space, Value


class SamplerSuite:
    """Inherit, define `make`, and pytest runs the rest against your sampler.

    The space has a switch with a parameter behind it, and a rule; the objective has one best config, and one
    corner of the space fails.
    """

    def make(self, seed: int) -> Sampler:
        """A new sampler."""
        raise NotImplementedError

    def test_asks_for_valid_ids_it_never_asked_before(self) -> None:
        space = small_space()
        asked = _run(self.make(0), space, len(space))
        assert len(set(asked)) == len(asked)
        assert set(asked) <= set(range(len(space)))

    def test_ends_in_an_empty_list_once_all_is_seen(self) -> None:
        space = small_space()
        sampler = self.make(1)
        asked = _run(sampler, space, len(space) + 50)
        assert sorted(asked) == list(range(len(space)))
        history = History({id: objective(space, id) for id in asked})
        assert sampler.ask(space, history, 4) == []

    def test_gives_what_is_left_when_asked_for_more(self) -> None:
        space = small_space()
        history = History({id: objective(space, id) for id in range(len(space) - 3)})
        assert sorted(self.make(0).ask(space, history, 10)) == list(range(len(space) - 3, len(space)))

    def test_leaves_out_what_is_pending(self) -> None:
        space = small_space()
        pending = frozenset(range(0, len(space), 2))
        observed = {id: objective(space, id) for id in range(1, 31, 2)}
        asked = self.make(0).ask(space, History(observed, pending), len(space))
        assert len(asked) == len(set(asked))
        assert sorted(asked) == [id for id in range(31, len(space)) if id not in pending]

    def test_gives_as_many_as_asked(self) -> None:
        space = small_space()
        for count in (1, 2, 7):
            assert len(self.make(0).ask(space, History(), count)) == count
        observed = {id: objective(space, id) for id in range(20)}
        assert len(self.make(0).ask(space, History(observed), 5)) == 5

    def test_same_seed_same_candidates(self) -> None:
        space = small_space()
        assert _run(self.make(3), space, 40) == _run(self.make(3), space, 40)

    def test_a_new_sampler_goes_on_where_another_was_stopped(self) -> None:
        space = small_space()
        whole = _run(self.make(5), space, 40)
        begun: dict[int, float | None] = {}
        assert _run(self.make(5), space, 23, begun) == whole[:23]
        assert _run(self.make(5), space, 17, begun) == whole[23:]

    def test_asking_changes_nothing(self) -> None:
        space = small_space()
        sampler = self.make(2)
        history = History({id: objective(space, id) for id in range(15)})
        first = sampler.ask(space, history, 3)
        assert sampler.ask(space, history, 3) == first

    def test_serves_two_spaces_in_turn(self) -> None:
        small, other = small_space(), Space([PowerOfTwo("A", 1, 64, 8), PowerOfTwo("B", 1, 64, 8)])
        sampler = self.make(0)
        observed = {id: 1.0 + id for id in range(20)}
        for space in (small, other, small):
            (asked,) = sampler.ask(space, History(observed), 1)
            assert asked in range(20, len(space))

    def test_survives_a_history_of_failures(self) -> None:
        space = small_space()
        failures: dict[int, float | None] = dict.fromkeys(range(30))
        asked = _run(self.make(0), space, 20, failures)
        assert len(set(asked)) == 20
        assert min(asked) >= 30

    def test_what_was_known_before_changes_none_of_it(self) -> None:
        """Seeds and siblings, in part of another space: still valid, never twice, deterministic, to the end."""
        space = small_space()
        known = {config: objective(space, id) for id, config in enumerate(space) if id % 3 == 0}
        stranger = Config({"OTHER": 1})
        prior = Prior((stranger, space.config(5), space.config(3)), ({**known, stranger: 1.0}, {stranger: None}))
        asked = _run(self.make(4), space, 40, prior=prior)
        assert len(set(asked)) == 40
        assert set(asked) <= set(range(len(space)))
        begun: dict[int, float | None] = {}
        assert _run(self.make(4), space, 12, begun, prior) == asked[:12]
        assert _run(self.make(4), space, 28, begun, prior) == asked[12:]
        left = History(dict.fromkeys(range(2, len(space)), 1.0), prior=prior)
        assert sorted(self.make(4).ask(space, left, 9)) == [0, 1]

    def test_an_empty_space_is_exhausted_at_once(self) -> None:
        space = Space([Flag("A", True)], [Constraint("no", ("A",), lambda _: False, "never")])
        assert self.make(0).ask(space, History(), 3) == []

    def test_a_space_of_one_config(self) -> None:
        space = Space([Choice("A", ("only",), "only")])
        assert self.make(0).ask(space, History(), 3) == [0]
        assert self.make(0).ask(space, History({0: None}), 3) == []


def small_space() -> Space:
    """234 valid configs of 384 raw points, with a conditional parameter and a rule."""

    def fits(values: Mapping[str, Value]) -> bool:
        return int(values["BLOCK"]) * int(values["WARPS"]) <= 256

    return Space(
        [
            Choice("SPLIT", ("none", "kernel", "last"), "kernel"),
            PowerOfTwo("PARTS", 2, 16, 4, active=lambda v: v["SPLIT"] != "none"),
            PowerOfTwo("BLOCK", 16, 128, 32),
            PowerOfTwo("WARPS", 1, 8, 4),
            Flag("MASK", True),
        ],
        [Constraint("fits", ("BLOCK", "WARPS"), fits, "too large a tile for its warps")],
    )


def objective(space: Space, id: int) -> float | None:
    """Microseconds with one optimum (kernel, 8, 64, 2, False: 1.0); None where the candidate fails."""
    config = space.config(id)
    if config["SPLIT"] == "last" and config["MASK"]:
        return None
    value = 1.0 + (config["SPLIT"] != "kernel") + bool(config["MASK"])
    for name, best in (("PARTS", 8), ("BLOCK", 64), ("WARPS", 2)):
        value += abs(int(config.get(name, 1)).bit_length() - best.bit_length())
    return value


def evaluations_to_optimum(sampler: Sampler, space: Space, prior: Prior = NOTHING_KNOWN) -> int:
    """How many evaluations of the small space's `objective` a sampler needs until it has seen the best."""
    observed: dict[int, float | None] = {}
    while 1.0 not in observed.values():
        (id,) = sampler.ask(space, History(observed, prior=prior), 1)
        observed[id] = objective(space, id)
    return len(observed)


def _run(
    sampler: Sampler,
    space: Space,
    count: int,
    observed: dict[int, float | None] | None = None,
    prior: Prior = NOTHING_KNOWN,
) -> list[int]:
    """Asks for one id at a time and tells its objective, `count` times or until the space is exhausted."""
    observed = {} if observed is None else observed
    asked: list[int] = []
    while len(asked) < count:
        ids = sampler.ask(space, History(observed, prior=prior), 1)
        if not ids:
            break
        asked += ids
        observed.update({id: objective(space, id) for id in ids})
    return asked
