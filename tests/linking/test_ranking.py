"""Candidates with their features, over a real build: the same whatever else is asked, and no filter is passed over."""

import json
import random
from datetime import UTC, datetime

import numpy as np
import pytest

from medlink.kb.curation import CurationState, Entry
from medlink.linking.fusion import FusionModel
from medlink.linking.ranking import DEPTH, KEEP, Found, Query, Ranking, measure_all
from medlink.linking.search import Channels
from medlink.types import Concept, LinkOptions, Name, Retrieval, Retrieved, SemanticType

TEXTS = [
    "heart attack",
    "cold",
    "colds",
    "lung",
    "asthma attack",
    "severe lung diseases",
    "zzz",
    "itching of the heart",
]
DISEASE, FINDING = SemanticType("T047", "Disease or Syndrome"), SemanticType("T033", "Finding")


@pytest.fixture(scope="module")
def channels(build):
    return Channels({c: r.under(build.overlay) for c, r in build.retrievers.items()})


def found(channels, queries, options=None, deep=DEPTH):
    options = options or LinkOptions()
    return channels.with_parts(channels.search(queries, options, deep=deep), options)


def ids(measured):
    return [e.concept_id for e in measured.found]


def test_a_query_is_ranked_alike_alone_and_among_others_in_any_order(build, ranked_build, channels):
    ranking = Ranking(build.concepts, *ranked_build.models)
    queries = [Query(text, context) for text in TEXTS for context in (None, "a severe disease of the lung", "")]
    shuffled = random.Random(0).sample(range(len(queries)), len(queries))

    straight = ranking.rank(found(channels, queries), LinkOptions())
    mixed = ranking.rank(found(channels, [queries[i] for i in shuffled]), LinkOptions())

    assert mixed == [straight[i] for i in shuffled]
    assert straight == [ranking.rank(found(channels, [query]), LinkOptions())[0] for query in queries]
    assert ranking.rank([], LinkOptions()) == []


def test_the_order_is_that_of_the_model_and_no_one_is_lost(build, ranked_build, channels):
    model, _ = ranked_build.models
    (of_query,) = found(channels, [Query("asthma attack")])

    (measured,) = measure_all([of_query], build.concepts, LinkOptions(), model)
    (fused,) = Ranking(build.concepts, model).rank([of_query], LinkOptions())

    orders = dict(zip(ids(measured), model.orders(measured.features).tolist(), strict=True))
    assert [f.order for f in fused] == sorted(orders.values(), reverse=True)
    assert {f.concept_id: f.order for f in fused} == orders
    assert len(fused) == 6


def test_the_text_around_a_mention_is_looked_at(build, channels):
    queries = [Query("disease"), Query("disease", "of the lung"), Query("disease", "of the heart")]

    features = [m.features for m in measure_all(found(channels, queries), build.concepts, LinkOptions())]

    assert len({f.tobytes() for f in features}) == 3


def test_of_the_channels_that_rank_only_the_first_are_weighed_and_all_that_own_the_name(make_build, tmp_path):
    many = [Concept(f"X:{i:03}", f"ache {i}", (Name(f"ache {i}", "T"), Name("ache", "T"))) for i in range(DEPTH + 9)]
    others = [Concept(f"Y:{i:03}", f"aches {i}", (Name(f"aches {i}", "T"),)) for i in range(DEPTH + 9)]
    build = make_build(tmp_path, [*many, *others])
    channels = Channels({c: r.under(build.overlay) for c, r in build.retrievers.items()})

    exact, inexact = measure_all(
        found(channels, [Query("ache"), Query("ache aches")], deep=DEPTH + 9), build.concepts, LinkOptions()
    )

    assert {f"X:{i:03}" for i in range(DEPTH + 9)} <= set(ids(exact))
    assert all(rank < DEPTH for e in inexact.found for rank, _ in e.channels.values())


def family(**types):
    return [
        Concept("X:1", "lung disease", (Name("lung disease", "T"),), (types.get("above", DISEASE),)),
        Concept("X:2", "asthma", (Name("asthma", "T"),), (DISEASE,), broader=("X:1",)),
        Concept("X:3", "gout", (Name("gout", "T"),), (DISEASE,)),
    ]


def only_asthma(build, options=None):
    """Return the candidates where dense found nothing but asthma."""
    retrieval = Retrieval((Retrieved("X:2", Name("asthma", "T"), 0.9, words=("asthma",)),))
    of_query = Found(Query("asthma attack"), {"exact": Retrieval(), "dense": retrieval, "lexical": Retrieval()})
    return measure_all([of_query], build.concepts, options or LinkOptions())[0]


def test_the_concepts_above_the_first_are_weighed_too(make_build, tmp_path):
    measured = only_asthma(make_build(tmp_path, family()))

    assert ids(measured) == ["X:1", "X:2"]
    assert [e.above is not None for e in measured.found] == [True, False]
    assert measured.names[0].name.text == "lung disease"


def test_the_concepts_above_obey_filters_and_blocks(make_build, tmp_path):
    build = make_build(tmp_path, family(above=FINDING))

    assert ids(only_asthma(build, LinkOptions(semantic_types=frozenset({"T047"})))) == ["X:2"]
    assert ids(only_asthma(build, LinkOptions(semantic_types=frozenset({"T047", "T033"})))) == ["X:1", "X:2"]


def test_a_blocked_concept_above_is_not_weighed(make_build, tmp_path):
    build = make_build(tmp_path, family())
    blocked = build.curated(_blocking("X:1"))

    assert ids(only_asthma(blocked)) == ["X:2"]


def _blocking(concept):
    entry = Entry(1, "block_concept", None, concept, who="ann", why="says so", created_at=datetime.now(UTC))
    return CurationState(1, (entry,))


def short_forms(count):
    """Return concepts that go by ALL, and others that an ordinary mention of "all" may mean as well."""
    capitals = [Concept(f"A:{i:02}", f"kind {i}", (Name(f"kind {i}", "T"), Name("ALL", "T"))) for i in range(count)]
    return [*capitals, *(Concept(f"B:{i:02}", f"all {i}", (Name(f"all {i}", "T"),)) for i in range(count))]


@pytest.mark.parametrize("text", ["all", "ALL", "all kinds"])
def test_no_top_k_changes_what_comes_first_however_many_capitals_are_moved(make_build, models, tmp_path, text):
    # To this model all candidates are alike.
    model = FusionModel(json.loads((models / "fusion.json").read_text()) | {"trees": []})
    build = make_build(tmp_path, short_forms(KEEP + 8))
    channels = Channels({c: r.under(build.overlay) for c, r in build.retrievers.items()})
    of_query = found(channels, [Query(text)])

    lists = {k: Ranking(build.concepts, model).rank(of_query, LinkOptions(top_k=k))[0] for k in (1, 3, 30)}

    assert lists[30][0].case_mismatch is False
    for k in (1, 3):
        assert lists[k][:k] == lists[30][:k]
        assert [f for f in lists[k] if "exact" in dict(f.channels)] == [
            f for f in lists[30] if "exact" in dict(f.channels)
        ]


def test_features_are_numbers_and_as_many_as_there_are_names_for(build, channels):
    for measured in measure_all(found(channels, [Query(text) for text in TEXTS]), build.concepts, LinkOptions()):
        assert measured.features.shape[0] == len(measured.found) == len(measured.names)
        assert np.isfinite(measured.features).all()
