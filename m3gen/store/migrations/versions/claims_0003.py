"""Claims: what sessions are at work on."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

ROW_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "claims",
        sa.Column("work", sa.String(64), nullable=False),
        sa.Column("session_id", ROW_ID, nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("expires_s", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("work", name="pk_claims"),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name="fk_claims_session_id"),
    )
    op.create_index("ix_claims_session_id", "claims", ["session_id"])


def downgrade() -> None:
    op.drop_table("claims")
