"""Short forms that a text defines, after Schwartz and Hearst (2003), with whole long forms only."""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Sequence

from medlink.types import AbbreviationDefinition, Expansion, Replacement

_BRACKETS = {"(": ")", "[": "]", "（": "）"}
_BRACKET = re.compile(r"[()\[\]（）]")
# What a writer may put before a short form in its brackets.
_LEAD = re.compile(
    r"(?:(?:hereafter|henceforth|abbreviated|referred|also|called|termed|known|as|to|or|the|i\.e\.),?\s+)+"
)
_SHORTEST = 2
_MAX_SHORT = 10
_QUOTES = "\"'“”‘’"
# How far back a long form may begin; what a text full of brackets costs depends on it.
_MAX_LONG = 300
_TOKEN = re.compile(r"\S+")
_LAST_TOKEN = re.compile(r"\S+\s*\Z")
_SENTENCE_END = re.compile(r"[.!?;]\s+(?=[A-Z\"(])|\n")
_ENUMERATION = re.compile(r"[;,]")
# A number counts as a whole: the 1 of BRCA1 is not in "chromosome 17".
_UNIT = re.compile(r"\d+|[^\W\d_]")
_GREEK = {
    chr(code): unicodedata.name(chr(code)).split()[-1].lower().replace("lamda", "lambda")
    for code in range(ord("α"), ord("ω") + 1)
}


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
    spans = _bracketed(text)
    sentences = [0, *(end.end() for end in _SENTENCE_END.finditer(text))] if spans else []
    for start, end in spans:
        sentence = sentences[max(bisect_left(sentences, start - 1) - 1, 0)]
        definition = _long_before(text, start, end, sentence) or _long_inside(text, start, end)
        if definition:
            found.append(definition)
    return found


def expand(mention: str, definitions: Sequence[AbbreviationDefinition], *, at: int | None = None) -> Expansion:
    """Write out the short forms of a mention; case counts, and only whole words are short forms.

    TIAs is read as TIA where only that is defined, and the other way round. A short form in brackets beside its own
    long form is dropped rather than written out twice. Of several definitions of a short form the last one before the
    mention is used, or the first where nothing says where the mention is.

    Args:
        mention: The mention as sent.
        definitions: Those of one text, in its order.
        at: Where the mention begins in that text.

    >>> found = find_definitions("glucose-6-phosphate dehydrogenase (G6PD) is low")
    >>> expand("G6PD deficiency", found).text
    'glucose-6-phosphate dehydrogenase deficiency'
    >>> expand("glucose-6-phosphate dehydrogenase (G6PD) deficiency", found).text
    'glucose-6-phosphate dehydrogenase deficiency'
    """
    in_force = _in_force(mention, definitions, at)
    folded = mention.casefold()
    used: dict[AbbreviationDefinition, None] = {}
    replaced = []
    # One pass over all of them, so that a long form is never expanded again.
    for found in _short_forms(in_force).finditer(mention) if in_force else ():
        form = found["bracketed"] or found["bare"]
        definition = in_force[form]
        if definition.long.casefold() not in folded:
            long = _plural(definition.long) if form == f"{definition.short}s" else definition.long
            replaced.append(Replacement(*found.span(found.lastgroup or 0), long))
        elif found["bracketed"]:
            replaced.append(Replacement(*found.span(), ""))
        else:
            continue
        used[definition] = None
    return Expansion(_with(mention, replaced), tuple(used), tuple(replaced))


def _in_force(
    mention: str, definitions: Sequence[AbbreviationDefinition], at: int | None
) -> dict[str, AbbreviationDefinition]:
    """Return what each short form of a mention stands for there, in its own or the other number."""
    own: dict[str, AbbreviationDefinition] = {}
    other: dict[str, AbbreviationDefinition] = {}
    for definition in definitions:
        earlier = at is not None and definition.short_start <= at
        for known, form in ((own, definition.short), (other, _in_other_number(definition.short))):
            if form in mention and (earlier or form not in known):
                known[form] = definition
    return other | own


def _in_other_number(short: str) -> str:
    if len(short) > _SHORTEST and short[-1] == "s" and short[-2].isupper():
        return short[:-1]
    return f"{short}s" if len(short) >= _SHORTEST and short[-1].isupper() else short


def _plural(long: str) -> str:
    if long.endswith("y") and long[-2:-1] not in "aeiou":
        return f"{long[:-1]}ies"
    return long if long.endswith("s") else f"{long}s"


def origin(expansion: Expansion, start: int, end: int) -> tuple[int, int]:
    """Return which stretch of the mention stands behind a stretch of its expansion.

    What lies in a long form comes from the whole of its short form.

    >>> expansion = expand("AF or gout", find_definitions("atrial fibrillation (AF)"))
    >>> [origin(expansion, *span) for span in ((0, 6), (7, 19), (20, 22), (23, 27))]
    [(0, 2), (0, 2), (3, 5), (6, 10)]
    """
    ahead = 0  # how far the expansion is ahead of the mention
    begin, finish = start, end
    for change in expansion.replaced:
        new_start = change.start + ahead
        new_end = new_start + len(change.text)
        ahead += len(change.text) - (change.end - change.start)
        if start >= new_end:
            begin = start - ahead
        elif start >= new_start:
            begin = change.start
        if end > new_end:
            finish = end - ahead
        elif end > new_start:
            finish = change.end
    return begin, finish


def _short_forms(shorts: Sequence[str] | dict[str, AbbreviationDefinition]) -> re.Pattern[str]:
    any_of = "|".join(map(re.escape, sorted(shorts, key=lambda short: (-len(short), short))))
    return re.compile(rf"\s*[(\[（]\s*(?P<bracketed>{any_of})\s*[)\]）]|(?<!\w)(?P<bare>{any_of})(?!\w)")


