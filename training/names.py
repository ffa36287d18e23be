"""Which names of a terminology serve training, in which form, and where they come from."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from medlink.kb.load import fingerprint
from medlink.kb.readers import open_reader
from medlink.kb.readers.report import Reader
from medlink.kb.readers.rrf import RrfReader
from medlink.kb.records import BroaderRecord, CodeRecord, NameRecord, Record, Suppress, TradeNameRecord
from medlink.kb.repository import Repository
from medlink.text import encoder_text
from medlink.types import Concept


@dataclass(frozen=True, slots=True)
class NameRule:
    """What makes a name serve training; pairs and the held-out split must go by the same rule."""

    languages: tuple[str, ...] | None = ("ENG",)
    """Languages to keep, as the terminology writes them; None keeps all."""
    lowercase: bool = True
    """Whether the encoder to be trained is uncased."""
    max_chars: int = 300
    """Longer names are left out: an encoder reads some 25 word pieces, and their beginnings are much alike."""
    include_suppressed: bool = False

    def form(self, text: str, language: str, *, suppressed: bool) -> tuple[str, str]:
        """Return (what the encoder reads, "") of a name that serves, or ("", why it does not).

        >>> NameRule().form(" Heart  Attack", "ENG", suppressed=False)
        ('heart attack', '')
        >>> NameRule().form("Hartinfarct", "DUT", suppressed=False)
        ('', 'language')
        """
        if self.languages is not None and language not in self.languages:
            return "", "language"
        if suppressed and not self.include_suppressed:
            return "", "suppressed"
        form = encoder_text(text, lowercase=self.lowercase)
        if not form:
            return "", "blank after normalisation"
        if len(form) > self.max_chars:
            return "", "too long"
        return form, ""

    def forms(self, concept: Concept) -> list[str]:
        """Return what the encoder reads of the names of a concept that serve."""
        found = (self.form(n.text, n.language, suppressed=n.suppressed)[0] for n in concept.names)
        return [form for form in found if form]


class Terminology(Protocol):
    """Names and trade-name links to train on, in any order."""

    def records(self) -> Iterable[Record]:
        """Yield records, among them names and trade-name links; others do not matter."""

    def facts(self) -> Mapping[str, Any]:
        """Return what the records were made of, as JSON; complete once `records` is exhausted."""


class StoreTerminology:
    """The SQL store, whole."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository

    def records(self) -> Iterator[Record]:
        """Yield sources; names, codes and broader concepts in ascending order of concept id; trade-name links."""
        yield from self._repository.sources()
        for concept in self._repository.concepts():
            for name in concept.names:
                suppress: Suppress = "Y" if name.suppressed else "N"
                yield NameRecord(concept.id, name.text, name.sab, name.tty, name.language, name.code, suppress)
            for code in concept.codes:
                yield CodeRecord(concept.id, code.sab, code.code)
            yield from (BroaderRecord(concept.id, broader_id, "") for broader_id in concept.broader)
        for generic, trade in self._repository.trade_names():
            yield TradeNameRecord(generic, trade)

    def facts(self) -> Mapping[str, Any]:
        """Return the fingerprint of every load of the store."""
        return {"kind": "store", "loads": self._repository.fingerprints()}


class ReleaseTerminology:
    """A release as its reader streams it, without a store.

    Args:
        reader: Reads the release.
        fingerprint: Hash of the release's files.
    """

    def __init__(self, reader: Reader, fingerprint: str) -> None:
        self._reader = reader
        self._fingerprint = fingerprint

    @classmethod
    def open(cls, path: Path, rule: NameRule) -> "ReleaseTerminology":
        """Open a release of any format that has a reader.

        Raises:
            SourceError: There is nothing at the path, or nothing that says which format it is.
        """
        reader = open_reader(path)
        if isinstance(reader, RrfReader):
            reader = RrfReader(path, languages=rule.languages, include_suppressed=rule.include_suppressed)
        return cls(reader, fingerprint(path, {}))

    def records(self) -> Iterator[Record]:
        """Yield what the reader yields."""
        yield from self._reader.records()

    def facts(self) -> Mapping[str, Any]:
        """Return the release's fingerprint, and the rows that its reader read and left out."""
        report = self._reader.report
        left_out = {f"{file}: {reason}": count for (file, reason), count in sorted(report.skipped.items())}
        return {
            "kind": "release",
            "fingerprint": self._fingerprint,
            "rows": dict(sorted(report.rows.items())),
            "left_out": left_out,
        }
