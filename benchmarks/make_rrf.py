"""Writes a made-up UMLS release of any size: every file that is read, invented words, the same for the same seed.

python benchmarks/make_rrf.py --rows 1000000 --output build/rrf
"""

import argparse
import random
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

_FILES = ("MRCONSO", "MRSTY", "MRDEF", "MRREL", "MRCUI")
_SYLLABLES = "ba ce di fo gu la me ni or pu ra sto tri ven xe yl zo the phro cla".split()
# SAB, language, restriction level, share of the names
_SOURCES = (
    ("INVENTA", "ENG", 0, 40),
    ("INVENTB", "ENG", 3, 25),
    ("INVENTD", "ENG", 0, 10),
    ("VERZON", "DUT", 0, 10),
    ("ERFUND", "GER", 2, 10),
    ("FICTIF", "FRE", 0, 5),
)
_TERM_TYPES = ("PT", "SY", "ET", "AB", "FN", "BN")
_TYPES = tuple((f"T{900 + n}", f"Invented Type {n}") for n in range(12))
_ACCENTS = str.maketrans("aeou", "àéöü")
_NAMES_OF_THE_LARGEST = 2000


@dataclass(slots=True)
class _Writer:
    """Writes concept by concept, in ascending order of CUI as a release does."""

    rng: random.Random
    files: Mapping[str, TextIO]
    words: list[str]
    rows: int = 0
    concepts: int = 0

    def concept(self, names: int) -> None:
        self.concepts += 1
        cui = f"C{self.concepts:07d}"
        base = self.words_of(self.rng.randint(1, 4))
        for number in range(names):
            self.name(cui, base, number)
        for tui, name in self.rng.sample(_TYPES, k=self.rng.choice((1, 1, 1, 2))):
            self.files["MRSTY"].write(f"{cui}|{tui}|A1|{name}|AT{self.concepts:08d}|256|\n")
        if self.rng.random() < 0.1:
            text = self.words_of(25).capitalize()
            self.files["MRDEF"].write(f"{cui}|A{self.rows:08d}|AT{self.rows:08d}||INVENTA|{text}.|N||\n")
        self.relations(cui)
        self.history(cui)

    def name(self, cui: str, base: str, number: int) -> None:
        rng = self.rng
        self.rows += 1
        sab, language, level, _ = rng.choices(_SOURCES, [source[3] for source in _SOURCES])[0]
        text = base if number == 0 else f"{base} {self.words_of(rng.randint(1, 2))}"
        if language != "ENG":
            text = text.translate(_ACCENTS)
        shape = rng.random()
        if shape < 0.01:
            text = f'"{text}"' if shape < 0.005 else f'2"-{text}'
        elif shape < 0.02:
            text = text.upper()
        suppress = rng.choices("NOYE", (90, 6, 3, 1))[0]
        status = "P" if number == 0 else "S"
        code = f"{sab[0]}{self.rows // 2:07d}"
        tty = rng.choice(_TERM_TYPES)
        self.files["MRCONSO"].write(
            f"{cui}|{language}|{status}|L{self.rows:07d}|PF|S{self.rows:07d}|{'NY'[number == 0]}|A{self.rows:08d}|"
            f"||{code}|{sab}|{tty}|{code}|{text}|{level}|{suppress}|256|\n"
        )

    def relations(self, cui: str) -> None:
        """Write parents from both ends, as a release does, some trade names, and relations of no use here."""
        rng = self.rng
        for _ in range(rng.choice((0, 1, 1, 2))):
            parent = f"C{rng.randint(1, self.concepts):07d}"
            self.relation(cui, "PAR", parent, "inverse_isa")
            self.relation(parent, "CHD", cui, "isa")
        other = f"C{rng.randint(1, self.concepts):07d}"
        if rng.random() < 0.05:
            self.relation(cui, "RO", other, "tradename_of")
            self.relation(other, "RO", cui, "has_tradename")
        self.relation(cui, "RO", other, "associated_with")

    def relation(self, first: str, rel: str, second: str, rela: str) -> None:
        self.files["MRREL"].write(f"{first}|A1|AUI|{rel}|{second}|A2|AUI|{rela}|R1||INVENTA|INVENTA||N|N||\n")

    def history(self, cui: str) -> None:
        """Retire an id now and then: merged, replaced through a chain, or deleted."""
        if self.rng.random() < 0.1:
            old = f"C9{self.concepts:06d}"
            fate = self.rng.choice(("SY", "RB", "RO", "DEL", "chain"))
            if fate == "chain":
                self.files["MRCUI"].write(f"{old}|2010AA|RB|||C8{self.concepts:06d}|Y|\n")
                old, fate = f"C8{self.concepts:06d}", "SY"
            successor = "" if fate == "DEL" else cui
            self.files["MRCUI"].write(f"{old}|2020AB|{fate}|||{successor}|{'Y' if successor else ''}|\n")

    def words_of(self, count: int) -> str:
        return " ".join(self.rng.choices(self.words, k=count))


def make_rrf(output: Path, *, rows: int, seed: int = 0) -> None:
    """Write a release with that many rows in MRCONSO.

    Args:
        output: Directory; it is created.
        rows: Rows of MRCONSO.RRF; the other files grow with it.
        seed: Same seed, same bytes.
    """
    rng = random.Random(seed)
    (output / "CHANGE").mkdir(parents=True, exist_ok=True)
    words = sorted({"".join(rng.choices(_SYLLABLES, k=rng.randint(2, 4))) for _ in range(20_000)})
    with ExitStack() as stack:
        files = {
            name: stack.enter_context((output / f"{name}.RRF").open("w", encoding="utf-8", newline="\n"))
            for name in _FILES
        }
        writer = _Writer(rng, files, words)
        while writer.rows < rows:
            largest = writer.rows > 3 * _NAMES_OF_THE_LARGEST and writer.concepts % 100_000 == 5_000
            names = _NAMES_OF_THE_LARGEST if largest else min(int(rng.expovariate(1 / 3.2)) + 1, 60)
            writer.concept(min(names, rows - writer.rows))
    _write(output / "MRRANK.RRF", _ranks())
    _write(output / "MRSAB.RRF", _sources())
    _write(output / "CHANGE" / "MERGEDCUI.RRF", (f"C7{n:06d}|C{n:07d}|" for n in range(1, 51)))
    _write(output / "CHANGE" / "DELETEDCUI.RRF", (f"C6{n:06d}|{words[n]}|" for n in range(1, 51)))


def _ranks() -> Iterator[str]:
    rank = 1000
    for suppress in "NEYO":
        for sab, *_ in _SOURCES:
            for tty in _TERM_TYPES:
                rank -= 1
                yield f"{rank:04d}|{sab}|{tty}|{suppress}|"


def _sources() -> Iterator[str]:
    for sab, language, level, _ in _SOURCES:
        columns = ["", "", f"{sab}2026", sab, f"Invented vocabulary {sab}", sab, "2026", "", "", "", "", "", ""]
        columns += [str(level), "1", "1", "", "PT", "", language, "UTF-8", "Y", "Y", sab, "Invented, not published"]
        yield "|".join(columns) + "|"


def _write(path: Path, lines: Iterator[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    make_rrf(arguments.output, rows=arguments.rows, seed=arguments.seed)
