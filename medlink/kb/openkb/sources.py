"""The terms under which each source may be passed on, worded once for the packs and their NOTICE."""

from medlink.kb.records import SourceRecord

_CC_BY_4 = "CC BY 4.0 (https://creativecommons.org/licenses/by/4.0/)"
_CC_BY_3 = "CC BY 3.0 (https://creativecommons.org/licenses/by/3.0/)"
_CC0 = "CC0 1.0 (https://creativecommons.org/publicdomain/zero/1.0/)"

_SOURCES = {
    "MONDO": (
        "Mondo Disease Ontology",
        _CC_BY_4,
        "Mondo Disease Ontology, Monarch Initiative (Vasilevsky et al., doi:10.1101/2022.04.13.22273750). "
        "Changed: combined with other sources, cross-references filtered.",
        "https://mondo.monarchinitiative.org",
    ),
    "DOID": (
        "Human Disease Ontology",
        _CC0,
        "Human Disease Ontology, Institute for Genome Sciences, University of Maryland School of Medicine.",
        "https://disease-ontology.org",
    ),
    "HPO": (
        "Human Phenotype Ontology",
        "HPO licence (https://hpo.jax.org/app/license): cite, show the version, do not alter the content",
        "This product uses the Human Phenotype Ontology (version as shown here). Find out more at "
        "https://hpo.jax.org. Gargano et al., The Human Phenotype Ontology in 2024, Nucleic Acids Research 52 "
        "(D1), D1333-D1346, doi:10.1093/nar/gkad1005. Ids and names are unchanged.",
        "https://hpo.jax.org",
    ),
    "MESH": (
        "Medical Subject Headings",
        "Public data of the U.S. National Library of Medicine "
        "(https://www.nlm.nih.gov/databases/download/terms_and_conditions.html)",
        "Courtesy of the U.S. National Library of Medicine. This copy may not reflect the most current or "
        "accurate data available from NLM, and NLM does not endorse it.",
        "https://www.nlm.nih.gov/mesh",
    ),
    "UBERON": (
        "Uberon multi-species anatomy ontology",
        _CC_BY_3,
        "Uberon (Mungall et al., Genome Biology 13 (2012) R5; Haendel et al., J Biomed Semantics 5 (2014) 21). "
        "Changed: reduced to names, definitions and hierarchy.",
        "https://uberon.org",
    ),
    "CL": (
        "Cell Ontology",
        _CC_BY_4,
        "Cell Ontology (Diehl et al., J Biomed Semantics 7 (2016) 44). "
        "Changed: reduced to names, definitions and hierarchy.",
        "https://cell-ontology.github.io",
    ),
    "HGNC": (
        "HUGO Gene Nomenclature Committee gene names",
        _CC0,
        "HUGO Gene Nomenclature Committee (HGNC), University of Cambridge.",
        "https://www.genenames.org",
    ),
}


def source_record(sab: str, version: str, *, note: str = "") -> SourceRecord:
    """Return the source's name and terms with the version that was read; all are free to show to anyone."""
    name, licence, attribution, url = _SOURCES[sab]
    return SourceRecord(sab, name, version, licence, 0, f"{attribution} {note}".strip(), url)
