"""Checks mentions before they reach the linker; what is wrong is said without the text."""

import json
import re
from collections.abc import Sequence
from typing import Any

from pydantic import TypeAdapter, ValidationError

from app.answers import ErrorOut, ItemErrorOut
from app.schemas import AnyMention
from app.settings import Settings
from medlink.errors import LimitError, MentionError
from medlink.types import Mention

# JSON can spell half of a character, UTF-8 cannot.
_SURROGATE = re.compile("[\ud800-\udfff]")
_ADAPTER: TypeAdapter[Any] = TypeAdapter(AnyMention)


def check_count(count: int, limit: int, setting: str) -> None:
    """Refuse a request of too many mentions.

    Raises:
        LimitError: There are more than the limit.
    """
    if count > limit:
        raise LimitError(f"{count} mentions; {setting} = {limit}, send fewer at a time")


def check_mention(sent: Any, item: int, settings: Settings) -> Mention:  # noqa: ANN401  # AnyMention, parsed
    """Return the domain record of one parsed mention.

    Raises:
        MentionError: It has a NUL, is too long, or its offsets do not fit its context.
    """
    mention = Mention(sent) if isinstance(sent, str) else sent.mention()
    problem = _problem(mention, settings)
    if problem:
        raise MentionError(problem, item=item)
    return mention


def check_each(sent: Sequence[object], settings: Settings) -> list[Mention | ErrorOut]:
    """Return for each raw item its domain record, or the error that takes its place."""
    return [check_item(raw, item, settings) for item, raw in enumerate(sent)]


def check_item(raw: object, item: int, settings: Settings) -> Mention | ErrorOut:
    """Return the domain record of one raw item, or the error that takes its place."""
    try:
        return check_mention(_ADAPTER.validate_python(raw), item, settings)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        return _refusal(item, raw, "invalid_mention", first["msg"])
    except MentionError as error:
        return _refusal(item, raw, "mention", error.problem)


def check_line(line: bytes | None, item: int, settings: Settings) -> Mention | ErrorOut:
    """Return the domain record of one line of NDJSON, None for one that was too long, or the error in its place."""
    if line is None:
        return refused(item, "limit", f"longer than max_line_bytes = {settings.max_line_bytes}")
    try:
        raw = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError):
        return refused(item, "invalid_json", "not JSON in UTF-8")
    return check_item(raw, item, settings)


def refused(item: int, code: str, detail: str, id_: str | None = None) -> ErrorOut:
    """Return what stands in the place of an item that has no answer."""
    error = ItemErrorOut(code=code, detail=detail)
    return ErrorOut(item=item, error=error) if id_ is None else ErrorOut(item=item, id=id_, error=error)


def _problem(mention: Mention, settings: Settings) -> str | None:
    context = mention.context or ""
    for sent in (mention.text, context, mention.id or ""):
        if "\0" in sent or _SURROGATE.search(sent):
            return "a NUL character or a lone surrogate"
    if len(mention.text) > settings.max_mention_chars:
        return f"longer than max_mention_chars = {settings.max_mention_chars}"
    if len(context) > settings.max_context_chars:
        return f"context longer than max_context_chars = {settings.max_context_chars}"
    start = mention.start or 0
    end = mention.end if mention.end is not None else start
    fits = start <= end and (mention.context is None or end <= len(context))
    return None if fits else "start and end do not fit"


def _refusal(item: int, raw: object, code: str, detail: str) -> ErrorOut:
    sent_id = raw.get("id") if isinstance(raw, dict) else None
    # An id with a lone surrogate cannot be sent back.
    known = isinstance(sent_id, str) and sent_id.isprintable()
    return refused(item, code, detail, sent_id if known else None)
