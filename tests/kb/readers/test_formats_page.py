import re
from pathlib import Path

import pytest

from medlink.errors import SourceError
from medlink.kb.readers import open_reader
from medlink.kb.records import NameRecord, RetiredRecord, SourceRecord

PAGE = (Path(__file__).parents[3] / "docs" / "formats.md").read_text(encoding="utf-8")


def examples(language):
    return "".join(re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL))


@pytest.fixture
def read(tmp_path):
    """Read text as the format that its suffix says."""

    def read_text(suffix, text):
        path = tmp_path / f"kb.{suffix}"
        path.write_text(text, encoding="utf-8")
        return list(open_reader(path).records())

    return read_text


def test_the_json_examples_of_the_page_are_read(read):
    records = read("jsonl", examples("json"))

    assert [r.sab for r in records if isinstance(r, SourceRecord)] == ["MINE"]
    assert [r.text for r in records if isinstance(r, NameRecord)] == [
        "Myocardial infarction",
        "heart attack",
        "Heart disease",
    ]
    assert [r.relation for r in records if isinstance(r, RetiredRecord)] == ["SY", "DEL"]


def test_the_csv_example_of_the_page_is_read(read):
    assert [r.text for r in read("csv", examples("csv")) if isinstance(r, NameRecord)] == [
        "Myocardial infarction",
        "infarction, heart",
        "Heart disease",
    ]


def test_the_page_lists_the_columns_of_a_table(read):
    listed = re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`[^|]*) \|", PAGE.split("## CSV")[1], re.MULTILINE)))

    with pytest.raises(SourceError) as caught:
        read("csv", "synonyms\n")

    assert str(caught.value).endswith("valid: " + ", ".join(listed))
