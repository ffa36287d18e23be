"""Splits a mention that coordinates several concepts ("breast and ovarian cancer") into one mention for each.

Rules over words, no grammar: what the rules are not sure of stays whole. Known to stay whole: suspended hyphens
("squamous- and small-cell cancer"), bracketed remarks, anything with a preposition other than "of", fixed phrases
("head and neck cancer") also where they are one member of a longer list, and hereditary conditions, whose names
often coordinate ("hereditary breast and ovarian cancer" is one concept).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from medlink.types import Conjunction

_TOKEN = re.compile(r"and/or\b|[/,&]|[^\s/,&]+", re.IGNORECASE)
_CONJUNCTIONS: dict[str, Conjunction] = {"and": "and", "&": "and", "or": "or", "and/or": "or", "/": "or"}
_NUMERAL = re.compile(r"\d{1,2}[A-Za-z]?|[IVX]+[A-Ca-c]?|[A-H]")
_SYMBOL = re.compile(r"[A-Z0-9][A-Z0-9-]{0,5}|[a-z]{1,2}\d{1,3}")
_SPELT_LETTERS = re.compile(r"[A-Z](?:/[A-Z]){2,}")
_TROUBLE = re.compile(r"[()\[\]{};:]|-(?=[\s,/]|$)")

_FIXED = re.compile(
    r"\b(?:head (?:and|&) neck|foot and mouth|ear,? nose,? and throat|skin and connective tissue|bone and joint"
    r"|signs and symptoms|hiv/aids)\b",
    re.IGNORECASE,
)
_PREPOSITIONS = frozenset(
    "after against as associated at between by during due following for from in into on related than "
    "through to versus via vs with within without".split()
)
_DETERMINERS = frozenset({"the", "a", "an", "both", "either", "some"})
_NOT_PLURAL = frozenset("ascites caries diabetes herpes measles rabies rickets scabies shingles".split())
_NAMES_ONE = frozenset({"hereditary", "familial", "inherited"})
_MODIFIER_ENDINGS = ("al", "ic", "ar", "ous", "ary", "ory", "ive", "ian", "oid", "less")
_MODIFIERS = frozenset(
    "acute bladder blood bone bowel brain breast cervix chronic colon ear endometrium esophagus eye face "
    "finger foot hand hearing heart hip jaw joint kidney knee larynx learning left leg limb lip liver "
    "lower lung memory mild mood mouth muscle neck nerve oesophagus ovary palate pancreas prostate rectum "
    "right severe skin sleep speech spine spleen stomach testis throat thyroid tongue tooth upper uterus "
    "vein visual".split()
)
_NOUN_ENDINGS = (
    "itis", "oma", "omas", "emia", "aemia", "osis", "oses", "pathy", "pathies", "uria", "algia", "plegia", "penia",
    "rrhea", "rrhoea", "ism", "ness", "sia", "xia", "tension",
)  # fmt: skip
_NOUNS = frozenset(
    "anxiety asthma cancer coma cough death deficiency delirium dementia depression diabetes disease "
    "diseases disorder edema epilepsy failure fatigue fever headache infarction infection injury nausea "
    "obesity pain retardation rash seizure seizures shock stroke syndrome tumor tumors tumour tumours "
    "vomiting".split()
)
_GENERIC = frozenset(
    "abnormalities abnormality damage defect defects deficit deficits disease diseases disorder disorders "
    "dysfunction failure impairment injury insufficiency malformation malformations".split()
)


@dataclass(frozen=True, slots=True)
class Part:
    """One mention of a composite, with the code-point spans of the words that it is put together from."""

    text: str
    spans: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Composite:
    """What a coordinated mention stands for: two parts or more, and whether all or any of them are meant."""

    parts: tuple[Part, ...]
    conjunction: Conjunction


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    start: int
    end: int

    @property
    def lower(self) -> str:
        return self.text.lower()


_Segment = list[_Word]


def split_composite(text: str) -> Composite | None:
    """Split a coordinated mention; None if it is one concept, or if the rules cannot tell.

    >>> found = split_composite("colorectal, endometrial and ovarian cancers")
    >>> [part.text for part in found.parts], found.conjunction
    (['colorectal cancer', 'endometrial cancer', 'ovarian cancer'], 'and')
    >>> [part.text for part in split_composite("cancer of the breast or ovary").parts]
    ['cancer of the breast', 'cancer of the ovary']
    >>> split_composite("head and neck cancer") is split_composite("non-small-cell lung cancer") is None
    True
    """
    if _SPELT_LETTERS.fullmatch(text):
        letters = tuple(Part(text[at], ((at, at + 1),)) for at in range(0, len(text), 2))
        return Composite(letters, "and")
    segments, conjunction = _list(text)
    if conjunction is None:
        return None
    parts = _left_head(segments) or _numbered(segments) or _left_modifier(segments) or _right_head(segments)
    return Composite(tuple(parts), conjunction) if parts else None


def guess_composites(text: str) -> list[Composite]:
    """Return ways to split a mention that are right only if every part turns out to be a name, best first.

    >>> guesses = guess_composites("Duchenne and Becker muscular dystrophy")
    >>> [[part.text for part in guess.parts] for guess in guesses]
    [['Duchenne', 'Becker muscular dystrophy'], ['Duchenne muscular dystrophy', 'Becker muscular dystrophy']]
    """
    segments, conjunction = _list(text)
    if conjunction is None:
        return []
    *others, last = segments
    ways = [[_join(segment) for segment in segments]]
    if head := last[_own_words(others[-1], last) :]:
        ways.append([_join(segment + head, singular=True) for segment in [*others, last[: -len(head)]]])
    return [Composite(tuple(parts), conjunction) for parts in ways]


def _list(text: str) -> tuple[list[_Segment], Conjunction | None]:
    """Cut a list at its commas and conjunctions; no conjunction where it is none, or one that is not for cutting."""
    if _TROUBLE.search(text) or _FIXED.search(text):
        return [], None
    segments, conjunction = _segments(text)
    if conjunction is None or segments[0][0].lower in _NAMES_ONE:
        return [], None
    if any(word.lower in _PREPOSITIONS for segment in segments for word in segment):
        return [], None
    return segments, conjunction


def _segments(text: str) -> tuple[list[_Segment], Conjunction | None]:
    """Cut at commas and conjunctions; no conjunction where this is not a list of the form `a, b and c`."""
    segments: list[_Segment] = [[]]
    conjunction: Conjunction | None = None
    for found in _TOKEN.finditer(text):
        word = _Word(found[0], found.start(), found.end())
        meaning = _CONJUNCTIONS.get(word.lower)
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


def _left_head(segments: list[_Segment]) -> list[Part] | None:
    """Match `cancer of the breast and ovary`: everything up to "of" belongs to every part."""
    first = segments[0]
    of = next((at for at, word in enumerate(first) if word.lower == "of"), None)
    if of is None:
        return None
    head = of + 2 if len(first) > of + 2 and first[of + 1].lower in {"the", "a", "an"} else of + 1
    members = [first[head:], *segments[1:]]
    if of == 0 or not all(0 < len(member) <= 2 and not _is_complete(member) for member in members):
        return []
    return [_join(first[:head] + member) for member in members]


def _numbered(segments: list[_Segment]) -> list[Part] | None:
    """Match `type 1 and 2 diabetes` and `neurofibromatosis type 1 and 2`."""
    first, last = segments[0], segments[-1]
    leads = [first[-1], *(segment[0] for segment in segments[1:])]
    middle = all(len(segment) == 1 for segment in segments[1:-1])
    if len(first) < 2 or not middle or not all(_NUMERAL.fullmatch(word.text) for word in leads):
        return None
    return [_join([*first[:-1], lead, *last[1:]]) for lead in leads]


def _left_modifier(segments: list[_Segment]) -> list[Part] | None:
    """Match `cleft lip and palate`, `cardiac dilation and dysfunction`: the first words belong to every part."""
    first, last = segments[0], segments[-1]
    if len(first) < 2 or any(len(segment) > 1 for segment in segments[1:]):
        return None
    if last[0].lower in _GENERIC or (last[0].lower in _MODIFIERS and first[-1].lower in _MODIFIERS):
        return [_join(first), *(_join(first[:-1] + segment) for segment in segments[1:])]
    return None


def _right_head(segments: list[_Segment]) -> list[Part] | None:
    """Match `breast and ovarian cancer`, where the last words belong to every part, and lists of whole names."""
    *others, last = segments
    if all(_is_complete(segment) for segment in others):
        return [_join(segment) for segment in segments] if _is_complete(last) else None
    head = last[_own_words(others[-1], last) :]
    if not head or head[-1].lower == "syndrome":
        return None
    plural = _singular(head[-1].text) != head[-1].text
    if any(_is_complete(segment) or not (plural or _is_modifier(segment[-1])) for segment in others):
        return None
    own = [] if last[0].lower == "other" else last[: -len(head)]
    return [_join(segment + head, singular=True) for segment in [*others, own]]


def _own_words(before: _Segment, last: _Segment) -> int:
    """How many words of the last member are its own, when the rest belong to every member.

    One, unless a word comes back: "type 1 and type 2 diabetes", "hereditary and non hereditary retinoblastoma".
    """
    shared = [word.lower for word in before]
    again = [at for at, word in enumerate(last) if word.lower in shared]
    if not again:
        return 1
    return max(again[-1] + 1, len(shared) - shared.index(last[again[0]].lower) if again[0] == 0 else 1)


def _is_complete(segment: _Segment) -> bool:
    """Whether a member of a list names something by itself."""
    word = segment[-1].lower
    return word in _NOUNS or word in _GENERIC or word.endswith(_NOUN_ENDINGS)


def _is_modifier(word: _Word) -> bool:
    return word.lower in _MODIFIERS or word.lower.endswith(_MODIFIER_ENDINGS) or bool(_SYMBOL.fullmatch(word.text))


def _singular(word: str) -> str:
    if word.lower() in _NOT_PLURAL:
        return word
    if word.endswith("ies"):
        return f"{word[:-3]}y"
    if word.endswith("sses"):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "is", "us")) else word


def _join(words: Sequence[_Word], *, singular: bool = False) -> Part:
    texts = [word.text for word in words]
    if singular:
        texts[-1] = _singular(texts[-1])
    return Part(" ".join(texts), tuple((word.start, word.end) for word in words))
