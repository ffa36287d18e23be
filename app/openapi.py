"""Writes the OpenAPI description of the service; `make openapi` calls it and a test pins the file."""

import json
import sys
from pathlib import Path

from app.main import create_app
from app.settings import Settings


def openapi_json() -> str:
    """Return the description as the text of docs/api/openapi.json."""
    return json.dumps(create_app(Settings()).openapi(), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(openapi_json(), encoding="utf-8")
