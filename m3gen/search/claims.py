"""`Claims`: what this session says in the store that it is at work on, so that others do something else."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection

from m3gen.store import LEASE_S, Store


def work(*parts: str) -> str:
    """What a claim is on: sha of its parts."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


class Claims:
    """The claims of one session. `keep` has to be called now and then, or they run out."""

    def __init__(self, store: Store, session_id: int) -> None:
        self._store = store
        self._session_id = session_id
        self._held: set[str] = set()
        self._renewed = time.monotonic()

    def take(self, wanted: str) -> bool:
        """Whether nobody else is at this."""
        self._held |= self._store.claim(self._session_id, {wanted})
        return wanted in self._held

    def release(self, done: Collection[str]) -> None:
        if mine := self._held.intersection(done):
            self._store.release_claims(self._session_id, mine)
            self._held -= mine

    def keep(self) -> None:
        """Renew the claims when a quarter of their lease is over."""
        now = time.monotonic()
        if now - self._renewed > LEASE_S / 4:
            self._renewed = now
            if self._held:
                self._store.renew_claims(self._session_id)

    def close(self) -> None:
        """Give up all that are left."""
        self.release(set(self._held))
