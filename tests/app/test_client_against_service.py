"""The client and the service over a real connection."""

import asyncio
import json
import socket
import threading
import time
from collections.abc import Iterator

import httpx
import pytest
import uvicorn

from app.main import create_app
from app.settings import Settings
from medlink.client import AsyncClient, Client, ServiceError


@pytest.fixture(scope="module")
def url(build, tmp_path_factory) -> Iterator[str]:
    limits = {"max_bulk_mentions": 40, "max_mentions": 10, "max_body_bytes": 5_000, "max_together": 50}
    settings = Settings(data_dir=tmp_path_factory.mktemp("data"), **limits)
    server = uvicorn.Server(uvicorn.Config(create_app(settings, build=build), port=0, log_level="error"))
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        thread.join()


def mentions(count: int) -> Iterator[str | dict]:
    for i in range(count):
        yield "\0" if i % 500 == 7 else {"text": f"cold {i % 40}", "id": str(i), "context": "a cold " * 50}


def test_threads_and_asyncio_stream_what_bulk_answers(url):
    async def streamed() -> list[dict]:
        async with AsyncClient(url) as client:
            return [result async for result in client.stream_bulk(mentions(2200), top_k=2)]

    with Client(url) as client:
        results = list(client.stream_bulk(mentions(2200), top_k=2))
        bulk = client.link_bulk(list(mentions(100)), top_k=2)["results"]

    assert results == asyncio.run(streamed())
    assert results[:100] == bulk
    assert [r.get("id", str(r.get("item"))) for r in results] == [str(i) for i in range(2200)]


def test_an_option_that_is_wrong_is_told_at_the_first_mention(url):
    with Client(url) as client, pytest.raises(ServiceError, match="422 unknown_value"):
        list(client.stream_bulk(["cold"], sabs=["MSHH"]))


def test_a_client_that_reads_while_it_sends_gets_lines_meanwhile(url):
    """What `curl --no-buffer --data-binary @-` does, over one connection."""

    async def go():
        reader, writer = await asyncio.open_connection(*url.removeprefix("http://").split(":"))
        head = "POST /link/bulk?top_k=1 HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-ndjson\r\n"
        writer.write(f"{head}Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n".encode())
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100")
        for text in ("cold", "asthma"):
            line = json.dumps(text).encode() + b"\n"
            writer.write(b"%x\r\n%s\r\n" % (len(line), line))
            await reader.readuntil(f'"text":"{text}"'.encode())
        writer.write(b"0\r\n\r\n")
        assert (await asyncio.wait_for(reader.readuntil(b"0\r\n\r\n"), 10)).endswith(b"}\n\r\n0\r\n\r\n")
        writer.close()

    asyncio.run(asyncio.wait_for(go(), 60))


def test_a_client_that_goes_while_it_is_answered_leaves_nothing_behind(url):
    with httpx.Client(base_url=url) as client:
        lines = b"".join(b'"chill %d"\n' % i for i in range(3_000))
        headers = {"content-type": "application/x-ndjson"}
        with client.stream("POST", "/link/bulk", content=lines, headers=headers) as response:
            next(response.iter_lines())

        assert client.post("/link", json={"mentions": ["cold"]}).status_code == 200
