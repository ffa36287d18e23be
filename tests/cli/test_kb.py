"""`medlink kb` loads what a path or a word names, and says what it stored and left out."""

import pytest
from typer.testing import CliRunner

from medlink.cli.kb import app
from medlink.errors import MedlinkError, SourceError, StoreError, UnknownValueError

TABLE = 'id,name\nC1,fever\nC1,pyrexia\nC2,"cough, dry"\n'


@pytest.fixture
def kb(tmp_path, monkeypatch):
    """Runs a command on a store of its own and returns what it printed."""
    monkeypatch.setenv("MEDLINK_DATA_DIR", str(tmp_path / "var"))
    monkeypatch.setenv("MEDLINK_ARTEFACTS_DIR", str(tmp_path / "artefacts"))
    monkeypatch.delenv("MEDLINK_DATABASE_URL", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "terms.csv").write_text(TABLE)

    def run(*arguments: str) -> str:
        result = CliRunner().invoke(app, arguments)
        if isinstance(result.exception, MedlinkError):
            raise result.exception
        assert result.exit_code == 0, result.output
        return result.stdout

    return run


def lines(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_a_release_is_loaded_once_and_again_when_it_changes(kb, tmp_path):
    first = kb("load", "terms.csv", "--sab", "MINE")
    second = kb("load", "terms.csv", "--sab", "MINE")
    forced = kb("load", "terms.csv", "--sab", "MINE", "--force")
    (tmp_path / "terms.csv").write_text(TABLE + "C3,cold\n")
    changed = kb("load", "terms.csv", "--sab", "MINE")

    assert first.startswith("terms is loaded: 3 names")
    assert second.startswith("terms is loaded already")
    assert forced.startswith("terms is loaded: 3 names")
    assert changed.startswith("terms is loaded: 4 names")


def test_a_load_says_how_many_rows_it_read(kb):
    assert ["terms.csv", "3"] in lines(kb("load", "terms.csv", "--sab", "MINE"))


@pytest.mark.parametrize("option", ["--languages", "--sabs"])
def test_an_option_that_lists_nothing_is_refused_without_a_traceback(kb, option, tmp_path):
    result = CliRunner().invoke(app, ["load", str(tmp_path), option, " , "])

    assert result.exit_code == 2
    assert f"{option} names nothing" in result.output


def test_stats_show_what_is_stored(kb):
    kb("load", "terms.csv", "--sab", "MINE", "--name", "mine")

    shown = lines(kb("stats"))

    assert ["concept", "2"] in shown
    assert ["MINE", "3"] in shown
    assert any("mine" in line for line in shown)


def test_stats_of_a_store_that_was_never_loaded_say_what_to_do(kb):
    with pytest.raises(StoreError, match="medlink kb load"):
        kb("stats")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (["load", "opne"], UnknownValueError, "valid: open, open-plus"),
        (["load", "none.csv"], SourceError, "no such file"),
        (["load", "open"], SourceError, "run `medlink kb build-open`"),
        (["load", "terms.csv", "--languages", "ENG"], UnknownValueError, "valid: sab"),
        (["load", "terms.csv", "--format", "cvs"], UnknownValueError, "valid: csv, jsonl"),
        (["build-open", ".", "--pack", "closed"], UnknownValueError, "valid: open, open-plus, all"),
    ],
)
def test_a_wrong_word_is_an_error_that_lists_the_right_ones(kb, arguments, error, message):
    with pytest.raises(error, match=message):
        kb(*arguments)


def test_a_load_can_be_taken_out(kb):
    kb("load", "terms.csv", "--sab", "MINE")

    assert "terms is out of the store" in kb("remove", "terms")
    with pytest.raises(UnknownValueError, match="valid: none"):
        kb("remove", "terms")
