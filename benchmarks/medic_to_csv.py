"""Turns the MEDIC dictionary of 6 July 2012, on which papers report, into a CSV that `medlink kb load` reads.

MEDIC comes under CTD's terms: fetch it yourself and do not pass the result on.

    python benchmarks/medic_to_csv.py medic_06Jul2012.txt medic-2012.csv
"""

import argparse
import csv
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from medlink.corpora.ids import normal_id
from medlink.errors import MedlinkError, SourceError

COLUMNS = ("id", "name", "sab", "codes")
SAB = "MEDIC"


def rows(lines: Iterable[str], *, file: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield one row a name of `id|other id||name|other name` lines; the other ids become codes.

    >>> list(rows(["C567755|613097||Tooth gap|TG6"], file="medic.txt"))
    [('MESH:C567755', 'Tooth gap', 'MEDIC', 'OMIM:613097'), ('MESH:C567755', 'TG6', 'MEDIC', 'OMIM:613097')]
    """
    for number, line in enumerate(lines, 1):
        ids, bars, names = line.rstrip("\r\n").partition("||")
        if not bars or not ids.strip():
            raise SourceError("expected ids||names", file=file, line=number)
        first, *others = (normal_id(id_) for id_ in ids.split("|"))
        for name in names.split("|"):
            if name.strip():
                yield first, name.strip(), SAB, ";".join(others)


def main() -> None:
    """Read the two paths and write the second from the first."""
    parser = argparse.ArgumentParser(description="Turn MEDIC 2012 into a CSV for `medlink kb load`.")
    parser.add_argument("medic", type=Path, help="medic_06Jul2012.txt")
    parser.add_argument("output", type=Path, help="CSV to write; keep it out of the repository")
    arguments = parser.parse_args()
    written = 0
    try:
        with arguments.medic.open(encoding="utf-8", newline="\n") as source:
            with arguments.output.open("w", encoding="utf-8", newline="") as target:
                writer = csv.writer(target, lineterminator="\n")
                writer.writerow(COLUMNS)
                for row in rows(source, file=arguments.medic.name):
                    writer.writerow(row)
                    written += 1
    except (MedlinkError, OSError, UnicodeDecodeError) as error:
        sys.exit(f"medic_to_csv: {error}")
    print(f"{written} names")


if __name__ == "__main__":
    main()
