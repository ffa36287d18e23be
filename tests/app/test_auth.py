"""Without a key only this machine links and nobody administers; a key opens what its scopes say, and no more."""

import asyncio

import pytest
from starlette.routing import Route
from starlette.testclient import TestClient

from app import auth
from app.main import create_app
from app.settings import Settings
from medlink.errors import UnknownIdError, UnknownValueError
from medlink.kb.database import migrate, open_engine
from medlink.kb.keys import Keys, find_key, hash_of

HERE, ELSEWHERE = ("127.0.0.1", 1), ("10.1.2.3", 1)
ASK = {"json": {"mentions": ["cold"]}}
CORRECT = {"json": {"action": "block_concept", "concept": "HP:0000001", "why": "x"}}


@pytest.fixture
def settings(tmp_path) -> Settings:
    return Settings(data_dir=tmp_path)


@pytest.fixture
def keys(settings) -> Keys:
    engine = open_engine(settings.database_url)
    migrate(engine)
    return Keys(engine)


@pytest.fixture
def app(settings, keys, build):
    return create_app(settings, build=build)


@pytest.fixture
def call(app):
    """Sends a request from some address with some headers, and returns the answer."""

    def send(method: str, path: str, *, client=ELSEWHERE, headers=None, **more):
        with TestClient(app, client=client) as session:
            return session.request(method, path, headers=headers, **more)

    return send


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def test_without_a_key_only_this_machine_links(call):
    assert call("POST", "/link", client=HERE, **ASK).status_code == 200
    for client in (ELSEWHERE, ("testclient", 1), None):
        refused = call("POST", "/link", client=client, **ASK)

        assert (refused.status_code, refused.json()["code"]) == (401, "unauthenticated")
        assert refused.headers["www-authenticate"] == "Bearer"
        assert refused.headers["content-type"] == "application/problem+json"
    assert call("GET", "/concepts/C0027051").status_code == 401


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/info", "/docs", "/openapi.json"])
def test_whether_it_is_up_and_what_it_is_may_be_seen_by_all(path, call):
    assert call("GET", path).status_code == 200


@pytest.mark.parametrize("client", [HERE, ELSEWHERE])
@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/admin/jobs"), ("POST", "/admin/index/rebuild"), ("GET", "/admin/curation")]
)
def test_without_a_key_nobody_administers(method, path, client, call):
    assert call(method, path, client=client).status_code == 401


def test_a_key_opens_what_its_scopes_say(call, keys):
    (_, linker), (_, admin) = keys.create("ward", ["link"]), keys.create("boss", ["admin"])

    assert call("POST", "/link", headers=bearer(linker), **ASK).status_code == 200
    assert call("POST", "/link", headers={"X-API-Key": linker}, **ASK).status_code == 200
    refused = call("GET", "/admin/jobs", headers=bearer(linker))
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    assert call("GET", "/admin/jobs", headers=bearer(admin)).json() == {"jobs": []}
    assert call("POST", "/link", headers=bearer(admin), **ASK).status_code == 200


@pytest.mark.parametrize(
    "header",
    [
        (b"authorization", b"Bearer medlink_00000000_nobody"),
        (b"authorization", "Bearer schlüssel".encode()),
        (b"authorization", b"Bearer \xff\xfe\x00_\xff_\xff"),
        (b"authorization", b"Bearer"),
        (b"authorization", b"Basic YTpi"),
        (b"x-api-key", b""),
        (b"x-api-key", b"_\xe2\x98\x83_"),
        (b"x-api-key", b"x" * 100_000),
    ],
)
@pytest.mark.parametrize("client", [HERE, ELSEWHERE])
def test_a_key_that_is_none_is_refused_from_everywhere(header, client, call):
    refused = call("POST", "/link", client=client, headers=[header], **ASK)

    assert refused.status_code == 401


