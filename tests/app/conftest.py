from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from app.main import create_app
from app.settings import Settings


@pytest.fixture(scope="session")
def client(build, tmp_path_factory) -> Iterator[TestClient]:
    limits = {"max_mentions": 10, "max_bulk_mentions": 50, "max_mention_chars": 100, "max_body_bytes": 20_000}
    settings = Settings(data_dir=tmp_path_factory.mktemp("data"), **limits)
    with TestClient(create_app(settings, build=build), raise_server_exceptions=False) as client:
        yield client
