"""Which of our routes a request is for, also where it does not get there: refused before, or by another method."""

from collections.abc import Iterable, Iterator

from starlette.applications import Starlette
from starlette.routing import BaseRoute, Match, Mount, Route
from starlette.types import Scope


def keep(app: Starlette, routes: Iterable[BaseRoute]) -> None:
    """Remember the routes of an app: those of routers that it includes are not in its own list."""
    app.state.routes = [route for route in routes if isinstance(route, Route | Mount)]


def routes_at(scope: Scope) -> Iterator[Route | Mount]:
    """Yield the routes at the path of a request, whatever their methods."""
    for route in scope["app"].state.routes:
        if route.matches(scope)[0] is not Match.NONE:
            yield route


def allowed_at(scope: Scope) -> str:
    """Return the methods that may be sent to the path of a request, as the header `Allow` has them.

    A fixed path (`/admin/index/rollback`) comes before a template that it would fit (`/admin/index/{id}`).
    """
    routes = [route for route in routes_at(scope) if isinstance(route, Route)]
    methods = {method for route in routes if route.path == routes[0].path for method in route.methods or ()}
    return ", ".join(sorted(methods))
