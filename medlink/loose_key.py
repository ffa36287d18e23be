"""The loose key: what two names share that differ in spelling, number, numerals, Greek letters or word order only.

It is coarser than `match_key` and meant to be asked only where that finds nothing. Every step has a name, so that an
explanation can say what made two texts equal. What each step gains and costs is in `docs/decisions/0007-loose-key.md`.
"""

import re
import unicodedata
from collections.abc import Callable, Container
from dataclasses import dataclass
from itertools import pairwise

from medlink.english import american, singular
from medlink.text import MATCH_KEY_STEPS
from medlink.written_signs import undotted, visible, without_written_signs

LOOSE_KEY_VERSION = 2

_LONE_SHARP_S = re.compile(r"(?<![^\W\d_])ß(?![^\W\d_])")
_LATIN = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i"}
    | {"Ø": "O", "Ł": "L", "Đ": "D", "Þ": "Th", "Æ": "Ae", "Œ": "Oe"}
)
# Cyrillic letters, and the omicron, that nobody can tell from Latin ones; they count only beside real Latin letters.
_LOOK_ALIKES = str.maketrans("аеорсухіјѕοАЕОРСУХІЈЅΟ", "aeopcyxijsoAEOPCYXIJSO")
_LATIN_LETTER = re.compile("[a-zA-Z]")
_GREEK = {
    chr(code): unicodedata.name(chr(code)).split()[-1].lower().replace("lamda", "lambda")
    for code in range(ord("α"), ord("ω") + 1)
}
_GREEK_NAMES = frozenset(_GREEK.values())
_GREEK_RUN = re.compile(f"[{''.join(_GREEK)}]+")
_LONGEST_GREEK_RUN = 2
_DIGIT = re.compile(r"\d")
_DIGIT_EDGE = re.compile(r"(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])|(?<=\d)(?=%)")
_PERCENTAGE = re.compile(r"(?<!\S)(?:[0-9]+ )+%(?!\S)")
_PREFIXES = frozenset(
    "angio anti auto broncho cardio cerebro esophago extra gastro hepato hyper hypo immuno inter intra macro micro mono"
    " multi myelo naso neo neuro non oesophago oro osteo para peri poly post pre pseudo psycho semi sub supra tracheo"
    " trans ultra".split()
)
# As they are written, for it is looked up for every name; X stands for X-linked.
_ANY_PREFIX = frozenset({form for prefix in (*_PREFIXES, "x") for form in (prefix, prefix.title(), prefix.upper())})
_SHORTEST_STEM = 3
_SHORTEST_LONE_PLURAL = 6
_ROMAN = {
    numeral: str(number)
    for number, numeral in enumerate(
        "i ii iii iv v vi vii viii ix x xi xii xiii xiv xv xvi xvii xviii xix xx".split(), start=1
    )
}
# X and XX are chromosomes, XI is a Greek letter, VIA a word.
_ONLY_NUMBERED = frozenset({"x", "xi", "xx", "via", "vie"})
_NUMBERED = frozenset("class complex factor grade group level phase stage type".split())
_ROUTES = frozenset("administration drug fluid infusion injection line therapy treatment use".split())
_NOT_NUMBERED = frozenset({"chromosome", "patient", "vitamin"})
_SHORTEST_NUMBERED = 5
# IA, VA and XA may be something else: IIA is the shortest that counts without such a word.
_SHORTEST_UNNUMBERED = 2
_SPELLED = {"one": "1", "two": "2", "three": "3", "four": "4", "five": "5"}
# Type IIA is type 2A: a numeral with a letter is read as two words.
_ROMAN_WITH_LETTER = {numeral + letter: number for numeral, number in _ROMAN.items() for letter in "abcde"}
_NUMERALS = frozenset({*_ROMAN, *_ROMAN_WITH_LETTER, *_SPELLED})
_ANY_CASE_NUMERALS = _NUMERALS | {numeral.upper() for numeral in _NUMERALS}
_SMALL_WORDS = frozenset({"of", "the"})
_DIRECTIONS = frozenset("by from not or to versus vs without".split())
# More numbers and Greek letters than these are places in a molecule.
_MOST_NUMBERS = 3
# Residues of peptides and sugar chains: there the order is the name.
_RESIDUES = frozenset(
    "ala arg asn asp cys gln glu gly his ile leu lys met phe pro ser thr trp tyr val fuc gal galnac glc glcnac man neu"
    " xyl".split()
)


