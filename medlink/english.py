"""English words in one spelling and number, by rules with exceptions; for comparing words, not for showing them."""

import re
from functools import lru_cache

_SHORTEST_PLURAL = 5
_SHORTEST_BRITISH = 4
_NOT_PLURAL = frozenset(
    "alcohols alias always ascites atlas bias biceps canvas caries diabetes faeces facies feces forceps herpes lens"
    " measles mumps pancreas psoas rabies rickets scabies series shingles species tabes triceps".split()
)
_IRREGULAR = {
    "bacteria": "bacterium",
    "calculi": "calculus",
    "children": "child",
    "emboli": "embolus",
    "fistulae": "fistula",
    "foci": "focus",
    "fungi": "fungus",
    "nevi": "nevus",
    "nuclei": "nucleus",
    "teeth": "tooth",
    "thrombi": "thrombus",
    "vertebrae": "vertebra",
    "women": "woman",
}
# diagnoses, metastases, candidiases, paralyses, prostheses, pareses, crises
_GREEK_PLURAL = re.compile(r"(?:o|sta|ia|ly|the|are|cri)ses$")
_NOT_GREEK_PLURAL = frozenset("doses glucoses noses overdoses roses".split())
_HISSING_PLURAL = re.compile(r"(?:ss|sh|[^a]ch|x|zz)es$")
_NOT_LATIN_SINGULAR = frozenset("abuses causes fuses houses menopauses misuses pauses spouses uses".split())

_BRITISH = tuple(
    (re.compile(pattern), american)
    for pattern, american in (
        (r"^haem(?=s?$)", "heme"),
        # anaemia, paediatric, perianaesthesia; not aerobic, Michael, fistulae, hexaenoic
        (r"ae(?![rl]|n[eo]|s?$)", "e"),
        # American writes oe inside gastroesophageal and angioedema too: only the second o may go there.
        (r"ooe", "oe"),
        (r"^oe(?!$)", "e"),
        (r"([ai])oestr", r"\1estr"),
        (r"(myx|lymph|papill|hydr)oed", r"\1ed"),
        (r"(rrh|pn)oe([ai])", r"\1e\2"),
        (r"foet", "fet"),
        (r"amoeb", "ameb"),
        (r"coel", "cel"),
        (r"homoeo", "homeo"),
        (r"sulph", "sulf"),
        (r"^leuc(?=oc|op|od|oe|ot|em)", "leuk"),
        (r"(tum|col|lab|vap|fav|hum|behavi)our", r"\1or"),
        (r"^odour", "odor"),
        (r"^fibre", "fiber"),
        (r"^(cent|met|lit|tit|goit|calib)re(?=s?$)", r"\1er"),
        (r"isation", "ization"),
        (r"(er|dom|tim|nim|xim|tas|[lnt])is(?=(?:ed|ing)s?$)", r"\1iz"),
        (r"(paral|anal|catal|dial|hydrol)ys(?=(?:ed|ing)s?$)", r"\1yz"),
        (r"^aluminium(?=s?$)", "aluminum"),
        (r"^alfa(?=s?$)", "alpha"),
        (r"^(s?)mould", r"\1mold"),
        (r"^ageing(?=s?$)", "aging"),
        (r"^grey(?=s?$)", "gray"),
        (r"^disk(?=s?$)", "disc"),
        (r"^manoeuvre(?=s?$)", "maneuver"),
        (r"^programme(?=s?$)", "program"),
        (r"([ei]|na)ll(?=(?:ed|ing)s?$)", r"\1l"),
    )
)


@lru_cache(maxsize=1 << 16)
def american(word: str) -> str:
    """Return a lower-case word in one of the spellings that British and American differ in.

    >>> [american(word) for word in ("leukaemia", "oesophageal", "tumours", "fibre", "aerobic", "toes")]
    ['leukemia', 'esophageal', 'tumors', 'fiber', 'aerobic', 'toes']
    """
    if len(word) < _SHORTEST_BRITISH or not word.isascii():
        return word
    before = ""
    while before != word:
        before = word
        for pattern, replacement in _BRITISH:
            word = pattern.sub(replacement, word)
    return word


@lru_cache(maxsize=1 << 16)
def singular(word: str) -> str:
    """Return the singular of a lower-case word; words of four letters or fewer may be short forms, and stay.

    >>> [singular(word) for word in ("carcinomas", "metastases", "biopsies", "viruses", "diseases", "headaches")]
    ['carcinoma', 'metastasis', 'biopsy', 'virus', 'disease', 'headache']
    >>> [singular(word) for word in ("diabetes", "pancreas", "pelvis", "abscess", "lupus", "gaps")]
    ['diabetes', 'pancreas', 'pelvis', 'abscess', 'lupus', 'gaps']
    """
    if word.endswith("omata"):
        return word.removesuffix("ta")
    plural = len(word) >= _SHORTEST_PLURAL and word[-1] == "s" and word[-2] not in "iosu" and word not in _NOT_PLURAL
    one = _without_ending(word) if plural and word.isascii() and word.isalpha() else word
    return _IRREGULAR.get(one, one)


def _without_ending(word: str) -> str:
    if word.endswith("ies"):
        return word.removesuffix("ies") + "y"
    if _GREEK_PLURAL.search(word) and word not in _NOT_GREEK_PLURAL:
        return word.removesuffix("es") + "is"
    latin = word.endswith("uses") and word not in _NOT_LATIN_SINGULAR
    return word.removesuffix("es") if latin or _HISSING_PLURAL.search(word) else word.removesuffix("s")
