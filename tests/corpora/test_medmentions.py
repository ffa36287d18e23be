import gzip
import io
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medlink.corpora.medmentions import read_medmentions, read_pmids
from medlink.corpora.records import CorpusReport
from medlink.errors import SourceError

ROWS = [
    ("31", "dev", "0", "C0018099", "acute gout (toe)"),
    ("31", "dev", "1", "C0040300", "IL-1 beta"),
    ("31", "dev", "2", "C0018099", "acute gout"),
    ("31", "dev", "3", "C0018099", "acute gout"),
    ("40", "train", "0", "C0015967", '"fever'),
    ("52", "dev", "0", "C0015967", "fever"),
]
FIRST = ["In", "acute", "gout", "(", "toe", ")", "the", "IL", "-", "1", "beta", "rose", "."]
TITLE = ["acute", "gout", "."]


def block(tokens: list[str], first: int, cui: str) -> str:
    return "".join(f"{token}\t{f'B:{cui}' if place == first else 'O'}\n" for place, token in enumerate(tokens))


CONTEXTS = {
    "31": [
        block(FIRST, 1, "C0018099"),
        block(FIRST, 7, "C0040300"),
        block(TITLE, 0, "C0018099"),
        block(TITLE, 0, "C0018099"),
    ],
    "52": [block(["High", "fever."], 1, "C0015967")],
}


def write_list(path, rows=ROWS):
    lines = ["pmid\tsplit\torder\tcui\tmention", *map("\t".join, rows)]
    path.write_bytes(gzip.compress(("\n".join(lines) + "\n").encode()))
    return path


def write_contexts(path, contexts=CONTEXTS):
    with tarfile.open(path, "w:gz") as archive:
        for pmid, blocks in contexts.items():
            content = "\n".join(blocks).encode()
            member = tarfile.TarInfo(f"dev/{pmid}.context")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


@pytest.fixture
def files(tmp_path):
    return write_list(tmp_path / "list.tsv.gz"), write_contexts(tmp_path / "dev.tar.gz")


def test_without_contexts_a_mention_is_its_own_document(files):
    (document,) = read_medmentions(files[0], "train")

    assert (document.id, document.text) == ("40", '"fever')
    assert document.mentions[0].gold == (("UMLS:C0015967",),)


def test_mentions_of_one_sentence_share_a_document_and_are_written_as_in_the_list(files):
    report = CorpusReport()

    first, *rest = read_medmentions(files[0], "dev", files[1], report=report)

    assert first.text == "In acute gout (toe) the IL-1 beta rose ."
    assert [first.text[m.start : m.end] for m in first.mentions] == ["acute gout (toe)", "IL-1 beta"]
    assert [(d.id, d.text) for d in rest] == [("31", "acute gout ."), ("31", "acute gout ."), ("52", "High fever.")]
    assert (report.documents, report.mentions, report.mismatches) == (4, 5, 0)


def test_a_sentence_that_is_cut_inside_a_mention_is_a_mismatch(tmp_path, files):
    contexts = write_contexts(tmp_path / "cut.tar.gz", CONTEXTS | {"52": [block(["No", "fev"], 1, "C0015967")]})
    report = CorpusReport()

    *_, last = read_medmentions(files[0], "dev", contexts, report=report)

    assert (last.text, last.mentions[0].text) == ("No fev", "fever")
    assert (last.mentions[0].start, last.mentions[0].end) == (3, 6)
    assert report.mismatches == 1


@pytest.mark.parametrize(
    "blocks",
    [
        [],
        CONTEXTS["52"] * 2,
        [block(["High", "fever"], 1, "C0018099")],
        [block(["High", "fever"], -1, "C0015967")],
        ["High\tO\textra\nfever\tB:C0015967\n"],
    ],
)
def test_contexts_that_do_not_fit_the_list_are_an_error_that_names_the_document(tmp_path, files, blocks):
    contexts = write_contexts(tmp_path / "other.tar.gz", CONTEXTS | {"52": blocks})

    with pytest.raises(SourceError, match=r"other\.tar\.gz.* 52 ") as caught:
        list(read_medmentions(files[0], "dev", contexts))

    assert "fever" not in str(caught.value)


def test_a_damaged_archive_or_list_is_an_error(tmp_path, files):
    cut = tmp_path / "cut.tar.gz"
    cut.write_bytes(files[1].read_bytes()[:60])
    with pytest.raises(SourceError, match=r"cut\.tar\.gz"):
        list(read_medmentions(files[0], "dev", cut))
    with pytest.raises(SourceError, match=r"absent\.tar\.gz"):
        list(read_medmentions(files[0], "dev", tmp_path / "absent.tar.gz"))
    for content in ("pmid\tsplit\torder\tmention\tcui\n", "pmid\tsplit\torder\tcui\tmention\n31\tdev\t0\tC0018099\n"):
        (tmp_path / "list.tsv").write_text(content)
        with pytest.raises(SourceError, match="the columns must be pmid split order cui mention"):
            list(read_medmentions(tmp_path / "list.tsv", "dev"))


def test_a_list_of_pmids_is_read(tmp_path):
    (tmp_path / "pmids.txt").write_text("31\n52 \n\n")

    assert read_pmids(tmp_path / "pmids.txt") == {"31", "52"}


@given(st.data())
def test_a_mention_of_whole_tokens_is_always_found_at_its_offsets(tmp_path_factory, data):
    tokens = data.draw(st.lists(st.text("ab-(.", min_size=1, max_size=3), min_size=1, max_size=8))
    first = data.draw(st.integers(0, len(tokens) - 1))
    after = data.draw(st.integers(first + 1, len(tokens)))
    blanks = data.draw(st.lists(st.sampled_from(["", " "]), min_size=after - first, max_size=after - first))
    mention = "".join(f"{blank}{token}" for blank, token in zip(blanks, tokens[first:after], strict=True)).strip()
    folder = tmp_path_factory.mktemp("sentence")
    rows = write_list(folder / "list.tsv.gz", [("7", "dev", "0", "C0018099", mention)])
    contexts = write_contexts(folder / "dev.tar.gz", {"7": [block(tokens, first, "C0018099")]})

    (document,) = read_medmentions(rows, "dev", contexts)

    (found,) = document.mentions
    assert document.text[found.start : found.end] == mention
    before = " ".join([*tokens[:first], mention])
    assert document.text == " ".join([before, *tokens[after:]])
