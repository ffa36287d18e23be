"""Rows of RRF files under the rules that all of them share, and the relations of MRREL."""

from collections.abc import Iterator

from medlink.kb.readers.files import Release
from medlink.kb.readers.report import ReadReport
from medlink.kb.records import BroaderRecord, TradeNameRecord

COLUMNS = {
    "MRCONSO.RRF": 18,
    "MRSAB.RRF": 25,
    "MRRANK.RRF": 4,
    "MRSTY.RRF": 6,
    "MRDEF.RRF": 8,
    "MRREL.RRF": 16,
    "MRCUI.RRF": 7,
    "MERGEDCUI.RRF": 2,
    "DELETEDCUI.RRF": 2,
}
"""Every file that is read, with its number of columns."""

_SUPPRESS = ("N", "O", "Y", "E")
# REL and RELA say what the second concept (CUI2) is to the first: CUI2 is the parent of CUI1.
_SECOND_IS_BROADER = {"PAR": True, "RB": True, "CHD": False, "RN": False}
_SECOND_IS_GENERIC = {"has_tradename": True, "tradename_of": False}


class Rows:
    """The split rows of a release, and the rules of source and suppression for keeping one."""

    def __init__(
        self, release: Release, report: ReadReport, sabs: frozenset[str] | None, include_suppressed: bool
    ) -> None:
        self.report = report
        self._release = release
        self._sabs = sabs
        self._include_suppressed = include_suppressed

    def read(self, name: str, *, keyed: bool = True) -> Iterator[tuple[int, list[str]]]:
        """Yield (line number, columns) of a file, nothing if an optional one is absent.

        RRF has no quoting: a pipe always ends a column, and each row ends in one.

        Args:
            name: File name.
            keyed: The first column is an identifier and must not be blank.

        Raises:
            SourceError: A row has other columns than the format says.
        """
        if name != "MRCONSO.RRF" and not self._release.find(name):
            return
        number, width = 0, COLUMNS[name] + 1
        for number, line in self._release.lines(name):
            row = line.split("|")
            if len(row) != width or row[-1]:
                message = f"expected {width - 1} columns, each ended by a pipe, found {len(row)} parts"
                raise self._release.error(name, message, number)
            if keyed and not row[0]:
                raise self._release.error(name, "blank identifier in column 1", number)
            yield number, row
        self.report.rows[name] = number

    def left_out(self, name: str, number: int, sab: str, suppress: str) -> str | None:
        """Return why a row is left out by its source or suppression, or None to keep it.

        Raises:
            SourceError: SUPPRESS is none of N, O, Y, E.
        """
        if suppress not in _SUPPRESS:
            raise self._release.error(name, "SUPPRESS must be N, O, Y or E", number)
        if self._sabs is not None and sab not in self._sabs:
            return "source"
        if suppress != "N" and not self._include_suppressed:
            return f"suppressed ({suppress})"
        return None

    def ranks(self) -> dict[tuple[str, str, str], int]:
        """Return the rank of each (SAB, TTY, SUPPRESS) in MRRANK; a higher one is preferred."""
        ranks = {}
        for number, (rank, sab, tty, suppress, _) in self.read("MRRANK.RRF"):
            if not rank.isdecimal():
                raise self._release.error("MRRANK.RRF", "RANK is not a number", number)
            ranks[sab, tty, suppress] = int(rank)
        return ranks


def related_cuis(rows: Rows) -> Iterator[BroaderRecord | TradeNameRecord]:
    """Yield the broader and trade-name relations of MRREL, each once per first concept."""
    cui1 = ""
    seen: set[BroaderRecord | TradeNameRecord] = set()
    for number, row in rows.read("MRREL.RRF"):
        if row[0] != cui1:
            cui1, seen = row[0], set()
        rel, cui2, rela, sab = row[3], row[4], row[7], row[10]
        if rel not in _SECOND_IS_BROADER and rela not in _SECOND_IS_GENERIC:
            reason: str | None = "relation not used"
        elif cui1 == cui2:
            reason = "self relation"
        else:
            reason = rows.left_out("MRREL.RRF", number, sab, row[14])
        if reason:
            rows.report.skip("MRREL.RRF", reason)
            continue
        for record in _relations(cui1, cui2, rel, rela, sab):
            if record not in seen:
                seen.add(record)
                yield record


def _relations(cui1: str, cui2: str, rel: str, rela: str, sab: str) -> Iterator[BroaderRecord | TradeNameRecord]:
    if rel in _SECOND_IS_BROADER:
        narrow, broad = (cui1, cui2) if _SECOND_IS_BROADER[rel] else (cui2, cui1)
        yield BroaderRecord(narrow, broad, sab)
    if rela in _SECOND_IS_GENERIC:
        trade, generic = (cui1, cui2) if _SECOND_IS_GENERIC[rela] else (cui2, cui1)
        yield TradeNameRecord(generic, trade)
