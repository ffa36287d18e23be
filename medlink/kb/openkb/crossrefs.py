"""Reads cross-references: which codes a source's terms claim, and which of these claims are one to one."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping

from medlink.kb.openkb.terms import Vocabulary, Xref
from medlink.kb.openkb.xref_namespaces import UMLS

# Identifiers of vocabularies that are themselves in the pack: how these relate is decided by joining terms.
_INSIDE = frozenset({UMLS, "DOID", "HPO"})


def one_to_one(claims: Mapping[str, Collection[str]]) -> dict[str, str]:
    """Return the pairs of which neither side is in another pair.

    >>> one_to_one({"a": ["1"], "b": ["2"], "c": ["2"], "d": ["3", "4"]})
    {'a': '1'}
    """
    uses = Counter(code for codes in claims.values() for code in codes)
    return {term: code for term, codes in claims.items() if len(codes) == 1 for code in codes if uses[code] == 1}


def claims(vocabulary: Vocabulary, sab: str) -> dict[str, frozenset[str]]:
    """Return the codes of `sab` that each live term cross-references, terms without any left out."""
    found = {t.id: frozenset(x.code for x in t.xrefs if x.sab == sab) for t in vocabulary.terms.values()}
    return {term: codes for term, codes in found.items() if codes}


def outside_codes(
    vocabularies: Iterable[Vocabulary],
    concept_of: Mapping[str, str],
    *,
    in_mesh: Collection[str],
    skipped: Counter[str],
) -> dict[str, list[Xref]]:
    """Return the codes of vocabularies that are not in the pack, by the term that may carry them.

    A cross-reference is not an equivalence, so a code stays only where it is one to one within its source,
    and with the first source that gives it to some concept.

    Args:
        vocabularies: Sources in order of trust.
        concept_of: Concept of each term.
        in_mesh: All ids of the MeSH release at hand, which the same goes for; others are of another release.
        skipped: Counts what is left out.
    """
    owner: dict[Xref, str] = {}
    kept: dict[str, list[Xref]] = defaultdict(list)
    for vocabulary in vocabularies:
        sabs = {x.sab for term in vocabulary.terms.values() for x in term.xrefs} - _INSIDE
        for sab in sorted(sabs):
            claimed = claims(vocabulary, sab)
            if sab == "MESH":
                claimed = {term: codes for term, codes in claimed.items() if codes.isdisjoint(in_mesh)}
            certain = one_to_one(claimed)
            skipped["code not one to one"] += sum(map(len, claimed.values())) - len(certain)
            for term, code in certain.items():
                if owner.setdefault(Xref(sab, code), concept_of[term]) == concept_of[term]:
                    kept[term].append(Xref(sab, code))
                else:
                    skipped["code that another source gives to another concept"] += 1
    return kept
