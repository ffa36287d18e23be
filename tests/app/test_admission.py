"""Who may queue, who is refused, and what happens when nothing links any more."""

import asyncio
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import httpx
import pytest
from starlette.testclient import TestClient

from app.admission import Admission
from app.link_queue import LinkQueue
from app.main import create_app
from app.settings import Settings
from medlink.errors import OverloadedError
from medlink.types import Mention

NDJSON = {"content-type": "application/x-ndjson"}
LIMITS = {"max_mentions": 10, "max_bulk_mentions": 10, "max_together": 5, "max_queue_mentions": 10}


class Service:
    """The service with a linking thread that can be held, and people who ask it."""

    def __init__(self, client: TestClient, people: ThreadPoolExecutor) -> None:
        self.client = client
        self.linking = client.app.state.linking
        self._people = people

    def ask(self, *texts: str, path: str = "/link") -> httpx.Response:
        return self.client.post(path, json={"mentions": list(texts)})

    def stream(self, *texts: str) -> httpx.Response:
        return self.client.post("/link/bulk", content="\n".join(map(json.dumps, texts)), headers=NDJSON)

    def later(self, ask: Callable[..., httpx.Response], *args: str, **more: str) -> Future[httpx.Response]:
        return self._people.submit(ask, *args, **more)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep the linking thread from linking."""
        begun, go_on = threading.Event(), threading.Event()

        def hold(mentions):
            begun.set()
            go_on.wait(30)
            return [b""] * len(mentions)

        self.client.portal.start_task_soon(self.linking.queue.link, "held", hold, [Mention("x")])
        assert begun.wait(30)
        try:
            yield
        finally:
            go_on.set()

    def until(self, true: Callable[[], bool]) -> None:
        end = time.monotonic() + 30
        while not true():
            assert time.monotonic() < end
            time.sleep(0.01)

    def until_taken(self, places: int) -> None:
        self.until(lambda: self.linking.admission.taken == places)


@pytest.fixture
def serve(build, tmp_path):
    @contextmanager
    def started(**more: float) -> Iterator[Service]:
        app = create_app(Settings(data_dir=tmp_path, **{**LIMITS, **more}), build=build)
        with TestClient(app, raise_server_exceptions=False) as client, ThreadPoolExecutor(20) as people:
            yield Service(client, people)

    return started


def code(response) -> tuple[int, str]:
    return response.status_code, response.json()["code"]


def says_ready(service: Service) -> bool:
    return "\nmedlink_ready 1.0\n" in service.client.get("/metrics").text


@pytest.mark.parametrize("path", ["/link", "/link/bulk"])
def test_a_request_that_does_not_fit_is_refused_whole_and_one_that_fits_is_taken(serve, path):
    with serve() as service:
        with service.held():
            eight = service.later(service.ask, *(f"cold {i}" for i in range(8)), path=path)
            service.until_taken(8)

            refused = service.ask("asthma a", "asthma b", "asthma c", path=path)
            two = service.later(service.ask, "asthma a", "asthma b", path=path)
            service.until_taken(10)
            full = service.stream("asthma d")

        assert code(refused) == code(full) == (503, "overloaded")
        assert "max_queue_mentions = 10" in refused.json()["detail"]
        assert 1 <= int(refused.headers["retry-after"]) <= 60
        assert [len(f.result().json()["results"]) for f in (eight, two)] == [8, 2]
        assert service.linking.admission.taken == 0
        figures = service.client.get("/metrics").text
        assert 'medlink_rejected_total{reason="overloaded"} 2.0' in figures
        assert "medlink_queue_mentions 0.0" in figures
        assert 'medlink_stage_items_total{stage="queue"} 10.0' in figures
        assert 'medlink_cache_lookups_total{result="missed"}' in figures


def test_a_stream_waits_for_its_places_instead_of_being_refused(serve):
    with serve() as service:
        with service.held():
            eight = service.later(service.ask, *(f"cold {i}" for i in range(8)))
            service.until_taken(8)
            stream = service.later(service.stream, *(f"asthma {i}" for i in range(40)))
            time.sleep(0.2)
            assert not stream.done()
            assert service.linking.admission.taken == 8

        assert len(eight.result().json()["results"]) == 8
        _, *answers = map(json.loads, stream.result().text.splitlines())
        assert [answer["text"] for answer in answers] == [f"asthma {i}" for i in range(40)]


def test_what_was_answered_before_needs_no_place(serve):
    with serve() as service:
        before = service.ask("cold", "asthma").json()
        with service.held():
            ten = service.later(service.ask, *(f"cold {i}" for i in range(10)))
            service.until_taken(10)

            assert service.ask("asthma", "cold").json()["results"] == before["results"][::-1]
        ten.result()


def test_a_request_past_its_deadline_is_504_and_gives_its_places_back(serve):
    with serve(request_deadline_seconds=0.3) as service, service.held():
        late = service.ask("cold 1", "cold 2")

        assert code(late) == (504, "deadline")
        assert "request_deadline_seconds = 0.3" in late.json()["detail"]
        assert service.linking.admission.taken == 0


def test_a_call_that_hangs_makes_the_service_not_ready(serve):
    with serve(request_deadline_seconds=0.3) as service:
        assert service.client.get("/readyz").status_code == 200
        with service.held():
            service.until(lambda: service.client.get("/readyz").status_code == 503)

            assert not says_ready(service)
            assert code(service.ask("cold")) == (503, "not_serving")
            assert service.client.get("/livez").status_code == 200
        service.until(lambda: service.client.get("/readyz").status_code == 200)
        assert says_ready(service)


def test_a_thread_that_dies_fails_what_waits_and_makes_the_service_not_ready(serve):
    def dies(mentions):
        raise SystemExit

    with serve() as service:
        with service.held():
            service.client.portal.start_task_soon(service.linking.queue.link, "dies", dies, [Mention("x")])
            service.until(lambda: service.linking.queue.waiting == 1)
            waiting = service.later(service.ask, "cold")
            service.until_taken(1)

        assert code(waiting.result()) == (503, "not_serving")
        assert code(service.client.get("/readyz")) == (503, "not_serving")
        assert not says_ready(service)
        assert code(service.ask("cold")) == code(service.stream("cold")) == (503, "not_serving")
        assert service.client.get("/livez").status_code == 200


def test_a_draining_service_finishes_what_it_has_and_takes_no_more(serve):
    with serve(drain_seconds=0) as service:
        with service.held():
            taken = service.later(service.ask, "cold")
            service.until_taken(1)
            stream = service.later(service.stream, *(f"asthma {i}" for i in range(40)))
            service.until_taken(6)
            service.client.portal.call(service.linking.drain)

            assert code(service.client.get("/readyz")) == (503, "not_serving")
            assert not says_ready(service)
            assert code(service.ask("asthma")) == (503, "not_serving")
            assert service.client.get("/livez").status_code == 200
        assert taken.result().status_code == 200
        _, *answers, last = map(json.loads, stream.result().text.splitlines())
        assert (last["error"]["code"], last["answered"]) == ("not_serving", len(answers))
        assert 0 < len(answers) < 40


def test_small_requests_that_wait_are_linked_together_and_answered_as_alone(serve):
    texts = ["cold", "asthma", "itching", "lung disease"]
    with serve() as service:
        with service.held():
            waiting = [service.later(service.ask, text) for text in texts]
            service.until_taken(4)
        together = [future.result().json()["results"] for future in waiting]
        batches = service.linking.queue.counts.batches
    with serve() as service:
        assert [service.ask(text).json()["results"] for text in texts] == together
        assert service.linking.queue.counts.batches == 4

    # One for what held the thread.
    assert batches == 2


def test_the_work_of_a_request_whose_client_went_is_dropped():
    async def go():
        queue: LinkQueue[str] = LinkQueue(together=1, stuck_after=30)
        queue.start()
        go_on = threading.Event()
        seen = []

        def link(mentions):
            go_on.wait(30)
            seen.extend(mention.text for mention in mentions)
            return [mention.text for mention in mentions]

        first, gone, last = (asyncio.create_task(queue.link(t, link, [Mention(t)])) for t in ("first", "gone", "last"))
        await asyncio.sleep(0.05)
        gone.cancel()
        await asyncio.sleep(0)
        go_on.set()

        assert [await first, await last] == [["first"], ["last"]]
        assert (seen, queue.counts.dropped) == (["first", "last"], 1)
        await asyncio.to_thread(queue.stop)

    asyncio.run(go())


def test_places_go_to_whoever_waits_longest_and_come_back_from_who_gives_up():
    async def go():
        places = Admission(10)
        order = []

        async def one(name, count):
            async with places.wait(count):
                order.append(name)

        with places.take(9):
            tasks = [asyncio.create_task(one(name, count)) for name, count in (("a", 5), ("b", 10), ("c", 1))]
            await asyncio.sleep(0)
            tasks[1].cancel()
            await asyncio.sleep(0)
            assert order == []
            with pytest.raises(OverloadedError), places.take(2):
                pass
        await asyncio.gather(tasks[0], tasks[2])

        assert (order, places.taken, places.refused) == (["a", "c"], 0, 1)

    asyncio.run(go())


def test_a_signal_drains_a_running_service(make_build, tmp_path):
    build = make_build(tmp_path / "builds")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    code = (
        "import sys; from pathlib import Path; from app.server import run; from app.main import create_app\n"
        "from app.settings import Settings; from index.store import open_build\n"
        f"settings = Settings(port={port}, data_dir='{tmp_path}', drain_notice_seconds=1.5)\n"
        "run(create_app(settings, build=open_build(Path(sys.argv[1]))), settings)\n"
    )
    arguments = [sys.executable, "-c", code, str(tmp_path / "builds" / build.id)]
    service = subprocess.Popen(arguments, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        _until_ready(url)
        with httpx.Client(base_url=url) as client:
            assert client.post("/link", json={"mentions": ["cold"]}).status_code == 200
            service.send_signal(signal.SIGTERM)
            time.sleep(0.5)

            assert client.get("/readyz").status_code == 503
            assert client.post("/link", json={"mentions": ["cold"]}).json()["code"] == "not_serving"
            assert client.get("/livez").status_code == 200
        assert service.wait(20) in (-signal.SIGTERM, 128 + signal.SIGTERM)
    finally:
        service.kill()
        service.wait()


def _until_ready(url: str) -> None:
    for _ in range(300):
        try:
            if httpx.get(f"{url}/readyz").status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    raise AssertionError("the service did not start")
