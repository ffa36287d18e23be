"""`/docs` without the network: FastAPI's own page over the Swagger UI files of a Python package."""

from fastapi import FastAPI
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import HTMLResponse
from starlette.staticfiles import StaticFiles

_FILES = "/docs/files"


def install(app: FastAPI) -> None:
    """Serve the page; FastAPI's default one loads its scripts from a host that a hospital cannot reach."""
    # Of `fastapi_swagger` only the files are used; its own routes read them by a deprecated way.
    app.mount(_FILES, StaticFiles(packages=[("fastapi_swagger", "resources")]))

    @app.get("/docs", include_in_schema=False)
    def docs() -> HTMLResponse:
        return get_swagger_ui_html(
            openapi_url=app.openapi_url or "",
            title="medlink",
            swagger_js_url=f"{_FILES}/swagger-ui-bundle.js",
            swagger_css_url=f"{_FILES}/swagger-ui.css",
            swagger_favicon_url=f"{_FILES}/favicon-32x32.png",
            swagger_ui_parameters={"tryItOutEnabled": True},
        )
