"""`medlink serve`: the HTTP service."""


def serve() -> None:
    """Serve over HTTP on MEDLINK_HOST and MEDLINK_PORT."""
    import uvicorn

    from app.main import create_app
    from app.settings import Settings

    settings = Settings()
    uvicorn.run(create_app(settings), host=settings.host, port=settings.port, timeout_graceful_shutdown=20)
