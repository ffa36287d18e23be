import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
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


@dataclass(frozen=True)
class Served:
    """A service in a process of its own."""

    url: str
    port: int
    process: subprocess.Popen[bytes]

    def forget_peak(self) -> None:
        """Let `peak_bytes` be that from now on."""
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    def peak_bytes(self) -> int:
        """Return the most memory that the process has had."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) * 1024


@pytest.fixture(scope="session")
def serve_apart() -> Callable[[Settings], AbstractContextManager[Served]]:
    """Runs `medlink serve` as long as the context lasts; it is ready when the context begins."""

    @contextmanager
    def served(settings: Settings) -> Iterator[Served]:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        environment = {**os.environ, **settings.environment(), "MEDLINK_PORT": str(port)}
        process = subprocess.Popen([sys.executable, "-m", "medlink.cli", "serve"], env=environment)
        try:
            until_ready(f"http://127.0.0.1:{port}", process)
            yield Served(f"http://127.0.0.1:{port}", port, process)
        finally:
            process.kill()
            process.wait()

    return served


def until_ready(url: str, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        assert process.poll() is None, "the service ended"
        try:
            if httpx.get(f"{url}/readyz").status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    raise AssertionError("the service was not ready within a minute")
