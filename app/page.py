"""The page at `/`: static files of our own, which may load nothing from elsewhere and run nothing inline."""

from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import FileResponse
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

_FOLDER = Path(__file__).parent / "web"
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self';"
    " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",  # a browser asks whether its copy is still that of this version
}


class _Files(StaticFiles):
    async def get_response(self, path: str, scope: Scope) -> Response:
        """Return a file, with the same headers as the page."""
        response = await super().get_response(path, scope)
        response.headers.update(_HEADERS)
        return response


def install(app: FastAPI) -> None:
    """Serve the page and its files."""
    app.mount("/static", _Files(directory=_FOLDER))

    @app.get("/", include_in_schema=False)
    def page() -> FileResponse:
        return FileResponse(_FOLDER / "index.html", headers=_HEADERS)
