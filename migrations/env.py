"""Runs the migrations, on the caller's connection if it passes one, else on the database of the settings."""

from typing import Any, Literal

from alembic import context
from sqlalchemy import Connection

from app.settings import Settings
from medlink.kb.database import migration_lock, open_engine
from medlink.kb.orm import Base, UtcDateTime


def _render(kind: str, item: Any, _context: Any) -> str | Literal[False]:  # noqa: ANN401 - alembic's signature
    # A migration must not import the models: they change, it does not.
    return "sa.DateTime(timezone=True)" if kind == "type" and isinstance(item, UtcDateTime) else False


def _run(connection: Connection) -> None:
    # SQLite cannot alter a table in place; the batch mode copies it.
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        render_as_batch=True,
        transactional_ddl=True,
        render_item=_render,
    )
    with context.begin_transaction():
        context.run_migrations()


def _run_on_settings() -> None:
    engine = open_engine(Settings().database_url)
    with migration_lock(engine) as connection:
        _run(connection)
    engine.dispose()


_connection: Connection | None = context.config.attributes.get("connection")
if _connection is None:
    _run_on_settings()
else:
    _run(_connection)
