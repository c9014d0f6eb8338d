"""The schema: problems, configs, machine code and what was found out. Winners are a query, not a table.

    problems 1 ── n evaluations n ── 1 configs         one row per thing found out, never changed
                  evaluations 1 ── n launches n ── 1 kernel_facts
    configs  1 ── n verifications                      of a signature, whatever the load
    kernel_traces                                      what running kernels showed, see `TracesRow`
    sessions n ── n problems (session_problems)        who asked, with what arguments, for how long
    sessions 1 ── n claims                             what is being found out just now

A row is only ever added (a session's progress and claims aside). Types are those that SQLite and PostgreSQL
share; times are UTC in ISO 8601 with microseconds, so that their order as text is their order in time.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Text,
    UniqueConstraint,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s",
    "pk": "pk_%(table_name)s",
}

# SQLite gives out row ids only for a column declared INTEGER.
RowId = BigInteger().with_variant(Integer, "sqlite")
Sha = String(64)
Stamp = String(32)


class Base(DeclarativeBase):
    metadata = MetaData(naming_convention=NAMING)
    type_annotation_map = {float: Double, dict[str, Any]: JSON, list[Any]: JSON, str: Text}  # noqa: RUF012


class ProblemRow(Base):
    """`signature` is the sha of the problem without its load: what a verification holds for."""

    __tablename__ = "problems"
    __table_args__ = (Index(None, "arch", "op"),)

    sha: Mapped[str] = mapped_column(Sha, primary_key=True)
    signature: Mapped[str] = mapped_column(Sha)
    op: Mapped[str]
    arch: Mapped[str]
    problem: Mapped[dict[str, Any]]
    created_at: Mapped[str] = mapped_column(Stamp)


class ConfigRow(Base):
    __tablename__ = "configs"

    sha: Mapped[str] = mapped_column(Sha, primary_key=True)
    config: Mapped[dict[str, Any]]


class FactsRow(Base):
    """The whole `KernelFacts` of one launch, so that a later judge can score it without compiling."""

    __tablename__ = "kernel_facts"

    key: Mapped[str] = mapped_column(String(128), primary_key=True)
    kernel: Mapped[str]
    arch: Mapped[str]
    compiler: Mapped[str]
    code_sha: Mapped[str]
    facts: Mapped[dict[str, Any]]
    created_at: Mapped[str] = mapped_column(Stamp)


class TracesRow(Base):
    """`evaluate.trace.Traces` as bytes, by the name that `environment["launches"]` of evaluations gives them: with the
    facts all that a later judge needs, whatever its constants."""

    __tablename__ = "kernel_traces"

    name: Mapped[str] = mapped_column(String(160), primary_key=True)
    traces: Mapped[bytes] = mapped_column(LargeBinary)
    created_at: Mapped[str] = mapped_column(Stamp)


class EvaluationRow(Base):
    """Its identity is what was judged (problem, config, compiler, source) and by whom (stage, judge)."""

    __tablename__ = "evaluations"
    __table_args__ = (
        UniqueConstraint(
            *("problem_sha", "config_sha", "stage", "judge", "compiler", "source_sha"),
            name="uq_evaluations_identity",
        ),
    )

    id: Mapped[int] = mapped_column(RowId, primary_key=True)
    session_id: Mapped[int] = mapped_column(ForeignKey("sessions.id"))
    problem_sha: Mapped[str] = mapped_column(ForeignKey("problems.sha"))
    config_sha: Mapped[str] = mapped_column(ForeignKey("configs.sha"))
    stage: Mapped[str] = mapped_column(String(32))
    judge: Mapped[str]
    compiler: Mapped[str]  # "" where none was asked
    source_sha: Mapped[str]  # "" where the evaluation does not say
    status: Mapped[str] = mapped_column(String(32))
    value_us: Mapped[float | None]
    low_us: Mapped[float | None]
    high_us: Mapped[float | None]
    terms: Mapped[dict[str, Any]]
    limited_by: Mapped[str]
    code: Mapped[str]
    reason: Mapped[str]
    samples_us: Mapped[list[Any]]
    seconds: Mapped[float]
    environment: Mapped[dict[str, Any]]
    created_at: Mapped[str] = mapped_column(Stamp)


class LaunchRow(Base):
    """The facts of an evaluation, in launch order; the same facts may be launched twice."""

    __tablename__ = "launches"
    __table_args__ = (Index(None, "facts_key"),)

    evaluation_id: Mapped[int] = mapped_column(ForeignKey("evaluations.id"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True)
    facts_key: Mapped[str] = mapped_column(ForeignKey("kernel_facts.key"))


class VerificationRow(Base):
    """`ran_on` is `Verification.on`, a word SQL keeps for itself."""

    __tablename__ = "verifications"
    __table_args__ = (
        UniqueConstraint("signature", "config_sha", "source_sha", "ran_on", name="uq_verifications_identity"),
    )

    id: Mapped[int] = mapped_column(RowId, primary_key=True)
    signature: Mapped[str] = mapped_column(Sha)
    config_sha: Mapped[str] = mapped_column(ForeignKey("configs.sha"))
    source_sha: Mapped[str]
    ran_on: Mapped[str] = mapped_column(String(32))
    status: Mapped[str] = mapped_column(String(32))
    cases: Mapped[list[Any]]
    seconds: Mapped[float]
    reason: Mapped[str]
    environment: Mapped[dict[str, Any]]
    created_at: Mapped[str] = mapped_column(Stamp)


class SessionRow(Base):
    """`seconds` is kept up with every commit, so that a killed session has still said what it spent."""

    __tablename__ = "sessions"
    __table_args__ = (Index(None, "arguments_sha"),)

    id: Mapped[int] = mapped_column(RowId, primary_key=True)
    arguments: Mapped[dict[str, Any]]
    arguments_sha: Mapped[str] = mapped_column(Sha)
    state: Mapped[str]
    seconds: Mapped[float]
    started_at: Mapped[str] = mapped_column(Stamp)
    ended_at: Mapped[str | None] = mapped_column(Stamp)


class SessionProblemRow(Base):
    __tablename__ = "session_problems"

    session_id: Mapped[int] = mapped_column(ForeignKey("sessions.id"), primary_key=True)
    problem_sha: Mapped[str] = mapped_column(ForeignKey("problems.sha"), primary_key=True)


class ClaimRow(Base):
    """`work` is the sha of what a session is about to find out; `expires_s` is Unix time by the database's clock."""

    __tablename__ = "claims"
    __table_args__ = (Index(None, "session_id"),)

    work: Mapped[str] = mapped_column(Sha, primary_key=True)
    session_id: Mapped[int] = mapped_column(ForeignKey("sessions.id"))
    owner: Mapped[str]
    expires_s: Mapped[float]
