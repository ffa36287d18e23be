"""From mentions to the JSON of their answers, over one build: what was answered before, and the rest by the linker."""

import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

from app.answer_cache import AnswerCache
from app.answers import ErrorOut, ResultOut
from app.errors import log_unexpected
from app.link_queue import LinkQueue
from app.mentions import refused
from app.schemas import Options
from index.store import IndexBuild
from medlink.types import Mention

# Answers are a third of their size then, at a hundredth of what linking costs.
_LEVEL = 1
_FAILED = "could not be linked; the log of the service says where it failed"


@dataclass(frozen=True, slots=True)
class _Item:
    key: bytes
    id: str | None


class Batch:
    """Items of one request, in order, with the answers to them; equal items have one answer.

    Args:
        scope: Hash of what decides an answer besides the mention.
        cache: Answers given before.
    """

    def __init__(self, scope: bytes, cache: AnswerCache) -> None:
        self._scope = scope
        self._cache = cache
        self._items: list[_Item | ErrorOut] = []
        self._answers: dict[bytes, bytes | Exception] = {}
        self.unanswered: dict[bytes, Mention] = {}
        """What is still to be linked, by key."""

    def __len__(self) -> int:
        return len(self._items)

    def add(self, items: Sequence[Mention | ErrorOut]) -> None:
        """Append items, and find the answers that are there already."""
        for item in items:
            if isinstance(item, ErrorOut):
                self._items.append(item)
                continue
            key = _key(self._scope, item)
            self._items.append(_Item(key, item.id))
            if key in self._answers or key in self.unanswered:
                continue
            answer = self._cache.get(key)
            if answer is None:
                self.unanswered[key] = replace(item, id=None)
            else:
                self._answers[key] = answer

    def answer(self, keys: Sequence[bytes], answers: Sequence[bytes | Exception]) -> None:
        """Take the answers to what was not answered yet."""
        for key, answer in zip(keys, answers, strict=True):
            del self.unanswered[key]
            self._answers[key] = answer
            if isinstance(answer, Exception):
                log_unexpected(answer)
            else:
                self._cache.put(key, answer)

    def fail(self) -> None:
        """Raise what linking raised, if it raised anything."""
        for answer in self._answers.values():
            if isinstance(answer, Exception):
                raise answer

    def lines(self, first: int = 0) -> Iterator[bytes]:
        """Yield the JSON of each item's answer or error, in order, with items counted from `first`."""
        for place, item in enumerate(self._items, start=first):
            if isinstance(item, ErrorOut):
                yield _json(item)
                continue
            answer = self._answers[item.key]
            if isinstance(answer, Exception):
                yield _json(refused(place, "internal", _FAILED, item.id))
            else:
                yield _with_id(zlib.decompress(answer), item.id)


class Answering:
    """Answers the mentions of one request, all from one build and with one set of options.

    Raises:
        UnknownValueError: An option has a value that the build does not know.
        NotCalibratedError: A threshold is asked of a build without calibration.
    """

    def __init__(self, build: IndexBuild, request: Options, cache: AnswerCache, queue: LinkQueue[bytes]) -> None:
        self._build = build
        self._request = request
        self._options = request.options()
        self._cache = cache
        self._queue = queue
        asked = request.model_dump_json(include=set(Options.model_fields))
        self._scope = _hash(build.id, str(build.overlay.revision), asked)
        build.linker.link([], self._options)

    def batch(self, items: Sequence[Mention | ErrorOut] = ()) -> Batch:
        """Return a batch of items; what was answered before has its answer already."""
        batch = Batch(self._scope, self._cache)
        batch.add(items)
        return batch

    async def answer(self, batch: Batch, *, together: int) -> None:
        """Link what a batch has no answer to, so many mentions at a time that others come in between.

        Raises:
            NotServingError: The thread that links has died or is stopped.
        """
        keys = list(batch.unanswered)
        for start in range(0, len(keys), together):
            part = keys[start : start + together]
            mentions = [batch.unanswered[key] for key in part]
            batch.answer(part, await self._queue.link(self._scope, self._link, mentions))

    def _link(self, mentions: Sequence[Mention]) -> list[bytes]:
        results = self._build.linker.link(mentions, self._options)
        return [zlib.compress(_json(ResultOut.of(result, self._request)), _LEVEL) for result in results]


def _json(out: ResultOut | ErrorOut) -> bytes:
    return out.model_dump_json(exclude_unset=True).encode()


def _with_id(answer: bytes, id_: str | None) -> bytes:
    """Return the JSON of an answer with the id of its mention in it.

    >>> _with_id(b'{"text":"MI"}', "7")
    b'{"id":"7","text":"MI"}'
    """
    if id_ is None:
        return answer
    return b'{"id":' + json.dumps(id_, ensure_ascii=False).encode() + b"," + answer[1:]


def _key(scope: bytes, mention: Mention) -> bytes:
    return _hash(mention.text, mention.context, str(mention.start), str(mention.end), key=scope)


def _hash(*parts: str | None, key: bytes = b"") -> bytes:
    """Return a hash of texts, which no other texts share."""
    state = blake2b(digest_size=20, key=key)
    for part in parts:
        content = b"" if part is None else part.encode()
        state.update(b"%d:" % (-1 if part is None else len(content)))
        state.update(content)
    return state.digest()
