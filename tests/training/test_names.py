"""Names to train on come straight from a release or through the store, and are the same."""

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from medlink.cli.train import app
from medlink.kb.database import migrate, open_engine
from medlink.kb.load import load
from medlink.kb.readers import open_reader
from medlink.kb.repository import Repository
from medlink.manifest import read_manifest
from training.names import NameRule, ReleaseTerminology, StoreTerminology
from training.pairs import PairRecipe, make_pairs
from training.pairset import BROADER, CONCEPTS, MEMBERSHIPS, PAIRS, TEXTS, PairSet, read_pairs

RRF = Path(__file__).parents[1] / "data" / "rrf" / "META"


def pairs_of(found: PairSet) -> list[tuple[str, str, str]]:
    pairs, ids = found.pairs, found.concepts
    texts = zip(pairs.concept.tolist(), found.texts(pairs.left), found.texts(pairs.right), strict=True)
    return [(ids[concept], left, right) for concept, left, right in texts]


@pytest.fixture
def store(tmp_path):
    engine = open_engine(f"sqlite:///{tmp_path / 'kb.sqlite'}")
    migrate(engine)
    yield engine
    engine.dispose()


@pytest.mark.parametrize("include_suppressed", [False, True])
def test_a_release_gives_the_same_pairs_straight_and_through_the_store(tmp_path, store, include_suppressed):
    rule = NameRule(languages=("ENG", "SPA"), include_suppressed=include_suppressed)
    load(store, open_reader(RRF, languages=None, include_suppressed=True), name="umls", fingerprint="f00d")

    make_pairs(ReleaseTerminology.open(RRF, rule), tmp_path / "straight", PairRecipe(rule))
    make_pairs(StoreTerminology(Repository(store)), tmp_path / "stored", PairRecipe(rule))

    # The store was loaded with suppressed relations, of which it does not know any more that they were.
    for name in (PAIRS, TEXTS, CONCEPTS, MEMBERSHIPS, *([BROADER] if include_suppressed else [])):
        assert (tmp_path / "straight" / name).read_bytes() == (tmp_path / "stored" / name).read_bytes()
    assert read_manifest(tmp_path / "stored")["terminology"] == {"kind": "store", "loads": {"umls": "f00d"}}
    assert read_manifest(tmp_path / "straight")["terminology"]["left_out"]["MRCONSO.RRF: blank name"] == 1
    found = read_pairs(tmp_path / "straight")
    assert ("C9000012", "nortiva", "quilladine") in pairs_of(found)
    assert ("heart seizure" in found.texts(np.arange(found.text_count))) is include_suppressed


def test_the_command_reads_a_file_or_the_store_and_says_what_it_counted(tmp_path, monkeypatch):
    monkeypatch.setenv("MEDLINK_DATA_DIR", str(tmp_path / "var"))
    monkeypatch.delenv("MEDLINK_DATABASE_URL", raising=False)
    (tmp_path / "terms.csv").write_text("id,name,sab,language\nC1,fever,X,ENG\nC1,pyrexia,X,ENG\nC1,Fieber,X,GER\n")
    engine = open_engine(f"sqlite:///{tmp_path / 'var' / 'medlink.sqlite'}")
    migrate(engine)
    load(engine, open_reader(tmp_path / "terms.csv"), name="terms")
    engine.dispose()

    def run(*arguments: str) -> str:
        result = CliRunner().invoke(app, ["pairs", *map(str, arguments)], catch_exceptions=False)
        assert result.exit_code == 0
        return " ".join(result.stdout.split())

    from_file = run(tmp_path / "file", "--source", tmp_path / "terms.csv")
    from_store = run(tmp_path / "store")
    in_all = run(tmp_path / "all", "--languages", "all")

    assert "1 pairs" in from_file
    assert "1 left out: language" in from_file
    assert from_store == from_file
    assert "3 pairs" in in_all
    assert pairs_of(read_pairs(tmp_path / "store")) == [("C1", "fever", "pyrexia")]
