"""Run by alembic, on the connection of `m3gen.store.migrate`: inside a transaction that holds the lock."""

from alembic import context

from m3gen.store.models import Base

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    transactional_ddl=True,  # of SQLite as well: the driver begins and ends no transactions here
)
with context.begin_transaction():
    context.run_migrations()
