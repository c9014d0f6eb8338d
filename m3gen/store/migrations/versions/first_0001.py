"""The first schema."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

ROW_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
SHA = sa.String(64)
STAMP = sa.String(32)


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=False)


def _json(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.JSON(), nullable=False)


def upgrade() -> None:
    _inputs()
    _sessions()
    _findings()


def _inputs() -> None:
    op.create_table(
        "problems",
        sa.Column("sha", SHA, nullable=False),
        sa.Column("signature", SHA, nullable=False),
        _text("op"),
        _text("arch"),
        _json("problem"),
        sa.Column("created_at", STAMP, nullable=False),
        sa.PrimaryKeyConstraint("sha", name="pk_problems"),
    )
    op.create_index("ix_problems_arch_op", "problems", ["arch", "op"])
    op.create_table(
        "configs",
        sa.Column("sha", SHA, nullable=False),
        _json("config"),
        sa.PrimaryKeyConstraint("sha", name="pk_configs"),
    )
    op.create_table(
        "kernel_facts",
        sa.Column("key", sa.String(128), nullable=False),
        _text("kernel"),
        _text("arch"),
        _text("compiler"),
        _text("code_sha"),
        _json("facts"),
        sa.Column("created_at", STAMP, nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_kernel_facts"),
    )


def _sessions() -> None:
    op.create_table(
        "sessions",
        sa.Column("id", ROW_ID, nullable=False),
        _json("arguments"),
        sa.Column("arguments_sha", SHA, nullable=False),
        _text("state"),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("started_at", STAMP, nullable=False),
        sa.Column("ended_at", STAMP, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_sessions"),
    )
    op.create_index("ix_sessions_arguments_sha", "sessions", ["arguments_sha"])
    op.create_table(
        "session_problems",
        sa.Column("session_id", ROW_ID, nullable=False),
        sa.Column("problem_sha", SHA, nullable=False),
        sa.PrimaryKeyConstraint("session_id", "problem_sha", name="pk_session_problems"),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name="fk_session_problems_session_id"),
        sa.ForeignKeyConstraint(["problem_sha"], ["problems.sha"], name="fk_session_problems_problem_sha"),
    )


def _findings() -> None:
    op.create_table(
        "evaluations",
        sa.Column("id", ROW_ID, nullable=False),
        sa.Column("session_id", ROW_ID, nullable=False),
        sa.Column("problem_sha", SHA, nullable=False),
        sa.Column("config_sha", SHA, nullable=False),
        sa.Column("stage", sa.String(32), nullable=False),
        _text("judge"),
        _text("compiler"),
        _text("source_sha"),
        sa.Column("status", sa.String(32), nullable=False),
        sa.Column("value_us", sa.Double(), nullable=True),
        sa.Column("low_us", sa.Double(), nullable=True),
        sa.Column("high_us", sa.Double(), nullable=True),
        _json("terms"),
        _text("limited_by"),
        _text("code"),
        _text("reason"),
        _json("samples_us"),
        sa.Column("seconds", sa.Double(), nullable=False),
        _json("environment"),
        sa.Column("created_at", STAMP, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_evaluations"),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name="fk_evaluations_session_id"),
        sa.ForeignKeyConstraint(["problem_sha"], ["problems.sha"], name="fk_evaluations_problem_sha"),
        sa.ForeignKeyConstraint(["config_sha"], ["configs.sha"], name="fk_evaluations_config_sha"),
        sa.UniqueConstraint(
            "problem_sha",
            "config_sha",
            "stage",
            "judge",
            "compiler",
            "source_sha",
            name="uq_evaluations_identity",
        ),
    )
    op.create_table(
        "launches",
        sa.Column("evaluation_id", ROW_ID, nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("facts_key", sa.String(128), nullable=False),
        sa.PrimaryKeyConstraint("evaluation_id", "position", name="pk_launches"),
        sa.ForeignKeyConstraint(["evaluation_id"], ["evaluations.id"], name="fk_launches_evaluation_id"),
        sa.ForeignKeyConstraint(["facts_key"], ["kernel_facts.key"], name="fk_launches_facts_key"),
    )
    op.create_index("ix_launches_facts_key", "launches", ["facts_key"])
    op.create_table(
        "verifications",
        sa.Column("id", ROW_ID, nullable=False),
        sa.Column("signature", SHA, nullable=False),
        sa.Column("config_sha", SHA, nullable=False),
        _text("source_sha"),
        sa.Column("ran_on", sa.String(32), nullable=False),
        sa.Column("status", sa.String(32), nullable=False),
        _json("cases"),
        sa.Column("seconds", sa.Double(), nullable=False),
        _text("reason"),
        _json("environment"),
        sa.Column("created_at", STAMP, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_verifications"),
        sa.ForeignKeyConstraint(["config_sha"], ["configs.sha"], name="fk_verifications_config_sha"),
        sa.UniqueConstraint(
            "signature",
            "config_sha",
            "source_sha",
            "ran_on",
            name="uq_verifications_identity",
        ),
    )


def downgrade() -> None:
    raise NotImplementedError("there is nothing before the first schema")
