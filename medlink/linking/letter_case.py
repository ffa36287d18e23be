"""Short names match case: "all" is seldom ALL, and hearing aids are not AIDS."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import replace

from medlink.english import singular
from medlink.linking.fusion import Fused
from medlink.text import match_key
from medlink.written_signs import undotted, visible

_LONGEST = 5
_DEMOTION = 0.8
_WORD = re.compile(r"[^\W_]+")


def is_short_form(name: str) -> bool:
    """Say whether a name is at most five characters, with a capital where an ordinary word has none.

    >>> [is_short_form(name) for name in ("AIDS", "IgA", "C", "Cold", "gout", "ASTHMA")]
    [True, True, True, False, False, False]
    """
    return len(name.strip()) <= _LONGEST and _in_capitals(name)


def mismatches_case(mention: str, name: str) -> bool:
    """Say whether a mention has this short form in it, but spelled as an ordinary word.

    >>> mismatches_case("als", "ALS"), mismatches_case("hearing aids", "AIDS"), mismatches_case("Gaps", "GAP")
    (True, True, True)
    >>> mismatches_case("ALS", "ALS"), mismatches_case("motor neuron disease", "ALS"), mismatches_case("cold", "Cold")
    (False, False, False)
    """
    if not is_short_form(name):
        return False
    written = _written(_words(mention), _words(name))
    return bool(written) and not any(map(_in_capitals, written))


def settle_case(mention: str, fused: Sequence[Fused]) -> list[Fused]:
    """Put short names in the mention's own case first, and flag and demote those that it spells as a word.

    What is demoted keeps four fifths of its score and goes behind everything that scores more; all others keep their
    order.
    """
    agreeing: list[Fused] = []
    demoted: list[Fused] = []
    for f in fused:
        if mismatches_case(mention, f.name.text):
            demoted.append(replace(f, score=round(f.score * _DEMOTION, 4), case_mismatch=True))
        else:
            agreeing.append(f)
    settled = _own_case_first(mention, agreeing)
    for f in demoted:
        place = next((at for at, other in enumerate(settled) if other.score < f.score), len(settled))
        settled.insert(place, f)
    return settled


def _own_case_first(mention: str, fused: list[Fused]) -> list[Fused]:
    """Move those that own the mention's string, but not in its capitals, behind those that do."""
    if not is_short_form(mention):
        return fused
    key = match_key(mention)
    same = next((at for at, f in enumerate(fused) if match_key(f.name.text) != key), len(fused))
    return sorted(fused[:same], key=lambda f: not is_short_form(f.name.text)) + fused[same:]


def _words(text: str) -> list[str]:
    """Return the words of a text: a.l.s. is one, and as written as als, with letters of full width or without."""
    return _WORD.findall(undotted(visible(unicodedata.normalize("NFKC", text))))


def _in_capitals(text: str) -> bool:
    """Say whether there is a capital beyond the first letter, or the only letter is one."""
    letters = [c for c in text if c.isalpha()]
    return any(map(str.isupper, letters[1:] or letters))


def _written(mention: Sequence[str], name: Sequence[str]) -> list[str]:
    """Return how a mention spells a name, each time that its words, folded, are the name's or their plural.

    A mention that has the same letters and digits in other words spells it as a whole: "il6" is IL-6.
    """
    if not name:
        return []
    folded = [word.casefold() for word in name]
    windows = (mention[at : at + len(name)] for at in range(len(mention) - len(name) + 1))
    found = ["".join(window) for window in windows if _is_number_of([word.casefold() for word in window], folded)]
    whole = "".join(mention)
    return found or ([whole] if whole.casefold() == "".join(folded) else [])


def _is_number_of(words: Sequence[str], name: Sequence[str]) -> bool:
    """Say whether words are a name or its plural."""
    *before, last = words
    return before == name[:-1] and name[-1] in {last, last.removesuffix("s"), singular(last)}
