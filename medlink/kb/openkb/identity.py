"""Decides which terms of different sources are one concept, and what its id is."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from medlink.kb.openkb.crossrefs import claims, one_to_one
from medlink.kb.openkb.names import variant_key
from medlink.kb.openkb.terms import Term, Vocabulary, Xref
from medlink.kb.openkb.xref_namespaces import UMLS

_SAME_CUI = "same CUI"
# Strongest first: whoever comes first keeps its claim where two contradict each other.
_PAIRS = (("MONDO", "MESH"), ("MONDO", "DOID"), ("DOID", "MESH"), ("HPO", "MESH"), ("MONDO", "HPO"))
# Synonyms that are wider, narrower or near do not speak for sameness.
_OTHER_SCOPES = frozenset({"BROAD", "NARROW", "RELATED"})
# Words that sources add or leave out at will.
_WEAK_WORDS = frozenset("abnormality condition deficiency disease disorder infection infectious syndrome type".split())


@dataclass(frozen=True, slots=True)
class Identities:
    """Concept of every term, MeSH headings that a term is indexed under without being them, counts by kind."""

    concept_of: Mapping[str, str]
    headings: Mapping[str, Sequence[Xref]]
    counts: Counter[str]

    def alone(self, terms: Collection[str]) -> set[str]:
        """Return those of the terms that no other term was joined to."""
        joined = Counter(self.concept_of.values())
        return {term for term in terms if joined[self.concept_of[term]] == 1}


@dataclass(frozen=True, slots=True)
class _Link:
    kind: str
    left: Term
    right: Term


@dataclass(slots=True)
class _Cluster:
    """Terms taken for one concept: at most one of a source, and at most one CUI."""

    terms: dict[str, Term]  # by source
    said: set[tuple[str, ...]]
    cui: str = ""

    def may_take(self, other: "_Cluster") -> bool:
        """Whether no two terms of one source and no two CUIs would come together."""
        return not self.terms.keys() & other.terms.keys() and (not self.cui or not other.cui or self.cui == other.cui)


def identify(vocabularies: Sequence[Vocabulary]) -> Identities:
    """Join the terms of sources (every term named) that cross-reference each other, or one CUI, one to one.

    Links between terms that share a name are made first. A link between terms that share none counts only
    where the cross-reference is of a kind that holds up without (see `_trusted`). A link that would put two
    terms of one source, or two CUIs, into one concept is left out and counted. A concept's id is its CUI,
    else the id of its term in the first of the sources. A concept without a CUI takes one that its terms
    cross-reference beside others, if all those others belong to other concepts.
    """
    cuis = {v.sab: one_to_one(claims(v, UMLS)) for v in vocabularies}
    clusters = _Clusters(vocabularies, {t: c for by_term in cuis.values() for t, c in by_term.items()})
    links = [*_cui_links(vocabularies, cuis), *_code_links(vocabularies)]
    weak = [link for link in links if not clusters.join(link, when=clusters.share_name)]
    for link in weak:
        if not clusters.join(
            link, when=lambda link: clusters.share_name(link) or (clusters.free(link) and _trusted(link))
        ):
            clusters.counts[f"{link.kind}: left out, names differ"] += 1
    clusters.take_remaining_cuis(vocabularies)
    concept_of = clusters.ids([v.sab for v in vocabularies])
    return Identities(concept_of, clusters.headings(vocabularies), clusters.counts)


def _cui_links(vocabularies: Sequence[Vocabulary], cuis: Mapping[str, Mapping[str, str]]) -> Iterator[_Link]:
    first: dict[str, Term] = {}
    for vocabulary in vocabularies:
        for term, cui in cuis[vocabulary.sab].items():
            if cui in first:
                yield _Link(_SAME_CUI, first[cui], vocabulary.terms[term])
            else:
                first[cui] = vocabulary.terms[term]
    # A term that claims several CUIs, or shares its own, is that claimant of one that has its preferred name.
    for vocabulary in vocabularies:
        for several, claimed in claims(vocabulary, UMLS).items():
            heading = _heading(vocabulary.terms[several])
            same = [first[c] for c in sorted(claimed) if c in first and _heading(first[c]) == heading]
            if several not in cuis[vocabulary.sab] and len(same) == 1:
                yield _Link(f"{_SAME_CUI} settled by name", same[0], vocabulary.terms[several])


def _code_links(vocabularies: Sequence[Vocabulary]) -> Iterator[_Link]:
    by_sab = {v.sab: v for v in vocabularies}
    for left, right in _PAIRS:
        if left not in by_sab or right not in by_sab:
            continue
        by_code = {t.code: t for t in by_sab[right].terms.values()}
        terms = by_sab[left].terms
        known = {
            term: [c for c in sorted(codes) if c in by_code] for term, codes in claims(by_sab[left], right).items()
        }
        certain = one_to_one(known)
        # Where several terms claim a code, or a term several codes, the preferred names may settle it.
        settled = one_to_one(
            {
                term: [c for c in codes if _heading(terms[term]) == _heading(by_code[c])]
                for term, codes in known.items()
                if term not in certain
            }
        )
        for kind, pairs in ((f"{left}-{right}", certain), (f"{left}-{right} settled by name", settled)):
            for term, code in pairs.items():
                yield _Link(kind, terms[term], by_code[code])


def _trusted(link: _Link) -> bool:
    """Whether a link holds between terms that share no name.

    MONDO curates its links to DOID. Its links to MeSH, and two sources' claims of one CUI, do not hold where
    one term is a kind of the other by its very name (nystagmus, pathologic nystagmus). Other sources'
    links to MeSH and HPO often mean "see also".
    """
    left, right = (frozenset(_heading(t)) - _WEAK_WORDS for t in (link.left, link.right))
    if left == right or link.kind == "MONDO-DOID":
        return True
    return link.kind in (_SAME_CUI, "MONDO-MESH") and not (left < right or right < left)


def _heading(term: Term) -> tuple[str, ...]:
    return variant_key(term.names[0].text)


class _Clusters:
    def __init__(self, vocabularies: Sequence[Vocabulary], cuis: Mapping[str, str]) -> None:
        self.counts: Counter[str] = Counter()
        self._owner: dict[str, str] = {}
        self._of: dict[str, _Cluster] = {}
        for vocabulary in vocabularies:
            for term in vocabulary.terms.values():
                said = {variant_key(n.text) for n in term.names if n.tty not in _OTHER_SCOPES}
                cui = cuis.get(term.id, "")
                self._of[term.id] = _Cluster({vocabulary.sab: term}, said, cui)
                if cui:
                    self._owner.setdefault(cui, term.id)

    def share_name(self, link: _Link) -> bool:
        """Whether the two concepts, as joined so far, have a name in common."""
        return not self._of[link.left.id].said.isdisjoint(self._of[link.right.id].said)

    def free(self, link: _Link) -> bool:
        """Whether the right-hand term stands alone: one that a name has placed needs no weak link."""
        return len(self._of[link.right.id].terms) == 1

    def take_remaining_cuis(self, vocabularies: Sequence[Vocabulary]) -> None:
        """Give concepts without a CUI the one that they alone claim."""
        claimants: dict[str, set[int]] = defaultdict(set)
        claimed: dict[int, set[str]] = defaultdict(set)
        for vocabulary in vocabularies:
            for term, cuis in claims(vocabulary, UMLS).items():
                for cui in cuis:
                    claimants[cui].add(id(self._of[term]))
                    claimed[id(self._of[term])].add(cui)
        for vocabulary in vocabularies:
            for term in vocabulary.terms:
                cluster = self._of[term]
                alone = [c for c in claimed[id(cluster)] if len(claimants[c]) == 1]
                others_placed = all(c in self._owner or c in alone for c in claimed[id(cluster)])
                if not cluster.cui and len(alone) == 1 and others_placed:
                    cluster.cui = alone[0]
                    self._owner[cluster.cui] = term
                    self.counts["CUI that no other concept claims: taken"] += 1

    def join(self, link: _Link, *, when: Callable[[_Link], bool]) -> bool:
        """Make the link if the condition holds and it mixes nothing; False means that the condition failed."""
        a, b = self._of[link.left.id], self._of[link.right.id]
        if a is b:
            self.counts[f"{link.kind}: already one concept"] += 1
            return True
        if not when(link):
            return False
        if not a.may_take(b):
            self.counts[f"{link.kind}: left out, would mix two terms or two CUIs"] += 1
            return True
        self.counts[f"{link.kind}: joined"] += 1
        a.terms.update(b.terms)
        a.said |= b.said
        a.cui = a.cui or b.cui
        for term in b.terms.values():
            self._of[term.id] = a
        return True

    def headings(self, vocabularies: Sequence[Vocabulary]) -> dict[str, list[Xref]]:
        """Return the MeSH headings that terms are indexed under though they are not the same concept.

        MeSH is wide: breast cancer and breast neoplasm both go to Breast Neoplasms. A name in common with
        the heading confirms the cross-reference.
        """
        mesh = {t.code: t for v in vocabularies if v.sab == "MESH" for t in v.terms.values()}
        found: dict[str, list[Xref]] = {}
        for vocabulary in vocabularies:
            for term, codes in claims(vocabulary, "MESH").items():
                links = [_Link("", vocabulary.terms[term], mesh[c]) for c in sorted(codes) if c in mesh]
                wider = [
                    Xref("MESH", link.right.code)
                    for link in links
                    if self._of[term] is not self._of[link.right.id] and self.share_name(link)
                ]
                if wider:
                    found[term] = wider
        self.counts["indexed under a MeSH heading of another concept"] = sum(map(len, found.values()))
        return found

    def ids(self, sabs: Sequence[str]) -> dict[str, str]:
        """Return the concept id of every term; of several concepts with one CUI the first claimant's has it."""

        def id_of(cluster: _Cluster) -> str:
            if cluster.cui and self._of[self._owner[cluster.cui]] is cluster:
                return cluster.cui
            return next(cluster.terms[sab].id for sab in sabs if sab in cluster.terms)

        return {term: id_of(cluster) for term, cluster in self._of.items()}
