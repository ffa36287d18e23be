"""What each protocol asks of a dictionary in a file, and which mentions it may add to it."""

from pathlib import Path

import pytest

from medlink.encoders.hashing import HashingEncoder
from medlink.kb.records import NameRecord
from training.baselines import BASELINES, Dictionary
from training.dense import EncodedNames
from training.evaluate import Task
from training.scoring import CorpusTest, corpus_test, score_systems
from training.systems import DictionarySource

GOUT, FEVER, COUGH, SHARED = "MESH:D006073", "MESH:D005334", "MESH:D003371", "MESH:D000001"
NAMES = [
    NameRecord(GOUT, "Gout", "MESH"),
    NameRecord(FEVER, "Fever", "MESH"),
    NameRecord(COUGH, "Cough", "MESH"),
    NameRecord(SHARED, "fever", "MESH"),
]
SPLITS = {
    "train": [("podagra", "D006073"), ("hot spell", "D005334"), ("nonsense", "-1"), ("fevre", "D005334")],
    "develop": [("podagra", "D006073"), ("fever", "D000001"), ("pox", "D000009"), ("nonsense", "-1"), ("aches", "D1")],
    "test": [("aches", "D1"), ("podagra", "D006073")],
}


@pytest.fixture
def corpora(tmp_path: Path) -> Path:
    folder = tmp_path / "corpora" / "ncbi-disease"
    folder.mkdir(parents=True)
    block = "{0}|t|{1}\n{0}|a|\n{0}\t0\t{2}\t{1}\tSpecificDisease\t{3}\n\n"
    for split, labeled in SPLITS.items():
        lines = (block.format(i, text, len(text), ids) for i, (text, ids) in enumerate(labeled, 1))
        (folder / f"NCBI{split}set_corpus.txt").write_text("".join(lines))
    return folder.parent


@pytest.fixture
def source() -> DictionarySource:
    encoded = {"tiny": EncodedNames(HashingEncoder(dim=64))}
    return DictionarySource(Dictionary.read(NAMES), "ours", BASELINES, encoded)


def read(corpora: Path, protocol: str, split: str = "dev", typos: dict[str, str] | None = None) -> CorpusTest:
    return corpus_test(Task("ncbi-disease", split, "", protocol), corpora, typos)


def ranks(source: DictionarySource, test: CorpusTest) -> dict[str, list[int]]:
    return {system.name: system.ranks(test.asked, 5) for system in source.systems(test.task.protocol, test.added)}


def test_paper_adds_the_mentions_of_the_splits_before_and_no_others(corpora):
    podagra, spell = {"podagra": {GOUT}}, {"hot spell": {FEVER}, "fever": {FEVER}}

    assert read(corpora, "dictionary").added == read(corpora, "strict").added == {}
    assert read(corpora, "paper", typos={"fevre": "fever"}).added == podagra | spell
    assert "pox" in read(corpora, "paper", "test").added
    assert read(corpora, "paper", "train").added == {}


def test_an_added_name_answers_and_nothing_stays_behind(corpora, source):
    paper = ranks(source, read(corpora, "paper"))
    after = ranks(source, read(corpora, "dictionary"))

    assert paper["baseline-exact"] == [1, 1, 0, 0, 0]
    assert paper["baseline-tfidf"][0] == paper["dense"][0] == 1
    assert after["baseline-exact"] == [0, 1, 0, 0, 0]


def test_strict_takes_a_name_for_its_first_concept_only_and_nil_for_an_answer(corpora, source):
    found = ranks(source, read(corpora, "strict"))

    assert found["baseline-exact"] == [0, 2, 0, 1, 0]
    # The nearest name is always some name.
    assert (found["dense"][1], found["dense"][3]) == (2, 0)


def test_rows_name_every_system_and_subset_and_the_coverage_of_what_may_be_answered(corpora, source):
    rows = {
        (protocol, row["system"], row["subset"]): row
        for protocol in ("dictionary", "paper", "strict")
        for row in score_systems(read(corpora, protocol), source, 5)
    }

    assert len(rows) == 3 * 3 * 3
    assert {row["dictionary"] for row in rows.values()} == {"ours"}
    assert {row["encoder"] for (_, system, _), row in rows.items() if system == "dense"} == {"tiny"}
    hard = {protocol: rows[protocol, "baseline-exact", "hard"]["n"] for protocol in ("dictionary", "paper", "strict")}
    assert hard == {"dictionary": 2, "paper": 2, "strict": 2}
    coverage = {protocol: rows[protocol, "dense", "all"]["coverage"] for protocol in ("dictionary", "paper", "strict")}
    assert coverage == {"dictionary": 40.0, "paper": 40.0, "strict": 60.0}
    assert rows["paper", "baseline-exact", "all"]["acc@1"] == 40.0


def test_paper_covers_ids_that_only_the_earlier_mentions_have(corpora, source):
    (row,) = [r for r in score_systems(read(corpora, "paper", "test"), source, 5) if r["system"] == "baseline-exact"][
        :1
    ]

    assert (row["coverage"], row["acc@1"]) == (100.0, 100.0)
