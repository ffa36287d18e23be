"""`medlink serve`: the HTTP service."""


def serve() -> None:
    """Serve over HTTP on MEDLINK_HOST and MEDLINK_PORT."""
    import uvicorn

    from app.service import service
    from app.settings import Settings

    settings = Settings()
    app = service()
    # Its own logging would show paths and, after an error, values.
    uvicorn.run(
        app, host=settings.host, port=settings.port, timeout_graceful_shutdown=20, log_config=None, access_log=False
    )
