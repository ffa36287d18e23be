"""The only two text functions, both versioned: what the encoder reads, and what the exact channel compares."""

import re
import unicodedata

ENCODER_TEXT_VERSION = 1
MATCH_KEY_VERSION = 1

_BLANKS = re.compile(r"\s+")
# Trade signs go, and every quote-like sign that stands for an apostrophe becomes one.
_SIGNS = str.maketrans(dict.fromkeys("®™℠©") | dict.fromkeys("’‘‛ʼ′`´＇", "'"))
_POSSESSIVE = re.compile(r"(?<=\w)'s?(?!\w)")
_ASCII_SEPARATORS = re.compile(r"(?:[^\w+%]|_)+", re.ASCII)
# The accents of Latin, Greek and Cyrillic. Marks of other scripts are vowels and voicing, not decoration.
_ACCENTS = re.compile("[\u0300-\u036f]+")


def encoder_text(text: str, *, lowercase: bool) -> str:
    r"""Return the form that pairs, index and query all hand to the encoder.

    NFKC, control and format characters dropped, white space folded; lower case where the encoder is uncased.

    >>> encoder_text("  Type\u00a02  ﬁbrosis ", lowercase=True)
    'type 2 fibrosis'
    """
    folded = unicodedata.normalize("NFKC", text)
    if not folded.isprintable():
        folded = "".join(c for c in folded if c.isspace() or unicodedata.category(c)[0] != "C")
    folded = _BLANKS.sub(" ", folded)
    # Lower case can undo NFKC (a capital I with a dot), so it comes first and is normalised again.
    return unicodedata.normalize("NFKC", folded.lower()).strip() if lowercase else folded.strip()


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
