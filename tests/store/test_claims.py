from __future__ import annotations

import os
import subprocess
import sys

import pytest

from m3gen.store import Store, claims, dialect, owner
from tests.store import samples
from tests.store.samples import problem

CLAIM = """
import os, signal, sys
from m3gen.store import Store
from tests.store.samples import problem
store = Store.open(sys.argv[1])
session = store.begin({"of": "one that dies"}, [problem()])
print(*store.claim(session, {"work"}), flush=True)
sys.stdin.readline()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def mine(store: Store) -> int:
    return store.begin({"of": "mine"}, [problem()])


@pytest.fixture
def theirs(store: Store) -> int:
    return store.begin({"of": "theirs"}, [problem()])


def test_what_is_claimed_is_not_given_to_another(store: Store, mine: int, theirs: int) -> None:
    assert store.claim(mine, {"a", "b"}) == {"a", "b"}
    assert store.claim(theirs, {"b", "c"}) == {"c"}
    assert store.claim(mine, {"a", "c"}) == {"a"}


def test_what_is_released_is_free(store: Store, mine: int, theirs: int) -> None:
    store.claim(mine, {"a", "b", "c"})
    store.release_claims(theirs)  # of another: nothing of these
    store.release_claims(mine, {"a"})
    assert store.claim(theirs, {"a", "b"}) == {"a"}
    store.release_claims(mine)
    assert store.claim(theirs, {"b", "c"}) == {"b", "c"}


def test_a_lease_runs_out_unless_renewed(
    store: Store, mine: int, theirs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr(dialect, "now_s", lambda session: now)
    store.claim(mine, {"a"})
    now += claims.LEASE_S - 1
    store.renew_claims(mine)
    now += claims.LEASE_S - 1
    assert store.claim(theirs, {"a"}) == set()
    now += 2
    assert store.claim(theirs, {"a"}) == {"a"}
    assert store.claim(mine, {"a"}) == set()


def test_a_process_that_is_gone_holds_nothing(store: Store, url: str, mine: int) -> None:
    other = samples.start(CLAIM, url, stdin=subprocess.PIPE)
    assert other.stdout
    assert other.stdout.readline() == "work\n"
    assert store.claim(mine, {"work"}) == set()
    other.communicate("now\n", timeout=60)
    assert store.claim(mine, {"work"}) == {"work"}


def test_this_process_is_there() -> None:
    assert str(os.getpid()) in owner.this_process().split()
    assert not owner.is_gone(owner.this_process())


def test_a_process_that_ended_is_gone_and_so_is_another_of_its_number() -> None:
    boot, namespace, _, start = owner.this_process().split(" ")
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert owner.is_gone(f"{boot} {namespace} {ended.pid} {start}")
    assert owner.is_gone(f"{boot} {namespace} {os.getpid()} {int(start) + 1}")


@pytest.mark.parametrize("part", [0, 1])
def test_nothing_is_known_of_processes_elsewhere(part: int) -> None:
    words = owner.this_process().split(" ")
    words[2] = "1000000000"
    assert owner.is_gone(" ".join(words))
    words[part] = "another"
    assert not owner.is_gone(" ".join(words))
