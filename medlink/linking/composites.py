"""Splits a mention that coordinates several concepts ("breast and ovarian cancer") into one mention for each.

Rules over words, no grammar: what the rules are not sure of stays whole. Known to stay whole: bracketed remarks,
anything with a preposition other than "of", fixed phrases ("head and neck cancer") also as one member of a longer list,
and hereditary conditions, whose names often coordinate ("hereditary breast and ovarian cancer" is one concept).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from medlink.linking.segments import PLAIN_SIGNS, Segment, Word, cut_list
from medlink.types import Conjunction

_NUMERAL = re.compile(r"\d{1,2}[A-Za-z]?|[IVX]+[A-Ca-c]?|[A-H]")
_SYMBOL = re.compile(r"[A-Z0-9][A-Z0-9-]{0,5}|[a-z]{1,2}\d{1,3}")
_SPELT_LETTERS = re.compile(r"\W*[A-Za-z](?:\s*[/,&]\s*[A-Za-z])+\W*")
_LABELS = {f"{label}s": label for label in "factor grade group level phase stage subtype type vitamin".split()}
_PREFIXES = frozenset(
    "ante brady endo exo extra hemi hyper hypo inter intra macro micro mono multi normo para peri poly post pre sub "
    "supra tachy uni".split()
)
# What may follow a label is more than what is a numeral by itself.
_LABELLED = re.compile(r"[A-Z]?\d{1,2}[A-Za-z]?|[IVX]+[A-Ca-c]?|[A-Z]")
_STEM = re.compile(r"(.*[A-Za-z]-?)(\d{1,2})")
_BARE_NUMBER = re.compile(r"-?\d{1,2}")
_NOT_PLURAL = frozenset("ascites caries diabetes herpes measles rabies rickets scabies shingles".split())
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
    if _SPELT_LETTERS.fullmatch(text.translate(PLAIN_SIGNS)):
        letters = tuple(Part(sign, ((at, at + 1),)) for at, sign in enumerate(text) if sign.isalpha())
        return Composite(letters, "and")
    segments, conjunction = cut_list(text)
    if conjunction is None:
        return None
    if any(_is_suspended(segment) for segment in segments):
        parts = _suspended(segments)
    else:
        rules = (_numbered, _stemmed, _left_head, _left_modifier, _right_head)
        parts = next((parts for rule in rules if (parts := rule(segments))), None)
    return Composite(tuple(parts), conjunction) if parts else None


def guess_composites(text: str) -> list[Composite]:
    """Return ways to split a mention that are right only if every part turns out to be a name, best first.

    >>> guesses = guess_composites("Duchenne and Becker muscular dystrophy")
    >>> [[part.text for part in guess.parts] for guess in guesses]
    [['Duchenne', 'Becker muscular dystrophy'], ['Duchenne muscular dystrophy', 'Becker muscular dystrophy']]
    """
    segments, conjunction = cut_list(text)
    if conjunction is None or any(_is_suspended(segment) for segment in segments):
        return []
    *others, last = segments
    ways = [[_join(segment) for segment in segments]]
    if head := last[_own_words(others[-1], last) :]:
        ways.append([_join(segment + head, singular=True) for segment in [*others, last[: -len(head)]]])
    return [Composite(tuple(parts), conjunction) for parts in ways]


def _left_head(segments: list[Segment]) -> list[Part] | None:
    """Match `cancer of the breast and (of the) ovary`: everything up to "of" belongs to every part."""
    first = segments[0]
    of = next((at for at, word in enumerate(first) if word.lower == "of"), None)
    if of is None:
        return None
    head = _after_of(first, of)
    members = [first[head:], *(segment[_after_of(segment, 0) :] for segment in segments[1:])]
    if of == 0 or not all(0 < len(member) <= 2 and not _is_complete(member) for member in members):
        return []
    return [_join(first[:head] + member) for member in members]


def _after_of(segment: Segment, at: int) -> int:
    """Return where a segment goes on after an "of" at this place and its article; here, if there is none."""
    if len(segment) <= at or segment[at].lower != "of":
        return at
    article = len(segment) > at + 2 and segment[at + 1].lower in {"the", "a", "an"}
    return at + 2 if article else at + 1


def _numbered(segments: list[Segment]) -> list[Part] | None:
    """Match `type 1 and 2 diabetes`, `neurofibromatosis types 1 and 2`, `diabetes type 1 and type 2`."""
    first = segments[0]
    if len(first) < 2:
        return None
    label = _one_label(first[-2])
    members = [first[-1:]]
    for segment in segments[1:]:
        again = len(segment) > 1 and _one_label(segment[0]).lower == label.lower
        members.append(segment[1:] if again else segment)
    middle = all(len(member) == 1 for member in members[:-1])
    numeral = _LABELLED if label.lower in _LABELS.values() else _NUMERAL
    if not middle or not all(numeral.fullmatch(member[0].text) for member in members):
        return None
    rest = members[-1][1:]
    return [_join([*first[:-2], label, member[0], *rest], singular=bool(rest)) for member in members]


def _stemmed(segments: list[Segment]) -> list[Part] | None:
    """Match `BRCA1/2 mutations`, `HSV-1 and -2`: the numbers share what the first one stands behind."""
    before, stem, others = segments[0][:-1], _STEM.fullmatch(segments[0][-1].text), segments[1:]
    numbers = [_BARE_NUMBER.fullmatch(segment[0].text) for segment in others]
    if not stem or not all(numbers) or any(len(segment) > 1 for segment in others[:-1]):
        return None
    first, rest = segments[0][-1], others[-1][1:]
    shared = Word(stem[1], first.start, first.start + stem.end(1), glued=True)
    ends = [replace(word, text=word.text.removeprefix("-")) for word, *_ in others]
    members = [[first], *([shared, end] for end in ends)]
    return [_join([*before, *member, *rest], singular=True) for member in members]


def _one_label(word: Word) -> Word:
    return replace(word, text=_LABELS.get(word.lower, word.text))


def _is_suspended(segment: Segment) -> bool:
    return segment[-1].text.endswith("-")


def _suspended(segments: list[Segment]) -> list[Part] | None:
    """Match `T- and B-cell lymphomas`, `breast- and ovarian cancer`, `hypo- and hyperthyroidism`."""
    *others, last = segments
    if not all(map(_is_suspended, others)) or last[0].text.startswith("-") or _is_suspended(last):
        return None
    hyphened = [at for at, word in enumerate(last) if "-" in word.text] or [0]
    if hyphened[0] > 0 and len(hyphened) > 1:
        return None
    first, rest = last[hyphened[0]], last[hyphened[0] + 1 :]
    prefixes = [segment[-1].lower.removesuffix("-") in _PREFIXES for segment in others]
    own, hyphen, _ = first.text.partition("-")
    if not hyphen and any(prefixes):
        own = max((prefix for prefix in _PREFIXES if first.lower.startswith(prefix)), key=len, default="")
        if not own or not all(prefixes):
            return None
    begin = len(own) + len(hyphen)
    glued = begin < len(first.text)
    if glued:
        rest = [replace(first, text=first.text[begin:], start=first.start + begin), *rest]
    if not rest:
        return None
    heads = [replace(s[-1], text=s[-1].text.removesuffix("-") + hyphen, glued=glued) for s in others]
    members = [[*segment[:-1], head, *rest] for segment, head in zip(others, heads, strict=True)]
    return [_join(member, singular=True) for member in [*members, last]]


def _left_modifier(segments: list[Segment]) -> list[Part] | None:
    """Match `cleft lip and palate`, `cardiac dilation and dysfunction`: the first words belong to every part."""
    first, last = segments[0], segments[-1]
    if len(first) < 2 or any(len(segment) > 1 for segment in segments[1:]):
        return None
    if last[0].lower in _GENERIC or (last[0].lower in _MODIFIERS and first[-1].lower in _MODIFIERS):
        return [_join(first), *(_join(first[:-1] + segment) for segment in segments[1:])]
    return None


def _right_head(segments: list[Segment]) -> list[Part] | None:
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


def _own_words(before: Segment, last: Segment) -> int:
    """How many words of the last member are its own, when the rest belong to every member.

    One, unless a word comes back: "type 1 and type 2 diabetes", "hereditary and non hereditary retinoblastoma".
    """
    shared = [word.lower for word in before]
    again = [at for at, word in enumerate(last) if word.lower in shared]
    if not again:
        return 1
    return max(again[-1] + 1, len(shared) - shared.index(last[again[0]].lower) if again[0] == 0 else 1)


def _is_complete(segment: Segment) -> bool:
    """Whether a member of a list names something by itself."""
    word = segment[-1].lower
    return word in _NOUNS or word in _GENERIC or word.endswith(_NOUN_ENDINGS)


def _is_modifier(word: Word) -> bool:
    return word.lower in _MODIFIERS or word.lower.endswith(_MODIFIER_ENDINGS) or bool(_SYMBOL.fullmatch(word.text))


def _singular(word: str) -> str:
    if word.lower() in _NOT_PLURAL:
        return word
    if word.endswith("ies"):
        return f"{word[:-3]}y"
    if word.endswith("sses"):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "is", "us")) else word


def _join(words: Sequence[Word], *, singular: bool = False) -> Part:
    texts = [word.text for word in words]
    if singular:
        texts[-1] = _singular(texts[-1])
    joined = "".join(text if word.glued else f"{text} " for word, text in zip(words, texts, strict=True))
    return Part(joined.rstrip(), tuple((word.start, word.end) for word in words))
