"""Signs that a text has beside its words: trade marks in brackets, dots of initials, what nobody sees."""

import re

_TRADE_MARK = re.compile(r"(?<=[^\W\d_]{3})(?:\((?:R|r|TM|tm)\)| \((?:TM|tm)\)|Ⓡ)(?=$|[\s,;.])")
_AMPERSAND = re.compile(r"(?<=\w\s)&(?=\s\w)")
# What a text shows nothing of: the soft hyphen, joiners and blanks of no width, and what makes a trade sign an emoji.
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]|(?<=\\w[®™℠©])[\ufe0e\ufe0f]")
_DOTTED = re.compile(r"(?<![\w.])(?:[^\W\d_]\.){2,}")


def visible(text: str) -> str:
    """Return a text without the characters that show nothing.

    >>> visible("asth\u00adma")
    'asthma'
    """
    return text if text.isascii() else _INVISIBLE.sub("", text)


def without_written_signs(text: str) -> str:
    """Return a text without written trade marks, and with the word for a lone ampersand.

    >>> without_written_signs("Prozac(TM) & leucovorin(R)")
    'Prozac and leucovorin'
    """
    return _AMPERSAND.sub("and", _TRADE_MARK.sub("", text))


def undotted(text: str) -> str:
    """Return a text with dotted initials closed up.

    >>> undotted("A.L.S., i.v. infusion")
    'ALS, iv infusion'
    """
    return _DOTTED.sub(lambda letters: letters[0].replace(".", ""), text) if "." in text else text
