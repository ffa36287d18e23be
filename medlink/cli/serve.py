"""`medlink serve`: the HTTP service."""


def serve() -> None:
    """Serve over HTTP on MEDLINK_HOST and MEDLINK_PORT."""
    from app.server import run
    from app.service import service
    from app.settings import Settings

    run(service(), Settings())