def test_a_key_is_refused_once_it_is_revoked_and_another_can_take_its_place(call, keys, monkeypatch):
    monkeypatch.setattr(auth, "_REMEMBER_SECONDS", 0.0)
    monkeypatch.setattr(auth, "_AGAIN_SECONDS", 0.0)
    key, text = keys.create("ward", ["link"])
    before = call("POST", "/link", headers=bearer(text), **ASK).status_code

    keys.revoke(key.id)
    _, other = keys.create("ward", ["link"])

    assert before == 200
    assert call("POST", "/link", headers=bearer(text), **ASK).status_code == 401
    assert call("POST", "/link", headers=bearer(other), **ASK).status_code == 200
    with pytest.raises(UnknownIdError):
        keys.revoke(key.id)


def test_a_key_is_known_however_shortly_before_it_was_made(call, keys):
    refused = call("POST", "/link", headers=bearer("medlink_none"), **ASK).status_code

    _, text = keys.create("ward", ["link"])

    assert (refused, call("POST", "/link", headers=bearer(text), **ASK).status_code) == (401, 200)


def test_keys_last_known_hold_while_the_store_cannot_be_reached(app, keys, monkeypatch):
    monkeypatch.setattr(auth, "_REMEMBER_SECONDS", 0.0)
    _, text = keys.create("ward", ["link"])
    with TestClient(app, client=ELSEWHERE, headers=bearer(text)) as session:
        before = session.post("/link", **ASK).status_code
        with keys._engine.begin() as connection:
            connection.exec_driver_sql("ALTER TABLE api_key RENAME TO lost")

        assert (before, session.post("/link", **ASK).status_code) == (200, 200)


def test_a_proxy_on_this_machine_can_be_kept_from_counting_as_it(settings, build):
    app = create_app(settings.model_copy(update={"open_to_loopback": False}), build=build)

    with TestClient(app, client=HERE) as session:
        assert session.post("/link", **ASK).status_code == 401


def test_a_body_is_not_read_before_it_is_known_whose_it_is(app):
    sent = []

    async def receive():
        raise AssertionError("the body was read")

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/link", "headers": [], "client": ELSEWHERE, "query_string": b""}
    asyncio.run(app(scope, receive, send))

    assert sent[0]["status"] == 401


def test_the_guard_knows_every_route(app):
    """A new route is closed until it is opened; this list says which are open, so that nobody opens one unawares."""
    paths = {path for route in app.routes if isinstance(route, Route) for path in [route.path]}
    paths |= set(app.openapi()["paths"])

    assert {path for path in paths if auth.scope_of(path) is None} == {
        "/",
        "/docs",
        "/info",
        "/livez",
        "/metrics",
        "/openapi.json",
        "/readyz",
    }
    assert {path for path in paths if "admin" in path} == {path for path in paths if auth.scope_of(path) == "admin"}


@pytest.mark.parametrize("optional", [True, False])
def test_the_description_says_where_a_key_is_needed(optional, settings, build):
    described = create_app(settings.model_copy(update={"open_to_loopback": optional}), build=build).openapi()

    for path, operations in described["paths"].items():
        for operation in operations.values():
            schemes = [name for alternative in operation.get("security", []) for name in alternative or ["none"]]
            needed = {"admin": [], "link": ["none"] if optional else [], None: None}[auth.scope_of(path)]
            assert schemes == ([] if needed is None else ["HTTPBearer", "APIKeyHeader", *needed]), path


def test_a_path_that_the_guard_does_not_see_as_administration_is_not_let_through(settings, build, keys):
    app = create_app(settings, build=build)

    with TestClient(app, client=HERE, root_path="/medlink") as session:
        assert session.get("/medlink/admin/jobs").status_code in (401, 403, 404)


def test_of_a_key_only_the_hash_is_kept_and_it_is_compared_whole(keys):
    key, text = keys.create("ward", ["link", "link"])
    stored = keys.keys()

    assert key.scopes == ("link",)
    assert text not in repr(stored)
    assert stored[0].hash == hash_of(text.encode()) != hash_of(text.encode()[:-1])
    valid = keys.valid()
    assert find_key(text.encode(), valid) == key
    for wrong in (text[:-1], text + "x", text.replace(key.id, "00000000"), "", "medlink", "__"):
        assert find_key(wrong.encode(), valid) is None


def test_a_scope_that_is_none_is_refused(keys):
    with pytest.raises(UnknownValueError, match="valid: link, admin"):
        keys.create("ward", ["root"])
