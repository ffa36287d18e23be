"""First schema: content, its loads, index builds, jobs, curation and keys.

Revision 0001.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision: str | None = None
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None

_STRING = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_LONG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_MOMENT = sa.DateTime(timezone=True)
_TABLES = (
    "active_build activation api_key curation job index_build retired trade_name broader code definition "
    "semantic_type name concept source load"
).split()


def _strings(names: str, *, nullable: bool = False) -> list[sa.Column[str]]:
    return [sa.Column(name, _STRING, nullable=nullable) for name in names.split()]


def _moments(names: str, *, nullable: bool = True) -> list[sa.Column[datetime]]:
    return [sa.Column(name, _MOMENT, nullable=nullable) for name in names.split()]


def _content(table: str, columns: Sequence[sa.Column[Any]], *indexed: str) -> None:
    op.create_table(
        table,
        sa.Column("id", _LONG, nullable=False),
        sa.Column("load_id", sa.Integer(), nullable=False),
        *columns,
        sa.PrimaryKeyConstraint("id", name=f"pk_{table}"),
    )
    for column in indexed:
        op.create_index(f"ix_{table}_{column}", table, [column])


def _create_content() -> None:
    rank = sa.Column("rank", sa.Integer(), nullable=False)
    successor = sa.Column("successor_id", _STRING, nullable=True)
    _content("name", [*_strings("concept_id text sab tty language code suppress"), rank], "concept_id")
    _content("semantic_type", _strings("concept_id tui name"), "concept_id")
    _content("definition", _strings("concept_id sab text"), "concept_id")
    _content("code", _strings("concept_id sab code"), "concept_id")
    op.create_index("ix_code_sab_code", "code", ["sab", "code"])
    _content("broader", _strings("concept_id broader_id sab"), "concept_id")
    _content("trade_name", _strings("generic_id trade_id"), "generic_id")
    _content(
        "retired",
        [*_strings("concept_id"), successor, *_strings("relation release")],
        "concept_id",
        "successor_id",
    )


def _create_loads() -> None:
    op.create_table(
        "load",
        sa.Column("id", sa.Integer(), nullable=False),
        *_strings("name format fingerprint"),
        sa.Column("options", sa.JSON(), nullable=False),
        *_strings("state"),
        *_moments("started_at", nullable=False),
        *_moments("finished_at"),
        sa.Column("counts", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_load"),
        sa.UniqueConstraint("name", name="uq_load_name"),
        sa.CheckConstraint("state IN ('loading', 'complete')", name="ck_load_state"),
    )
    op.create_table(
        "source",
        sa.Column("load_id", sa.Integer(), nullable=False),
        *_strings("sab name version licence"),
        sa.Column("licence_level", sa.Integer(), nullable=False),
        *_strings("attribution url"),
        sa.PrimaryKeyConstraint("load_id", "sab", name="pk_source"),
    )
    op.create_table(
        "concept",
        *_strings("id preferred_name"),
        sa.PrimaryKeyConstraint("id", name="pk_concept"),
    )


def _create_builds() -> None:
    op.create_table(
        "index_build",
        *_strings("id"),
        *_moments("created_at", nullable=False),
        *_strings("state"),
        sa.Column("manifest", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_index_build"),
        sa.CheckConstraint("state IN ('ready', 'quarantined', 'deleted')", name="ck_index_build_state"),
    )
    active = op.create_table(
        "active_build",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        *_strings("build_id", nullable=True),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_active_build"),
        sa.CheckConstraint("id = 1", name="ck_active_build_one_row"),
        sa.ForeignKeyConstraint(["build_id"], ["index_build.id"], name="fk_active_build_build_id"),
    )
    op.bulk_insert(active, [{"id": 1, "build_id": None, "generation": 0}])
    op.create_table(
        "activation",
        sa.Column("generation", sa.Integer(), autoincrement=False, nullable=False),
        *_strings("build_id"),
        *_moments("at", nullable=False),
        sa.PrimaryKeyConstraint("generation", name="pk_activation"),
        sa.ForeignKeyConstraint(["build_id"], ["index_build.id"], name="fk_activation_build_id"),
    )


def _create_job() -> None:
    op.create_table(
        "job",
        *_strings("id kind state"),
        sa.Column("stage", _STRING, server_default="", nullable=False),
        sa.Column("progress", sa.Float(), server_default="0", nullable=False),
        sa.Column("parameters", sa.JSON(), nullable=False),
        sa.Column("counts", sa.JSON(), nullable=False),
        sa.Column("requested_by", _STRING, server_default="", nullable=False),
        sa.Column("cancel_requested", sa.Boolean(), server_default=sa.false(), nullable=False),
        *_strings("lease_owner", nullable=True),
        *_moments("lease_until heartbeat_at"),
        sa.Column("fencing_token", sa.Integer(), server_default="0", nullable=False),
        *_strings("error", nullable=True),
        *_moments("created_at", nullable=False),
        *_moments("started_at finished_at"),
        sa.PrimaryKeyConstraint("id", name="pk_job"),
        sa.CheckConstraint("state IN ('queued', 'running', 'done', 'failed', 'cancelled')", name="ck_job_state"),
    )
    active = sa.text("state IN ('queued', 'running')")
    op.create_index("uq_job_active", "job", ["kind"], unique=True, sqlite_where=active, postgresql_where=active)


def _create_administration() -> None:
    op.create_table(
        "curation",
        sa.Column("id", sa.Integer(), nullable=False),
        *_strings("action"),
        *_strings("text concept_id", nullable=True),
        *_strings("who why"),
        *_moments("created_at", nullable=False),
        *_moments("revoked_at"),
        *_strings("revoked_by", nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_curation"),
        sa.CheckConstraint(
            "action IN ('add_synonym', 'block_name', 'block_concept', 'pin_mention')",
            name="ck_curation_action",
        ),
    )
    op.create_index("ix_curation_concept_id", "curation", ["concept_id"])
    op.create_table(
        "api_key",
        *_strings("id name hash"),
        sa.Column("scopes", sa.JSON(), nullable=False),
        *_moments("created_at", nullable=False),
        *_moments("revoked_at"),
        sa.PrimaryKeyConstraint("id", name="pk_api_key"),
        sa.UniqueConstraint("hash", name="uq_api_key_hash"),
    )


def upgrade() -> None:
    _create_loads()
    _create_content()
    _create_builds()
    _create_job()
    _create_administration()


def downgrade() -> None:
    for table in _TABLES:
        op.drop_table(table)
