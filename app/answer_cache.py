"""Answers already given, so that what is asked again is not computed again."""

import threading
from collections import OrderedDict
from collections.abc import Callable

# What an entry costs beside the bytes of its key and answer.
_ENTRY = 250


class AnswerCache:
    """Keeps the answers used last, in bounded memory; safe to use from several threads.

    Keys are hashes of everything that decides an answer, the index build and its curation included, so that an entry
    is never wrong, only useless.

    Args:
        max_bytes: How much memory it may take.
        looked: Is told of each look whether the answer was there.
    """

    def __init__(self, max_bytes: int, looked: Callable[[bool], None] = lambda found: None) -> None:
        self._looked = looked
        self._max_bytes = max_bytes
        self._entries: OrderedDict[bytes, bytes] = OrderedDict()
        self._lock = threading.Lock()
        self.bytes = 0

    def get(self, key: bytes) -> bytes | None:
        """Return an answer, or None if it is not there."""
        with self._lock:
            answer = self._entries.get(key)
            if answer is not None:
                self._entries.move_to_end(key)
        self._looked(answer is not None)
        return answer

    def put(self, key: bytes, answer: bytes) -> None:
        """Keep an answer, and forget others that were not used for longest if there is no room."""
        size = _size(key, answer)
        with self._lock:
            if key in self._entries or size > self._max_bytes:
                return
            self._entries[key] = answer
            self.bytes += size
            while self.bytes > self._max_bytes:
                self.bytes -= _size(*self._entries.popitem(last=False))

    def __len__(self) -> int:
        return len(self._entries)


def _size(key: bytes, answer: bytes) -> int:
    return len(key) + len(answer) + _ENTRY
