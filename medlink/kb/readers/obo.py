"""An ontology in OBO format, read by the fastobo library one frame at a time."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastobo

from medlink.kb.readers.files import Release
from medlink.kb.readers.report import UNKNOWN_LICENCE_LEVEL, ReadReport
from medlink.kb.records import (
    BroaderRecord,
    CodeRecord,
    DefinitionRecord,
    NameRecord,
    Record,
    RetiredRecord,
    SourceRecord,
    Suppress,
)

_FRAME = re.compile(r"\[\w+\]\s*")
# What fastobo refuses and real ontologies have: a citation that is no identifier ("Some Book p 3"), which is not
# read anyway, and a name line with nothing on it.
_CITATIONS = re.compile(r'^((?:def|synonym):\s*"(?:[^"\\]|\\.)*"[^\[\n]*)\[.*\]', re.MULTILINE)
_REPAIRS = (
    ("citation that is not OBO", _CITATIONS, r"\1[]"),
    ("blank name", re.compile(r"^name:[ \t]*\n", re.MULTILINE), ""),
)
_DATED_SNOMED = re.compile(r"(SNOMEDCT\w*?)_\d{4}_\d{2}_\d{2}")
_SPELLINGS = {"UMLS_CUI": "UMLS", "MSH": "MESH", "MeSH": "MESH"}
_SUCCESSOR = {"replaced_by": "SY", "consider": "RO"}
_FREE_LICENCE = re.compile(r"creativecommons\.org/(licenses/by/|publicdomain/)")

_Clauses = list[tuple[str, Any]]  # fastobo gives its clauses no types


class OboReader:
    """Reads `.obo`, plain or compressed.

    The name of a term has TTY `PT`, a synonym its scope (`EXACT`, `NARROW`, `BROAD`, `RELATED`); synonyms of type
    `obsolete_synonym` are marked suppressed (O). An obsolete term gives no names but what replaced it. A source
    whose header names no Creative Commons licence without conditions beyond attribution has the unknown level.

    Args:
        path: The file, or a directory or zip that holds one.
        sab: Name of the source; by default the ontology's own from the header, `hp.obo` giving `HP`.
    """

    def __init__(self, path: str | Path, *, sab: str | None = None) -> None:
        self.report = ReadReport()
        self._release = Release(path, self.report)
        self._name = self._release.only(".obo")
        self._sab = sab

    def records(self) -> Iterator[Record]:
        """Yield the source, then term by term names, definition, codes, broader terms and retired ids.

        Raises:
            SourceError: The file is damaged, not OBO, or says nowhere which ontology it is.
        """
        self.report.start(self._release.size(self._name))
        frames = self._frames()
        line, header = next(frames, (1, ""))
        source = self._source(self._parse(header, line).header)
        yield source
        for line, text in frames:
            for frame in self._parse(text, line):
                if isinstance(frame, fastobo.term.TermFrame):
                    self.report.rows[self._name] += 1
                    yield from self._term(frame, source.sab)
                else:
                    self.report.skip(self._name, "not a term")

    def _frames(self) -> Iterator[tuple[int, str]]:
        """Yield the header and each frame as text, with the line that it begins on."""
        begin, lines = 1, list[str]()
        for number, line in self._release.lines(self._name):
            if line.startswith("[") and _FRAME.match(line):
                yield begin, "\n".join((*lines, ""))
                begin, lines = number, []
            lines.append(line)
        yield begin, "\n".join((*lines, ""))

    def _parse(self, text: str, line: int) -> fastobo.doc.OboDoc:
        try:
            return fastobo.loads(text, threads=1)
        except SyntaxError as error:
            refused, place = error, line + (error.lineno or 1) - 1
        for reason, pattern, replacement in _REPAIRS:
            text, count = pattern.subn(replacement, text)
            if count:
                self.report.skipped[self._name, reason] += count
        try:
            return fastobo.loads(text, threads=1)
        except SyntaxError:
            raise self._release.error(self._name, f"not OBO: {refused.msg}", place) from refused

    def _source(self, header: fastobo.header.HeaderFrame) -> SourceRecord:
        version = ontology = title = licence = ""
        for clause in header:
            tag = clause.raw_tag()
            if tag == "data-version":
                version = clause.version
            elif tag == "ontology":
                ontology = clause.ontology
            elif tag == "property_value":
                relation, value = str(clause.property_value.relation), str(clause.property_value.value)
                title = value if relation.endswith("title") else title
                licence = value if relation.endswith(("license", "licence")) else licence
        sab = self._sab or ontology.split("/")[0].removesuffix(".obo").upper()
        if not sab:
            raise self._release.error(self._name, "the header has no `ontology:` line; say which source this is")
        level = 0 if _FREE_LICENCE.search(licence) else UNKNOWN_LICENCE_LEVEL
        return SourceRecord(sab, title or ontology or sab, version, licence, level)

    def _term(self, frame: fastobo.term.TermFrame, sab: str) -> Iterator[Record]:
        term = _identifier(frame.id)
        clauses = [(clause.raw_tag(), clause) for clause in frame]
        for tag, clause in clauses:
            if tag == "alt_id":
                yield RetiredRecord(_identifier(clause.alt_id), term, "SY")
        if any(tag == "is_obsolete" and clause.obsolete for tag, clause in clauses):
            self.report.skip(self._name, "obsolete term")
            yield from _retired(term, clauses)
            return
        names = dict.fromkeys(self._names(clauses))
        if not names:
            self.report.skip(self._name, "term without a name")
            return
        for rank, (text, tty, suppress) in enumerate(names):
            yield NameRecord(term, text, sab, tty, code=term, suppress=suppress, rank=rank)
        for tag, clause in clauses:
            if tag == "def":
                yield DefinitionRecord(term, sab, str(clause.definition))
        yield from dict.fromkeys(self._codes(term, clauses))
        for tag, clause in clauses:
            if tag == "is_a":
                yield BroaderRecord(term, _identifier(clause.term), sab)

    def _names(self, clauses: _Clauses) -> Iterator[tuple[str, str, Suppress]]:
        """Yield (text, TTY, suppress), the name first."""
        found: list[tuple[str, str, Suppress]] = [(c.name, "PT", "N") for tag, c in clauses if tag == "name"]
        for tag, clause in clauses:
            if tag == "synonym":
                synonym = clause.synonym
                obsolete = str(synonym.type) == "obsolete_synonym"
                found.append((synonym.desc, synonym.scope, "O" if obsolete else "N"))
        for name in found:
            if name[0].strip():
                yield name
            else:
                self.report.skip(self._name, "blank name")

    def _codes(self, term: str, clauses: _Clauses) -> Iterator[CodeRecord]:
        for tag, clause in clauses:
            if tag != "xref":
                continue
            target = clause.xref.id
            if isinstance(target, fastobo.id.PrefixedIdent):
                namespace = _DATED_SNOMED.sub(r"\1", target.prefix)
                yield CodeRecord(term, _SPELLINGS.get(namespace, namespace), target.local)
            else:
                self.report.skip(self._name, "reference without a namespace")


def _retired(term: str, clauses: _Clauses) -> Iterator[RetiredRecord]:
    gone = True
    for tag, clause in clauses:
        if tag in _SUCCESSOR:
            gone = False
            yield RetiredRecord(term, _identifier(clause.term), _SUCCESSOR[tag])
    if gone:
        yield RetiredRecord(term, None, "DEL")


def _identifier(ident: fastobo.id.BaseIdent) -> str:
    """Return an identifier without OBO's escapes."""
    if isinstance(ident, fastobo.id.PrefixedIdent):
        return f"{ident.prefix}:{ident.local}"
    return str(getattr(ident, "unescaped", ident))
