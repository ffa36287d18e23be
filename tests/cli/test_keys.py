import pytest
from typer.testing import CliRunner

from medlink.cli import app
from medlink.kb.database import migrate, open_engine
from medlink.kb.keys import Keys, find_key


@pytest.fixture
def engine(tmp_path, monkeypatch):
    url = f"sqlite:///{tmp_path / 'medlink.sqlite'}"
    monkeypatch.setenv("MEDLINK_DATABASE_URL", url)
    engine = open_engine(url)
    migrate(engine)
    yield engine
    engine.dispose()


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["keys", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_key_is_shown_once_and_listed_without_its_secret_until_it_is_revoked(engine):
    printed = run("create", "the ward", "--scope", "link", "--scope", "admin")
    text = printed.split()[-1]
    key = find_key(text.encode(), Keys(engine).valid())

    listed = run("list")
    assert (key.name, key.scopes) == ("the ward", ("admin", "link"))
    assert key.id in listed
    assert "valid" in listed
    assert text.split("_", 2)[2] not in listed

    run("revoke", key.id)
    assert "revoked" in run("list")
    assert Keys(engine).valid() == {}


def test_a_key_links_unless_more_is_said(engine):
    run("create", "ward")

    assert Keys(engine).keys()[0].scopes == ("link",)
