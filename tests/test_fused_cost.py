"""The benchmark of cost makes the same mentions every time and times both ways over them."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from app.settings import Settings

WORDS = ("gout", "gastritis", "heart failure", "B")


@pytest.fixture
def cost(monkeypatch):
    spec = spec_from_file_location("fused_cost", Path(__file__).parents[1] / "benchmarks/fused_cost.py")
    module = module_from_spec(spec)
    # Dataclasses look their module up.
    monkeypatch.setitem(sys.modules, "fused_cost", module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "CORPORA", ("ncbi-disease",))
    return module


@pytest.fixture
def corpora(tmp_path) -> Path:
    (tmp_path / "ncbi-disease").mkdir()
    text = " ".join(WORDS)
    lines = [f"1\t{text.index(w)}\t{text.index(w) + len(w)}\t{w}\tDisease\tD000001" for w in WORDS]
    file = tmp_path / "ncbi-disease/NCBItrainset_corpus.txt"
    file.write_text("\n".join([f"1|t|{text}", "1|a|", *lines]) + "\n\n")
    return tmp_path


def test_mentions_are_distinct_and_those_of_the_corpus_come_before_the_varied_ones(cost, corpora):
    texts = cost.mentions(corpora, 40)

    assert len(set(texts)) == len(texts) == 40
    assert set(texts[:4]) == set(WORDS)
    assert all(texts)
    assert texts == cost.mentions(corpora, 40)
    assert set(cost.mentions(corpora, 2)) < set(WORDS)


def test_each_way_is_timed_in_every_round_and_the_ratio_is_of_the_medians(cost, build, tmp_path):
    rows = cost.measure(build, ["asthma", "heart attack", "###"], 3, Settings(data_dir=tmp_path))

    assert [row["case"] for row in rows] == ["3 mentions, file", "3 mentions, linker"]
    for row in rows:
        assert {way: len(seconds) for way, seconds in row["seconds"].items()} == {"dense": 3, "fused": 3}
        assert (row["system"], row["peer"], row["unit"], row["runs"]) == ("fused", "dense", "mentions/s", 3)
        assert row["names"] == build.manifest["counts"]["names"]
        assert row["ratio"] == pytest.approx(row["peer_value"] / row["value"], rel=0.05, abs=0.02)
