"""Our own form of a terminology, one JSON object a line: its reader and its writer."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from itertools import groupby
from pathlib import Path
from typing import Any, TextIO

from medlink.kb.readers.files import Release
from medlink.kb.readers.report import ReadReport, undeclared_sources
from medlink.kb.records import (
    BroaderRecord,
    CodeRecord,
    DefinitionRecord,
    NameRecord,
    Record,
    RetiredRecord,
    SemanticTypeRecord,
    SourceRecord,
    TradeNameRecord,
)

_Part = SemanticTypeRecord | CodeRecord | DefinitionRecord | BroaderRecord


@dataclass(frozen=True, slots=True)
class _Shape:
    """What a JSON object may hold: its keys with their types, those it must have, those that must not be blank."""

    keys: dict[str, type]
    required: tuple[str, ...]
    filled: tuple[str, ...]

    def check(self, item: Any, where: str) -> None:  # noqa: ANN401 - JSON
        """Raise a ValueError that says what is wrong, without a value of the file, unless the item fits."""
        if not isinstance(item, dict):
            raise ValueError(f"{where} is not an object")
        for key, value in item.items():
            if key not in self.keys:
                raise ValueError(f"unknown key {key!r} in {where}; valid: {', '.join(self.keys)}")
            if type(value) is not self.keys[key]:
                raise ValueError(f"{key} in {where} has the wrong type")
        for key in self.required:
            if key not in item:
                raise ValueError(f"{where} lacks {key}")
        for key in self.filled:
            if key in item and not item[key].strip():
                raise ValueError(f"{key} in {where} is blank")


def _strings(*keys: str) -> _Shape:
    return _Shape(dict.fromkeys(keys, str), keys, keys)


# For each list of a concept: the keys of its objects in the order of the record's fields after the concept id.
_PARTS: dict[str, tuple[_Shape, type[_Part]]] = {
    "semantic_types": (_strings("tui", "name"), SemanticTypeRecord),
    "codes": (_strings("sab", "code"), CodeRecord),
    "definitions": (_strings("sab", "text"), DefinitionRecord),
    "broader": (_strings("id", "sab"), BroaderRecord),
}
_NAME = _Shape(
    dict.fromkeys(("text", "sab", "tty", "language", "code", "suppress"), str),
    ("text", "sab"),
    ("sab", "language"),
)
_CONCEPT = _Shape(
    {"id": str, "names": list, **dict.fromkeys(_PARTS, list), "trade_names": list}, ("id", "names"), ("id",)
)
_SOURCE = _Shape(
    dict.fromkeys(("sab", "name", "version", "licence", "attribution", "url"), str) | {"licence_level": int},
    ("sab",),
    ("sab",),
)
_RETIRED = _Shape(
    dict.fromkeys(("retired", "successor", "relation", "release"), str), ("retired",), ("retired", "successor")
)
_DEFAULTS = {
    kind: {field.name: field.default for field in fields(kind)} for kind in (NameRecord, SourceRecord, RetiredRecord)
}
_SUPPRESS = ("N", "O", "Y", "E")
_RELATIONS = ("SY", "RB", "RN", "RO", "DEL")


class JsonlReader:
    """Reads `.jsonl`, plain or compressed: lines of sources, concepts and retired ids, in any order.

    A concept's names are ranked as listed, so the first that is not suppressed is preferred. Sources that no line
    describes come last, under the unknown licence level.

    Args:
        path: The file, or a directory or zip that holds one.
    """

    def __init__(self, path: str | Path) -> None:
        self.report = ReadReport()
        self._release = Release(path, self.report)
        self._name = self._release.only(".jsonl", ".ndjson")
        self._declared: set[str] = set()
        self._used: set[str] = set()

    def records(self) -> Iterator[Record]:
        """Yield the records of each line, a concept's names first.

        Raises:
            SourceError: The file is damaged, or a line is not of a shape above; names file and line, not content.
        """
        self.report.start(self._release.size(self._name))
        self._declared.clear()
        self._used.clear()
        for number, line in self._release.lines(self._name):
            self.report.rows[self._name] = number
            try:
                yield from self._line(line)
            except json.JSONDecodeError as error:
                message = f"not JSON: {error.msg} at column {error.colno}"
                raise self._release.error(self._name, message, number) from None
            except (ValueError, RecursionError) as error:
                raise self._release.error(self._name, str(error), number) from None
        yield from undeclared_sources(self._used, self._declared)

    def _line(self, line: str) -> list[Record]:
        item = json.loads(line)
        # Only an escape can bring in what no valid UTF-8 file and no database can hold.
        if "\\u" in line and not _storable(item):
            raise ValueError("holds a NUL character or half a surrogate pair")
        if isinstance(item, dict) and "source" in item:
            return [self._source(item)]
        if isinstance(item, dict) and "retired" in item:
            return [_retired(item)]
        return self._concept(item)

    def _source(self, item: dict[str, Any]) -> SourceRecord:
        if len(item) > 1:
            raise ValueError("source must be the only key of its line")
        _SOURCE.check(item["source"], "source")
        source = SourceRecord(**{"name": item["source"]["sab"], "version": "", **item["source"]})
        if source.sab in self._declared:
            raise ValueError("this source was described on an earlier line")
        self._declared.add(source.sab)
        return source

    def _concept(self, item: Any) -> list[Record]:  # noqa: ANN401 - JSON
        _CONCEPT.check(item, "the line")
        concept_id = item["id"]
        records: list[Record] = []
        for rank, name in enumerate(item["names"]):
            _NAME.check(name, "names")
            if name.get("suppress", "N") not in _SUPPRESS:
                raise ValueError(f"suppress in names must be one of {', '.join(_SUPPRESS)}")
            if name["text"].strip():
                records.append(NameRecord(concept_id, rank=rank, **name))
                self._used.add(name["sab"])
            else:
                self.report.skip(self._name, "blank name")
        if not records:
            self.report.skip(self._name, "concept without a name")
            return []
        for key, (shape, record) in _PARTS.items():
            for part in item.get(key, ()):
                shape.check(part, key)
                records.append(record(concept_id, *map(part.__getitem__, shape.keys)))
        for trade_id in item.get("trade_names", ()):
            if not isinstance(trade_id, str) or not trade_id.strip():
                raise ValueError("trade_names must be a list of ids")
            records.append(TradeNameRecord(concept_id, trade_id))
        return records


def write_jsonl(handle: TextIO, records: Iterable[Record]) -> None:
    """Write records as lines that `JsonlReader` reads back; the same records give the same bytes.

    Args:
        handle: Text file, opened with UTF-8 and newline set to a line feed.
        records: All records of a concept must come in a row; names need not be in the order of their rank.

    Raises:
        ValueError: A concept has no name.
    """
    for concept_id, group in groupby(records, _concept_id):
        if concept_id is None:
            lines = [_other(record) for record in group]
        else:
            lines = [_concept(concept_id, list(group))]
        for line in lines:
            handle.write(json.dumps(line, ensure_ascii=False, sort_keys=True, separators=(",", ":")) + "\n")


def _storable(item: Any) -> bool:  # noqa: ANN401 - JSON
    if isinstance(item, str):
        return not any(char == "\0" or "\ud800" <= char <= "\udfff" for char in item)
    if isinstance(item, dict):
        return all(map(_storable, item)) and all(map(_storable, item.values()))
    return not isinstance(item, list) or all(map(_storable, item))


def _retired(item: dict[str, Any]) -> RetiredRecord:
    given = {key: value for key, value in item.items() if (key, value) != ("successor", None)}
    _RETIRED.check(given, "the line")
    successor = given.get("successor")
    relation = given.get("relation", "SY" if successor else "DEL")
    if relation not in _RELATIONS or (relation == "DEL") != (successor is None):
        raise ValueError("relation must be SY, RB, RN or RO with a successor, DEL without")
    return RetiredRecord(given["retired"], successor, relation, given.get("release", ""))


def _concept_id(record: Record) -> str | None:
    if isinstance(record, SourceRecord | RetiredRecord):
        return None
    return record.generic_id if isinstance(record, TradeNameRecord) else record.concept_id


def _concept(concept_id: str, records: list[Record]) -> dict[str, Any]:
    names = sorted((r for r in records if isinstance(r, NameRecord)), key=lambda name: name.rank)
    if not names:
        raise ValueError(f"no name of {concept_id} among its records; all of them must come in a row")
    line: dict[str, Any] = {"id": concept_id, "names": [_stated(name, *_NAME.keys) for name in names]}
    for key, (shape, kind) in _PARTS.items():
        parts = [r for r in records if isinstance(r, kind)]
        if parts:
            line[key] = [dict(zip(shape.keys, _values(part), strict=True)) for part in parts]
    trade_names = [r.trade_id for r in records if isinstance(r, TradeNameRecord)]
    return line | ({"trade_names": trade_names} if trade_names else {})


def _other(record: Record) -> dict[str, Any]:
    if isinstance(record, SourceRecord):
        return {"source": _stated(record, *_SOURCE.keys)}
    if isinstance(record, RetiredRecord):
        rest = {"retired": record.concept_id, "successor": record.successor_id}
        return rest | _stated(record, "relation", "release")
    raise TypeError(f"{type(record).__name__} belongs to a concept")


def _values(part: _Part) -> list[str]:
    """Return the fields after the concept id."""
    return [getattr(part, name) for name in part.__slots__[1:]]


def _stated(record: NameRecord | SourceRecord | RetiredRecord, *keys: str) -> dict[str, Any]:
    """Return the fields that do not have their default value."""
    defaults = _DEFAULTS[type(record)]
    return {key: value for key in keys if (value := getattr(record, key)) != defaults[key]}
