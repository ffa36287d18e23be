from pathlib import Path

import pytest

from medlink.corpora.catalogue import corpus
from medlink.errors import UnknownValueError


def test_a_corpus_knows_its_files_and_types():
    chosen = corpus("bc5cdr-chemical")

    assert chosen.file("dev", Path("data")) == Path("data/bc5cdr/CDR_DevelopmentSet.PubTator.txt")
    assert chosen.types == {"Chemical"}


def test_an_unknown_corpus_or_split_lists_the_valid_ones():
    with pytest.raises(UnknownValueError, match=r"bc5cdr-disease.*ncbi-disease"):
        corpus("ncbi")
    with pytest.raises(UnknownValueError, match="dev, test, train"):
        corpus("ncbi-disease").file("validation", Path())
