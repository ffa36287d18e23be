"""The only two text functions, both versioned: what the encoder reads, and what the exact channel compares."""

import re
import unicodedata

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
    # Before NFKC, which would spell the trade mark sign as the letters TM and take an acute accent apart;
    # and after it, since it takes other letters apart into an apostrophe.
    folded = unicodedata.normalize("NFKC", text.translate(_SIGNS)).translate(_SIGNS).casefold()
    bare = _POSSESSIVE.sub("", unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFKD", folded))))
    if bare.isascii():
        return _ASCII_SEPARATORS.sub(" ", bare).strip()
    return " ".join("".join(c if _counts(c) else " " for c in bare).split())


def _counts(character: str) -> bool:
    return character.isalnum() or character in "+%" or unicodedata.category(character)[0] == "M"


def _printable(text: str) -> str:
    """Return a text without its control and format characters; blanks stay."""
    if text.isprintable():
        return text
    return "".join(c for c in text if c.isspace() or unicodedata.category(c)[0] != "C")
