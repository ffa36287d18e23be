import gzip
import re
from pathlib import Path

import pytest

from medlink.corpora.catalogue import corpora, corpus, read_split
from medlink.corpora.records import CorpusReport
from medlink.errors import SourceError, UnknownValueError

PAGE = (Path(__file__).parents[2] / "docs" / "formats.md").read_text(encoding="utf-8")
PUBTATOR = "{0}|t|gout\n{0}|a|\n{0}\t0\t4\tgout\tT047\tUMLS:C0018099\n\n"
COMETA = "ID\tTerm\tGeneral SNOMED ID\tSpecific SNOMED ID\tExample\n1\tgout\t90560007\t48440001\tmy gout\n"
LIST = "pmid\tsplit\torder\tcui\tmention\n1\ttrain\t0\tC0018099\tgout\n2\tdev\t0\tC0018099\tgout\n"


def test_a_corpus_knows_its_files_and_types():
    chosen = corpus("bc5cdr-chemical")

    assert chosen.file("dev", Path("data")) == Path("data/bc5cdr/CDR_DevelopmentSet.PubTator.txt")
    assert chosen.types == {"Chemical"}


def test_an_unknown_corpus_or_split_lists_the_valid_ones():
    with pytest.raises(UnknownValueError, match=r"bc5cdr-disease.*ncbi-disease"):
        corpus("ncbi")
    with pytest.raises(UnknownValueError, match="dev, test, train"):
        corpus("ncbi-disease").file("validation", Path())
    with pytest.raises(UnknownValueError, match="valid: test"):
        read_split("xl-bel-de", "dev", Path())


def test_a_split_comes_after_those_that_the_corpus_has():
    assert corpus("ncbi-disease").before("test") == ("train", "dev")
    assert corpus("ncbi-disease").before("train") == ()
    assert corpus("gsc-plus").before("test") == ("dev",)
    assert corpus("xl-bel-th").before("test") == ()
    with pytest.raises(UnknownValueError, match="dev, test"):
        corpus("gsc-plus").before("train")


@pytest.mark.parametrize(
    ("name", "split", "file", "content", "gold"),
    [
        ("ncbi-disease", "dev", "ncbi-disease/NCBIdevelopset_corpus.txt", PUBTATOR.format(2), "UMLS:C0018099"),
        ("medmentions", "dev", "medmentions/st21pv_mentions.tsv", LIST, "UMLS:C0018099"),
        ("gsc-plus", "dev", "gsc/GSCplus_dev_gold.tsv", "2\ngout\n0\t4\tgout\tHP:0001997\n", "HP:0001997"),
        ("xl-bel-de", "test", "xlbel/v1.0/de_1k_test_query_with_context.txt", "C1||gout||<tgt>gout</tgt>", "UMLS:C1"),
        ("xl-bel-v0.0-ja", "test", "xlbel/v0.0/ja_1k_test_query.txt", "C0018099||gout\n", "UMLS:C0018099"),
        ("cometa-general", "dev", "cometa/splits/stratified_general/dev.csv", COMETA, "SNOMEDCT_US:90560007"),
        ("cometa-specific", "dev", "cometa/splits/stratified_specific/dev.csv", COMETA, "SNOMEDCT_US:48440001"),
        ("cometa-general-zeroshot", "test", "cometa/splits/zeroshot_general/test.csv", COMETA, "SNOMEDCT_US:90560007"),
        (
            "askapatient-fold-9",
            "dev",
            "askapatient/AskAPatient.fold-9.validation.txt",
            "90560007\tGout\tgout\n",
            "SNOMEDCT_US:90560007",
        ),
    ],
)
@pytest.mark.parametrize("gzipped", [False, True])
def test_any_corpus_is_read_by_name_plain_or_gzipped(tmp_path, name, split, file, content, gold, gzipped):
    path = tmp_path / (f"{file}.gz" if gzipped else file)
    path.parent.mkdir(parents=True)
    path.write_bytes(gzip.compress(content.encode()) if gzipped else content.encode())
    report = CorpusReport()

    (document,) = read_split(name, split, tmp_path, report)

    (mention,) = document.mentions
    assert (mention.text, mention.gold_ids) == ("gout", {gold})
    assert (report.documents, report.mentions) == (1, 1)


def test_the_official_form_of_medmentions_is_split_by_its_lists_of_pmids(tmp_path):
    folder = tmp_path / "medmentions"
    folder.mkdir()
    (folder / "corpus_pubtator.txt").write_text("".join(map(PUBTATOR.format, (1, 2, 3))))
    (folder / "corpus_pubtator_pmids_trng.txt").write_text("3\n1\n")
    report = CorpusReport()

    documents = read_split("medmentions-pubtator", "train", tmp_path, report)

    assert [document.id for document in documents] == ["1", "3"]
    assert (report.documents, report.mentions) == (2, 2)
    with pytest.raises(SourceError, match=r"corpus_pubtator_pmids_dev\.txt"):
        read_split("medmentions-pubtator", "dev", tmp_path)


def test_corpora_of_one_collection_have_the_same_files():
    by_collection: dict[str, list[dict[str, str]]] = {}
    for member in corpora():
        by_collection.setdefault(member.collection or member.name, []).append(member.files)

    assert all(files == same[0] for same in by_collection.values() for files in same)


def test_the_formats_page_says_where_the_files_of_every_corpus_belong():
    named = "|".join(re.escape(name) for name in re.findall(r"`([\w./*-]+)`", PAGE.split("## Corpora")[1]))
    pattern = re.compile(named.replace(r"\*", "[^/]*"))

    unnamed = [file for member in corpora() for file in member.files.values() if not pattern.fullmatch(file)]

    assert unnamed == []