@dataclass(frozen=True, slots=True)
class Step:
    """One change on the way to a key: what it is called, and the text after it."""

    name: str
    text: str


def loose_key(text: str, *, without: Container[str] = ()) -> str:
    """Return the key under which two names count as variants of one another; empty if nothing is left to compare.

    Args:
        text: A name or mention as written: `match_key` has lost what some steps look at.
        without: Names of steps to leave out, to see what they do.

    >>> loose_key("Pain, chest") == loose_key("chest pains"), loose_key("IFNγ") == loose_key("IFN-gamma")
    (True, True)
    >>> loose_key("Oesophageal tumours type II"), loose_key("IV infusion")
    ('esophageal tumor type 2', 'iv infusion')
    """
    for name, step in _STEPS:
        if name not in without:
            text = step(text)
    return text


def steps(text: str) -> tuple[Step, ...]:
    """Return the steps that change a text on its way to the loose key, those of `match_key` among them.

    >>> [(step.name, step.text) for step in steps("Type II tumours")]
    [('case', 'type ii tumours'), ('spelling', 'type ii tumors'), ('plural', 'type ii tumor'), \
('numerals', 'type 2 tumor'), ('word order', 'tumor type 2')]
    """
    changes = []
    for name, step in _STEPS:
        after = step(text)
        if after != text:
            changes.append(Step(name, after))
        text = after
    return tuple(changes)


def differing_steps(one: str, other: str) -> tuple[str, ...] | None:
    """Return the steps without which two texts would not be equal, in order; None if they differ in more than that.

    No step of the answer can be left out, and none of the loose key's own is in it where `match_key` is enough.

    >>> differing_steps("als", "ALS"), differing_steps("IFN-γ", "IFN gamma"), differing_steps("type 1", "type 2")
    (('case',), ('punctuation', 'greek'), None)
    """
    if one == other:
        return ()
    if loose_key(one) != loose_key(other):
        return None
    needed = list(STEP_NAMES)
    before: list[str] = []
    # Again, since a step may be there for another one's sake only.
    while needed != before:
        before = needed.copy()
        # The loosest go first, so that what remains is the least that was needed.
        for name in reversed(before):
            without = {step for step in STEP_NAMES if step not in needed or step == name}
            if loose_key(one, without=without) == loose_key(other, without=without):
                needed.remove(name)
    return tuple(needed)


def _beta_for_sharp_s(text: str) -> str:
    # Before case folding, which makes ss of it.
    return _LONE_SHARP_S.sub("β", text) if "ß" in text else text


def _latin_for_look_alikes(text: str) -> str:
    if text.isascii():
        return text
    text = text.translate(_LATIN)
    return " ".join(word.translate(_LOOK_ALIKES) if _LATIN_LETTER.search(word) else word for word in text.split())


def _spelled_greek(text: str) -> str:
    if text.isascii():
        return text
    # A longer run is a word of Greek, not two letters that name something.
    if any(len(run) > _LONGEST_GREEK_RUN for run in _GREEK_RUN.findall(text)):
        return text
    spelled = _GREEK_RUN.sub(lambda run: f" {' '.join(_GREEK[letter] for letter in run[0])} ", text)
    return " ".join(spelled.split())


def _digits_apart(text: str) -> str:
    return _DIGIT_EDGE.sub(" ", text) if _DIGIT.search(text) else text


def _without_small_words(text: str) -> str:
    words = text.split()
    return " ".join([word for word in words if word.lower() not in _SMALL_WORDS]) or text


def _prefixes_joined(text: str) -> str:
    words = text.split()
    if _ANY_PREFIX.isdisjoint(words):
        return text
    joined: list[str] = []
    for word in reversed(words):
        if joined and _is_prefix(word, joined[-1]):
            joined[-1] = word + joined[-1]
        else:
            joined.append(word)
    return " ".join(reversed(joined))


def _is_prefix(word: str, following: str) -> bool:
    word = word.lower()
    if word == "x":
        return following == "linked"
    stem = following.isascii() and following.isalpha() and len(following) >= _SHORTEST_STEM
    return word in _PREFIXES and stem


def _american_words(text: str) -> str:
    return " ".join([_in_its_case(word, american) for word in text.split()])


