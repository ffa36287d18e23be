"""Wrong names: each kind against an obvious way to find them."""

from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from medlink.ragged import Ragged
from training.heldout import HeldOut
from training.mentions import Mentions, Names
from training.names import NameRule
from training.negatives import (
    Bm25,
    forbidden_names,
    nearest_names,
    one_a_concept,
    random_names,
    right_names,
)

TEXTS = st.lists(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=6).map(" ".join), min_size=1, max_size=12)


def rows(found: Ragged) -> list[list[int]]:
    return [found.row(at).tolist() for at in range(len(found))]


def ragged(*given: list[int]) -> Ragged:
    offsets = np.cumsum([0, *map(len, given)]).astype(np.int64)
    return Ragged(offsets, np.array([n for row in given for n in row], np.int32))


def bm25_by_the_book(name: str, text: str, names: list[str], k1: float = 1.2, b: float = 0.75) -> float:
    words = name.split()
    mean = sum(len(n.split()) for n in names) / len(names)
    score = 0.0
    for word in text.split():
        holders = sum(word in n.split() for n in names)
        frequency = words.count(word)
        idf = log(1 + (len(names) - holders + 0.5) / (holders + 0.5))
        score += idf * frequency * (k1 + 1) / (frequency + k1 * (1 - b + b * len(words) / mean))
    return score


@given(names=TEXTS, texts=TEXTS)
def test_bm25_scores_are_those_of_the_formula(names, texts):
    scores = Bm25(names).scores(texts).toarray()

    expected = [[bm25_by_the_book(name, text, names) for name in names] for text in texts]
    np.testing.assert_allclose(scores, expected, rtol=1e-9, atol=1e-12)


@given(names=TEXTS, texts=TEXTS, k=st.integers(0, 14), data=st.data())
def test_the_best_by_bm25_are_allowed_share_a_word_and_come_best_first(names, texts, k, data):
    out = [sorted(data.draw(st.sets(st.integers(0, len(names) - 1)))) for _ in texts]

    found = rows(Bm25(names).best_names(texts, ragged(*out), k))

    for text, forbidden, row in zip(texts, out, found, strict=True):
        scores = [round(bm25_by_the_book(name, text, names), 6) for name in names]
        able = [n for n in range(len(names)) if n not in forbidden and scores[n] > 0]
        assert row == sorted(able, key=lambda n: (-scores[n], n))[:k]


@given(count=st.integers(1, 30), k=st.integers(0, 40), seed=st.integers(0, 2**16), data=st.data())
def test_the_nearest_are_those_of_a_full_sort_of_what_is_allowed(count, k, seed, data):
    rng = np.random.default_rng(seed)
    mentions, names = (rng.integers(-2, 3, size=(n, 3)).astype(np.float32) for n in (4, count))
    out = [sorted(data.draw(st.sets(st.integers(0, count - 1)))) for _ in mentions]

    found = rows(nearest_names(mentions, names, ragged(*out), k))

    for mention, forbidden, row in zip(mentions, out, found, strict=True):
        able = [n for n in range(count) if n not in forbidden]
        assert row == sorted(able, key=lambda n: (-(mention @ names[n]), n))[:k]


@given(count=st.integers(1, 30), k=st.integers(0, 40), seed=st.integers(0, 2**16), data=st.data())
def test_random_names_are_distinct_allowed_and_as_many_as_can_be(count, k, seed, data):
    out = sorted(data.draw(st.sets(st.integers(0, count - 1))))

    (found,) = rows(random_names(ragged(out), count, k, np.random.default_rng(seed)))

    assert len(set(found)) == len(found) == min(k, count - len(out))
    assert set(found) <= set(range(count)) - set(out)


def test_every_allowed_name_is_drawn_as_often_as_any_other():
    drawn = random_names(ragged(*[[1, 2, 5]] * 4000), 8, 2, np.random.default_rng(0)).values

    assert np.bincount(drawn, minlength=8) == pytest.approx([1600, 0, 0, 1600, 1600, 0, 1600, 1600], abs=120)


def test_names_of_a_concept_that_was_there_before_are_left_out():
    concepts = ragged([0], [1], [0, 2], [2], [3])

    assert rows(one_a_concept(ragged([0, 1, 2, 3, 4], [2, 0, 4], []), concepts, 2)) == [[0, 1], [2, 4], []]


def test_no_name_that_shares_an_id_with_the_gold_is_ever_a_negative():
    rng = np.random.default_rng(5)
    ids_of = [{f"c{c}", f"x{rng.integers(12)}"} for c in range(20)]
    bearers = {f"name {n}": sorted({f"c{c}" for c in rng.integers(20, size=2)}) for n in range(60)}
    names = Names(bearers, {f"c{c}": ids for c, ids in enumerate(ids_of)}, NameRule(), HeldOut(0, 0))
    gold = [[f"x{n}"] for n in range(12) if names.known([f"x{n}"])]
    meant = [names.meant(names.known(ids)) for ids in gold]
    related = [names.related("", names.known(ids), concepts) for ids, concepts in zip(gold, meant, strict=True)]
    mentions = Mentions([f"mention {n}" for n in range(len(gold))], ragged(*meant), ragged(*related))
    vectors = rng.normal(size=(60, 8)).astype(np.float32)
    forbidden = forbidden_names(mentions, names)

    kinds = [
        nearest_names(vectors[: len(gold)], vectors, forbidden, 60),
        Bm25(names.texts).best_names(["name"] * len(gold), forbidden, 60),
        random_names(forbidden, 60, 60, rng),
    ]

    ids_of_name = {t: set().union(*(ids_of[int(c[1:])] for c in cs)) for t, cs in bearers.items()}
    for at, ids in enumerate(gold):
        closed = set().union(*(own for own in ids_of if own & set(ids)))
        allowed = {t for t, own in ids_of_name.items() if not own & closed}
        for kind in kinds:
            assert {names.texts[n] for n in kind.row(at)} == allowed
        assert {names.texts[n] for n in right_names(mentions, names).row(at)} == {
            t for t, cs in bearers.items() if any(ids_of[int(c[1:])] & set(ids) for c in cs)
        }
