"""Connections to PostgreSQL have a name and limits; what the URL says goes first."""

import time

import pytest
from sqlalchemy import make_url, text
from sqlalchemy.exc import DBAPIError

from medlink.kb.database import open_engine
from medlink.kb.postgresql import POOL


def _shown(engine, *settings: str) -> list[str]:
    with engine.connect() as connection:
        return [connection.scalar(text(f"SHOW {name}")) for name in settings]


def test_a_service_has_limits_and_a_load_has_time(postgres_store):
    hurried, patient = open_engine(postgres_store, patience=5.0), open_engine(postgres_store)

    assert _shown(hurried, "application_name", "statement_timeout", "lock_timeout") == ["medlink", "4s", "2s"]
    assert _shown(patient, "application_name", "statement_timeout", "lock_timeout") == ["medlink", "0", "1min"]
    assert (hurried.pool.size(), hurried.pool.timeout()) == (POOL["pool_size"], POOL["pool_timeout"])
    hurried.dispose()
    patient.dispose()


def test_what_the_url_says_goes_first(postgres_store):
    options = {"application_name": "ours", "options": "-c statement_timeout=7000"}
    url = make_url(postgres_store).update_query_dict(options).render_as_string(hide_password=False)
    engine = open_engine(url, patience=5.0)

    assert _shown(engine, "application_name", "statement_timeout", "lock_timeout") == ["ours", "7s", "2s"]
    engine.dispose()


def test_a_wait_ends_with_patience_though_the_server_would_go_on_and_the_next_one_is_answered(postgres_store):
    url = make_url(postgres_store).update_query_dict({"options": "-c statement_timeout=0"})
    engine = open_engine(url.render_as_string(hide_password=False), patience=1.0)

    started = time.monotonic()
    with pytest.raises(DBAPIError), engine.connect() as connection:
        connection.execute(text("SELECT pg_sleep(60)"))
    took = time.monotonic() - started

    assert took < 30
    with engine.connect() as connection:
        assert connection.scalar(text("SELECT 1")) == 1
    engine.dispose()
