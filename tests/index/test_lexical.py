import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer

from index.arrays import NameArrays, NameArraysWriter
from index.lexical import LexicalRetriever, LexicalWriter, lexical_text
from index.snapshot import FILE, Snapshot, SnapshotWriter
from index.trigrams import Trigrams, trigrams, write_trigrams
from medlink.kb.readers import open_reader
from medlink.kb.records import NameRecord
from medlink.types import Concept, LinkOptions, Name, SemanticType

OPEN = Path(__file__).parents[2] / "artefacts/kb/open.jsonl.zst"
ALPHABET = "abc1é "


def build_lexical(directory: Path, concepts: Sequence[Concept]) -> LexicalRetriever:
    snapshot, arrays, writer = SnapshotWriter(directory / FILE), NameArraysWriter(), LexicalWriter()
    rows = []
    for concept in concepts:
        snapshot.add(concept)
        arrays.add(concept)
        rows += [writer.row(name.text) for name in concept.names]
    snapshot.close()
    arrays.save(directory)
    writer.save(directory, np.array(rows, np.int32))
    return LexicalRetriever(directory, arrays=NameArrays(directory), snapshot=Snapshot(directory / FILE))


class Reference:
    """The slow and obvious way: scikit-learn's cosine with every name, best allowed name of every concept, sorted."""

    def __init__(self, concepts: Sequence[Concept]) -> None:
        texts = {name: lexical_text(name.text) for concept in concepts for name in concept.names}
        row = {text: i for i, text in enumerate(sorted(set(texts.values())))}
        self.concepts = [(c, [(n, row[texts[n]]) for n in c.names]) for c in concepts]
        self.vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 3))
        self.vectors = self.vectorizer.fit_transform(list(row))

    def search(self, mention: str, options: LinkOptions) -> list[tuple[str, float]]:
        cosines = (
            (self.vectors @ self.vectorizer.transform([lexical_text(mention)]).T).toarray()[:, 0].round(4).tolist()
        )
        found = []
        for concept, names in self.concepts:
            types = {t.tui for t in concept.semantic_types}
            sources = {n.sab for n in concept.names}
            if options.semantic_types.isdisjoint(types) and options.semantic_types:
                continue
            if options.sabs.isdisjoint(sources) and options.sabs:
                continue
            scores = [cosines[row] for name, row in names if options.include_suppressed or not name.suppressed]
            if max(scores, default=0) > 0:
                found.append((concept.id, max(scores)))
        return sorted(found, key=lambda f: (-f[1], f[0]))[: options.top_k]


def searched(lexical: LexicalRetriever, mentions: Sequence[str], options: LinkOptions) -> list[list[tuple[str, float]]]:
    return [[(r.concept_id, r.score) for r in one.found] for one in lexical.search(mentions, options)]


def assert_same(found: list[tuple[str, float]], expected: list[tuple[str, float]]) -> None:
    """Compare scores place by place, and concepts wherever a step of rounding cannot have swapped them."""
    assert [score for _, score in found] == pytest.approx([score for _, score in expected], abs=1.01e-4)
    for at, (concept, score) in enumerate(expected):
        neighbours = [s for i, (_, s) in enumerate(expected) if i != at]
        if all(abs(score - s) > 2.5e-4 for s in neighbours) and at < len(expected) - 1:
            assert found[at][0] == concept


@pytest.fixture(scope="module")
def real() -> list[Concept]:
    """A few thousand names of the open pack, over concepts of one to a dozen names."""
    rng = random.Random(0)
    by_concept: dict[str, dict[str, Name]] = {}
    for record in open_reader(OPEN).records():
        if isinstance(record, NameRecord):
            named = by_concept.setdefault(record.concept_id, {})
            named[record.text] = Name(record.text, record.sab, suppressed=rng.random() < 0.1)
        if len(by_concept) > 2500:
            break
    return [
        Concept(id_, next(iter(named)), tuple(named.values()), (SemanticType(f"T{rng.randrange(40):03d}", ""),))
        for id_, named in sorted(by_concept.items())
    ]


@pytest.fixture(scope="module")
def mentions(real) -> list[str]:
    """Names as they are, with a letter dropped, with words swapped, cut and joined."""
    rng = random.Random(1)
    names = [rng.choice(c.names).text for c in rng.sample(real, 60)]
    cut = [n[: (at := rng.randrange(len(n)))] + n[at + 1 :] for n in names[:30]]
    swapped = [" ".join(reversed(n.split())) for n in names[:15]]
    joined = [f"{a} {b[: len(b) // 2]}" for a, b in zip(names[:15], names[30:], strict=False)]
    return [*names, *cut, *swapped, *joined, "of", "a", "the disease of the heart"]


