"""A body of a gigabyte is refused early by a service that listens, in no more memory than any other."""

import gzip
import json
import select
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.client import HTTPResponse

import httpx
import pytest

from app.settings import Settings
from medlink.kb.builds import Builds
from medlink.kb.database import migrate, open_engine
from medlink.kb.keys import Keys
from medlink.manifest import read_manifest

GIGABYTE = 10**9
PIECE = b" " * 1_000_000
MEGABYTES = 1_000_000
# It takes under one; a machine may be busy.
SECONDS = 30


@pytest.fixture(scope="module")
def settings(make_build, tmp_path_factory) -> Settings:
    settings = Settings(data_dir=tmp_path_factory.mktemp("data"), rebuild_in_service=False, log_level="ERROR")
    engine = open_engine(settings.database_url)
    migrate(engine)
    build = make_build(settings.builds_dir)
    Builds(engine).register_build(build.id, read_manifest(settings.builds_dir / build.id))
    Builds(engine).activate_build(build.id)
    engine.dispose()
    return settings


@pytest.fixture(scope="module")
def admin(settings) -> dict[str, str]:
    engine = open_engine(settings.database_url)
    key = Keys(engine).create("boss", ["admin"])[1]
    engine.dispose()
    return {"X-API-Key": key}


@pytest.fixture(scope="module")
def service(settings, serve_apart):
    with serve_apart(settings) as service:
        # What it needs for any request at all is not what is measured.
        assert httpx.post(f"{service.url}/link", json={"mentions": ["cold"]}).is_success
        yield service


@dataclass
class Upload:
    """What a client sends piece by piece, and how far it came until it was answered."""

    path: str
    pieces: Iterator[bytes]
    headers: dict[str, str]
    hears: bool = True
    """Whether it stops sending when the answer comes."""
    sent: int = 0
    status: int = 0
    answered: dict[str, str] = field(default_factory=dict)
    problem: dict[str, object] = field(default_factory=dict)

    def to(self, port: int) -> "Upload":
        head = [f"POST {self.path} HTTP/1.1", "Host: localhost", *(f"{k}: {v}" for k, v in self.headers.items())]
        with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as connection:
            connection.sendall(("\r\n".join(head) + "\r\n\r\n").encode())
            for piece in self.pieces:
                if self.hears and select.select([connection], [], [], 0)[0]:
                    break
                connection.sendall(piece)
                self.sent += len(piece)
            response = HTTPResponse(connection)
            response.begin()
            self.status, self.answered = response.status, dict(response.headers)
            self.problem = json.loads(response.read())
        return self


def announced(**headers: str) -> tuple[Iterator[bytes], dict[str, str]]:
    return (PIECE for _ in range(GIGABYTE // len(PIECE))), {"Content-Length": str(GIGABYTE), **headers}


def chunked(**headers: str) -> tuple[Iterator[bytes], dict[str, str]]:
    chunk = b"%x\r\n%b\r\n" % (len(PIECE), PIECE)
    pieces = (chunk for _ in range(GIGABYTE // len(PIECE)))
    return pieces, {"Transfer-Encoding": "chunked", **headers}


def bomb(**headers: str) -> tuple[Iterator[bytes], dict[str, str]]:
    """A gigabyte as a megabyte of gzip, in files that follow one another."""
    packed = gzip.compress(PIECE * 10) * 100
    return iter([packed]), {"Content-Length": str(len(packed)), "Content-Encoding": "gzip", **headers}


JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize("path", ["/link", "/link/bulk", "/admin/curation", "/admin/index/rebuild"])
@pytest.mark.parametrize("body", [announced, chunked, bomb])
def test_a_gigabyte_is_refused_before_it_is_read(path, body, service, admin):
    pieces, headers = body(**JSON, **admin)
    service.forget_peak()
    before, begin = service.peak_bytes(), time.monotonic()

    upload = Upload(path, pieces, headers).to(service.port)

    assert (upload.status, upload.problem["code"]) == (413, "limit")
    assert "max_body_bytes = 8000000" in upload.problem["detail"]
    assert upload.answered["content-type"] == "application/problem+json"
    assert upload.sent < 50 * MEGABYTES
    assert time.monotonic() - begin < SECONDS
    assert service.peak_bytes() - before < 50 * MEGABYTES
    assert httpx.get(f"{service.url}/readyz").is_success


@pytest.mark.parametrize("body", [announced, chunked])
def test_nothing_is_read_of_a_gigabyte_that_comes_without_a_key(body, service):
    pieces, headers = body(**JSON)

    upload = Upload("/admin/curation", pieces, headers).to(service.port)

    assert (upload.status, upload.problem["code"]) == (401, "unauthenticated")
    assert upload.answered["content-type"] == "application/problem+json"
    assert upload.sent < 50 * MEGABYTES


@pytest.mark.parametrize(
    ("body", "key", "status"), [(announced, True, 413), (chunked, True, 413), (chunked, False, 401)]
)
def test_a_client_that_does_not_listen_costs_no_memory(body, key, status, service, admin):
    pieces, headers = body(**JSON, **(admin if key else {}))
    service.forget_peak()
    before = service.peak_bytes()

    upload = Upload("/admin/curation", pieces, headers, hears=False).to(service.port)

    assert (upload.status, upload.sent >= GIGABYTE) == (status, True)
    assert service.peak_bytes() - before < 50 * MEGABYTES
    assert httpx.get(f"{service.url}/readyz").is_success
