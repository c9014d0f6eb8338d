"""Claims: which session is about to find out what, so that others on the same store do something else meanwhile.

A claim is a courtesy, never a lock: what two sessions find out about the same thing is stored once, whoever was first.
It ends when it is released, when its lease runs out by the database's clock, or when its process is seen to be gone.
"""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from m3gen.store import dialect, owner
from m3gen.store.models import ClaimRow

LEASE_S = 60.0  # renewed several times in that time: whoever lets it run out has stopped


def take(session: Session, session_id: int, works: Collection[str]) -> set[str]:
    """The works that are this session's from now on: free ones, its own, and those of whoever is gone."""
    now = dialect.now_s(session)
    session.execute(delete(ClaimRow).where(ClaimRow.expires_s < now))
    taken = set()
    for work in works:
        claim = {"work": work, "session_id": session_id, "owner": owner.this_process(), "expires_s": now + LEASE_S}
        new = dialect.insert_new(session, ClaimRow.work, claim) is not None
        if new or _take_over(session, claim):
            taken.add(work)
    return taken


def renew(session: Session, session_id: int) -> None:
    """Start the lease of all claims of a session anew."""
    expires = dialect.now_s(session) + LEASE_S
    session.execute(update(ClaimRow).where(ClaimRow.session_id == session_id).values(expires_s=expires))


def release(session: Session, session_id: int, works: Collection[str] | None) -> None:
    """Give up these works, or all of them for None."""
    mine = delete(ClaimRow).where(ClaimRow.session_id == session_id)
    session.execute(mine if works is None else mine.where(ClaimRow.work.in_(works)))


def _take_over(session: Session, claim: dict[str, object]) -> bool:
    held = session.execute(
        select(ClaimRow.session_id, ClaimRow.owner).where(ClaimRow.work == claim["work"])
    ).one_or_none()
    if held is None:  # released since, on a server: another try will tell
        return False
    if held.session_id == claim["session_id"]:
        return True
    if not owner.is_gone(held.owner):
        return False
    same = ClaimRow.work == claim["work"], ClaimRow.owner == held.owner
    found = session.execute(update(ClaimRow).where(*same).values(**claim).returning(ClaimRow.work))
    return found.scalar_one_or_none() is not None
