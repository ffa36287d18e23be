"""`medlink index build` encodes what the active build does not have."""

import pytest
from typer.testing import CliRunner

from medlink.cli import app
from medlink.encoders.hashing import HashingEncoder


@pytest.fixture
def medlink(tmp_path, monkeypatch):
    """Runs a command on a store of its own and returns what it printed."""
    HashingEncoder(dim=32).save(tmp_path / "encoder")
    monkeypatch.setenv("MEDLINK_DATA_DIR", str(tmp_path / "var"))
    monkeypatch.setenv("MEDLINK_ENCODER_DIR", str(tmp_path / "encoder"))
    monkeypatch.delenv("MEDLINK_DATABASE_URL", raising=False)

    def run(*arguments: str) -> str:
        result = CliRunner().invoke(app, arguments, catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.stdout

    return run


def test_names_of_the_active_build_are_not_encoded_again_unless_asked(medlink, tmp_path):
    table = tmp_path / "terms.csv"
    table.write_text("id,name,sab\nC1,fever,OURS\nC1,pyrexia,OURS\n")
    medlink("kb", "load", str(table))
    first = medlink("index", "build")
    table.write_text(table.read_text() + "C2,cough,OURS\n")
    medlink("kb", "load", str(table))

    second, all_anew = medlink("index", "build"), medlink("index", "build", "--no-reuse")

    assert "2 of 3 vectors are those of the build before" in second
    assert "vectors" not in first + all_anew
