"""How far a job is within its stage, and what it made.

Revision 0003.
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision: str | None = "0002"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None

_STRING = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_LONG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    for name in ("done", "total"):
        op.add_column("job", sa.Column(name, _LONG, server_default="0", nullable=False))
    for name in ("rate", "eta_seconds"):
        op.add_column("job", sa.Column(name, sa.Float(), nullable=True))
    op.add_column("job", sa.Column("build_id", _STRING, nullable=True))


def downgrade() -> None:
    # SQLite drops a column in place since 3.35; a copy of the table would lose the condition of its index.
    for name in ("build_id", "eta_seconds", "rate", "total", "done"):
        op.drop_column("job", name)