@pytest.fixture(scope="module")
def lexical(real, tmp_path_factory) -> LexicalRetriever:
    return build_lexical(tmp_path_factory.mktemp("lexical"), real)


@pytest.mark.parametrize(
    "options",
    [
        LinkOptions(top_k=1),
        LinkOptions(top_k=10),
        LinkOptions(top_k=100, include_suppressed=True),
        LinkOptions(top_k=10, semantic_types=frozenset({"T001"})),
        LinkOptions(top_k=5, semantic_types=frozenset({f"T{t:03d}" for t in range(30)})),
    ],
)
def test_finds_what_scikit_learn_finds_among_real_names(real, mentions, lexical, options):
    reference = Reference(real)

    found = searched(lexical, mentions, options)

    for mention, one in zip(mentions, found, strict=True):
        assert_same(one, reference.search(mention, options))


@pytest.mark.parametrize(("first", "scoring"), [(1, 0), (1, 3), (1, 1000), (4096, 3)])
@settings(deadline=None, max_examples=25)
@given(
    names=st.lists(st.text(ALPHABET, min_size=1, max_size=12), min_size=1, max_size=60),
    mentions=st.lists(st.text(ALPHABET, max_size=14), min_size=1, max_size=4),
    k=st.integers(1, 20),
    types=st.sets(st.sampled_from(["T000", "T001", "T002"])),
    suppressed=st.booleans(),
    seed=st.integers(0, 2**16),
)
def test_agrees_with_a_full_comparison_wherever_it_stops(
    tmp_path_factory, first, scoring, names, mentions, k, types, suppressed, seed
):
    rng = random.Random(seed)
    owners: dict[str, list[Name]] = {}
    for name in (n for n in names if lexical_text(n)):
        owners.setdefault(f"X:{rng.randrange(1 + len(names) // 2):02d}", []).append(
            Name(name, "S", suppressed=rng.random() < 0.2)
        )
    concepts = [
        Concept(c, owned[0].text, tuple(owned), (SemanticType(f"T{rng.randrange(3):03d}", ""),))
        for c, owned in sorted(owners.items())
    ]
    present = {c.semantic_types[0].tui for c in concepts}
    options = LinkOptions(top_k=k, semantic_types=frozenset(types & present), include_suppressed=suppressed)
    if not concepts:
        return

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("index.lexical._FIRST_ENTRIES", first)
        patch.setattr("index.lexical._SCORING", scoring)
        found = searched(build_lexical(tmp_path_factory.mktemp("lexical"), concepts), mentions, options)

    reference = Reference(concepts)
    for mention, one in zip(mentions, found, strict=True):
        assert_same(one, reference.search(mention, options))


def test_an_answer_does_not_depend_on_what_else_is_asked(lexical, mentions):
    options = LinkOptions(top_k=10)
    together = lexical.search([*mentions, *reversed(mentions)], options)

    alone = [lexical.search([mention], options)[0] for mention in mentions]

    assert together == [*alone, *reversed(alone)]


def test_another_copy_of_the_files_gives_the_same_answers(real, lexical, mentions, tmp_path):
    again = build_lexical(tmp_path, real)

    assert again.search(mentions, LinkOptions()) == lexical.search(mentions, LinkOptions())


def test_equal_scores_are_in_the_order_of_concept_ids(tmp_path):
    words = ["alpha beta gamma", "gamma beta alpha", "beta gamma alpha"]
    concepts = [Concept(f"X:{i:02d}", words[i % 3], (Name(words[i % 3], "S"),)) for i in range(30)]
    lexical = build_lexical(tmp_path, concepts)

    (found,) = searched(lexical, ["alpha gamma beta"], LinkOptions(top_k=7))

    assert found == [(f"X:{i:02d}", 1.0) for i in range(7)]


def test_of_a_concepts_equal_names_the_first_one_answers(tmp_path):
    names = (Name("beta alpha", "S"), Name("Alpha-Beta", "S"), Name("alpha beta", "S"))
    lexical = build_lexical(tmp_path, [Concept("X:1", "beta alpha", names)])

    (found,) = lexical.search(["alpha beta"], LinkOptions())

    assert [(r.name.text, r.score, r.is_preferred) for r in found.found] == [("beta alpha", 1.0, True)]


def test_trigrams_that_no_name_has_do_not_count(tmp_path):
    concepts = [Concept(f"X:{i}", n, (Name(n, "S"),)) for i, n in enumerate(["asthma", "itching", "lung disease"])]
    lexical = build_lexical(tmp_path, concepts)

    known, mixed, unknown = searched(lexical, ["asthma", "asthma qqqqqq", "qqqqqq"], LinkOptions())

    assert known == mixed == [("X:0", 1.0)]
    assert unknown == []


