"""Cuts a mention at its commas and conjunctions, where it is a list of the form `a, b and c`."""

import re
from dataclasses import dataclass

from medlink.types import Conjunction

PLAIN_SIGNS = str.maketrans("‐‑‒–−／，、＆", "-----/,,&")
"""Other hyphens and full-width signs, each as the plain one that it looks like."""
_TOKEN = re.compile(r"and\s*/\s*or\b|as\s+well\s+as\b|[/,&]|[^\s/,&]+", re.IGNORECASE)
_CONJUNCTIONS: dict[str, Conjunction] = {
    "and": "and", "&": "and", "aswellas": "and", "or": "or", "nor": "or", "and/or": "or", "/": "or",
}  # fmt: skip
_TROUBLE = re.compile(r"[()\[\]{};:]|(?<![^\W_])-(?=[\s,/]|$)")
_FIXED = re.compile(
    r"\b(?:head (?:and|&) neck|foot and mouth|ear,? nose,? and throat|skin and connective tissue|bone and joint"
    r"|signs and symptoms|hiv/aids)\b",
    re.IGNORECASE,
)
_PREPOSITIONS = frozenset(
    "after against as associated at between by during due following for from in into on related than "
    "through to versus via vs with within without".split()
)
_DETERMINERS = frozenset({"the", "a", "an", "both", "either", "neither", "some"})
_NAMES_ONE = frozenset({"hereditary", "familial", "inherited"})


@dataclass(frozen=True, slots=True)
class Word:
    """A word with its place in the mention."""

    text: str
    start: int
    end: int
    glued: bool = False
    """Whether the next word follows without a blank."""

    @property
    def lower(self) -> str:
        """The word in lower case."""
        return self.text.lower()


Segment = list[Word]


def cut_list(text: str) -> tuple[list[Segment], Conjunction | None]:
    """Cut a list at its commas and conjunctions; no conjunction where it is none, or one that is not for cutting."""
    text = text.translate(PLAIN_SIGNS)
    if _TROUBLE.search(text) or _FIXED.search(text):
        return [], None
    segments, conjunction = _segments(text)
    if conjunction is None or segments[0][0].lower in _NAMES_ONE:
        return [], None
    stray = any(word.text.endswith("-") for segment in segments for word in segment[:-1])
    if stray or any(word.lower in _PREPOSITIONS for segment in segments for word in segment):
        return [], None
    return segments, conjunction


def _segments(text: str) -> tuple[list[Segment], Conjunction | None]:
    """Cut at commas and conjunctions; no conjunction where this is not a list of the form `a, b and c`."""
    segments: list[Segment] = [[]]
    conjunction: Conjunction | None = None
    for found in _TOKEN.finditer(text):
        word = Word(found[0], found.start(), found.end())
        meaning = _CONJUNCTIONS.get("".join(word.lower.split()))
        if word.text == "," or meaning:
            if conjunction and (word.text == "," or meaning != conjunction):
                return [], None
            conjunction = meaning or conjunction
            if segments[-1]:
                segments.append([])
        elif segments[-1] or word.lower not in _DETERMINERS:
            segments[-1].append(word)
    complete = len(segments) > 1 and all(segments)
    return (segments, conjunction) if complete else ([], None)
