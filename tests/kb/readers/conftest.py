"""Releases written for a test: files of lines, and rows of MRCONSO."""

from collections.abc import Callable
from pathlib import Path

import pytest

Write = Callable[..., Path]
Conso = Callable[..., str]


@pytest.fixture
def tiny_release() -> Path:
    """The committed release, made up for these tests."""
    return Path(__file__).parents[2] / "data" / "rrf"


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write lines to a file of a release and return the release's folder."""

    def write_lines(name: str, *lines: str) -> Path:
        path = tmp_path / "release" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
        return tmp_path / "release"

    return write_lines


@pytest.fixture
def conso() -> Conso:
    """Build a row of MRCONSO, plain unless told otherwise."""

    def row(text: str = "cough", **columns: str) -> str:
        values = {
            "CUI": "C9000001", "LAT": "ENG", "TS": "P", "LUI": "L1", "STT": "PF", "SUI": "S1", "ISPREF": "Y",
            "AUI": "A1", "SAUI": "", "SCUI": "", "SDUI": "", "SAB": "AAA", "TTY": "PT", "CODE": "1", "STR": text,
            "SRL": "0", "SUPPRESS": "N", "CVF": "",
        }  # fmt: skip
        unknown = columns.keys() - values.keys()
        assert not unknown
        return "|".join((values | columns).values()) + "|"

    return row
