"""The exact channel: concepts that own a name with the mention's match key; never depends on vectors."""

from collections.abc import Sequence

from index.arrays import NameArrays
from index.overlay import AddedNames, Overlay
from index.snapshot import NameRow, Snapshot
from medlink.linking.letter_case import is_short_form
from medlink.text import match_key
from medlink.types import LinkOptions, Retrieval, Retrieved

SCORE = 1.0


class ExactRetriever:
    """Looks mentions up by match key; every concept that owns the string comes back."""

    def __init__(self, *, arrays: NameArrays, snapshot: Snapshot, added: AddedNames | None = None) -> None:
        self._arrays = arrays
        self._snapshot = snapshot
        self._added = added

    def under(self, overlay: Overlay) -> "ExactRetriever":
        """Return the same channel as curation leaves it."""
        return ExactRetriever(arrays=overlay.arrays, snapshot=self._snapshot, added=overlay.added)

    def search(self, mentions: Sequence[str], options: LinkOptions) -> list[Retrieval]:
        """Return, for each mention, all concepts with that name, those first whose preferred name it is."""
        keys = [match_key(mention) for mention in mentions]
        rows = self._rows(sorted({key for key in keys if key}), options)
        ids = self._snapshot.concept_ids(sorted({r.concept for named in rows.values() for r in named}))
        return [
            Retrieval(_best_names(mention, rows.get(key, []), ids)) for mention, key in zip(mentions, keys, strict=True)
        ]

    def _rows(self, keys: Sequence[str], options: LinkOptions) -> dict[str, list[NameRow]]:
        rows = self._snapshot.names_by_key(keys)
        allowed = self._arrays.allowed(options)
        if allowed is not None:
            rows = {key: [r for r in named if allowed[r.number]] for key, named in rows.items()}
        if not self._added:
            return rows
        return {key: rows.get(key, []) + self._added.by_key(key, options) for key in keys}


def _best_names(mention: str, rows: list[NameRow], ids: dict[int, str]) -> tuple[Retrieved, ...]:
    best: dict[int, NameRow] = {}
    short = is_short_form(mention)

    def order(row: NameRow) -> tuple[bool, bool, bool, int]:
        text = row.name.text
        return text != mention, is_short_form(text) != short, not row.is_preferred, row.number

    for row in sorted(rows, key=order):
        best.setdefault(row.concept, row)
    found = [Retrieved(ids[row.concept], row.name, SCORE, row.is_preferred) for row in best.values()]
    return tuple(sorted(found, key=lambda r: (not r.is_preferred, r.concept_id)))
