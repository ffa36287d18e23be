"""Every feature of fusion, on evidence of a few words that each weigh one."""

from collections import defaultdict
from dataclasses import replace
from math import log1p

import numpy as np
import pytest

from medlink.linking.evidence import Evidence, Part
from medlink.linking.features import FEATURES, Asked, Weights, best_name, measure, words
from medlink.linking.fusion import concept_features
from medlink.types import Code, Concept, ConceptFacts, Name, Retrieved

ALIKE = defaultdict(lambda: 1.0)
FACTS = ConceptFacts(Concept("X:0", "", ()), (), frozenset(), 0, 0, 0)


def name(concept: str, text: str, score: float = 0.5, *, preferred: bool = False) -> Retrieved:
    return Retrieved(concept, Name(text, "T"), score, preferred, words(text))


def evidence(concept: str, **channels: tuple[int, Retrieved]) -> Evidence:
    return Evidence(concept, dict(channels))


def facts(concept: str, preferred: str = "", broader: tuple[str, ...] = ()) -> ConceptFacts:
    return replace(FACTS, concept=Concept(concept, preferred, (), broader=broader), words=words(preferred))


def rows(mention, found, *, known=None, context=None, rarity=ALIKE) -> list[dict[str, float]]:
    """Return the features of candidates by name; a concept without facts has no preferred name."""
    asked, weights = Asked.of(mention, context), Weights(rarity)
    names = [best_name(asked, one, weights) for one in found]
    all_facts = {e.concept_id: facts(e.concept_id) for e in found} | {f.concept.id: f for f in known or ()}
    measured = measure(asked, found, names, all_facts, weights, lambda f: concept_features(f, {}))
    return [dict(zip(FEATURES, row, strict=True)) for row in measured.tolist()]


def row(mention, one, **options) -> dict[str, float]:
    return rows(mention, [one], **options)[0]


def test_no_candidates_have_no_rows():
    assert measure(Asked.of("asthma"), [], [], {}, Weights(ALIKE), lambda f: ()).shape == (0, len(FEATURES))


def test_what_a_channel_says_is_its_score_the_place_and_how_far_the_first_is_ahead():
    first, second = evidence("X:1", dense=(0, name("X:1", "a", 0.9))), evidence("X:2", dense=(1, name("X:2", "b", 0.7)))

    best, other = rows("c", [first, second])

    assert (best["dense"], best["dense_rank"], best["dense_gap"]) == (0.9, 0, 0)
    assert (other["dense"], other["dense_rank"], other["dense_gap"]) == (0.7, log1p(1), pytest.approx(0.2))
    assert (other["exact"], other["lexical"], other["lexical_rank"], other["lexical_gap"]) == (0, 0, log1p(150), 0)


def test_an_exact_name_is_as_good_in_the_other_channels_whether_or_not_they_found_it():
    exact = name("X:1", "heart attack", 1.0)
    rival = evidence("X:2", dense=(1, name("X:2", "heart ache", 0.8)), lexical=(1, name("X:2", "heart ache", 0.6)))
    elsewhere = name("X:1", "myocardial infarction", 0.7, preferred=True)
    known = [facts("X:1", "myocardial infarction"), facts("X:2", "heart ache", broader=("X:1",))]

    found = evidence("X:1", exact=(0, exact), dense=(0, exact), lexical=(0, exact))
    missed = evidence("X:1", exact=(0, exact))
    otherwise = evidence("X:1", exact=(0, exact), dense=(7, elsewhere), lexical=(9, elsewhere))
    both = [rows("heart attack", [one, rival], known=known) for one in (found, missed, otherwise)]

    assert both[0] == both[1] == both[2]
    assert (both[0][0]["dense"], both[0][0]["lexical"], both[0][1]["dense_gap"]) == (1, 1, pytest.approx(0.2))


