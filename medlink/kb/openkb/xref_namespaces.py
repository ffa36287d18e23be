"""Spells the sources' cross-reference namespaces one way, and says which codes are worth keeping."""

import re
from collections.abc import Iterable

from medlink.kb.openkb.terms import Xref

UMLS = "UMLS"

_SABS = {
    "UMLS": UMLS,
    "UMLS_CUI": UMLS,
    "MESH": "MESH",
    "MSH": "MESH",
    "DOID": "DOID",
    "HP": "HPO",
    "MIM": "OMIM",
    "OMIM": "OMIM",
    "OMIMPS": "OMIMPS",
    "ORPHANET": "ORPHA",
    "ORDO": "ORPHA",
    "ORPHA": "ORPHA",
    "NCIT": "NCI",
    "NCI": "NCI",
    "SCTID": "SNOMEDCT_US",
    "ICD10CM": "ICD10CM",
    "ICD9": "ICD9CM",
    "ICD9CM": "ICD9CM",
    "GARD": "GARD",
    "EFO": "EFO",
}
# A code, not a range of codes such as C00-D49, which the sources also list.
_SHAPES = {
    UMLS: re.compile(r"C\d{7}"),
    "MESH": re.compile(r"[CD]\d{6,9}"),
    "DOID": re.compile(r"DOID:\d+"),
    "HPO": re.compile(r"HP:\d{7}"),
    "OMIM": re.compile(r"\d{6}"),
    "OMIMPS": re.compile(r"PS\d{6}"),
    "ICD10CM": re.compile(r"[A-Z]\d[\dA-Z](\.\w{1,4})?"),
    "ICD9CM": re.compile(r"[EV]?\d{2,3}(\.\d{1,2})?"),
}
_ANY_CODE = re.compile(r"[\w.]+")


def xrefs(pairs: Iterable[tuple[str, str]]) -> frozenset[Xref]:
    """Return the cross-references of a known namespace and a sound shape, in one spelling."""
    return frozenset(x for namespace, code in pairs if (x := _xref(namespace, code)))


def is_cui(concept_id: str) -> bool:
    """Whether a concept id is a UMLS CUI."""
    return _SHAPES[UMLS].fullmatch(concept_id) is not None


def _xref(namespace: str, code: str) -> Xref | None:
    key = namespace.upper()
    sab = "SNOMEDCT_US" if key.startswith("SNOMEDCT_US") else _SABS.get(key)
    if sab is None:
        return None
    code = _prefixed(sab, code)
    if sab == "OMIM" and code.startswith("PS"):
        sab = "OMIMPS"
    return Xref(sab, code) if _SHAPES.get(sab, _ANY_CODE).fullmatch(code) else None


def _prefixed(sab: str, code: str) -> str:
    prefix = {"DOID": "DOID:", "HPO": "HP:", "OMIMPS": "PS"}.get(sab, "")
    return code if code.startswith(prefix) else prefix + code
