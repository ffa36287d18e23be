"""`medlink serve`: the HTTP service."""


def serve() -> None:
    """Serve over HTTP on MEDLINK_HOST and MEDLINK_PORT, with MEDLINK_WORKERS processes."""
    from app.settings import Settings

    settings = Settings()
    if settings.workers > 1:
        # It loads neither model nor index.
        from app.supervisor import supervise

        supervise(settings)
        return
    from app.server import run
    from app.service import service

    run(service(), settings)
