"""Requests to a running service at given moments, and what came of each."""

import asyncio
import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import httpx


@dataclass(frozen=True, slots=True)
class Kind:
    """A sort of request: how many mentions it has, and how large its share of all requests is."""

    name: str
    path: str
    mentions: int
    share: float
    lines: bool = False


KINDS = (
    Kind("/link, 1 mention", "/link", 1, 0.80),
    Kind("/link, 10 mentions", "/link", 10, 0.14),
    Kind("/link/bulk, 60 mentions", "/link/bulk", 60, 0.04),
    Kind("/link/bulk, stream of 200", "/link/bulk", 200, 0.02, lines=True),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a request: `seconds` from the moment it was due; `status` 0 if the connection broke twice."""

    kind: Kind
    seconds: float
    status: int
    build: str = ""
    mixed: bool = False
    broken: int = 0
    """Connections that broke before an answer began."""


class Traffic:
    """Clients that mix requests of all kinds.

    Args:
        port: Where the service listens on this machine.
        texts: Mentions; each is sent once before any is sent again, so that no answer is kept from before.
        probes: Mentions that every build answers with a concept of its own.
        expected: Tells which prefix the id of that concept has in a build.
    """

    def __init__(self, port: int, texts: Sequence[str], probes: Sequence[str], expected: Callable[[str], str]) -> None:
        self._http = httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{port}", timeout=120, limits=httpx.Limits(max_connections=None)
        )
        self._texts = texts
        self._sent = 0
        self._probes = probes
        self._expected = expected
        self._rng = random.Random(0)

    async def close(self) -> None:
        """Give the connections back."""
        await self._http.aclose()

    async def at_a_rate(self, rate: float, seconds: float) -> list[Outcome]:
        """Send so many requests a second at moments by chance, whether or not those before are answered."""
        begun, at = time.perf_counter(), 0.0
        asked = []
        while at < seconds:
            await asyncio.sleep(max(0.0, begun + at - time.perf_counter()))
            asked.append(asyncio.create_task(self.ask(begun + at)))
            at += self._rng.expovariate(rate)
        return await asyncio.gather(*asked)

    async def as_fast_as_it_goes(self, clients: int, seconds: float) -> tuple[float, list[Outcome]]:
        """Have each client send a request when the one before is answered; returns the requests a second, too."""
        begun = time.perf_counter()

        async def one_client() -> list[Outcome]:
            outcomes = []
            while time.perf_counter() < begun + seconds:
                outcomes.append(await self.ask(time.perf_counter()))
            return outcomes

        of_clients = await asyncio.gather(*(one_client() for _ in range(clients)))
        outcomes = [outcome for of_client in of_clients for outcome in of_client]
        return len(outcomes) / (time.perf_counter() - begun), outcomes

    async def ask(self, due: float) -> Outcome:
        """Send one request of a kind by chance; once more if its connection breaks, as any client would."""
        (kind,) = self._rng.choices(KINDS, [kind.share for kind in KINDS])
        mentions, places = self._mentions(kind)
        for broken in range(2):
            try:
                response = await self._send(kind, mentions)
            except httpx.TransportError:
                continue
            seconds = time.perf_counter() - due
            if response.status_code != 200:
                return Outcome(kind, seconds, response.status_code, broken=broken)
            build, results = _read(kind, response)
            wanted = self._expected(build)
            mixed = len(results) != len(mentions) or any(not _first(results[at]).startswith(wanted) for at in places)
            return Outcome(kind, seconds, 200, build, mixed, broken)
        return Outcome(kind, time.perf_counter() - due, 0, broken=2)

    async def _send(self, kind: Kind, mentions: Sequence[str]) -> httpx.Response:
        if not kind.lines:
            return await self._http.post(kind.path, json={"mentions": mentions})
        lines = "".join(json.dumps(text, ensure_ascii=False) + "\n" for text in mentions).encode()
        return await self._http.post(kind.path, content=lines, headers={"Content-Type": "application/x-ndjson"})

    def _mentions(self, kind: Kind) -> tuple[list[str], list[int]]:
        """Return what to send, and the places of probes in it: the first, the last and one between."""
        mentions = list(self._take(kind.mentions))
        if kind.mentions == 1:
            places = [0] if self._rng.random() < 0.1 else []
        else:
            places = [0, kind.mentions // 2, kind.mentions - 1]
        for place in places:
            mentions[place] = self._rng.choice(self._probes)
        return mentions, places

    def _take(self, count: int) -> Iterator[str]:
        for _ in range(count):
            yield self._texts[self._sent % len(self._texts)]
            self._sent += 1


def _read(kind: Kind, response: httpx.Response) -> tuple[str, list[dict[str, Any]]]:
    if not kind.lines:
        body = response.json()
        return body["index"]["id"], body["results"]
    head, *results = (json.loads(line) for line in response.text.splitlines())
    return head["index"]["id"], results


def _first(result: dict[str, Any]) -> str:
    candidates = result.get("candidates") or [{"cui": ""}]
    return str(candidates[0]["cui"])
