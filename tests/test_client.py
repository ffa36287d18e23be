"""The clients: both say the same to the service, and deal with what it says the same way."""

import asyncio
import gzip
import json
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import httpx
import pytest

import medlink.client
from medlink.client import AsyncClient, Client, ServiceError

INFO = {"limits": {"max_mentions": 2, "max_bulk_mentions": 3, "max_body_bytes": 400}}
Answer = Callable[[httpx.Request], httpx.Response]


class Waiting:
    """An async client as if it were one for threads, so that one test serves both."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self._runner = asyncio.Runner()

    def __getattr__(self, name: str):
        return lambda *args, **more: self._runner.run(getattr(self._client, name)(*args, **more))

    def stream_bulk(self, mentions, **more):
        stream = self._client.stream_bulk(mentions, **more)
        while True:
            try:
                yield self._runner.run(anext(stream))
            except StopAsyncIteration:
                return

    def close(self) -> None:
        self._runner.run(self._client.close())
        self._runner.close()


@pytest.fixture(params=["threads", "asyncio"])
def service(request) -> Callable[..., AbstractContextManager[Client]]:
    """Gives a client of a service that has the limits above and answers everything else with `answer`."""

    @contextmanager
    def made(answer: Answer, waits: list[float] | None = None) -> Iterator[Client]:
        def handle(asked: httpx.Request) -> httpx.Response:
            return httpx.Response(200, json=INFO) if asked.url.path == "/info" else answer(asked)

        waited = [] if waits is None else waits
        more = {"transport": httpx.MockTransport(handle), "retries": 2, "spread": lambda: 0.0}
        if request.param == "threads":
            client = Client("http://service", sleep=waited.append, **more)
        else:

            async def sleep(seconds: float) -> None:
                waited.append(seconds)

            client = Waiting(AsyncClient("http://service", sleep=sleep, **more))
        try:
            yield client
        finally:
            client.close()

    return made


def echo(request: httpx.Request) -> httpx.Response:
    body = json.loads(request.content)
    results = [{"text": mention, "status": f"k{body['top_k']}", "candidates": []} for mention in body["mentions"]]
    return httpx.Response(200, json={"index": {"id": "b1"}, "results": results})


@pytest.mark.parametrize(("path", "sizes"), [("/link", [2, 2, 1]), ("/link/bulk", [3, 2])])
def test_many_mentions_are_split_to_the_limits_of_the_service_and_put_together_in_order(service, path, sizes):
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


def test_no_mentions_still_ask_which_index_answers(service):
    with service(echo) as client:
        assert client.link([], top_k=1) == {"index": {"id": "b1"}, "results": []}


def test_a_busy_service_is_asked_again_after_the_time_it_names(service):
    busy = [httpx.Response(503, headers={"Retry-After": "3"}), httpx.Response(503)]
    waits: list[float] = []

    with service(lambda request: busy.pop(0) if busy else echo(request), waits) as client:
        reply = client.link(["a"], top_k=1)

    assert len(reply["results"]) == 1
    assert waits == [3.0, 1.0]


def test_a_service_that_stays_busy_is_given_up_on(service):
    waits: list[float] = []
    problem = {"code": "no_index", "detail": "no index build is active"}

    with (
        service(lambda request: httpx.Response(503, json=problem), waits) as client,
        pytest.raises(ServiceError, match="503 no_index no index build is active") as caught,
    ):
        client.link(["a"])

    assert (caught.value.status, caught.value.code) == (503, "no_index")
    assert len(waits) == 2


@pytest.mark.parametrize("reply", [(422, '["odd"]'), (500, "<html>")])
def test_a_refusal_in_any_form_is_one_error(service, reply):
    status, text = reply

    with service(lambda request: httpx.Response(status, text=text)) as client, pytest.raises(ServiceError) as caught:
        client.link(["a"])

    assert caught.value.status == status


def test_an_index_that_changes_between_two_parts_is_not_mixed(service):
    builds = iter(["b1", "b2"])

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json={"index": {"id": next(builds)}, "results": []})

    with service(answer) as client, pytest.raises(ServiceError, match="changed its index"):
        client.link(list("abc"))


def test_a_service_that_cannot_be_reached_is_an_error_without_what_was_sent(service):
    def answer(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused", request=request)

    with service(answer) as client, pytest.raises(ServiceError, match="cannot reach http://service") as caught:
        client.link(["canary"])

    assert caught.value.status == 0
    assert "canary" not in str(caught.value)


def test_an_unknown_concept_is_none_and_an_odd_id_stays_one_path(service):
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


def stream_of(lines: list[bytes], *, index: str = "b1", end: dict | None = None) -> httpx.Response:
    answers = [{"text": json.loads(line), "status": "linked"} for line in lines]
    whole = [{"index": {"id": index}}, *answers, *([end] if end else [])]
    return httpx.Response(200, content="".join(json.dumps(line) + "\n" for line in whole))


def lines_of(request: httpx.Request) -> list[bytes]:
    return gzip.decompress(request.content).splitlines()


def test_a_stream_is_sent_in_small_requests_and_comes_back_in_order(service):
    requests: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return stream_of(lines_of(request))

    sent = [f"mention {i}" for i in range(2500)]
    with service(answer) as client:
        results = list(client.stream_bulk(iter(sent), top_k=3, sabs=["MESH", "HPO"], explain=True, threshold=None))

    assert [result["text"] for result in results] == sent
    assert [len(lines_of(request)) for request in requests] == [1000, 1000, 500]
    assert {request.url.query for request in requests} == {b"top_k=3&sabs=MESH&sabs=HPO&explain=true"}
    assert {request.headers["content-type"] for request in requests} == {"application/x-ndjson"}


def test_a_request_of_a_stream_fits_into_the_buffers_on_its_way(service):
    sizes: list[int] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sizes.append(len(request.content))
        return stream_of(lines_of(request))

    with service(answer) as client:
        count = sum(1 for _ in client.stream_bulk(f"{i} " + hex(7**3000 * i)[2:2000] for i in range(400)))

    assert count == 400
    assert len(sizes) > 4
    assert max(sizes) < 65_536


def test_a_stream_takes_no_more_memory_the_longer_it_is(service):
    peaks = []
    with service(lambda request: stream_of(lines_of(request))) as client:
        for count in (3_000, 20_000):
            tracemalloc.start()
            assert sum(1 for _ in client.stream_bulk(str(i) for i in range(count))) == count
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()

    assert peaks[1] < peaks[0] + 500_000


def test_a_service_that_stops_in_a_stream_is_sent_the_rest_again(service):
    end = {"error": {"code": "not_serving", "detail": "stopping"}, "answered": 2}
    seen: list[list[bytes]] = []
    waits: list[float] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(lines_of(request))
        return stream_of(seen[-1][:2], end=end) if len(seen) == 1 else stream_of(seen[-1])

    with service(answer, waits) as client:
        results = list(client.stream_bulk(list("abcde")))

    assert [result["text"] for result in results] == list("abcde")
    assert [len(lines) for lines in seen] == [5, 3]
    assert len(waits) == 1


@pytest.mark.parametrize("end", [None, {"error": {"code": "malformed_body", "detail": "not gzip"}, "answered": 1}])
def test_a_stream_that_breaks_off_is_an_error(service, end):
    with (
        service(lambda request: stream_of(lines_of(request)[:1], end=end)) as client,
        pytest.raises(ServiceError, match="malformed_body" if end else "broke off"),
    ):
        list(client.stream_bulk(["a", "b"]))


def test_an_index_that_changes_in_a_stream_is_an_error_unless_it_is_wanted(service):
    builds = iter(["b1", "b2", "b1", "b2"])

    def answer(request: httpx.Request) -> httpx.Response:
        return stream_of(lines_of(request), index=next(builds))

    with service(answer) as client:
        with pytest.raises(ServiceError, match="changed its index"):
            list(client.stream_bulk(map(str, range(1500))))

        assert len(list(client.stream_bulk(map(str, range(1500)), same_index=False))) == 1500


def test_bulk_is_split_to_the_bytes_that_the_service_reads_and_errors_count_over_all(service):
    sizes: list[int] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sizes.append(len(request.content))
        mentions = json.loads(request.content)["mentions"]
        return httpx.Response(
            200, json={"index": {}, "results": [{"item": i, "error": {}} for i in range(len(mentions))]}
        )

    with service(answer) as client:
        reply = client.link_bulk(["x" * 150] * 5, top_k=1)

    assert [result["item"] for result in reply["results"]] == list(range(5))
    assert len(sizes) == 3
    assert max(sizes) <= 400


def test_half_a_character_reaches_the_service_which_refuses_it(service):
    seen: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.extend(json.loads(request.content)["mentions"])
        return httpx.Response(422, json={"code": "mention", "detail": "mention 0: a lone surrogate"})

    with service(answer) as client, pytest.raises(ServiceError, match="422 mention"):
        client.link(["\ud800"])

    assert seen == ["\ud800"]


def test_a_service_that_restarts_is_asked_again_and_one_that_hangs_is_not(service):
    faults: list[Exception] = []

    def answer(request: httpx.Request) -> httpx.Response:
        if faults:
            raise faults.pop()
        return echo(request)

    with service(answer) as client:
        client.info()
        faults += [httpx.ConnectError("refused"), httpx.RemoteProtocolError("closed")]
        assert len(client.link(["a"], top_k=1)["results"]) == 1

        faults += [httpx.ReadTimeout("late")]
        with pytest.raises(ServiceError, match="ReadTimeout"):
            client.link(["a"], top_k=1)


@pytest.mark.parametrize("fault", [httpx.ReadError("reset"), httpx.RemoteProtocolError("closed")])
def test_a_first_request_that_breaks_off_is_sent_again(fault):
    faults = [fault]

    def answer(request: httpx.Request) -> httpx.Response:
        if faults:
            raise faults.pop()
        return httpx.Response(200, json=INFO)

    with Client("http://service", transport=httpx.MockTransport(answer), sleep=lambda seconds: None) as client:
        assert client.info() == INFO


def test_a_wait_is_never_shorter_than_asked_and_not_the_same_for_all():
    waits: list[float] = []
    busy = httpx.Response(503, headers={"Retry-After": "4"})
    transport = httpx.MockTransport(lambda request: busy)

    for _ in range(5):
        with (
            Client("http://service", transport=transport, retries=1, sleep=waits.append) as client,
            pytest.raises(ServiceError),
        ):
            client.info()

    assert all(4 <= wait <= 6 for wait in waits)
    assert len(set(waits)) > 1


def test_a_key_goes_along_with_every_request():
    seen: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers["authorization"])
        return httpx.Response(200, json={})

    with Client("http://service", key="abc", transport=httpx.MockTransport(answer)) as client:
        client.info()

    assert seen == ["Bearer abc"]


def test_the_async_client_works_as_a_context_and_takes_async_mentions():
    transport = httpx.MockTransport(lambda request: stream_of(lines_of(request)))

    async def mentions():
        for text in "abc":
            yield text

    async def go() -> list[str]:
        async with AsyncClient("http://service", transport=transport) as client:
            return [result["text"] async for result in client.stream_bulk(mentions())]

    assert asyncio.run(go()) == ["a", "b", "c"]


def test_both_clients_offer_the_same():
    def public(kind: type) -> set[str]:
        return {name for name in vars(kind) if not name.startswith("_")}

    assert public(Client) == public(AsyncClient) == {
        "close", "concept", "info", "link", "link_bulk", "stream_bulk"
    }  # fmt: skip
    assert set(medlink.client.__all__) >= {"Client", "AsyncClient", "ServiceError"}
