"""The key by which a repeated request finds the job that it made.

Revision 0004.
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision: str | None = "0003"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None

_STRING = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.add_column("job", sa.Column("idempotency_key", _STRING, nullable=True))
    op.create_index("uq_job_idempotency", "job", ["kind", "requested_by", "idempotency_key"], unique=True)


def downgrade() -> None:
    op.drop_index("uq_job_idempotency", "job")
    op.drop_column("job", "idempotency_key")
