"""How a stream flows: no faster than its reader, in flat memory, and not at all once nobody reads."""

import asyncio
import gzip
import json
import tracemalloc
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from itertools import islice

import pytest

from app.main import create_app
from app.settings import Settings
from medlink.types import Concept, Name

TOGETHER = 20


class Exchange:
    """One request given to the app as a server would, and what it sends back.

    Args:
        parts: Parts of the body; the client is gone after them unless they are all of it.
        whole: Whether they are.
    """

    def __init__(
        self, app, state, parts: Iterable[bytes], *, headers: dict[str, str], whole: bool = True, query: str = ""
    ) -> None:
        self._app = app
        self._parts = iter(parts)
        self._whole = whole
        self.given = 0
        self.messages: list[dict] = []
        self.bytes_sent = 0
        self.reads = asyncio.Event()
        self.reads.set()
        self.gone = asyncio.Event()
        self.keep = True
        self._scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "POST",
            "path": "/link/bulk",
            "raw_path": b"/link/bulk",
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(key.encode(), value.encode()) for key, value in headers.items()],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 80),
            "scheme": "http",
            "state": dict(state),
        }

    async def receive(self):
        await asyncio.sleep(0)
        part = next(self._parts, None)
        if part is not None:
            self.given += 1
            return {"type": "http.request", "body": part, "more_body": True}
        if self._whole:
            self._whole = False
            return {"type": "http.request", "body": b"", "more_body": False}
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message):
        await self.reads.wait()
        self.bytes_sent += len(message.get("body", b""))
        if self.keep:
            self.messages.append(message)

    async def run(self):
        await self._app(self._scope, self.receive, self.send)

    def lines(self) -> list[dict]:
        body = b"".join(message.get("body", b"") for message in self.messages)
        return [json.loads(line) for line in body.splitlines()]


@asynccontextmanager
async def running(app) -> AsyncIterator[dict]:
    async with app.router.lifespan_context(app) as state:
        yield state


@pytest.fixture
def app(build, tmp_path):
    limits = {"max_together": TOGETHER, "answer_cache_bytes": 1_000_000, "stream_idle_seconds": 20}
    return create_app(Settings(data_dir=tmp_path, **limits), build=build)


NDJSON = {"content-type": "application/x-ndjson"}


def numbered(count: int, distinct: int) -> Iterator[bytes]:
    for i in range(count):
        yield json.dumps({"text": f"cold {i % distinct}", "id": str(i)}).encode() + b"\n"


def together(lines: Iterator[bytes], size: int) -> Iterator[bytes]:
    while part := b"".join(islice(lines, size)):
        yield part


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not true():
            await asyncio.sleep(0.01)


def test_a_reader_that_stops_stops_the_server(app):
    async def go():
        async with running(app) as state:
            exchange = Exchange(app, state, numbered(500, 500), headers=NDJSON)
            task = asyncio.create_task(exchange.run())
            await until(lambda: len(exchange.messages) > 3)
            exchange.reads.clear()
            await asyncio.sleep(0.3)
            given, linked = exchange.given, app.state.linking.queue.counts.mentions
            await asyncio.sleep(0.5)

            assert (exchange.given, app.state.linking.queue.counts.mentions) == (given, linked)
            assert given < 400
            # What is linked and not sent, what is read and not linked.
            assert given - (len(exchange.lines()) - 1) <= 2 * TOGETHER + 2
            exchange.reads.set()
            await task
            assert [line.get("id") for line in exchange.lines()[1:]] == [str(i) for i in range(500)]

    asyncio.run(go())


@pytest.mark.parametrize("packed", [False, True])
def test_twenty_thousand_lines_take_no_more_memory_than_a_few(app, packed):
    async def go():
        async with running(app) as state:
            few, many = (together(numbered(count, 200), 50) for count in (2_000, 20_000))
            headers = NDJSON | ({"content-encoding": "gzip", "accept-encoding": "gzip"} if packed else {})
            peaks = []
            for lines in (few, many):
                parts = (gzip.compress(line) for line in lines) if packed else lines
                exchange = Exchange(app, state, parts, headers=headers)
                exchange.keep = False
                tracemalloc.start()
                await exchange.run()
                peaks.append(tracemalloc.get_traced_memory()[1])
                tracemalloc.stop()
            assert exchange.bytes_sent > (500_000 if packed else 10_000_000)
            assert peaks[1] < peaks[0] + 2_000_000, peaks

    asyncio.run(go())