def _with(mention: str, replaced: Sequence[Replacement]) -> str:
    pieces = []
    done = 0
    for change in replaced:
        pieces += [mention[done : change.start], change.text]
        done = change.end
    return "".join([*pieces, mention[done:]])


def _bracketed(text: str) -> list[tuple[int, int]]:
    """Return the offsets of what stands in outermost brackets; a bracket that never closes is plain text."""
    spans: list[tuple[int, int]] = []
    open_at: list[int] = []
    for found in _BRACKET.finditer(text):
        sign, at = found[0], found.start()
        if sign in _BRACKETS:
            open_at.append(at)
        elif open_at and sign == _BRACKETS[text[open_at[-1]]]:
            start = open_at.pop()
            while spans and spans[-1][0] > start:
                spans.pop()
            spans.append((start + 1, at))
    return spans


def _long_before(text: str, start: int, end: int, sentence: int) -> AbbreviationDefinition | None:
    """Read the brackets as a short form of the words before them, which begin in this sentence."""
    cut = _ENUMERATION.search(text, start, end)
    short_start, short_end = _trim(text, start, cut.start() if cut else end)
    if lead := _LEAD.match(text, short_start, short_end):
        short_start = lead.end()
    short = text[short_start:short_end]
    if not _is_short(short):
        return None
    _, long_end = _trim(text, sentence, start - 1)
    earliest = max(sentence, long_end - _MAX_LONG)
    words = list(_TOKEN.finditer(text, earliest, long_end))[-_longest(short) :]
    starts = [at for word in words for at in _word_starts(text, word.start(), word.end())]
    return _best(text, short_start, short_end, starts, long_end)


def _long_inside(text: str, start: int, end: int) -> AbbreviationDefinition | None:
    """Read the brackets as the long form of the word before them."""
    # A word that fills more than this is no short form.
    before = _LAST_TOKEN.search(text, max(0, start - 3 * _MAX_SHORT), start - 1)
    if not before:
        return None
    short_start, short_end = _trim(text, before.start(), before.end())
    cut = text.find(";", start, end)
    long_start, long_end = _trim(text, start, cut if cut >= 0 else end)
    short = text[short_start:short_end]
    if not _is_short(short) or long_end - long_start > _MAX_LONG:
        return None
    words = len(text[long_start:long_end].split())
    # A remark in brackets is far more common than a long form, so it must be several words and the word a real acronym.
    if sum(map(str.isupper, short)) * 2 < len(short) or not 2 <= words <= _longest(short):
        return None
    return _best(text, short_start, short_end, [long_start], long_end)


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and (text[start].isspace() or text[start] in _QUOTES):
        start += 1
    while end > start and (text[end - 1].isspace() or text[end - 1] in _QUOTES):
        end -= 1
    return start, end


def _is_short(text: str) -> bool:
    """Whether a string looks like a short form: up to two words, with a capital or a digit beside a letter."""
    if not _SHORTEST <= len(text) <= _MAX_SHORT:
        return False
    words = text.split()
    return (
        1 <= len(words) <= 2
        and text[0].isalnum()
        and any(map(str.isalpha, text))
        and all(any(sign.isupper() or sign.isdigit() for sign in word) for word in words)
    )


def _longest(short: str) -> int:
    """How many words may stand for a short form."""
    return min(len(short) + 5, len(short) * 2)


def _word_starts(text: str, start: int, end: int) -> list[int]:
    """Where a word may begin inside a token: hyphens and slashes join several."""
    return [at for at in range(start, end) if text[at].isalnum() and (at == 0 or not text[at - 1].isalnum())]


def _best(
    text: str, short_start: int, short_end: int, starts: list[int], long_end: int
) -> AbbreviationDefinition | None:
    """Choose the long form among those that begin at `starts`; None if no one can stand for the short form."""
    short = text[short_start:short_end]
    if not starts:
        return None
    again = [m.start() for m in re.finditer(rf"(?<!\w){re.escape(short)}(?!\w)", text[starts[0] : long_end])]
    after = starts[0] + again[-1] if again else -1
    units = [unit.casefold() for unit in _UNIT.findall(short)]
    initials = _initials(units, text, starts[0], long_end)
    possible = [(initials[at], at) for at in starts if at in initials and at > after and long_end - at > len(short)]
    if not possible:
        return None
    start = max(possible)[1]
    return AbbreviationDefinition(short, text[start:long_end], short_start, short_end, start, long_end)


def _initials(units: Sequence[str], text: str, start: int, end: int) -> dict[int, int]:
    """Say for every place where a long form may begin how many units can stand at word starts.

    All units are found in order, and the first begins the long form. Read from the end, so that one pass serves all.
    """
    # best[i] = most word starts with the units from i on placed in what was read so far.
    best: list[int | None] = [None] * len(units) + [0]
    found: dict[int, int] = {}
    for unit in reversed(list(_UNIT.finditer(text, start, end))):
        at, sign = unit.start(), unit[0].casefold()
        is_start = at == 0 or not text[at - 1].isalnum()
        others = best[1] if units else None
        if is_start and others is not None and _stands_for(sign, units[0], text, at):
            found[at] = 1 + others
        for i in range(1, len(units)):
            later, current = best[i + 1], best[i]
            if later is not None and _stands_for(sign, units[i], text, at):
                best[i] = max(later + is_start, -1 if current is None else current)
    return found


def _stands_for(sign: str, unit: str, text: str, at: int) -> bool:
    """Whether a sign of the long form is one of the short form; a Greek letter may be spelled in either."""
    if sign == unit:
        return True
    if unit in _GREEK:
        return text[at : at + len(_GREEK[unit])].casefold() == _GREEK[unit]
    return sign in _GREEK and _GREEK[sign][0] == unit
