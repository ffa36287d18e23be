"""What a UMLS release says of CUIs that are no longer in use."""

from collections.abc import Iterator

from medlink.kb.readers.rrf_tables import Rows
from medlink.kb.records import RetiredRecord

_RELATIONS = ("SY", "RB", "RN", "RO")


def retired_cuis(rows: Rows) -> Iterator[RetiredRecord]:
    """Yield retired CUIs: all that MRCUI knows, then those merged and deleted since the last release.

    The files overlap, so a CUI may come more than once; a real successor outweighs a deletion.
    """
    for _, row in rows.read("MRCUI.RRF"):
        cui, release, relation, successor = row[0], row[1], row[2], row[5]
        if relation == "DEL" or (relation in _RELATIONS and not successor):
            yield RetiredRecord(cui, None, "DEL", release)
        elif relation in _RELATIONS:
            yield RetiredRecord(cui, successor, relation, release)
        else:
            # SUBX: MetamorphoSys left the CUI out of this subset; it is still in use.
            rows.report.skip("MRCUI.RRF", f"relation {relation}")
    for _, (cui, successor, _) in rows.read("MERGEDCUI.RRF"):
        yield RetiredRecord(cui, successor or None, "SY" if successor else "DEL")
    for _, (cui, *_) in rows.read("DELETEDCUI.RRF"):
        yield RetiredRecord(cui, None, "DEL")
