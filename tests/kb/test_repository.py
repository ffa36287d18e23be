"""Whole concepts come out of the store, in one order on both databases."""

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from medlink.errors import UnknownConceptError
from medlink.kb import orm
from medlink.kb.database import open_engine, writing
from medlink.kb.load import load
from medlink.kb.readers import open_reader
from medlink.kb.records import (
    BroaderRecord,
    CodeRecord,
    DefinitionRecord,
    NameRecord,
    Record,
    RetiredRecord,
    SemanticTypeRecord,
    SourceRecord,
    TradeNameRecord,
)
from medlink.kb.repository import Repository
from medlink.types import Code, Concept, Definition, Name, SemanticType

ROOT = Path(__file__).resolve().parents[2]
# Code points, bytes and most languages' dictionaries order these differently.
IDS = ["C1", "c1", "C10", "C2", "MONDO:1", "mondo-1", "_x", "é1", "Z", "z", "Ω", "𝔸", "\uffee", "中", "C 1", "ß"]
TEXTS = ["Fever", "fever", "fièvre", "Ödem", "zoster", "Zoster", "a b", "a-b", "ab", "𝔸", "\uffee", "熱"]


@pytest.fixture
def repository(store):
    return Repository(store)


def made_up_release(seed: int) -> list[Record]:
    rng = random.Random(seed)
    pick = rng.choice
    records: list[Record] = []
    for _ in range(120):
        suppress, rank = pick(["N", "N", "O", "E"]), rng.randrange(3)
        language, code = pick(["ENG", "DUT"]), pick(["", "1", "2"])
        records.append(
            NameRecord(pick(IDS), pick(TEXTS), pick("AB"), pick(["PT", "SY"]), language, code, suppress, rank)
        )
    for _ in range(60):
        records += [
            CodeRecord(pick(IDS), pick("AB"), pick("123")),
            SemanticTypeRecord(pick(IDS), pick(["T1", "T2"]), "Type"),
            DefinitionRecord(pick(IDS), pick("AB"), pick(TEXTS)),
            BroaderRecord(pick(IDS), pick(IDS), pick("AB")),
        ]
    rng.shuffle(records)
    return records


def slow_concepts(engine) -> list[Concept]:
    """Build one concept after the other from objects, each with its own queries."""
    with Session(engine) as session:
        everything = {model: list(session.scalars(select(model))) for model in orm_content()}
    of = {
        model: lambda concept_id, model=model: [x for x in everything[model] if x.concept_id == concept_id]
        for model in orm_content()
    }
    concepts = []
    for concept_id in sorted({name.concept_id for name in everything[orm.Name]}):
        names = [
            (x.suppress != "N", x.load_id, x.rank, x.text, x.sab, x.tty, x.code, x.language)
            for x in of[orm.Name](concept_id)
        ]
        ordered = [Name(n[3], n[4], n[5], n[7], n[6], n[0]) for n in sorted(names)]
        types = {(x.tui, x.name) for x in of[orm.SemanticType](concept_id)}
        codes = {(x.sab, x.code) for x in of[orm.Code](concept_id)}
        definitions = {(x.sab, x.text) for x in of[orm.Definition](concept_id)}
        concepts.append(
            Concept(
                concept_id,
                ordered[0].text,
                tuple(name for at, name in enumerate(ordered) if name not in ordered[:at]),
                tuple(SemanticType(*pair) for pair in sorted(types)),
                tuple(Code(*pair) for pair in sorted(codes)),
                tuple(Definition(*pair) for pair in sorted(definitions)),
                tuple(sorted({x.broader_id for x in of[orm.Broader](concept_id)})),
            )
        )
    return concepts


def orm_content():
    return orm.Name, orm.SemanticType, orm.Code, orm.Definition, orm.Broader


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("batch", [1, 7, 5000])
def test_streamed_concepts_are_those_put_together_one_by_one(store, repository, load_records, seed, batch):
    load_records(*made_up_release(seed), name="one")
    load_records(*made_up_release(seed + 100), name="two")

    streamed = list(repository.concepts(batch))

    assert streamed == slow_concepts(store)
    assert [concept.id for concept in streamed] == sorted(concept.id for concept in streamed)
    assert [repository.concept(concept.id) for concept in streamed] == streamed


def test_both_databases_order_as_python_does(repository, load_records):
    load_records(*(NameRecord(concept_id, "name", sab) for concept_id in IDS for sab in IDS))

    assert [concept.id for concept in repository.concepts()] == sorted(IDS)
    assert repository.sabs() == sorted(IDS)


def test_the_table_of_concepts_and_the_stream_agree_on_the_preferred_name(store, repository, load_records):
    load_records(*made_up_release(5), name="one")
    load_records(*made_up_release(6), name="two")

    with store.connect() as connection:
        rows = connection.execute(select(orm.Concept.id, orm.Concept.preferred_name))
        derived = {concept_id: name for concept_id, name in rows}

    assert derived == {concept.id: concept.preferred_name for concept in repository.concepts()}


