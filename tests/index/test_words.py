"""How rare a word is among the names of a build."""

import math
import os
import subprocess
import sys

import pytest

from index.words import Words, write_words
from medlink.types import Concept, Name


def concept(id_: str, *names: str) -> Concept:
    return Concept(id_, names[0], tuple(Name(name, "T") for name in names))


@pytest.fixture(scope="module")
def build(make_build, tmp_path_factory):
    concepts = [
        concept("X:1", "Lung tumour", "lung TUMOUR", "Pulmonary tumors"),
        concept("X:2", "Tumor of lung, tumor of liver"),
        concept("X:3", "Fever"),
    ]
    return make_build(tmp_path_factory.mktemp("builds"), concepts)


def test_a_word_is_the_rarer_the_fewer_distinct_names_have_it(build):
    found = build.concepts.rarity(["tumor", "lung", "fever", "quartz"])

    # Four names: the first two are one, and a word said twice counts once.
    assert found.tolist() == pytest.approx([math.log(5 / (df + 1)) for df in (3, 2, 1, 0)])


def test_words_are_asked_for_as_the_loose_key_has_them(build):
    found = build.concepts.rarity(["tumour", "tumors", "of"])

    assert found.tolist() == pytest.approx([math.log(5)] * 3)


def test_no_words_have_no_rarity(build):
    assert build.concepts.rarity([]).shape == (0,)


def test_rarity_counts_names_of_any_script(tmp_path):
    write_words(tmp_path, ["喘息 β", "喘息", ""])

    assert Words(tmp_path).rarity(["喘息", "β"]).tolist() == pytest.approx([math.log(4 / 3), math.log(2)])


def test_the_table_is_the_same_in_every_process(tmp_path):
    code = "import sys; from pathlib import Path; from index.words import write_words;"
    code += "write_words(Path(sys.argv[1]), ['lung tumor', 'fever', 'lung'])"
    tables = []
    for seed in ("1", "2"):
        directory = tmp_path / seed
        directory.mkdir()
        subprocess.run([sys.executable, "-c", code, directory], check=True, env={**os.environ, "PYTHONHASHSEED": seed})
        tables.append((directory / "word_counts.npy").read_bytes())

    assert tables[0] == tables[1]
