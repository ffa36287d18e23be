"""What every source is parsed into: terms of one vocabulary, with cross-references and retired ids."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from medlink.kb.records import RetiredRecord, SourceRecord


class TermName(NamedTuple):
    """A name of a term and its term type."""

    text: str
    tty: str


class Xref(NamedTuple):
    """An identifier in another vocabulary that a source puts beside a term; not by itself an equivalence."""

    sab: str
    code: str


@dataclass(frozen=True, slots=True)
class Term:
    """A term of one vocabulary.

    `id` is the concept id that the term has on its own, `code` its id as the source writes it.
    """

    id: str
    code: str
    names: tuple[TermName, ...]
    tuis: tuple[str, ...]
    parents: tuple[str, ...] = ()
    xrefs: frozenset[Xref] = frozenset()
    definition: str = ""


@dataclass(frozen=True, slots=True)
class Obsolete:
    """A term that its source gave up, with the term that replaces it or those that may be considered instead."""

    id: str
    replaced_by: str = ""
    consider: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """One source, read: live terms by id, ids that are no longer in use, and what was left out by rule."""

    source: SourceRecord
    terms: Mapping[str, Term]
    obsolete: tuple[Obsolete, ...] = ()
    skipped: Counter[str] = field(default_factory=Counter)

    @property
    def sab(self) -> str:
        """Abbreviation of the source."""
        return self.source.sab


def without(vocabulary: Vocabulary, terms: Collection[str], reason: str) -> Vocabulary:
    """Return the vocabulary without some of its terms and the ids that they replace; counted under `reason`."""
    kept = {term: value for term, value in vocabulary.terms.items() if term not in terms}
    skipped = vocabulary.skipped + Counter({reason: len(vocabulary.terms) - len(kept)})
    obsolete = tuple(o for o in vocabulary.obsolete if o.replaced_by not in terms)
    return replace(vocabulary, terms=kept, obsolete=obsolete, skipped=skipped)


def named(vocabulary: Vocabulary) -> Vocabulary:
    """Return the vocabulary without terms that have no name left."""
    return without(vocabulary, {t for t, term in vocabulary.terms.items() if not term.names}, "term without a name")


def retirements(vocabularies: Iterable[Vocabulary], concept_of: Mapping[str, str]) -> tuple[RetiredRecord, ...]:
    """Return what became of each obsolete id, chains followed to the concept of a live term.

    A replacement says SY, a term to consider says RO, and an id with neither (or none that is live) says DEL.
    """
    release = {o.id: (o, v.source.version) for v in vocabularies for o in v.obsolete if o.id not in concept_of}
    by_id = {term: obsolete for term, (obsolete, _) in release.items()}
    records = set()
    for item, version in release.values():
        target = _live_successor(item, by_id, concept_of)
        considered = [c for c in item.consider if c in concept_of]
        if target:
            records.add(RetiredRecord(item.id, concept_of[target], "SY", version))
        elif considered:
            records.update(RetiredRecord(item.id, concept_of[c], "RO", version) for c in considered)
        else:
            records.add(RetiredRecord(item.id, None, "DEL", version))
    return tuple(sorted(records, key=lambda r: (r.concept_id, r.successor_id or "")))


def _live_successor(item: Obsolete, by_id: Mapping[str, Obsolete], live: Mapping[str, str]) -> str | None:
    seen = {item.id}
    target = item.replaced_by
    while target and target not in live:
        if target in seen or target not in by_id:
            return None
        seen.add(target)
        target = by_id[target].replaced_by
    return target or None