def test_a_variant_scores_as_a_variant_in_every_channel():
    variant = row("heart attacks", evidence("X:1", exact=(0, name("X:1", "heart attack", 0.95))))

    assert (variant["exact"], variant["dense"], variant["lexical"]) == (0.95, 0.95, 0.95)


def test_words_count_from_both_sides_and_rare_ones_more():
    rarity = {"acute": 1.0, "liver": 3.0, "failure": 2.0, "chronic": 4.0}
    candidate = evidence("X:1", dense=(0, name("X:1", "chronic liver failure")))

    got = row("acute liver failure", candidate, known=[facts("X:1", "liver")], rarity=rarity)

    assert got["mention_words_in_name"] == pytest.approx(5 / 6)
    assert got["name_words_in_mention"] == pytest.approx(5 / 9)
    assert (got["mention_words_in_preferred"], got["preferred_words_in_mention"]) == (pytest.approx(3 / 6), 1)
    assert (got["rarity_only_in_mention"], got["rarity_only_in_name"]) == (1, 4)
    assert got["words_more_in_name"] == 0


def test_a_word_that_comes_twice_weighs_once():
    got = row("pain pain", evidence("X:1", dense=(0, name("X:1", "pain"))))

    assert (got["mention_words_in_name"], got["rarity_only_in_mention"], got["words_more_in_name"]) == (1, 0, -1)


def test_a_mention_without_words_shares_none():
    got = row("§", evidence("X:1", dense=(0, name("X:1", "pain"))))

    assert (got["mention_words_in_name"], got["name_words_in_mention"]) == (0, 0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("type 2 diabetes", 1), ("type II diabetes", 1), ("type 1 diabetes", -1), ("diabetes", 0)],
)
def test_numbers_agree_are_missing_or_contradict(text, expected):
    assert row("diabetes type 2", evidence("X:1", dense=(0, name("X:1", text))))["numbers"] == expected


def test_two_texts_without_numbers_agree():
    assert row("cold", evidence("X:1", dense=(0, name("X:1", "asthma"))))["numbers"] == 1


def test_lengths_are_in_mentions():
    got = row("cold", evidence("X:1", dense=(0, name("X:1", "colds are"))), known=[facts("X:1", "co")])

    assert (got["name_length"], got["preferred_length"], got["words_more_in_name"]) == (9 / 4, 2 / 4, 1)


def test_a_preferred_name_counts_whichever_channel_found_it():
    plain, preferred = name("X:1", "a cold"), name("X:1", "cold", preferred=True)

    assert row("cold", evidence("X:1", dense=(0, plain), lexical=(0, preferred)))["matched_preferred"] == 1
    assert row("cold", evidence("X:1", dense=(0, plain)))["matched_preferred"] == 0


def test_homonyms_are_the_candidates_whose_names_have_the_same_words():
    found = [evidence(f"X:{i}", dense=(i, name(f"X:{i}", t))) for i, t in enumerate(("Tumor", "tumours", "asthma"))]

    assert [got["homonyms"] for got in rows("tumor", found)] == [2, 2, 1]


def test_every_candidate_knows_how_many_own_the_name():
    exact = [evidence(f"X:{i}", exact=(i, name(f"X:{i}", "cold", 1.0))) for i in range(2)]
    other = evidence("X:9", dense=(0, name("X:9", "colds")))

    assert [got["exact_concepts"] for got in rows("cold", [*exact, other])] == [2, 2, 2]
    assert row("cold", other)["exact_concepts"] == 0


def test_a_part_counts_by_its_share_of_the_mention():
    cancer = name("X:1", "cancer")
    within = Evidence("X:1", part=Part(cancer, cancer.words, ends=True))

    got, without = rows("hereditary breast cancer", [within, evidence("X:2", dense=(0, name("X:2", "breast")))])

    assert (got["part"], got["part_ends"]) == (pytest.approx(1 / 3), 1)
    assert (without["part"], without["part_ends"]) == (0, 0)
    assert row("cancer breast", Evidence("X:1", part=Part(cancer, cancer.words, ends=False)))["part_ends"] == 0


