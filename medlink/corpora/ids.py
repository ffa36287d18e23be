"""Concept ids of corpora and of candidates in one form, so that the two can be compared."""

import re
from collections.abc import Iterable

from medlink.types import Code

# Sources spell one vocabulary in several ways; the second is what annotated corpora use.
_PREFIXES = {
    "MSH": "MESH",
    "MIM": "OMIM",
    "UMLS_CUI": "UMLS",
    "HPO": "HP",
    "NCIT": "NCI",
    "SCTID": "SNOMEDCT_US",
}
_CUI = re.compile(r"C\d{7}")
_MESH = re.compile(r"[CD](?:\d{6}|\d{9})")
_ID = re.compile(r"-1?|[A-Za-z_]+:\S+|[A-Z]*\d+")


def normal_id(id_: str) -> str:
    """Return the one form in which ids are compared.

    A prefix is spelt one way; a bare id that looks like a MeSH record is MeSH, like a CUI is UMLS, and bare
    digits are OMIM. Anything else comes back as written.

    >>> [normal_id(i) for i in (" D003920", "222100", "OMIM:222100", "MSH:D003920", "C0027051", "C567755", "rs12")]
    ['MESH:D003920', 'OMIM:222100', 'OMIM:222100', 'MESH:D003920', 'UMLS:C0027051', 'MESH:C567755', 'rs12']
    """
    bare = id_.strip()
    prefix, colon, local = bare.partition(":")
    if colon:
        upper = prefix.strip().upper()
        return f"{_PREFIXES.get(upper, upper)}:{local.strip()}"
    if _CUI.fullmatch(bare):
        return f"UMLS:{bare}"
    if _MESH.fullmatch(bare):
        return f"MESH:{bare}"
    return f"OMIM:{bare}" if bare.isascii() and bare.isdigit() else bare


def normal_source(sab: str) -> str:
    """Return the one name under which the same vocabulary is known to annotated corpora.

    >>> normal_source("MSH"), normal_source("MESH"), normal_source("DOID")
    ('MESH', 'MESH', 'DOID')
    """
    return _PREFIXES.get(sab.upper(), sab.upper())


def vocabulary_of(id_: str) -> str:
    """Return the vocabulary that a normal id is of.

    >>> vocabulary_of("MESH:D003920"), vocabulary_of("rs12")
    ('MESH', '')
    """
    return id_.partition(":")[0] if ":" in id_ else ""


def candidate_ids(concept_id: str, codes: Iterable[Code]) -> frozenset[str]:
    """Return every id that a candidate answers to: its own and its codes.

    >>> codes = [Code("MSH", "D003920"), Code("OMIM", "222100"), Code("HPO", "HP:0000819")]
    >>> sorted(candidate_ids("C0011849", codes))
    ['HP:0000819', 'MESH:D003920', 'OMIM:222100', 'UMLS:C0011849']
    """
    # Some vocabularies repeat their prefix inside the code.
    ids = (code.code if ":" in code.code else f"{code.sab}:{code.code}" for code in codes)
    return frozenset({normal_id(concept_id), *map(normal_id, ids)})


def gold_parts(field: str) -> tuple[tuple[str, ...], ...]:
    """Read the id column of a PubTator line.

    `|` and `,` separate the parts of a composite, `+` the ids of one concept; `-1` and `-` are no concept.

    >>> gold_parts("D014786|D006311"), gold_parts(" OMIM:312080+312920"), gold_parts("-1")
    ((('MESH:D014786',), ('MESH:D006311',)), (('OMIM:312080', 'OMIM:312920'),), ())
    >>> gold_parts("D002544|-1"), gold_parts("c|SUB|C|3318-15|T")
    ((('MESH:D002544',), ()), (('c|SUB|C|3318-15|T',),))
    """
    pieces = [[id_.strip() for id_ in part.split("+")] for part in re.split("[|,]", field)]
    if not all(_ID.fullmatch(id_) for piece in pieces for id_ in piece):
        # The description of a sequence variant holds bars of its own.
        return ((field.strip(),),) if field.strip() else ()
    parts = tuple(tuple(normal_id(id_) for id_ in piece if id_ not in {"-", "-1"}) for piece in pieces)
    return parts if any(parts) else ()


def snomed_gold(field: str) -> tuple[tuple[str, ...], ...]:
    """Read a column that holds one concept of SNOMED CT, or nothing.

    Identifiers of all extensions (AMT is one) are unique, so that one prefix serves them all.

    >>> snomed_gold(" 90560007 "), snomed_gold(""), snomed_gold("C0018099")
    ((('SNOMEDCT_US:90560007',),), (), (('UMLS:C0018099',),))
    """
    id_ = field.strip()
    if id_ in {"", "-", "-1"}:
        return ()
    return ((f"SNOMEDCT_US:{id_}" if id_.isascii() and id_.isdigit() else normal_id(id_),),)


def spellings(id_: str) -> list[str]:
    """Return every way in which a knowledge base may write a normal id, the likeliest first.

    >>> spellings("MESH:D003920"), spellings("UMLS:C0011849"), spellings("HP:0001156")
    (['MESH:D003920', 'MSH:D003920'], ['C0011849', 'UMLS:C0011849'], ['HP:0001156', 'HPO:HP:0001156'])
    """
    prefix, _, local = id_.partition(":")
    if prefix == "UMLS":
        return [local, id_]
    if prefix == "HP":
        return [id_, f"HPO:{id_}"]
    return [id_, *(["MSH:" + local] if prefix == "MESH" else [])]
