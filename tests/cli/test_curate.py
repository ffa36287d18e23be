"""`medlink kb curate` writes corrections, lists them and undoes them."""

import getpass

import pytest
from rich.console import Console
from typer.testing import CliRunner

from medlink.cli import curate
from medlink.cli.kb import app
from medlink.errors import CurationError, MedlinkError, UnknownConceptError, UnknownValueError


@pytest.fixture
def kb(tmp_path, monkeypatch):
    """Runs a command on a store of two concepts and returns what it printed."""
    monkeypatch.setenv("MEDLINK_DATA_DIR", str(tmp_path / "var"))
    monkeypatch.delenv("MEDLINK_DATABASE_URL", raising=False)
    monkeypatch.setattr(curate, "_console", Console(width=200))
    monkeypatch.setattr(getpass, "getuser", lambda: "ann")
    (tmp_path / "terms.csv").write_text("id,name\nC1,fever\nC1,pyrexia\nC2,cough\n")

    def run(*arguments: str) -> str:
        result = CliRunner().invoke(app, arguments)
        if isinstance(result.exception, MedlinkError):
            raise result.exception
        assert result.exit_code == 0, result.output
        return result.stdout

    run("load", str(tmp_path / "terms.csv"), "--sab", "MINE")
    return run


def rows(text: str) -> list[list[str]]:
    """Cells of the table's lines, without its frame."""
    cells = ([cell.strip() for cell in line.strip("│ ").split("│")] for line in text.splitlines() if "│" in line)
    return [line[:5] + line[6:] for line in cells]


def test_corrections_are_made_listed_and_undone(kb):
    made = [
        kb("curate", "add-synonym", "C1", "high temperature", "--why", "common", "--who", "bob"),
        kb("curate", "block-name", "cough", "--why", "too broad"),
        kb("curate", "block-name", "PYREXIA", "--concept", "C1", "--why", "old"),
        kb("curate", "block-concept", "C2", "--why", "not ours"),
        kb("curate", "pin", "hot", "C1", "--why", "nurses say so"),
    ]

    assert made[0].startswith("entry 1 is in force, curation revision 1")
    assert "entry 4 is undone, curation revision 6" in kb("curate", "undo", "4")
    assert rows(kb("curate", "list")) == [
        ["1", "add synonym", "C1", "high temperature", "bob", "common", "in force"],
        ["2", "block name", "all", "cough", "ann", "too broad", "in force"],
        ["3", "block name", "C1", "PYREXIA", "ann", "old", "in force"],
        ["5", "pin mention", "C1", "hot", "ann", "nurses say so", "in force"],
    ]
    shown = kb("curate", "list", "--undone")
    assert ["4", "block concept", "C2", "", "ann", "not ours", "undone by ann"] in rows(shown)
    assert "curation revision 6" in shown


def test_what_lost_its_concept_is_listed_as_dangling(kb):
    kb("curate", "add-synonym", "C1", "high temperature", "--why", "common")

    kb("remove", "terms")

    assert [row[-1] for row in rows(kb("curate", "list"))] == ["dangling: no such concept"]


def test_the_mention_is_not_repeated(kb):
    assert "patient" not in kb("curate", "pin", "what the patient said", "C1", "--why", "clear")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (["block-concept", "C3", "--why", "x"], UnknownConceptError, "no concept of this id"),
        (["block-name", "cold", "--why", "x"], CurationError, "spelled exactly so"),
        (["block-name", "cold", "--concept", "C1", "--why", "x"], CurationError, "it has: fever; pyrexia"),
        (["pin", "hot", "C1", "--why", " "], CurationError, "why is blank"),
        (["undo", "7"], UnknownValueError, "valid: none"),
    ],
)
def test_what_cannot_be_done_is_said(kb, arguments, error, message):
    with pytest.raises(error, match=message):
        kb("curate", *arguments)


def test_a_reason_is_asked_for(kb):
    result = CliRunner().invoke(app, ["curate", "block-concept", "C1"])

    assert result.exit_code == 2
    assert "--why" in result.output


def test_a_user_that_the_system_does_not_know_says_who(kb, monkeypatch):
    def unknown() -> str:
        raise KeyError("getpwuid(): uid not found: 1234")

    monkeypatch.setattr(getpass, "getuser", unknown)

    with pytest.raises(CurationError, match="--who"):
        kb("curate", "block-concept", "C1", "--why", "x")
