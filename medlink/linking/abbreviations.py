"""Short forms that a text defines, after Schwartz and Hearst (2003), with whole long forms only."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

_BRACKETS = {"(": ")", "[": "]"}
_MAX_SHORT = 10
_TOKEN = re.compile(r"\S+")
_LAST_TOKEN = re.compile(r"\S+\s*$")
_SENTENCE_END = re.compile(r"[.!?;]\s+(?=[A-Z\"(])|\n")
_ENUMERATION = re.compile(r"[;,]")
# A number counts as a whole: the 1 of BRCA1 is not in "chromosome 17".
_UNIT = re.compile(r"\d+|[^\W\d_]")


@dataclass(frozen=True, slots=True)
class AbbreviationDefinition:
    """A short form with the long form that the text gives for it, both with their code-point offsets."""

    short: str
    long: str
    short_start: int
    short_end: int
    long_start: int
    long_end: int


@dataclass(frozen=True, slots=True)
class Expansion:
    """A mention with its short forms written out, and the definitions that were used."""

    text: str
    used: tuple[AbbreviationDefinition, ...] = ()


def find_definitions(text: str) -> list[AbbreviationDefinition]:
    """Find `long form (SHORT)` and `SHORT (long form)`, in the order of the text.

    A long form is whole or not reported: among the word sequences that could stand for the short form, the one
    whose words begin with most of its characters is taken, then the shortest.

    >>> found = find_definitions("Mindful memoization (MM) of human iPSC (hiPSC) in MI (heart)")
    >>> [(d.short, d.long) for d in found]
    [('MM', 'Mindful memoization'), ('hiPSC', 'human iPSC')]
    >>> [(d.short, d.long) for d in find_definitions("a case of MI (myocardial infarction)")]
    [('MI', 'myocardial infarction')]
    """
    found = []
    for start, end in _bracketed(text):
        definition = _long_before(text, start, end) or _long_inside(text, start, end)
        if definition:
            found.append(definition)
    return found


def expand(mention: str, definitions: Sequence[AbbreviationDefinition]) -> Expansion:
    """Write out the short forms of a mention; case counts, and only whole words are short forms.

    A short form beside its own long form is dropped rather than written out twice. Of several definitions of a
    short form the first is used.

    >>> found = find_definitions("glucose-6-phosphate dehydrogenase (G6PD) is low")
    >>> expand("G6PD deficiency", found).text
    'glucose-6-phosphate dehydrogenase deficiency'
    >>> expand("glucose-6-phosphate dehydrogenase (G6PD) deficiency", found).text
    'glucose-6-phosphate dehydrogenase deficiency'
    """
    by_short: dict[str, AbbreviationDefinition] = {}
    for definition in definitions:
        by_short.setdefault(definition.short, definition)
    used: list[AbbreviationDefinition] = []
    text = mention
    for definition in by_short.values():
        if definition.long.casefold() in text.casefold():
            shorter = _drop_bracketed(text, definition.short)
            if shorter != text:
                text = shorter
                used.append(definition)
    written_out = text
    if by_short:
        # One pass over all of them, so that a long form is never expanded again.
        longest_first = sorted(by_short, key=len, reverse=True)
        pattern = rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)"

        def replace(found: re.Match[str]) -> str:
            definition = by_short[found[0]]
            if definition.long.casefold() in text.casefold():
                return found[0]
            used.append(definition)
            return definition.long

        written_out = re.sub(pattern, replace, text)
    return Expansion(written_out, tuple(dict.fromkeys(used)))


def _drop_bracketed(text: str, short: str) -> str:
    return re.sub(rf"\s*[(\[]\s*{re.escape(short)}\s*[)\]]", "", text)


def _bracketed(text: str) -> list[tuple[int, int]]:
    """Return the offsets of what stands in outermost brackets; a bracket that never closes is plain text."""
    spans: list[tuple[int, int]] = []
    open_at: list[int] = []
    for at, sign in enumerate(text):
        if sign in _BRACKETS:
            open_at.append(at)
        elif open_at and sign == _BRACKETS[text[open_at[-1]]]:
            start = open_at.pop()
            while spans and spans[-1][0] > start:
                spans.pop()
            spans.append((start + 1, at))
    return spans


def _long_before(text: str, start: int, end: int) -> AbbreviationDefinition | None:
    """Read the brackets as a short form of the words before them."""
    cut = _ENUMERATION.search(text, start, end)
    short_start, short_end = _trim(text, start, cut.start() if cut else end)
    short = text[short_start:short_end]
    if not _is_short(short):
        return None
    sentence = max((found.end() for found in _SENTENCE_END.finditer(text, 0, start - 1)), default=0)
    _, long_end = _trim(text, sentence, start - 1)
    words = list(_TOKEN.finditer(text, sentence, long_end))[-_longest(short) :]
    starts = [at for word in words for at in _word_starts(text, word.start(), word.end())]
    return _best(text, short_start, short_end, starts, long_end)


def _long_inside(text: str, start: int, end: int) -> AbbreviationDefinition | None:
    """Read the brackets as the long form of the word before them."""
    before = _LAST_TOKEN.search(text, 0, start - 1)
    if not before:
        return None
    short_start, short_end = _trim(text, before.start(), before.end())
    cut = text.find(";", start, end)
    long_start, long_end = _trim(text, start, cut if cut >= 0 else end)
    short = text[short_start:short_end]
    words = len(text[long_start:long_end].split())
    # A remark in brackets is far more common than a long form, so it must be several words and the word a real acronym.
    if not _is_short(short) or sum(map(str.isupper, short)) * 2 < len(short) or not 2 <= words <= _longest(short):
        return None
    return _best(text, short_start, short_end, [long_start], long_end)


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and (text[start].isspace() or text[start] in "\"'“”‘’"):
        start += 1
    while end > start and (text[end - 1].isspace() or text[end - 1] in "\"'“”‘’"):
        end -= 1
    return start, end


def _is_short(text: str) -> bool:
    """Whether a string looks like a short form: up to two words, with a capital or a digit beside a letter."""
    words = text.split()
    return (
        2 <= len(text) <= _MAX_SHORT
        and 1 <= len(words) <= 2
        and text[0].isalnum()
        and any(map(str.isalpha, text))
        and all(any(sign.isupper() or sign.isdigit() for sign in word) for word in words)
    )


def _longest(short: str) -> int:
    """How many words may stand for a short form."""
    return min(len(short) + 5, len(short) * 2)


def _word_starts(text: str, start: int, end: int) -> list[int]:
    """Where a word may begin inside a token: hyphens and slashes join several."""
    return [at for at in range(start, end) if text[at].isalnum() and (at == start or not text[at - 1].isalnum())]


def _best(
    text: str, short_start: int, short_end: int, starts: list[int], long_end: int
) -> AbbreviationDefinition | None:
    """Choose the long form among those that begin at `starts`; None if no one can stand for the short form."""
    short = text[short_start:short_end]
    units = [unit.casefold() for unit in _UNIT.findall(short)]
    best: tuple[int, int] | None = None
    for start in starts:
        long = text[start:long_end]
        if len(long) <= len(short) or re.search(rf"(?<!\w){re.escape(short)}(?!\w)", long):
            continue
        initials = _initials(units, long)
        if initials is not None and (best is None or (initials, start) > best):
            best = (initials, start)
    if best is None:
        return None
    return AbbreviationDefinition(short, text[best[1] : long_end], short_start, short_end, best[1], long_end)


def _initials(units: list[str], long: str) -> int | None:
    """How many units stand at word starts, when all are found in order and the first begins the long form."""
    found = [
        (unit[0].casefold(), unit.start() == 0 or not long[unit.start() - 1].isalnum()) for unit in _UNIT.finditer(long)
    ]
    if not units or not found or found[0][0] != units[0]:
        return None
    # best[i] = most word starts with the first i units placed in what was read so far.
    best: list[int | None] = [None] * (len(units) + 1)
    best[1] = 1
    for unit, is_start in found[1:]:
        for i in range(len(units), 1, -1):
            previous, current = best[i - 1], best[i]
            if unit == units[i - 1] and previous is not None:
                best[i] = max(previous + is_start, -1 if current is None else current)
    return best[-1]