def test_a_line_that_unpacks_without_end_takes_no_memory(build, tmp_path):
    app = create_app(Settings(data_dir=tmp_path, max_body_bytes=200_000_000), build=build)
    bomb = gzip.compress(b'"cold"\n"' + b"a" * 100_000_000 + b'"\n"asthma"\n', compresslevel=1)

    async def go():
        async with running(app) as state:
            exchange = Exchange(app, state, [bomb], headers=NDJSON | {"content-encoding": "gzip"})
            tracemalloc.start()
            await exchange.run()
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()

            assert peak < 5_000_000
            _, first, second, third = exchange.lines()
            assert (first["text"], second["error"]["code"], third["text"]) == ("cold", "limit", "asthma")

    asyncio.run(go())


def test_a_client_that_goes_stops_the_work(app):
    async def go():
        async with running(app) as state:
            exchange = Exchange(app, state, numbered(100_000, 100_000), headers=NDJSON)
            task = asyncio.create_task(exchange.run())
            await until(lambda: len(exchange.messages) > 3)
            exchange._parts = iter(())
            exchange._whole = False
            exchange.gone.set()
            await asyncio.wait_for(task, 10)
            # What was being linked is finished.
            await asyncio.sleep(0.3)
            linked = app.state.linking.queue.counts.mentions
            await asyncio.sleep(0.3)

            assert app.state.linking.queue.counts.mentions == linked < 1_000
            assert app.state.linking.admission.taken == 0
            assert exchange.messages[-1]["more_body"] is True

    asyncio.run(go())


def test_a_reader_that_never_reads_again_is_left(build, tmp_path):
    app = create_app(Settings(data_dir=tmp_path, stream_idle_seconds=0.2), build=build)

    async def go():
        async with running(app) as state:
            exchange = Exchange(app, state, numbered(1000, 1000), headers=NDJSON)
            exchange.reads.clear()
            task = asyncio.create_task(exchange.run())
            await asyncio.sleep(0.05)
            exchange.reads.set()
            await until(lambda: len(exchange.messages) > 1)
            exchange.reads.clear()
            await asyncio.wait_for(task, 10)

            assert exchange.messages[-1].get("more_body") is True

    asyncio.run(go())


def test_a_client_that_sends_nothing_more_is_told(build, tmp_path):
    app = create_app(Settings(data_dir=tmp_path, stream_idle_seconds=0.2), build=build)

    async def go():
        async with running(app) as state:
            exchange = Exchange(app, state, [b'"cold"\n"asth'], headers=NDJSON, whole=False)
            await asyncio.wait_for(exchange.run(), 10)

            _, first, last = exchange.lines()
            assert (first["text"], last["answered"], last["error"]["code"]) == ("cold", 1, "malformed_body")

    asyncio.run(go())


def test_a_line_is_answered_while_its_sender_waits(app):
    sent = [b'"cold"\n']

    def parts():
        while sent:
            yield sent.pop()

    async def go():
        async with running(app) as state:
            exchange = Exchange(app, state, parts(), headers=NDJSON, whole=False)
            task = asyncio.create_task(exchange.run())
            await until(lambda: len(exchange.lines()) == 2)
            exchange.gone.set()
            await task

    asyncio.run(go())


def test_a_stream_is_answered_by_the_build_that_it_began_with(app, build, make_build, tmp_path):
    other = make_build(tmp_path / "other", [Concept("T:1", "Cold sore", (Name("Cold sore", "T"),))])

    async def go():
        async with running(app) as state:

            def parts():
                for i, line in enumerate(numbered(200, 200)):
                    if i == 100:
                        state["builds"]._build = other
                    yield line

            during = Exchange(app, state, parts(), headers=NDJSON)
            await during.run()
            after = Exchange(app, state, numbered(1, 1), headers=NDJSON)
            await after.run()

            head, *answers = during.lines()
            cuis = {candidate["cui"] for answer in answers for candidate in answer["candidates"]}
            assert (head["index"]["id"], len(answers), "T:1" in cuis) == (build.id, 200, False)
            head, answer = after.lines()
            assert (head["index"]["id"], answer["candidates"][0]["cui"]) == (other.id, "T:1")

    asyncio.run(go())


@pytest.mark.parametrize("begun", [[], [b'{"mentions": ["cold"']])
def test_a_json_body_that_stays_out_is_refused(build, tmp_path, begun):
    app = create_app(Settings(data_dir=tmp_path, body_idle_seconds=0.2), build=build)

    async def go():
        async with running(app) as state:
            slow = Exchange(app, state, begun, headers={"content-type": "application/json"}, whole=False)
            await asyncio.wait_for(slow.run(), 10)

            assert slow.messages[0]["status"] == 408
            assert slow.lines()[0]["code"] == "slow_body"

    asyncio.run(go())
