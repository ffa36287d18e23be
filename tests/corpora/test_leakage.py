import pytest

from medlink.corpora.catalogue import read_split
from medlink.corpora.leakage import LeakageReport, drop_documents, overlaps, split_ids
from medlink.errors import UnknownValueError


def pubtator(*pmids: int) -> str:
    return "".join(f"{pmid}|t|gout\n{pmid}|a|\n{pmid}\t0\t4\tgout\tDisease\tD006073\n\n" for pmid in pmids)


@pytest.fixture
def data(tmp_path):
    """Corpora that share documents: 2 and 3 of BC5CDR test and 3 and 4 of NCBI dev are in BioRED train."""
    contents = {
        "biored/Train.PubTator": pubtator(1, 2, 2, 3, 4),
        "bc5cdr/CDR_TestSet.PubTator.txt": pubtator(2, 3, 9),
        "ncbi-disease/NCBIdevelopset_corpus.txt": pubtator(3, 4, 8),
        "gsc/GSCplus_dev_gold.tsv": "7\nGout.\n\n",
        "xlbel/v1.0/de_1k_test_query_with_context.txt": "C0018099||Gicht||Die <tgt>Gicht</tgt>\n",
    }
    for name, content in contents.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    return tmp_path


def test_documents_of_scored_splits_are_dropped_and_counted_by_split(data):
    scored = split_ids([("bc5cdr-disease", "test"), ("ncbi-disease", "dev"), ("gsc-plus", "dev")], data)
    report = LeakageReport()

    kept = drop_documents(read_split("biored-disease", "train", data), scored, report=report)

    assert [document.id for document in kept] == ["1"]
    assert (report.documents, report.dropped) == (5, 4)
    assert report.by_split == {"bc5cdr-disease test": 3, "ncbi-disease dev": 2, "gsc-plus dev": 0}


def test_nothing_is_dropped_where_nothing_is_scored(data):
    documents = read_split("biored-disease", "train", data)

    assert list(drop_documents(documents, {})) == documents


def test_overlaps_are_found_between_all_corpora_that_are_there_and_each_collection_once(data):
    found = {(overlap.first, overlap.second): overlap.ids for overlap in overlaps(data)}

    assert found == {
        ("ncbi-disease dev", "bc5cdr test"): {"3"},
        ("ncbi-disease dev", "biored train"): {"3", "4"},
        ("bc5cdr test", "biored train"): {"2", "3"},
    }


def test_a_folder_without_corpora_has_no_overlaps_and_an_unknown_split_is_an_error(tmp_path):
    assert overlaps(tmp_path) == []
    with pytest.raises(UnknownValueError, match="dev, test"):
        split_ids([("gsc-plus", "train")], tmp_path)
