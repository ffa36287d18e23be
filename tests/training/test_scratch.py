"""Channels over a release are those of an index build of it, made once, with names added where a protocol has it so."""

from pathlib import Path

import pytest

from medlink.corpora.records import LabeledMention
from medlink.encoders.hashing import HashingEncoder
from medlink.types import Code, Concept, LinkOptions, Mention, Name
from training.protocols import Question
from training.scratch import ScratchBuilds, ScratchSource, with_names

TABLE = """id,name,sab,codes
MESH:D003371,Cough,MESH,
MESH:D005334,Fever,MESH,OMIM:100100
MESH:D005334,Pyrexia,MESH,OMIM:100100
"""
ADDED = {
    "hot spell": frozenset({"OMIM:100100"}),
    "podagra": frozenset({"MESH:D006073", "MESH:D003371"}),
    "gouty": frozenset({"MESH:D006073"}),
    "a cold": frozenset({"UMLS:C0009443"}),
}
CHOSEN = {"exact": ("exact",), "dense": ("dense",), "fused": ("exact", "dense", "lexical")}


@pytest.fixture
def release(tmp_path) -> Path:
    path = tmp_path / "terms.csv"
    path.write_text(TABLE)
    return path


@pytest.fixture
def folder(tmp_path) -> Path:
    return tmp_path / "var" / "eval"


@pytest.fixture
def builds(release, folder, encoder_dir) -> ScratchBuilds:
    return ScratchBuilds(release, folder, encoder_dir)


def found(build, *texts: str) -> list[set[str]]:
    options = LinkOptions(channels=("exact",))
    return [{c.concept.id for c in result.candidates} for result in build.linker.link([*map(Mention, texts)], options)]


def test_a_release_is_built_once_and_again_when_it_changes(builds, release, folder, encoder_dir):
    first = builds.open()
    again = ScratchBuilds(release, folder, encoder_dir).open()
    release.write_text(TABLE + "MESH:D000001,Pox,MESH,\n")
    changed = ScratchBuilds(release, folder, encoder_dir).open()

    assert again.id == first.id
    assert found(first, "pox", "PYREXIA") == [set(), {"MESH:D005334"}]
    assert found(changed, "pox") == [{"MESH:D000001"}]


def test_every_encoder_has_a_build_of_its_own(builds, release, folder, tmp_path):
    HashingEncoder(dim=32).save(tmp_path / "other")
    first = builds.open()

    assert ScratchBuilds(release, folder, tmp_path / "other").open().encoder.dim == 32
    assert builds.open().id == first.id


def test_a_damaged_build_is_made_again_in_its_place(builds, folder):
    first = builds.open()
    (directory,) = folder.glob(f"*/*/{first.id}")
    (directory / "dense.faiss").write_bytes(b"")

    second = builds.open()

    assert second.id != first.id
    assert [path.name for path in directory.parent.iterdir()] == [second.id]


def test_with_names_only_the_names_are_encoded(builds):
    plain, extended = builds.open(), builds.open(ADDED)

    assert builds.open(ADDED).id == extended.id != plain.id
    assert extended.manifest["reused_vectors"] == plain.manifest["counts"]["distinct_texts"] == 3
    assert extended.manifest["counts"] == {"concepts": 4, "names": 8, "distinct_texts": 7}


def test_added_names_answer_for_every_concept_of_their_ids_and_only_where_they_were_added(builds):
    plain, extended = builds.open(), builds.open(ADDED)

    texts = ["hot spell", "podagra", "gouty", "a cold"]
    gout, cough = "MESH:D006073", "MESH:D003371"
    assert found(extended, *texts) == [{"MESH:D005334"}, {gout, cough}, {gout}, {"C0009443"}]
    assert found(plain, *texts) == [set(), set(), set(), set()]


def test_a_name_follows_those_of_its_concept_and_an_unknown_id_becomes_a_concept_in_its_place():
    concepts = [
        Concept("C0000002", "Gout", (Name("Gout", "X"),), codes=(Code("MSH", "D1"), Code("OMIM", "1"))),
        Concept("MESH:D000001", "Pox", (Name("Pox", "X"),)),
    ]
    added = {
        "podagra": frozenset({"MESH:D1", "OMIM:1", "UMLS:C0000001"}),
        "Big Pox": frozenset({"MESH:D000001", "HP:0000001"}),
        "a pox": frozenset({"HP:0000001"}),
    }

    extended = [(c.id, c.preferred_name, [(n.text, n.sab) for n in c.names]) for c in with_names(concepts.copy, added)]

    assert extended == [
        ("C0000001", "podagra", [("podagra", "TRAIN")]),
        ("C0000002", "Gout", [("Gout", "X"), ("podagra", "TRAIN")]),
        ("HP:0000001", "Big Pox", [("Big Pox", "TRAIN"), ("a pox", "TRAIN")]),
        ("MESH:D000001", "Pox", [("Pox", "X"), ("Big Pox", "TRAIN")]),
    ]


def test_systems_answer_over_the_release_and_over_added_names_only_when_there_are_any(builds):
    source = ScratchSource(builds, CHOSEN, longest_context=100, label="ours", encoder="tiny")

    assert (source.label, source.known(["OMIM:100100", "MESH:D006073"])) == ("ours", {"OMIM:100100"})
    assert [bool(names) for names in source.exact(["pyrexia", "podagra"], 5)] == [True, False]
    assert [(s.name, s.encoder) for s in source.systems("paper", ADDED)] == [
        ("exact", None),
        ("dense", "tiny"),
        ("fused", "tiny"),
    ]


@pytest.mark.parametrize(("protocol", "rank"), [("dictionary", 1), ("strict", 2)])
def test_capitals_that_the_protocol_took_away_are_not_missed(release, folder, encoder_dir, protocol, rank):
    # As a word "als" is not ALS, and "als als" is near enough to come first.
    release.write_text("id,name,sab\nMESH:D000690,ALS,MESH\nMESH:D000001,als als,MESH\n")
    builds = ScratchBuilds(release, folder, encoder_dir)
    source = ScratchSource(builds, {"dense": ("dense",)}, longest_context=100, label="ours")
    mention = LabeledMention("1", 0, 3, "als", "Disease", (("MESH:D000690",),))

    (system,) = source.systems(protocol, {})

    assert system.ranks([Question(mention, ("als",))], 5) == [rank]
