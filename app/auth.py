"""Who may do what: API keys, and what this machine may do without one."""

import asyncio
import ipaddress
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Annotated, Any

import structlog
from fastapi import Depends, FastAPI, Request
from fastapi.security import APIKeyHeader, HTTPBearer
from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from app.errors import problem
from app.matching import routes_at
from app.serving import ActiveBuilds
from app.settings import Settings
from medlink.errors import StoreError
from medlink.kb import keys
from medlink.kb.keys import ApiKey, Keys, find_key

_ADMIN = "/admin"
# Everything else needs the scope `link`: a new route is closed until somebody opens it here.
_OPEN = frozenset({"/", "/livez", "/readyz", "/info", "/metrics", "/docs", "/openapi.json", "/favicon.ico"})
_OPEN_BELOW = ("/docs/files/", "/static/")
_REMEMBER_SECONDS = 5.0
_AGAIN_SECONDS = 0.5
# For how long a request waits for a store that is slow, before the keys last known have to do.
_WAIT_SECONDS = 1.0
_FIRST_WAIT_SECONDS = 10.0
_CHALLENGE = {"WWW-Authenticate": "Bearer"}
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent a request: the name of a key, or this machine."""

    name: str
    key: ApiKey | None = None

    def may(self, scope: keys.Scope) -> bool:
        """Say whether the caller may do this; without a key nobody administers."""
        return scope == "link" if self.key is None else self.key.allows(scope)


class KeyRing:
    """The valid keys as they were some seconds ago at most; those last known while the store cannot be reached."""

    def __init__(self, builds: ActiveBuilds) -> None:
        self._builds = builds
        self._valid: Mapping[str, ApiKey] | None = None
        self._read_at = float("-inf")
        self._reading: Future[None] | None = None
        self._starting = threading.Lock()
        # One at a time, and not the requests' own threads: a store that hangs would hold them all.
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="keys")

    def find(self, sent: bytes) -> ApiKey | None:
        """Return the key that was sent if it was valid some seconds ago.

        Raises:
            StoreError: The keys could not be read even once.
        """
        return self._find_within(sent, _REMEMBER_SECONDS)

    def find_new(self, sent: bytes) -> ApiKey | None:
        """Return the key that was sent if it is valid; to be asked once `pause` is over.

        Raises:
            StoreError: The keys could not be read even once.
        """
        return self._find_within(sent, _AGAIN_SECONDS)

    @property
    def pause(self) -> float:
        """For how many seconds the keys are not to be read again, however many wrong ones are sent."""
        return max(0.0, self._read_at + _AGAIN_SECONDS - time.monotonic())

    def _find_within(self, sent: bytes, seconds: float) -> ApiKey | None:
        reading, until = self._read_within(seconds)
        left = max(0.0, until - time.monotonic())
        wait([reading], timeout=_FIRST_WAIT_SECONDS if self._valid is None else left)
        if self._valid is None:
            raise StoreError("the keys cannot be read now; /readyz says why")
        return find_key(sent, self._valid)

    def look(self) -> None:
        """Read the keys if that was some time ago, so that they are known before somebody sends one."""
        self._read_within(_REMEMBER_SECONDS)

    def settle(self) -> None:
        """Wait until nothing is read any more."""
        if self._reading is not None:
            wait([self._reading])

    def _read_within(self, seconds: float) -> tuple[Future[None], float]:
        """Return the last reading of the keys or a new one, and the moment until which one waits for it."""
        with self._starting:
            if self._reading is None or (self._reading.done() and time.monotonic() - self._read_at > seconds):
                self._read_at = time.monotonic()
                self._reading = self._reader.submit(self._read)
            return self._reading, self._read_at + _WAIT_SECONDS

    def _read(self) -> None:
        try:
            self._valid = Keys(self._builds.store()).valid()
        except (StoreError, SQLAlchemyError) as error:
            _log.warning("keys_not_read", kind=type(error).__name__)


class Guard:
    """Lets a request in, or not, before its body is read."""

    def __init__(self, app: ASGIApp, ring: KeyRing, *, open_to_loopback: bool) -> None:
        self._app = app
        self._ring = ring
        self._open_to_loopback = open_to_loopback

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on with its caller, or answer 401 or 403."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        needed = scope_of(scope["path"])
        try:
            caller = await self._caller(scope)
        except StoreError as error:
            await self._refuse(problem(503, "store", str(error)), scope, receive, send)
            return
        scope.setdefault("state", {})["caller"] = caller
        if needed is None or (caller and caller.may(needed)):
            await self._app(scope, receive, send)
        elif caller and caller.key:
            refusal = problem(403, "forbidden", f"the key lacks the scope {needed}")
            await self._refuse(refusal, scope, receive, send)
        else:
            refusal = problem(401, "unauthenticated", f"send a key with the scope {needed} as Authorization: Bearer")
            refusal.headers.update(_CHALLENGE)
            await self._refuse(refusal, scope, receive, send)

    async def _refuse(self, refusal: Response, scope: Scope, receive: Receive, send: Send) -> None:
        # Whoever counts requests wants to know for what it was.
        if route := next(routes_at(scope), None):
            scope["route"] = route
        await refusal(scope, receive, send)

    async def _caller(self, scope: Scope) -> Caller | None:
        sent = sent_key(scope)
        if sent is not None:
            # Whoever sends a key is who it says, or nobody.
            key = await run_in_threadpool(self._ring.find, sent)
            if key is None:
                # It may have been made since.
                await asyncio.sleep(self._ring.pause)
                key = await run_in_threadpool(self._ring.find_new, sent)
            return Caller(key.name, key) if key else None
        return Caller("loopback") if self._open_to_loopback and is_loopback(scope) else None


def install(app: FastAPI, settings: Settings, ring: KeyRing) -> None:
    """Let in who may."""
    app.add_middleware(Guard, ring, open_to_loopback=settings.open_to_loopback)
    if settings.open_to_loopback:
        _describe_as_optional(app)


def _describe_as_optional(app: FastAPI) -> None:
    """Let the OpenAPI description say that who links needs no key everywhere."""
    whole = app.openapi

    def described() -> dict[str, Any]:
        description = whole()
        for path, operations in description["paths"].items():
            for operation in operations.values() if scope_of(path) == "link" else ():
                if {} not in operation["security"]:
                    operation["security"].append({})
        return description

    app.openapi = described  # type: ignore[method-assign]


def scope_of(path: str) -> keys.Scope | None:
    """Return the scope that a path needs, None if it is open to all.

    >>> scope_of("/admin/jobs"), scope_of("/link/bulk"), scope_of("/livez"), scope_of("/administer")
    ('admin', 'link', None, 'link')
    """
    if path == _ADMIN or path.startswith(f"{_ADMIN}/"):
        return "admin"
    return None if path in _OPEN or path.startswith(_OPEN_BELOW) else "link"


def sent_key(scope: Scope) -> bytes | None:
    """Return the key of a request as bytes, None if there is none; a header may hold any byte.

    >>> sent_key({"headers": [(b"authorization", b"Bearer abc")]})
    b'abc'
    """
    headers = dict(scope["headers"])
    if b"authorization" in headers:
        kind, _, key = headers[b"authorization"].partition(b" ")
        return bytes(key.strip()) if kind.lower() == b"bearer" else b""
    return headers.get(b"x-api-key")


def is_loopback(scope: Scope) -> bool:
    """Say whether a request comes from this machine, as far as the server knows.

    >>> [is_loopback({"client": (host, 1)}) for host in ("127.0.0.9", "::1", "::ffff:127.0.0.1", "10.0.0.1", "here")]
    [True, True, True, False, False]
    """
    client = scope.get("client")
    try:
        address = ipaddress.ip_address(client[0]) if client else None
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return bool(address and (mapped or address).is_loopback)


_bearer = HTTPBearer(
    auto_error=False, description="A key that `medlink keys create` made; this machine may link without."
)
_header = APIKeyHeader(name="X-API-Key", auto_error=False, description="The same key, where Bearer is taken.")

# The guard has looked at the key; these tell who reads the OpenAPI description of it.
KEY = [Depends(_bearer), Depends(_header)]


def get_admin(
    request: Request, _b: Annotated[object, Depends(_bearer)], _h: Annotated[object, Depends(_header)]
) -> Caller:
    """Return who administers; behind the guard, which sees the path only, this is what a handler relies on.

    Raises:
        HTTPException: Nobody who may.
    """
    caller: Caller | None = getattr(request.state, "caller", None)
    if caller is None or not caller.may("admin"):
        raise HTTPException(403, "this needs a key with the scope admin")
    return caller


AdminDep = Annotated[Caller, Depends(get_admin)]
