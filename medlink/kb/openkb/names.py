"""Which strings of a term count as names, in what order, and which of them say the same thing twice."""

import re
from collections import Counter
from collections.abc import Iterable

from medlink.kb.openkb.terms import TermName
from medlink.text import match_key

_BLANKS = re.compile(r"\s+")
_ONLY_ID = re.compile(r"(MONDO|DOID|HP|UBERON|CL|HGNC|MESH|OMIM|ORPHA|UMLS|NCIT|GARD):\w+", re.IGNORECASE)
_FORMULA = re.compile(
    r"\((disease|disorder|finding|morphologic abnormality|diagnosis)\)$"
    r"|\bdisease or disorder\b|\bcaused by mutation in\b"
    r"|, (somatic|susceptibility to|protection against|association with|formerly|included)\b"
)
_SMALL_WORDS = frozenset("a an and by due for from in of on or the to with".split())


def clean_names(
    names: Iterable[tuple[str, str]], skipped: Counter[str], *, verbatim: bool = False
) -> tuple[TermName, ...]:
    """Return the names without blanks, bare ids and repetitions that differ in case only, and damaged ones; counted.

    White space inside a name is folded and escaped quotes are freed, since some sources carry them, unless the
    source's terms ask for names as they are (`verbatim`).
    """
    kept: dict[str, TermName] = {}
    for text, tty in names:
        folded = text if verbatim else _BLANKS.sub(" ", text.replace('\\"', '"')).strip()
        if not folded.strip():
            skipped["blank name"] += 1
        elif _ONLY_ID.fullmatch(folded):
            skipped["name is only an id"] += 1
        elif not verbatim and _is_damaged(folded):
            skipped["name with damaged letters"] += 1
        elif folded.lower() in kept:
            skipped["name repeated in its term"] += 1
        else:
            kept[folded.lower()] = TermName(folded, tty)
    return tuple(kept.values())


def word_key(text: str) -> tuple[str, ...]:
    """Return what two names share that differ in word order and small words only.

    >>> word_key("Neoplasms of the Breast") == word_key("breast neoplasms")
    True
    """
    words = match_key(text).split()
    return tuple(sorted(w for w in words if w not in _SMALL_WORDS)) or tuple(words)


def variant_key(text: str) -> tuple[str, ...]:
    """Return what two names share that differ in word order, small words and plural only.

    >>> variant_key("Neoplasms of the Breast") == variant_key("breast neoplasm")
    True
    """
    return tuple(sorted(_singular(word) for word in word_key(text)))


def is_formulaic(text: str) -> bool:
    """Whether a name follows a pattern of MONDO's, or of OMIM's titles in MONDO, that nobody writes.

    >>> is_formulaic("asthma (disease)"), is_formulaic("asthma")
    (True, False)
    """
    return _FORMULA.search(text) is not None


def _is_damaged(text: str) -> bool:
    """Whether an accent was lost on the way: `ChC)diak` was Chédiak once."""
    return "\ufffd" in text or ("C)" in text and text.count(")") > text.count("("))


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word[-1] == "s" and word[-2] not in "siu" else word
