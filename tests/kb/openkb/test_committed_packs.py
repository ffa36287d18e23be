"""The packs in the repository are what their manifest says, large enough and small enough."""

from pathlib import Path

import pytest

from medlink.kb.openkb import PACKS
from medlink.kb.readers.jsonl import JsonlReader
from medlink.kb.records import NameRecord
from medlink.manifest import read_manifest, sha256

FOLDER = Path(__file__).parents[3] / "artefacts" / "kb"
MEGABYTE = 1_000_000


@pytest.fixture(scope="module")
def packs():
    return read_manifest(FOLDER)["packs"]


def test_every_pack_is_listed_and_nothing_else_lies_there(packs):
    assert {facts["pack"] for facts in packs.values()} == set(PACKS)
    assert {p.name for p in FOLDER.iterdir()} == {*packs, "manifest.json", "NOTICE.md"}


@pytest.mark.parametrize("pack", PACKS)
def test_a_pack_has_the_hash_and_size_that_the_manifest_gives(packs, pack):
    facts = packs[f"{pack}.jsonl.zst"]

    assert sha256(FOLDER / f"{pack}.jsonl.zst") == facts["sha256"]
    assert (FOLDER / f"{pack}.jsonl.zst").stat().st_size == facts["bytes"] < 30 * MEGABYTE


def test_the_default_pack_is_large_enough_to_use_and_small_enough_to_index(packs):
    facts = packs["open.jsonl.zst"]

    assert facts["concepts_with_cui"] >= 24_000
    assert facts["names_total"] >= 100_000
    assert facts["names_distinct_lower_case"] <= 150_000


def test_the_notice_words_the_terms_of_every_source_of_the_packs(packs):
    notice = (FOLDER / "NOTICE.md").read_text(encoding="utf-8")

    for facts in packs.values():
        for source in facts["sources"]:
            assert f"## {source['sab']}: {source['name']}\n\n- Version: {source['version']}\n" in notice
            assert source["licence"] in notice
            assert source["attribution"] in notice
    assert "Courtesy of the U.S. National Library of Medicine. This copy may not reflect the most current" in notice


def test_everyday_words_lead_to_their_cuis():
    wanted = {
        "heart attack": "C0027051",
        "myocardial infarction": "C0027051",
        "diabetes mellitus, type 2": "C0011860",
        "breast cancer": "C0006142",
        "seizure": "C0036572",
        "asthma": "C0004096",
    }
    found: dict[str, set[str]] = {name: set() for name in wanted}

    for record in JsonlReader(FOLDER / "open.jsonl.zst").records():
        if isinstance(record, NameRecord) and record.text.lower() in wanted:
            found[record.text.lower()].add(record.concept_id)

    assert [name for name, cui in wanted.items() if cui not in found[name]] == []
