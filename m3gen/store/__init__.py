"""The store: what was found out about every candidate, in SQLite or PostgreSQL."""

from m3gen.store.claims import LEASE_S
from m3gen.store.identity import arguments_sha, signature
from m3gen.store.records import FailureCount, Record, SessionRecord, Winner
from m3gen.store.store import Store

__all__ = ["LEASE_S", "FailureCount", "Record", "SessionRecord", "Store", "Winner", "arguments_sha", "signature"]