def test_a_later_load_adds_names_and_does_not_rename(repository, load_records):
    load_records(NameRecord("C1", "Myocardial infarction", "UMLS", rank=70_000), name="umls")
    load_records(NameRecord("C1", "MI", "LOCAL", rank=0), name="local list")
    load_records(NameRecord("C1", "Myocardial infarction", "UMLS", rank=80_000), name="umls")

    concept = repository.concept("C1")

    assert concept.preferred_name == "Myocardial infarction"
    assert [name.text for name in concept.names] == ["Myocardial infarction", "MI"]


def test_a_stream_shows_the_store_as_it_was_when_it_began(repository, load_records):
    load_records(NameRecord("C1", "a", "VOC"), NameRecord("C2", "b", "VOC"), DefinitionRecord("C2", "VOC", "B."))
    stream = repository.concepts(batch=1)
    first = next(stream)

    load_records(NameRecord("C3", "c", "VOC"))

    assert [first.id, *(concept.id for concept in stream)] == ["C1", "C2"]


def test_a_umls_release_goes_in_and_comes_out(store, repository):
    reader = open_reader(ROOT / "tests/data/rrf/META", languages=None)

    report = load(store, reader, name="umls")

    heart = repository.concept("C9000001")
    assert heart.names[0].language == "ENG"
    assert {name.text for name in heart.names} >= {"Heart attack", "Ataque al corazón"}
    assert "C9000002" in heart.broader
    assert next(fate for fate in repository.retirements() if fate.id == "C9000092").successors == ("C9000002",)
    assert len(list(repository.concepts())) == repository.concept_count() == repository.stats().rows["concept"]
    assert report.rows["name"] == repository.stats().rows["name"]


def test_a_stream_may_be_left_in_the_middle(store, repository, load_records):
    load_records(*made_up_release(0), RetiredRecord("X1", "C1", "SY"), RetiredRecord("X2", "C1", "SY"))

    firsts = [next(repository.concepts(batch=1)).id, next(repository.retirements()).id]

    assert firsts == [min(IDS), "X1"]
    assert store.pool.checkedout() == 0


def test_an_empty_store_has_nothing_to_tell(repository):
    assert list(repository.concepts()) == list(repository.retirements()) == list(repository.trade_names()) == []
    assert repository.sources() == repository.semantic_types() == repository.sabs() == []
    assert set(repository.stats().rows.values()) == {0}


def test_an_unknown_concept_is_an_error(repository, load_records):
    load_records(NameRecord("C1", "a", "VOC"))

    with pytest.raises(UnknownConceptError, match="C2"):
        repository.concept("C2")


def test_a_code_may_belong_to_several_concepts(repository, load_records):
    names = [NameRecord(concept_id, "name", "VOC") for concept_id in ("C1", "C2", "C3")]
    load_records(*names, CodeRecord("C2", "VOC", "7"), CodeRecord("C1", "VOC", "7"), CodeRecord("C3", "VOC", "8"))

    assert repository.concepts_with_code("VOC", "7") == ["C1", "C2"]
    assert repository.concepts_with_code("VOC", "9") == []


def test_lists_are_distinct_and_ordered(repository, load_records):
    source = SourceRecord("VOC", "A vocabulary", "2026", "CC0", 0, "by us", "about:blank")
    load_records(source, NameRecord("C1", "a", "VOC"), SemanticTypeRecord("C1", "T2", "Two"), name="one")
    load_records(
        source,
        NameRecord("C2", "b", "ABC"),
        NameRecord("C3", "c", "ABC"),
        SemanticTypeRecord("C2", "T2", "Two"),
        SemanticTypeRecord("C2", "T1", "One"),
        TradeNameRecord("C3", "C2"),
        TradeNameRecord("C2", "C3"),
        name="two",
    )

    assert repository.sources() == [source]
    assert repository.semantic_types() == [("T1", "One"), ("T2", "Two")]
    assert repository.sabs() == ["ABC", "VOC"]
    assert list(repository.trade_names()) == [("C2", "C3"), ("C3", "C2")]


def test_stats_count_names_by_what_tells_them_apart(repository, load_records):
    load_records(
        NameRecord("C1", "fever", "A"),
        NameRecord("C1", "koorts", "B", language="DUT"),
        NameRecord("C1", "old", "B", suppress="O"),
        name="mine",
    )

    stats = repository.stats()

    assert stats.rows["concept"] == 1
    assert stats.names_by_language == {"DUT": 1, "ENG": 2}
    assert stats.names_by_sab == {"A": 1, "B": 2}
    assert stats.names_by_suppress == {"N": 2, "O": 1}
    (load,) = stats.loads
    assert (load.name, load.rows["name"]) == ("mine", 3)
    assert datetime.now(UTC) - load.finished_at < timedelta(minutes=5)


def test_readers_and_a_writer_do_not_wait_for_each_other(store, store_url, load_records):
    load_records(NameRecord("C1", "a", "VOC"))
    other = open_engine(store_url)

    with writing(other) as connection:
        connection.execute(
            insert(orm.IndexBuild).values(id="b", created_at=datetime.now(UTC), state="ready", manifest={})
        )
        seen = [concept.id for concept in Repository(store).concepts()]
    other.dispose()

    assert seen == ["C1"]
