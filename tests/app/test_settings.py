import pytest
from pydantic import ValidationError

from app.settings import Settings


def test_an_unknown_variable_is_an_error_that_names_the_valid_ones(monkeypatch):
    monkeypatch.setenv("MEDLINK_PROT", "9000")

    with pytest.raises(ValidationError, match=r"MEDLINK_PROT; valid: .*MEDLINK_PORT"):
        Settings()


def test_the_store_is_sqlite_in_the_data_directory_unless_said_otherwise(monkeypatch):
    monkeypatch.setenv("MEDLINK_DATA_DIR", "somewhere")
    assert Settings().database_url == "sqlite:///somewhere/medlink.sqlite"

    monkeypatch.setenv("MEDLINK_DATABASE_URL", "postgresql://db/medlink")
    assert Settings().database_url == "postgresql://db/medlink"


def test_an_empty_variable_is_as_if_it_were_not_set(monkeypatch):
    monkeypatch.setenv("MEDLINK_THREADS", "")
    monkeypatch.setenv("MEDLINK_ENCODER_DIR", "")

    assert Settings().threads is None
    assert Settings().encoder.name == "encoder"


def test_an_error_shows_no_value(monkeypatch):
    monkeypatch.setenv("MEDLINK_DATABASE_URL", "postgresql://me:secret@db/medlink")
    monkeypatch.setenv("MEDLINK_PROT", "secret")

    with pytest.raises(ValidationError) as caught:
        Settings()

    assert "secret" not in str(caught.value)


def test_settings_cannot_be_changed():
    with pytest.raises(ValidationError):
        Settings().port = 1  # type: ignore[misc]


def test_a_queue_that_the_largest_request_never_fits_into_is_refused():
    with pytest.raises(ValidationError, match="max_queue_mentions must be at least 5000"):
        Settings(max_queue_mentions=4999)
