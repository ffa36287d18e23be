"""The two packs by name, and what each takes from the sources."""

from dataclasses import dataclass
from typing import Literal, get_args

from medlink.errors import UnknownValueError

PackName = Literal["open", "open-plus"]
PACKS: tuple[PackName, ...] = get_args(PackName)


@dataclass(frozen=True, slots=True)
class Scope:
    """What a pack holds besides human disorders and their best names."""

    name: PackName
    other_kinds: bool
    """MeSH chemicals, all supplementary records, anatomy, cell types, genes and diseases of animals."""
    near_duplicates: bool
    """Names that differ from a better one of the concept in word order and small words only."""


_SCOPES = {
    "open": Scope("open", other_kinds=False, near_duplicates=False),
    "open-plus": Scope("open-plus", other_kinds=True, near_duplicates=True),
}


def scope(pack: str) -> Scope:
    """Return what `pack` holds.

    Raises:
        UnknownValueError: There is no such pack.
    """
    if pack not in _SCOPES:
        raise UnknownValueError("pack", pack, list(PACKS))
    return _SCOPES[pack]
