"""The two text forms, both versioned: what the encoder reads, and what the exact channel compares."""

import re
import unicodedata
from collections.abc import Callable, Mapping
from types import MappingProxyType

ENCODER_TEXT_VERSION = 2
MATCH_KEY_VERSION = 1

_TRADE_SIGNS: dict[int, str | None] = dict.fromkeys(map(ord, "®™℠©"))
# Trade signs go, and every quote-like sign that stands for an apostrophe becomes one.
_SIGNS = _TRADE_SIGNS | dict.fromkeys(map(ord, "’‘‛ʼ′`´＇"), "'")
_GREEK = dict(
    zip(
        "αβγδεζηθικλνξοπρσςτυφχψω",
        "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda nu xi omicron pi rho sigma sigma tau upsilon"
        " phi chi psi omega".split(),
        strict=True,
    )
)
# One that is no letter of a Greek word. The mu is more often the micro sign, and stays.
_LONE_GREEK = re.compile(f"(?<![\u0370-\u03ff\u1f00-\u1fff])[{''.join(_GREEK)}](?![\u0300-\u03ff\u1f00-\u1fff])")
_POSSESSIVE = re.compile(r"(?<=\w)'s?(?!\w)")
_ASCII_SEPARATORS = re.compile(r"(?:[^\w+%]|_)+", re.ASCII)
_ASCII_BLANKS = {code: " " for code in range(128) if not (chr(code).isalnum() or chr(code) in "+%")}
# The accents of Latin, Greek and Cyrillic. Marks of other scripts are vowels and voicing, not decoration.
_ACCENTS = re.compile("[\u0300-\u036f]+")


def encoder_text(text: str, *, lowercase: bool) -> str:
    r"""Return the form that pairs, index and query all hand to the encoder.

    NFKC, trade signs dropped, lone Greek letters spelled out, punctuation to blanks but for `+` and `%`, control and
    format characters dropped; lower case where the encoder is uncased. A text of punctuation alone keeps it.

    >>> encoder_text("  Type\u00a02 β-thalassaemia (ﬁbrosis)™", lowercase=True)
    'type 2 beta thalassaemia fibrosis'
    """
    folded = _printable(unicodedata.normalize("NFKC", text.translate(_TRADE_SIGNS)))
    if lowercase:
        # Lower case can undo NFKC (a capital I with a dot), so it comes first and is normalised again.
        folded = unicodedata.normalize("NFKC", folded.lower())
    if folded.isascii():
        return _ASCII_SEPARATORS.sub(" ", folded).strip() or " ".join(folded.split())
    spelled = _LONE_GREEK.sub(lambda letter: f" {_GREEK[letter[0]]} ", folded)
    words = "".join(c if _counts(c) else " " for c in spelled).split()
    # A mark may only now stand beside a letter that it joins.
    return unicodedata.normalize("NFKC", " ".join(words or folded.split()))


def match_key(text: str) -> str:
    """Return the key under which two names count as the same string; empty if nothing is left to compare.

    Trade signs, case, accents, possessives and punctuation do not matter; letters, digits, `+` and `%` do.

    >>> match_key("Crohn’s  Disease®"), match_key("crohn disease"), match_key("CD4+"), match_key("#")
    ('crohn disease', 'crohn disease', 'cd4+', '')
    """
    for step in MATCH_KEY_STEPS.values():
        text = step(text)
    return text


def _without_signs(text: str) -> str:
    # Before NFKC, which would spell the trade mark sign as the letters TM and take an acute accent apart.
    return text.translate(_SIGNS)


def _one_form(text: str) -> str:
    # NFKC takes other letters apart into an apostrophe.
    return unicodedata.normalize("NFKC", text).translate(_SIGNS)


def _without_accents(text: str) -> str:
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFKD", text)))


def _without_possessive(text: str) -> str:
    return _POSSESSIVE.sub("", text) if "'" in text else text


def _words_only(text: str) -> str:
    if text.isascii():
        return " ".join(text.translate(_ASCII_BLANKS).split())
    return " ".join("".join(c if _counts(c) else " " for c in text).split())


MATCH_KEY_STEPS: Mapping[str, Callable[[str], str]] = MappingProxyType(
    {
        "signs": _without_signs,
        "letter forms": _one_form,
        "case": str.casefold,
        "accents": _without_accents,
        "possessive": _without_possessive,
        "punctuation": _words_only,
    }
)
"""What `match_key` does, in order, by the names that an explanation calls it."""


def _counts(character: str) -> bool:
    return character.isalnum() or character in "+%" or unicodedata.category(character)[0] == "M"


def _printable(text: str) -> str:
    """Return a text without its control and format characters; blanks stay."""
    if text.isprintable():
        return text
    return "".join(c for c in text if c.isspace() or unicodedata.category(c)[0] != "C")
