"""The exact channel: concepts that own a mention's string, or else a variant of it; never depends on vectors."""

from collections.abc import Callable, Sequence

from index.arrays import NameArrays
from index.overlay import AddedNames, Overlay
from index.snapshot import NameRow, Snapshot
from medlink.linking.letter_case import is_short_form
from medlink.loose_key import loose_key
from medlink.text import match_key
from medlink.types import LinkOptions, Retrieval, Retrieved

SCORE = 1.0
LOOSE_SCORE = 0.95
"""Of a name with the mention's loose key only: a variant, not the string itself."""
_ORDER = ("word order",)


class ExactRetriever:
    """Looks mentions up by match key, and by loose key those that no name answers that way.

    Every concept that owns the string comes back.
    """

    def __init__(self, *, arrays: NameArrays, snapshot: Snapshot, added: AddedNames | None = None) -> None:
        self._arrays = arrays
        self._snapshot = snapshot
        self._added = added

    def under(self, overlay: Overlay) -> "ExactRetriever":
        """Return the same channel as curation leaves it."""
        return ExactRetriever(arrays=overlay.arrays, snapshot=self._snapshot, added=overlay.added)

    def search(self, mentions: Sequence[str], options: LinkOptions) -> list[Retrieval]:
        """Return, for each mention, all concepts with that name, those first whose preferred name it is.

        Of variants, those come first that have the words in the order of the mention.
        """
        rows, scores = self._strict(mentions, options), dict.fromkeys(mentions, SCORE)
        unknown = [mention for mention in rows if not rows[mention]] if options.variants else []
        for mention, variants in self._loose(unknown, options).items():
            rows[mention], scores[mention] = variants, LOOSE_SCORE
        ids = self._snapshot.concept_ids(sorted({row.concept for named in rows.values() for row in named}))
        return [Retrieval(_best_names(mention, rows[mention], scores[mention], ids)) for mention in mentions]

    def _strict(self, mentions: Sequence[str], options: LinkOptions) -> dict[str, list[NameRow]]:
        keys = {mention: match_key(mention) for mention in mentions}
        added = self._added.by_key if self._added else None
        return self._rows(keys, self._snapshot.names_by_key, added, options)

    def _loose(self, mentions: Sequence[str], options: LinkOptions) -> dict[str, list[NameRow]]:
        keys = {mention: loose_key(mention) for mention in mentions}
        added = self._added.by_loose_key if self._added else None
        return self._rows(keys, self._snapshot.names_by_loose_key, added, options)

    def _rows(
        self,
        keys: dict[str, str],
        built: Callable[[Sequence[str]], dict[str, list[NameRow]]],
        added: Callable[[str, LinkOptions], list[NameRow]] | None,
        options: LinkOptions,
    ) -> dict[str, list[NameRow]]:
        """Return, for each mention, the names under its key that may answer."""
        asked = sorted({key for key in keys.values() if key})
        rows = built(asked)
        allowed = self._arrays.allowed(options)
        if allowed is not None:
            rows = {key: [row for row in named if allowed[row.number]] for key, named in rows.items()}
        if added:
            rows = {key: rows.get(key, []) + added(key, options) for key in asked}
        return {mention: rows.get(key, []) for mention, key in keys.items()}


def _best_names(mention: str, rows: list[NameRow], score: float, ids: dict[int, str]) -> tuple[Retrieved, ...]:
    best: dict[int, NameRow] = {}
    short = is_short_form(mention)
    moved = _moved(mention, rows) if score == LOOSE_SCORE else set()

    def order(row: NameRow) -> tuple[bool, bool, bool, bool, int]:
        text = row.name.text
        return text != mention, row.number in moved, is_short_form(text) != short, not row.is_preferred, row.number

    for row in sorted(rows, key=order):
        best.setdefault(row.concept, row)
    ranked = sorted(best.values(), key=lambda row: (row.number in moved, not row.is_preferred, ids[row.concept]))
    return tuple(Retrieved(ids[row.concept], row.name, score, row.is_preferred, row.words) for row in ranked)


def _moved(mention: str, rows: list[NameRow]) -> set[int]:
    """Return the numbers of names that have a mention's words in another order, if there are several to rank."""
    if len(rows) == 1:
        return set()
    words = loose_key(mention, without=_ORDER)
    return {row.number for row in rows if loose_key(row.name.text, without=_ORDER) != words}
