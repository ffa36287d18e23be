import json
from collections.abc import Callable

import httpx
import pytest

from medlink.client import Client, ServiceError

INFO = {"limits": {"max_mentions": 2, "max_bulk_mentions": 3}}


def service(answer: Callable[[httpx.Request], httpx.Response], waits: list[float] | None = None) -> Client:
    """Return a client of a service that has the limits above and answers everything else with `answer`."""

    def handle(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json=INFO) if request.url.path == "/info" else answer(request)

    waited = [] if waits is None else waits
    return Client("http://service", transport=httpx.MockTransport(handle), sleep=waited.append, retries=2)


def echo(request: httpx.Request) -> httpx.Response:
    body = json.loads(request.content)
    results = [{"text": mention, "status": f"k{body['top_k']}", "candidates": []} for mention in body["mentions"]]
    return httpx.Response(200, json={"index": {"id": "b1"}, "results": results})


@pytest.mark.parametrize(("path", "sizes"), [("/link", [2, 2, 1]), ("/link/bulk", [3, 2])])
def test_many_mentions_are_split_to_the_limits_of_the_service_and_put_together_in_order(path, sizes):
    seen: list[tuple[str, int]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append((request.url.path, len(json.loads(request.content)["mentions"])))
        return echo(request)

    with service(answer) as client:
        ask = client.link if path == "/link" else client.link_bulk
        reply = ask(list("abcde"), top_k=7)

    assert seen == [(path, size) for size in sizes]
    assert [r["text"] for r in reply["results"]] == list("abcde")
    assert {r["status"] for r in reply["results"]} == {"k7"}
    assert reply["index"] == {"id": "b1"}


def test_no_mentions_still_ask_which_index_answers():
    with service(echo) as client:
        assert client.link([], top_k=1) == {"index": {"id": "b1"}, "results": []}


def test_a_busy_service_is_asked_again_after_the_time_it_names():
    busy = [httpx.Response(503, headers={"Retry-After": "3"}), httpx.Response(503)]
    waits: list[float] = []

    with service(lambda request: busy.pop(0) if busy else echo(request), waits) as client:
        reply = client.link(["a"], top_k=1)

    assert len(reply["results"]) == 1
    assert waits == [3.0, 1.0]


def test_a_service_that_stays_busy_is_given_up_on():
    waits: list[float] = []
    problem = {"code": "no_index", "detail": "no index build is active"}

    with (
        service(lambda request: httpx.Response(503, json=problem), waits) as client,
        pytest.raises(ServiceError, match="503 no_index no index build is active") as caught,
    ):
        client.link(["a"])

    assert (caught.value.status, caught.value.code) == (503, "no_index")
    assert len(waits) == 2


@pytest.mark.parametrize("reply", [httpx.Response(422, json=["odd"]), httpx.Response(500, text="<html>")])
def test_a_refusal_in_any_form_is_one_error(reply):
    with service(lambda request: reply) as client, pytest.raises(ServiceError) as caught:
        client.link(["a"])

    assert caught.value.status == reply.status_code


def test_an_index_that_changes_between_two_parts_is_not_mixed():
    builds = iter(["b1", "b2"])

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json={"index": {"id": next(builds)}, "results": []})

    with service(answer) as client, pytest.raises(ServiceError, match="changed its index"):
        client.link(list("abc"))


def test_a_service_that_cannot_be_reached_is_an_error_without_what_was_sent():
    def answer(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused", request=request)

    with service(answer) as client, pytest.raises(ServiceError, match="cannot reach http://service") as caught:
        client.link(["canary"])

    assert caught.value.status == 0
    assert "canary" not in str(caught.value)


def test_an_unknown_concept_is_none_and_an_odd_id_stays_one_path():
    paths: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        paths.append(request.url.raw_path.decode())
        return (
            httpx.Response(404, json={"code": "unknown_concept"})
            if "?" not in request.url.path
            else httpx.Response(200, json={"cui": "X"})
        )

    with service(answer) as client:
        assert client.concept("MESH:D003920") is None
        assert client.concept("c?x=1") == {"cui": "X"}

    assert paths == ["/concepts/MESH:D003920", "/concepts/c%3Fx%3D1"]


def test_a_server_without_limits_is_not_ours():
    transport = httpx.MockTransport(lambda request: httpx.Response(200, json={}))

    with Client("http://elsewhere", transport=transport) as client, pytest.raises(ServiceError, match="max_mentions"):
        client.link(["a"])
