"""A UMLS release in Rich Release Format: `MRCONSO.RRF` and what lies beside it."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import cast

from medlink.errors import UnknownValueError
from medlink.kb.readers.files import Release
from medlink.kb.readers.report import UNKNOWN_LICENCE_LEVEL, ReadReport, undeclared_sources
from medlink.kb.readers.rrf_history import retired_cuis
from medlink.kb.readers.rrf_tables import COLUMNS, Rows, related_cuis
from medlink.kb.records import (
    CodeRecord,
    DefinitionRecord,
    NameRecord,
    Record,
    SemanticTypeRecord,
    SourceRecord,
    Suppress,
)

_OPTIONAL = tuple(name for name in COLUMNS if name != "MRCONSO.RRF")

# MRCONSO: LAT, TS, STT, ISPREF, SAB, TTY, SRL, SUPPRESS decide what becomes of a row,
# and STR, SAB, TTY, LAT, CODE, SUPPRESS tell one name of a concept from another.
_DECIDING = itemgetter(1, 2, 4, 6, 11, 12, 15, 16)
_IDENTIFYING = itemgetter(14, 11, 12, 1, 13, 16)
_NO_CODE = ("", "NOCODE")


class RrfReader:
    """Reads a release from its directory, its zip or `MRCONSO.RRF` alone, each file plain or compressed.

    Only MRCONSO is required; `report.missing` names the other files that are absent. A concept's semantic types,
    definitions and relations come whether or not any of its names was kept, and a relation that a release states
    from both ends comes twice.

    Args:
        path: Directory, zip or file.
        languages: Languages (MRCONSO.LAT) to keep, most preferred first; None keeps all, English first.
        sabs: Sources (SAB) whose names, definitions and relations to keep; None keeps all.
        include_suppressed: Keep rows that SUPPRESS marks as obsolete or suppressible (O, Y, E).
    """

    def __init__(
        self,
        path: str | Path,
        *,
        languages: Sequence[str] | None = ("ENG",),
        sabs: Iterable[str] | None = None,
        include_suppressed: bool = False,
    ) -> None:
        self.report = ReadReport()
        self._release = Release(path, self.report)
        self._languages = None if languages is None else _chosen("languages", languages)
        self._sabs = None if sabs is None else frozenset(_chosen("sabs", sabs))
        self._rows = Rows(self._release, self.report, self._sabs, include_suppressed)

    def records(self) -> Iterator[Record]:
        """Yield sources, names and codes concept by concept, then what the other files say, then retired CUIs.

        Raises:
            SourceError: A file is missing, damaged, or has a line that is not what the format says.
            UnknownValueError: A language or source that occurs nowhere in the release was asked for.
        """
        self.report.start(
            sum(self._release.size(name) for name in COLUMNS),
            missing=(name for name in _OPTIONAL if not self._release.find(name)),
        )
        sources: dict[str, SourceRecord] = {}
        languages: dict[str, str] = {}
        for source, language in self._sources():
            sources[source.sab] = source
            languages[source.sab] = language
            if self._sabs is None or source.sab in self._sabs:
                yield source
        names = _Names(self._rows, self._languages)
        yield from names.records()
        self._check_choices(names, languages)
        for source in undeclared_sources(names.levels.keys() & (self._sabs or names.levels), sources):
            level = names.levels[source.sab]
            yield replace(source, licence=_licence(level), licence_level=level)
        yield from self._semantic_types()
        yield from self._definitions(languages)
        yield from related_cuis(self._rows)
        yield from retired_cuis(self._rows)

    def _sources(self) -> Iterator[tuple[SourceRecord, str]]:
        """Yield each current source with its language."""
        for _, row in self._rows.read("MRSAB.RRF", keyed=False):
            if row[21] != "Y":
                self.report.skip("MRSAB.RRF", "not the current version")
                continue
            level = _level(row[13])
            licence = _licence(level)
            yield SourceRecord(row[3], row[4], row[6], licence, level, attribution=row[24]), row[19]

    def _check_choices(self, names: "_Names", declared: dict[str, str]) -> None:
        valid_languages = sorted((set(declared.values()) | names.languages) - {""})
        for language in self._languages or ():
            if language not in valid_languages:
                raise UnknownValueError("language", language, valid_languages)
        valid_sabs = sorted(declared.keys() | names.levels.keys())
        for sab in sorted(self._sabs or ()):
            if sab not in valid_sabs:
                raise UnknownValueError("source (SAB)", sab, valid_sabs)

    def _semantic_types(self) -> Iterator[SemanticTypeRecord]:
        for _, row in self._rows.read("MRSTY.RRF"):
            yield SemanticTypeRecord(row[0], row[1], row[3])

    def _definitions(self, languages: dict[str, str]) -> Iterator[DefinitionRecord]:
        for number, row in self._rows.read("MRDEF.RRF"):
            sab, text, suppress = row[4:7]
            reason = self._rows.left_out("MRDEF.RRF", number, sab, suppress)
            if self._languages and languages.get(sab, "") not in ("", *self._languages):
                reason = "language"
            elif not text or text.isspace():
                reason = "blank definition"
            if reason:
                self.report.skip("MRDEF.RRF", reason)
            else:
                yield DefinitionRecord(row[0], sab, text)


class _Names:
    """One pass over MRCONSO; it also learns which languages occur, and which sources at what licence level."""

    def __init__(self, rows: Rows, languages: tuple[str, ...] | None) -> None:
        self.languages: set[str] = set()
        self.levels: dict[str, int] = {}
        self._rows = rows
        self._wanted = languages
        self._ranks = rows.ranks()

    def records(self) -> Iterator[NameRecord | CodeRecord]:
        """Yield a concept's names once its last consecutive row is read, so only one concept is in memory."""
        cui = ""
        names: dict[tuple[str, ...], int] = {}
        # Releases have millions of rows but few distinct combinations of the deciding columns.
        verdicts: dict[tuple[str, ...], int | str] = {}
        skipped: Counter[str] = Counter()
        for number, row in self._rows.read("MRCONSO.RRF"):
            if row[0] != cui:
                yield from _concept(cui, names)
                cui, names = row[0], {}
            deciding = _DECIDING(row)
            verdict = verdicts.get(deciding)
            if verdict is None:
                verdict = verdicts[deciding] = self._judge(deciding, number)
            if isinstance(verdict, str):
                skipped[verdict] += 1
                continue
            name = _IDENTIFYING(row)
            if name in names:
                skipped["same name, source and term type"] += 1
                names[name] = min(names[name], verdict)
            elif name[0].isspace() or not name[0]:
                skipped["blank name"] += 1
            else:
                names[name] = verdict
        yield from _concept(cui, names)
        for reason, count in skipped.items():
            self._rows.report.skipped["MRCONSO.RRF", reason] += count

    def _judge(self, deciding: tuple[str, ...], number: int) -> int | str:
        """Return the rank of such a row, or why it is left out."""
        language, ts, stt, is_preferred, sab, tty, level, suppress = deciding
        self.languages.add(language)
        self.levels[sab] = max(self.levels.get(sab, 0), _level(level))
        reason = self._rows.left_out("MRCONSO.RRF", number, sab, suppress)
        if self._wanted is not None and language not in self._wanted:
            return "language"
        if reason:
            return reason
        position = self._wanted.index(language) if self._wanted else int(language != "ENG")
        preference = min(self._ranks.get((sab, tty, suppress), 0), 0xFFFF)
        flags = (ts != "P") << 2 | (stt != "PF") << 1 | (is_preferred != "Y")
        return min(position, 0xFFF) << 19 | flags << 16 | 0xFFFF - preference


def _concept(cui: str, names: dict[tuple[str, ...], int]) -> Iterator[NameRecord | CodeRecord]:
    codes: dict[tuple[str, str], None] = {}
    for (text, sab, tty, language, code, suppress), rank in names.items():
        if code in _NO_CODE:
            code = ""
        else:
            codes[sab, code] = None
        yield NameRecord(cui, text, sab, tty, language, code, cast(Suppress, suppress), rank)
    for sab, code in codes:
        yield CodeRecord(cui, sab, code)


def _chosen(option: str, values: Iterable[str]) -> tuple[str, ...]:
    chosen = tuple(values)
    if isinstance(values, str) or not chosen:
        raise ValueError(f"{option} must be a non-empty sequence of names, or None for all")
    return chosen


def _level(text: str) -> int:
    return int(text) if text.isdecimal() else UNKNOWN_LICENCE_LEVEL


def _licence(level: int) -> str:
    return f"UMLS Metathesaurus License, restriction level {level}"