@pytest.mark.parametrize("mention", ["", " ", "\u00a0\t", "...", "®", "🫀", "\ud800"])
def test_a_mention_without_words_finds_nothing(lexical, mention):
    (found,) = lexical.search([mention], LinkOptions())

    assert found.found == ()


def test_a_name_without_words_is_never_found_and_does_no_harm(tmp_path):
    concepts = [Concept("X:1", "#", (Name("#", "S"), Name("hash", "S"))), Concept("X:2", "...", (Name("...", "S"),))]
    lexical = build_lexical(tmp_path, concepts)

    found = searched(lexical, ["hash", "#"], LinkOptions(sabs=frozenset({"S"})))

    assert found == [[("X:1", 1.0)], []]


def test_no_mentions_give_no_answers(lexical):
    assert lexical.search([], LinkOptions()) == []


def test_names_that_hold_no_letter_at_all_can_still_be_searched(tmp_path):
    lexical = build_lexical(tmp_path, [Concept("X:1", "#", (Name("#", "S"),))])

    assert searched(lexical, ["asthma", "#"], LinkOptions()) == [[], []]


def test_a_concept_with_many_names_does_not_fill_the_list(tmp_path):
    many = Concept("A:1", "fever 0", tuple(Name(f"fever {i}", "S") for i in range(500)))
    others = [Concept(f"B:{i}", f"fevers {i}", (Name(f"fevers {i}", "S"),)) for i in range(6)]
    lexical = build_lexical(tmp_path, [many, *others])

    (found,) = searched(lexical, ["fever"], LinkOptions(top_k=5))

    assert len({concept for concept, _ in found}) == 5
    assert found[0][0] == "A:1"


def test_a_filter_and_suppressed_names_count_inside_the_search(tmp_path):
    near = [Concept(f"A:{i:03d}", "heart attack", (Name("heart attack", "S"),)) for i in range(200)]
    hidden = Concept("B:1", "heart attacks", (Name("heart attacks", "T", suppressed=True), Name("infarct", "T")))
    far = Concept("B:2", "attack of the heart", (Name("attack of the heart", "T"),))
    lexical = build_lexical(tmp_path, [*near, hidden, far])

    (filtered,) = searched(lexical, ["heart attack"], LinkOptions(top_k=3, sabs=frozenset({"T"})))
    (included,) = searched(
        lexical, ["heart attack"], LinkOptions(top_k=3, sabs=frozenset({"T"}), include_suppressed=True)
    )

    assert [concept for concept, _ in filtered] == ["B:2"]
    assert [concept for concept, _ in included] == ["B:1", "B:2"]


@given(st.lists(st.text(ALPHABET, max_size=20).map(lambda text: " ".join(text.split())), max_size=5))
def test_takes_texts_apart_as_scikit_learn_does(texts):
    analyse = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 3)).build_analyzer()

    codes, text = trigrams(texts)

    spelt = ["".join(chr(code >> shift & 0x1FFFFF) for shift in (42, 21, 0)) for code in codes.tolist()]
    assert [[s for s, t in zip(spelt, text, strict=True) if t == i] for i in range(len(texts))] == [
        analyse(t) for t in texts
    ]


def test_writing_in_small_parts_gives_the_same_files(tmp_path, monkeypatch, real):
    texts = sorted({lexical_text(n.text) for c in real[:200] for n in c.names})
    (tmp_path / "whole").mkdir()
    (tmp_path / "parts").mkdir()
    write_trigrams(tmp_path / "whole", texts)

    monkeypatch.setattr("index.trigrams._TOGETHER", 7)
    write_trigrams(tmp_path / "parts", texts)

    files = sorted(p.name for p in (tmp_path / "whole").iterdir())
    assert [(tmp_path / "whole" / f).read_bytes() for f in files] == [
        (tmp_path / "parts" / f).read_bytes() for f in files
    ]


def test_its_arrays_are_mapped_and_not_read(tmp_path):
    write_trigrams(tmp_path, ["heart attack", "lung disease"])

    opened = Trigrams(tmp_path)

    base = opened.scales
    while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
        base = base.base
    assert isinstance(base, np.memmap)


def test_a_search_that_fails_leaves_nothing_behind(lexical, monkeypatch):
    sums = np.zeros(len(lexical._trigrams), np.float32)
    (weighed,) = lexical._trigrams.weigh(["heart disease"])
    monkeypatch.setattr(LexicalRetriever, "_sufficient", lambda *_: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        lexical._candidates(weighed, 5, lexical._filter(frozenset(), frozenset(), False), sums)

    assert not sums.any()
