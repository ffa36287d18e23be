import csv
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from medlink.cli.mention_files import link_file
from medlink.errors import SourceError


def answers(mentions: Sequence[object]) -> list[dict]:
    """Link every text to one concept, and refuse what is no text."""
    return [
        {"status": "linked", "candidates": [{"cui": "C0000001"}]}
        if isinstance(mention, str)
        else {"item": item, "error": {"code": "invalid_mention", "detail": "not a text"}}
        for item, mention in enumerate(mentions)
    ]


def run(source: Path, content: bytes, ending: str = "csv") -> list[dict]:
    source.write_bytes(content)
    target = source.with_name(f"linked.{ending}")
    link_file(source, target, "text", answers)
    text = target.read_text(encoding="utf-8")
    return (
        [json.loads(line) for line in text.splitlines()]
        if ending == "jsonl"
        else list(csv.DictReader([*text.splitlines(True)]))
    )


def test_a_mark_at_the_start_line_breaks_in_cells_and_blank_lines_do_no_harm(tmp_path):
    content = b'\xef\xbb\xbftext,n\r\n"heart\r\nattack",1\r\n\r\nasthma,2\r\n\r\n'

    rows = run(tmp_path / "a.csv", content)

    assert [row["n"] for row in rows] == ["1", "2"]
    assert rows[0]["text"].split() == ["heart", "attack"]


def test_an_ending_may_be_in_capitals(tmp_path):
    assert run(tmp_path / "A.CSV", b"text\nasthma\n")[0]["cui"] == "C0000001"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"text,n,text\nasthma,1,cold\n", "a.csv:1: two columns have the same name"),
        (b'text\nasthma\n"cold\nfever\n', "a.csv:3: a quote that does not end"),
        (b"text\n" + b"asthma\n" * 2000 + b"M\xfcller\n" + b"asthma\n" * 2000, "a.csv:2002: not UTF-8"),
    ],
)
def test_a_table_that_would_lose_something_is_refused_by_line(tmp_path, content, says):
    with pytest.raises(SourceError, match=says):
        run(tmp_path / "a.csv", content)

    assert [p.name for p in tmp_path.iterdir()] == ["a.csv"]


def test_json_that_is_nested_too_deep_is_refused(tmp_path):
    with pytest.raises(SourceError, match=r"a\.jsonl:1: not JSON"):
        run(tmp_path / "a.jsonl", b'{"text": ' + b"[" * 100_000)


def test_what_is_no_text_costs_only_its_own_line_and_is_counted_over_the_whole_file(tmp_path):
    lines = [{"text": "asthma"}] * 1500 + [{"text": None}, {"text": 7}]

    rows = run(tmp_path / "a.jsonl", "\n".join(map(json.dumps, lines)).encode(), "jsonl")

    assert [row["result"].get("item") for row in rows[1499:]] == [None, 1500, 1501]


@pytest.mark.parametrize("ending", ["jsonl", "csv"])
def test_half_a_character_that_json_can_spell_is_kept_as_it_was_spelt(tmp_path, ending):
    (row,) = run(tmp_path / "a.jsonl", b'{"text": "asthma", "n": "\\ud800"}', ending)

    assert row["n"] == {"jsonl": "\ud800", "csv": "\\ud800"}[ending]


def test_a_place_that_cannot_be_written_is_refused_before_any_work(tmp_path):
    (tmp_path / "a.csv").write_text("text\nasthma\n")

    def never(mentions: Sequence[object]) -> list[dict]:
        raise AssertionError

    with pytest.raises(SourceError, match="cannot be written"):
        link_file(tmp_path / "a.csv", tmp_path / "nowhere" / "b.csv", "text", never)


def test_a_file_may_be_linked_into_itself(tmp_path):
    source = tmp_path / "a.csv"
    source.write_text("text\nasthma\n")

    link_file(source, source, "text", answers)

    assert source.read_text().splitlines()[1].startswith("asthma,C0000001,")
