"""What running kernels showed, beside what their machine code says."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "kernel_traces",
        sa.Column("name", sa.String(160), nullable=False),
        sa.Column("traces", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.String(32), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_kernel_traces"),
    )


def downgrade() -> None:
    op.drop_table("kernel_traces")