def _in_its_case(word: str, change: Callable[[str], str]) -> str:
    lower = word.lower()
    changed = change(lower)
    if changed == lower:
        return word
    if word == lower:
        return changed
    return changed.upper() if word.isupper() else changed.capitalize()


def _singular_words(text: str) -> str:
    words = text.split()
    # Alone, CHACS may be a short form, and glutamates are a class of substances that glutamate is but one of.
    if len(words) == 1 and (len(text) < _SHORTEST_LONE_PLURAL or text.endswith("ates")):
        return text
    return " ".join(map(_singular_word, words, [*words[1:], ""]))


def _singular_word(word: str, following: str) -> str:
    one = _in_its_case(word, singular)
    # MCOPS 2 is a short form with its number, types 2 is not.
    short_form = following[:1].isdigit() and one not in _NUMBERED
    return word if short_form or one in _PREFIXES or _is_number_like(one) else one


def _arabic_numerals(text: str) -> str:
    words = text.split()
    if _ANY_CASE_NUMERALS.isdisjoint(words):
        return text
    uncertain = _ONLY_NUMBERED if _ROUTES.isdisjoint(words) else _ONLY_NUMBERED | {"iv"}
    return " ".join([*words[:1], *(_arabic(word, before, uncertain) for before, word in pairwise(words))])


def _arabic(written: str, before: str, uncertain: Container[str]) -> str:
    """Return a numeral in digits where it cannot be anything else, or the word before it calls for a number."""
    word = written.lower()
    called_for = before.lower() in _NUMBERED
    if word in _ROMAN_WITH_LETTER:
        certain = called_for or (word not in uncertain and len(word) > _SHORTEST_UNNUMBERED)
        return f"{_ROMAN_WITH_LETTER[word]} {written[-1]}" if certain else written
    if word in _ROMAN:
        certain = called_for or (word not in uncertain and (len(word) > 1 or _takes_numbers(before)))
        return _ROMAN[word] if certain else written
    return _SPELLED.get(word, written) if called_for else written


def _takes_numbers(word: str) -> bool:
    return len(word) >= _SHORTEST_NUMBERED and word.isalpha() and word.lower() not in _NOT_NUMBERED


def _sorted_words(text: str) -> str:
    """Sort words, each with the numbers that follow it; numbers at the start stay there, a lone percentage anywhere."""
    words = text.split()
    if not _DIRECTIONS.isdisjoint(words) or len(set(words)) < len(words):
        # A word said twice belongs to two others: T cell negative, B cell positive.
        return text
    percentage = _PERCENTAGE.findall(text) if text.count("%") == 1 else []
    words = _PERCENTAGE.sub("", text).split() if percentage else words
    numbers = sum(word in _GREEK_NAMES or _is_number_like(word) for word in words)
    if numbers > _MOST_NUMBERS or sum(word in _RESIDUES for word in words) > 1:
        return text
    start: list[str] = []
    groups: list[str] = []
    for word in words:
        if not _is_number_like(word):
            groups.append(word)
        elif groups:
            groups[-1] += " " + word
        else:
            start.append(word)
    if start and percentage:
        return text
    ordered = " ".join([*start, *sorted([*groups, *percentage])])
    # A prefix that stood alone must not come to stand before a word, nor a word that a percentage kept from the next.
    settled = _arabic_numerals(_singular_words(ordered)) if percentage else ordered
    return ordered if _prefixes_joined(ordered) == ordered == settled else text


def _is_number_like(word: str) -> bool:
    return len(word) == 1 or word in _NUMERALS or not word[0].isalpha()


# Those after `case` read capitals too, lest leaving it out stop them: II and 2 do not differ in case.
_STEPS: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("invisible", visible),
    ("written signs", without_written_signs),
    ("dots", undotted),
    ("look-alikes", _beta_for_sharp_s),
    *MATCH_KEY_STEPS.items(),
    ("look-alikes", _latin_for_look_alikes),
    ("greek", _spelled_greek),
    ("digits", _digits_apart),
    ("small words", _without_small_words),
    ("prefixes", _prefixes_joined),
    ("spelling", _american_words),
    ("plural", _singular_words),
    ("numerals", _arabic_numerals),
    ("word order", _sorted_words),
)
STEP_NAMES = (*MATCH_KEY_STEPS, *dict.fromkeys(name for name, _ in _STEPS if name not in MATCH_KEY_STEPS))
"""Every step by name: those of `match_key`, then those of the loose key."""
