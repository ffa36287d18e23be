"""Says by its exit code whether a container is well: `health.py livez | readyz` asks the service, `store` the store."""

import os
import sys
from urllib.request import urlopen

import psycopg


def _ask_service(path: str) -> None:
    port = os.environ.get("MEDLINK_PORT") or "8000"
    with urlopen(f"http://127.0.0.1:{port}/{path}", timeout=4):  # an error status raises
        pass


def _ask_store() -> None:
    with psycopg.connect(os.environ["MEDLINK_DATABASE_URL"], connect_timeout=4) as connection:
        connection.execute("SELECT 1")


if __name__ == "__main__":
    asked = sys.argv[1]
    try:
        _ask_store() if asked == "store" else _ask_service(asked)
    except (OSError, psycopg.Error) as error:
        raise SystemExit(f"{asked}: {type(error).__name__}") from None
