"""Assembles concepts from the terms that were joined, names best first."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from medlink.kb.openkb.names import is_formulaic, word_key
from medlink.kb.openkb.semantics import TYPES, in_order
from medlink.kb.openkb.terms import Term, Vocabulary, Xref
from medlink.kb.records import (
    BroaderRecord,
    CodeRecord,
    DefinitionRecord,
    NameRecord,
    Record,
    SemanticTypeRecord,
)

# Preferred names of all sources come before synonyms, exact synonyms before those of unknown or other scope.
_TIERS = {"PT": 0, "MH": 0, "NM": 0, "EXACT": 1, "ET": 1, "ACR": 1, "SYN": 1, "SY": 2}
_LAST_TIER = 3
# HPO's terms of use ask that its content stays as it is.
_UNALTERED = frozenset({"HPO"})

_Named = tuple[str, str, str, str]  # text, source, term type, code
Members = Sequence[tuple[str, Term]]
"""The terms of one concept with their sources, in the sources' order."""


def assemble(
    vocabularies: Sequence[Vocabulary],
    concept_of: Mapping[str, str],
    codes: Mapping[str, Sequence[Xref]],
    *,
    near_duplicates: bool,
    skipped: Counter[str],
) -> Iterator[Record]:
    """Yield the records of every concept, by id, its names first and in the order of their rank.

    Args:
        vocabularies: The sources, in order of preference for names.
        concept_of: Concept of each term of theirs.
        codes: Codes of outside vocabularies that each term may carry.
        near_duplicates: Whether to keep names in other word order, and those that no one writes.
        skipped: Counts what is left out.
    """
    concepts: dict[str, list[tuple[str, Term]]] = defaultdict(list)
    for vocabulary in vocabularies:
        for term in vocabulary.terms.values():
            concepts[concept_of[term.id]].append((vocabulary.sab, term))
    for concept_id, members in sorted(concepts.items()):
        names = _names(members)
        if not near_duplicates:
            names = _without_near_duplicates(names, skipped)
        yield from _records(concept_id, names, members)
        for sab, code in sorted(_codes(members, codes)):
            yield CodeRecord(concept_id, sab, code)
        for broader_id, sab in sorted(_broader(members, concept_of)):
            if broader_id != concept_id:
                yield BroaderRecord(concept_id, broader_id, sab)


def _records(concept_id: str, names: list[_Named], members: Members) -> Iterator[Record]:
    for rank, (text, sab, tty, code) in enumerate(names):
        yield NameRecord(concept_id, text, sab, tty, code=code, rank=rank)
    for tui in in_order(tui for _, term in members for tui in term.tuis):
        yield SemanticTypeRecord(concept_id, tui, TYPES[tui])
    for sab, term in members:
        if term.definition:
            yield DefinitionRecord(concept_id, sab, term.definition)


def _codes(members: Members, codes: Mapping[str, Sequence[Xref]]) -> set[tuple[str, str]]:
    own = {(sab, term.code) for sab, term in members}
    return own | {(sab, code) for _, term in members for sab, code in codes.get(term.id, ())}


def _broader(members: Members, concept_of: Mapping[str, str]) -> set[tuple[str, str]]:
    return {(concept_of[p], sab) for sab, term in members for p in term.parents if p in concept_of}


def _names(members: Members) -> list[_Named]:
    names = [(n.text, sab, n.tty, term.code) for sab, term in members for n in term.names]
    # The sort is stable: within a tier the sources' order stands.
    return sorted(names, key=_tier)


def _tier(name: _Named) -> int:
    return _TIERS.get(name[2], _LAST_TIER)


def _without_near_duplicates(names: list[_Named], skipped: Counter[str]) -> list[_Named]:
    fixed = [n for n in names if _tier(n) == 0 or n[1] in _UNALTERED]
    fixed_texts = {n[0].lower() for n in fixed}
    others = [n for n in names if n[0].lower() not in fixed_texts and not (n[1] == "MONDO" and is_formulaic(n[0]))]
    # The natural word order is the one to keep: names without a comma go first within their tier, and an
    # inverted name that stays in any case does not stand for its natural form.
    said = {word_key(text) for text in fixed_texts if "," not in text}
    texts = set(fixed_texts)
    for name in sorted(others, key=lambda n: (_tier(n), "," in n[0])):
        key = word_key(name[0])
        if key not in said:
            said.add(key)
            texts.add(name[0].lower())
    kept = [n for n in names if n[0].lower() in texts]
    skipped["near-duplicate name"] += len(names) - len(kept)
    return kept
