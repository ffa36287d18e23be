"""How PostgreSQL is connected to, and how long one waits for it: a server may be dead, gone or merely silent."""

from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen
from psycopg.pq import TransactionStatus
from sqlalchemy import URL, Engine, event
from sqlalchemy.exc import DBAPIError

_Result = TypeVar("_Result")

POOL = {
    # What one process has at once at most, of the hundred connections that a server gives out by default.
    "pool_size": 5,
    "max_overflow": 5,
    # Whoever asks for an eleventh waits no longer than for an answer.
    "pool_timeout": 10,
    # Firewalls forget connections over which nothing goes.
    "pool_recycle": 1800,
}
_CONNECTING = {
    "application_name": "medlink",
    "connect_timeout": 5,
    # A host that vanished answers no keepalive: noticed after a minute, where the system's own settings take hours.
    "keepalives": 1,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
# Loads and rebuilds run statements for minutes, but none of ours holds a lock that others want for as long.
_LONG = {"lock_timeout": 60_000}


class _Impatient(psycopg.Connection[Any]):
    """Gives up on a server that says nothing, where its own time-outs stopped with it.

    A process that is suspended, or whose disk hangs, keeps its connections open, and its kernel answers keepalives.
    """

    patience: float

    def wait(self, gen: PQGen[_Result], interval: float = 0.1, timeout: float | None = None) -> _Result:
        try:
            return super().wait(gen, interval, timeout or self.patience)
        except psycopg.OperationalError:
            if self.pgconn.transaction_status == TransactionStatus.ACTIVE:
                self.pgconn.finish()  # an answer that comes later must not be taken for that to another question
            raise


def connect_arguments(url: URL, patience: float | None) -> dict[str, Any]:
    """Return what a connection is opened with; what the URL says goes first."""
    given = {key: value for key, value in _CONNECTING.items() if key not in url.query}
    limits = dict(_LONG)
    if patience is not None:
        # The server gives up first, so that it is done with a statement that nobody waits for.
        milliseconds = round(patience * 800)
        limits = {
            "statement_timeout": milliseconds,
            "lock_timeout": milliseconds // 2,
            "idle_in_transaction_session_timeout": 4 * milliseconds,
        }
    told = url.query.get("options", "")
    options = [f"-c {name}={value}" for name, value in limits.items() if name not in told]
    return {**given, "options": " ".join([*options, *([str(told)] if told else [])])}


def lose_patience(engine: Engine, patience: float) -> None:
    """Let every wait for the server end after so many seconds, with an error and without the connection."""

    @event.listens_for(engine, "do_connect")
    def connect(_dialect: object, _record: object, arguments: list[Any], keywords: dict[str, Any]) -> object:
        connection = _Impatient.connect(*arguments, **keywords)
        connection.patience = patience
        return connection


def is_away(error: Exception) -> bool:
    """Say whether a statement failed because the server stopped, restarted or cannot be reached."""
    if not isinstance(error, DBAPIError) or not isinstance(error.orig, psycopg.OperationalError):
        return False
    state = error.orig.sqlstate
    return error.connection_invalidated or state is None or state.startswith(("57P", "08"))