def test_context_is_what_it_holds_of_what_the_name_adds():
    candidate = evidence("X:1", dense=(0, name("X:1", "breast cancer stage 2")))

    def context(around):
        return row("cancer", candidate, context=around)["context"]

    assert context(None) == -1
    assert context(frozenset()) == 0
    assert context(frozenset(words("a tumour of the breast"))) == pytest.approx(1 / 3)
    same = evidence("X:1", dense=(0, name("X:1", "cancer")))
    assert row("cancer", same, context=frozenset({"cancer"}))["context"] == 0


def test_candidates_above_and_below_count_by_the_best_that_dense_gives_them():
    found = [
        evidence("X:1", dense=(0, name("X:1", "lung disease", 0.8))),
        evidence("X:2", dense=(1, name("X:2", "asthma", 0.7))),
        evidence("X:3", dense=(2, name("X:3", "bronchitis", 0.6))),
        evidence("X:4", dense=(3, name("X:4", "gout", 0.5))),
    ]
    known = [facts("X:2", broader=("X:1", "X:9")), facts("X:3", broader=("X:1",))]

    got = rows("asthma", found, known=known)

    assert [r["above_found"] for r in got] == [0, 0.8, 0.8, 0]
    assert [r["below_found"] for r in got] == [0.7, 0, 0, 0]


def test_what_is_there_for_what_is_below_it_says_so():
    above = Evidence("X:1", above=name("X:1", "lung disease", 0.0))

    got = row("lung disorder", above)

    assert (got["is_above"], got["dense"], got["mention_words_in_name"]) == (1, 0, 0.5)
    assert row("asthma", evidence("X:1", dense=(0, name("X:1", "asthma"))))["is_above"] == 0


def test_what_is_known_of_a_concept_counts_whatever_the_mention_is():
    codes = (Code("MSH", "D001249"), Code("MESH", "D000002"), Code("MONDO", "MONDO:0004979"))
    concept = Concept("C0004096", "Asthma", (), codes=codes)
    known = ConceptFacts(concept, ("asthma",), frozenset({"MESH", "HPO"}), names=7, descendants=5, children=2)
    annotated = {"MESH:D001249": 3, "UMLS:C0004096": 2, "MONDO:0004979": 0}

    assert dict(zip(FEATURES[-9:], concept_features(known, annotated), strict=True)) == {
        "names": log1p(7),
        "name_sources": 2,
        "codes": 3,
        "sources": 4,
        "descendants": log1p(5),
        "children": log1p(2),
        "has_cui": True,
        "literature_source": True,
        "annotated": log1p(3),
    }


def test_a_concept_without_codes_has_no_cui_and_the_vocabulary_of_its_id():
    bare = dict(zip(FEATURES[-9:], concept_features(facts("X:1"), {}), strict=True))

    assert (bare["has_cui"], bare["literature_source"], bare["annotated"], bare["sources"]) == (False, False, 0, 1)


def test_the_name_that_stands_for_a_candidate_shares_most_words_with_the_mention():
    far, near = name("X:1", "infarction of heart", 0.9), name("X:1", "heart attack", 0.8)
    asked, weights = Asked.of("attack of the heart"), Weights(ALIKE)

    assert best_name(asked, evidence("X:1", dense=(0, far), lexical=(3, near)), weights).retrieved == near
    exact = evidence("X:1", exact=(0, far), lexical=(3, near))
    assert best_name(asked, exact, weights).retrieved == far


def test_a_sum_of_weights_does_not_depend_on_the_order_of_words():
    rng = np.random.default_rng(0)
    rarity = {f"w{i}": float(x) for i, x in enumerate(rng.uniform(0, 9, 30))}
    straight, mixed = tuple(rarity), tuple(rng.permutation(list(rarity)).tolist())

    assert Weights(rarity).of(straight)[1] == Weights(rarity).of(mixed)[1]
