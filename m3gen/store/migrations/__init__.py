"""Alembic's scripts, a revision a file in `versions`; `m3gen.store.migrate` runs them."""

HEAD = "0003"  # the newest revision: lets a store that is up to date open without importing alembic
