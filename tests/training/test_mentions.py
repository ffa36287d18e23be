"""Names and mentions that fine-tuning learns from."""

from pathlib import Path

import pytest

from medlink.corpora.records import LabeledDocument, LabeledMention
from medlink.errors import SourceError
from medlink.kb.database import migrate, open_engine
from medlink.kb.load import load
from medlink.kb.readers import open_reader
from medlink.kb.records import CodeRecord, NameRecord
from medlink.kb.repository import Repository
from medlink.types import Concept, Name
from training.heldout import hold_out
from training.mentions import MentionReport, Mentions, Names, digest, scored_splits
from training.names import NameRule, StoreTerminology

RECORDS = [
    NameRecord("M:1", "Gout", "M"),
    NameRecord("M:1", "Gouty arthritis", "M"),
    NameRecord("M:1", "podagra", "M", suppress="O"),
    CodeRecord("M:1", "MESH", "D006073"),
    CodeRecord("M:1", "OMIM", "138900"),
    NameRecord("M:2", "arthritis", "M"),
    NameRecord("M:2", "GOUT", "M"),
    CodeRecord("M:2", "MESH", "D001168"),
    NameRecord("M:3", "gouty nephropathy", "M"),
    CodeRecord("M:3", "OMIM", "138900"),
    NameRecord("M:4", "Jicht", "M", language="DUT"),
]


def document(text: str, *labeled: tuple[str, tuple[tuple[str, ...], ...]], id: str = "1") -> LabeledDocument:
    mentions = tuple(
        LabeledMention(id, text.index(mention), text.index(mention) + len(mention), mention, "Disease", gold)
        for mention, gold in labeled
    )
    return LabeledDocument(id, text, mentions)


@pytest.fixture
def names() -> Names:
    return Names.read(RECORDS, NameRule())


def shown(names: Names, rows: list[int]) -> set[str]:
    return {names.texts[row] for row in rows}


def id_numbers(names: Names, *ids: str) -> list[int]:
    return sorted(names.known(ids))


def test_a_text_has_the_concepts_that_bear_it_and_all_their_ids(names):
    gout = names.texts.index("gout")

    assert names.texts == ["gout", "gouty arthritis", "arthritis", "gouty nephropathy"]
    assert len(names.concepts.row(gout)) == 2
    assert names.ids.row(gout).tolist() == id_numbers(
        names, "M:1", "MESH:D006073", "OMIM:138900", "M:2", "MESH:D001168"
    )


def test_an_id_finds_every_concept_that_answers_to_it_and_their_names(names):
    both = names.meant(names.known(["OMIM:138900", "OMIM:0"]))

    assert len(both) == 2
    found = [row for concept in both for row in names.of_concept.row(concept).tolist()]
    assert shown(names, found) == {"gout", "gouty arthritis", "gouty nephropathy"}


def test_a_mention_is_asked_as_the_protocol_does_and_knows_all_that_it_is_related_to(names):
    text = "Chronic gouty arthritis (CGA). CGA"

    mentions = Mentions.read([document(text, ("CGA", (("MESH:D006073",),)))], names)

    assert mentions.texts == ["chronic gouty arthritis"]
    assert mentions.ids.row(0).tolist() == id_numbers(names, "M:1", "MESH:D006073", "OMIM:138900")


def test_a_mention_that_reads_like_a_name_of_another_concept_is_related_to_it(names):
    read = Mentions.read([document("arthritis", ("arthritis", (("MESH:D006073",),)))], names)

    assert set(names.known(["M:1", "M:2"])) <= set(read.ids.row(0).tolist())
    assert len(read.concepts.row(0)) == 1


def test_a_text_that_means_two_concepts_in_two_places_has_both(names):
    read = Mentions.read(
        [
            document("joint trouble", ("joint trouble", (("MESH:D006073",),))),
            document("joint trouble", ("joint trouble", (("MESH:D001168",),)), id="2"),
        ],
        names,
    )

    assert read.texts == ["joint trouble"]
    assert read.concepts.row(0).tolist() == sorted(names.meant(names.known(["M:1", "M:2"])))


def test_what_is_left_out_is_counted_with_its_reason(names):
    gout = (("MESH:D006073",),)
    text = "gouts of rich men, nausea and vomiting, arthritis with gout, pox, ague, --"
    labeled = [
        ("gouts", (("MESH:D006073", "OMIM:9"),)),
        ("nausea and vomiting", gout),
        ("arthritis with gout", (*gout, ("MESH:D001168",))),
        ("pox", (("MESH:D999999", "OMIM:9"),)),
        ("ague", ()),
        ("--", gout),
    ]
    report = MentionReport()

    mentions = Mentions.read([document(text, *labeled)], names, report=report)

    assert mentions.texts == ["gouts"]
    assert (report.mentions, report.texts) == (6, 1)
    assert (report.composite, report.unknown, report.without_concept, report.blank) == (2, 1, 1, 1)
    assert report.unknown_ids == {"MESH:D999999", "OMIM:9"}


def test_held_out_names_are_those_of_the_pairs_and_no_mention_reads_like_one():
    concepts = [Concept(f"M:{n}", f"a{n}", (Name(f"a{n}", "M"), Name(f"b{n}", "M"))) for n in range(60)]
    split = hold_out(concepts, percent=20, seed=3)
    records = [NameRecord(c.id, name.text, name.sab) for c in concepts for name in c.names]
    hidden = {name.text for c in concepts for name in c.names if split.is_held_out(name.text)}
    report = MentionReport()

    names = Names.read(records, NameRule(), held_out_percent=20, seed=3)
    every = [document(r.text, (r.text, ((r.concept_id,),))) for r in records]
    mentions = Mentions.read(every, names, report=report)

    assert hidden
    assert set(names.texts) == set(mentions.texts) == {r.text for r in records} - hidden
    assert report.held_out == len(hidden)
    assert names.held_out.fingerprint == split.fingerprint


def test_the_store_gives_the_names_and_ids_of_the_release_that_was_loaded(tmp_path):
    (tmp_path / "terms.csv").write_text(
        "id,name,sab,codes\nM:1,Gout,M,MESH:D006073;OMIM:138900\nM:1,Gouty arthritis,M,\nM:2,arthritis,M,\n"
    )
    engine = open_engine(f"sqlite:///{tmp_path / 'kb.sqlite'}")
    migrate(engine)
    load(engine, open_reader(tmp_path / "terms.csv"), name="terms")

    stored = Names.read(StoreTerminology(Repository(engine)).records(), NameRule())
    engine.dispose()

    assert set(stored.texts) == {"gout", "gouty arthritis", "arthritis"}
    gout = stored.texts.index("gout")
    assert stored.ids.row(gout).tolist() == id_numbers(stored, "M:1", "MESH:D006073", "OMIM:138900")


def test_without_a_name_that_serves_there_is_nothing_to_read():
    with pytest.raises(SourceError, match="no name that serves"):
        Names.read(RECORDS[-1:], NameRule())


def test_another_gold_concept_is_another_digest(names):
    def of(id_: str) -> str:
        return digest(names, Mentions.read([document("podagra", ("podagra", ((id_,),)))], names))

    assert of("M:1") == of("MESH:D006073") != of("M:2")


def test_scored_splits_are_the_dev_and_test_files_that_are_there_a_collection_once(tmp_path: Path):
    for file in ("bc5cdr/CDR_TrainingSet.PubTator.txt", "bc5cdr/CDR_TestSet.PubTator.txt", "biored/Dev.PubTator"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).touch()

    assert scored_splits(tmp_path) == [("bc5cdr-disease", "test"), ("biored-disease", "dev")]
