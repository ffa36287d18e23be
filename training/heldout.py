"""The held-out-synonym split: names that neither pairs nor index see, and that an encoder is asked for afterwards.

Which names go is decided by what they say, not by where they stand: the sorted tokens of a name are hashed, and all
names with the same tokens are hidden together, in every source and concept.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, NamedTuple

from medlink.manifest import fingerprint
from medlink.text import ENCODER_TEXT_VERSION, MATCH_KEY_VERSION, encoder_text, match_key
from medlink.types import Concept, Name
from training.names import NameRule

_HASHES = 1 << 64
_MESH = ("MESH", "MSH")


class HeldOutQuery(NamedTuple):
    """A hidden name to ask for, and the concept to be found; a name of several concepts is a query for each."""

    concept_id: str
    vocabulary: str
    """SAB of the name; MESH-SCR where it is one of MeSH's supplementary records."""
    text: str


def split_hash(text: str, seed: int) -> int:
    """Return the 64 bits that decide whether a name may be hidden, the same for every order of its words.

    A name without letters or digits gets the largest number, and is never hidden.

    >>> split_hash("Lung cancer", 0) == split_hash("cancer, lung", 0) != split_hash("lung cancers", 0)
    True
    """
    # Of the encoder's form, so that no name can be hidden while another that reads the same to it is not.
    tokens = sorted(match_key(encoder_text(text, lowercase=True)).split())
    if not tokens:
        return _HASHES - 1
    return int.from_bytes(blake2b(f"{seed} {' '.join(tokens)}".encode(), digest_size=8).digest(), "big")


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Which names are hidden: those whose hash is in the lowest `percent`, unless a concept has no other.

    The same terminology, rule, percent, seed and text versions give the same split; `fingerprint` says whether two
    are the same. Another terminology keeps other last names, and may show what this split hides.
    """

    percent: float
    seed: int
    kept: frozenset[int] = frozenset()
    """Hashes low enough to be hidden whose names some concept needs as its last."""

    def __post_init__(self) -> None:
        if not 0 <= self.percent < 100:
            raise ValueError("percent must be at least 0 and below 100")

    @classmethod
    def choose(cls, largest: Iterable[int], *, percent: float, seed: int) -> "HeldOut":
        """Choose the split of a terminology.

        Args:
            largest: For each concept, the largest `split_hash` of its names: what it keeps if all of them are low.
            percent: Share of names to hide.
            seed: Which ones.
        """
        low = cls(percent, seed)
        return replace(low, kept=frozenset(number for number in largest if low.hides(number)))

    @property
    def limit(self) -> int:
        """The hash below which names are hidden."""
        return int(self.percent / 100 * _HASHES)

    @property
    def fingerprint(self) -> str:
        """Hash of everything that decides whether a name is hidden."""
        return fingerprint(self._facts() | {"kept": sorted(self.kept)})

    def hides(self, number: int) -> bool:
        """Say whether names with this hash are hidden."""
        return number < self.limit and number not in self.kept

    def is_held_out(self, text: str) -> bool:
        """Say whether a name is hidden."""
        return self.percent > 0 and self.hides(split_hash(text, self.seed))

    def facts(self) -> dict[str, Any]:
        """Return what a manifest says about the split."""
        return self._facts() | {"kept": len(self.kept), "fingerprint": self.fingerprint}

    def _facts(self) -> dict[str, Any]:
        versions = {"encoder_text": ENCODER_TEXT_VERSION, "match_key": MATCH_KEY_VERSION}
        return {"percent": float(self.percent), "seed": self.seed, "text": versions}


def hold_out(concepts: Iterable[Concept], *, percent: float, seed: int = 0, rule: NameRule | None = None) -> HeldOut:
    """Choose the split of a knowledge base; the same as that of pairs made from it by the same rule.

    Args:
        concepts: All of them.
        percent: Share of names to hide.
        seed: Which ones.
        rule: Which names count; the default rule if left out.
    """
    counted = rule or NameRule()
    named = (forms for concept in concepts if (forms := counted.forms(concept)))
    return HeldOut.choose(
        (max(split_hash(form, seed) for form in forms) for forms in named), percent=percent, seed=seed
    )


def held_out_queries(
    concepts: Iterable[Concept], held_out: HeldOut, rule: NameRule | None = None
) -> Iterator[HeldOutQuery]:
    """Yield the hidden names of each concept, once per vocabulary whatever the order of their words."""
    counted = rule or NameRule()
    for concept in concepts:
        seen: set[tuple[str, int]] = set()
        for name in concept.names:
            form, _ = counted.form(name.text, name.language, suppressed=name.suppressed)
            number = split_hash(form, held_out.seed) if form else _HASHES
            vocabulary = vocabulary_of(name)
            if held_out.hides(number) and (vocabulary, number) not in seen:
                seen.add((vocabulary, number))
                yield HeldOutQuery(concept.id, vocabulary, name.text)


def without_held_out(concepts: Iterable[Concept], held_out: HeldOut) -> Iterator[Concept]:
    """Yield concepts as an index of the test must see them: hidden names gone, whatever their language or status.

    A concept that has no other name, which only one without names that serve training can be, is left out.
    """
    for concept in concepts:
        names = tuple(name for name in concept.names if not held_out.is_held_out(name.text))
        if names:
            yield replace(concept, names=names, preferred_name=names[0].text)


def vocabulary_of(name: Name) -> str:
    """Return what a name is reported under: its SAB, or MESH-SCR for a supplementary record of MeSH."""
    return "MESH-SCR" if name.sab in _MESH and name.code.startswith("C") else name.sab
