"""Candidates in the order that a model gives them, or in that of trust."""

import json

import numpy as np
import pytest

from medlink.linking.evidence import Evidence
from medlink.linking.features import FEATURES
from medlink.linking.fusion import FORMAT, FusionModel, fuse, lead, ranked
from medlink.types import Concept, ConceptFacts, Name, Pin, Retrieval, Retrieved


def name(concept: str, text: str = "cold", score: float = 0.5) -> Retrieved:
    return Retrieved(concept, Name(text, "T"), score, words=(text,))


def stored(**other) -> dict:
    trees = [[[FEATURES.index("dense"), 0.5, 1], [-1.0], [1.0]]]
    whole = {"format": FORMAT, "features": list(FEATURES), "trees": trees, "annotated": {"X:1": 3}, "trained_on": {}}
    return whole | other


def in_order(orders, ids=("X:1", "X:2", "X:3", "X:4"), **options) -> list[str]:
    found = [Evidence(id_, {"dense": (at, name(id_))}) for at, id_ in enumerate(ids)]
    names = [name(id_) for id_ in ids]
    fused = ranked(found, names, np.array(orders), np.zeros((len(ids), len(FEATURES))), **options)
    return [f.concept_id for f in fused]


def test_candidates_come_best_first_and_equal_ones_by_id():
    assert in_order([0.1, 0.3, 0.1, 0.2]) == ["X:2", "X:4", "X:1", "X:3"]
    assert in_order([0.1, 0.1, 0.1, 0.1], ids=("X:4", "X:2", "X:3", "X:1")) == ["X:1", "X:2", "X:3", "X:4"]


def test_only_so_many_are_kept_beside_those_that_do_not_count():
    assert in_order([4, 3, 2, 1], keep=2) == ["X:1", "X:2"]
    assert in_order([4, 3, 2, 1], keep=2, beside={0}) == ["X:1", "X:2", "X:3"]
    assert in_order([4, 3, 2, 1], keep=2, beside={3}) == ["X:1", "X:2", "X:4"]
    assert in_order([4, 3, 2, 1], keep=0, beside={2}) == ["X:3"]
    assert in_order([4, 3, 2, 1], keep=9) == ["X:1", "X:2", "X:3", "X:4"]


def test_a_candidate_carries_what_the_model_saw_and_a_score_between_0_and_1():
    found = Evidence("X:1", {"exact": (0, name("X:1", "colds", 1.0)), "dense": (4, name("X:1", "cold", 0.9))})

    (fused,) = ranked([found], [name("X:1", "colds")], np.array([2.0]), np.arange(len(FEATURES))[None].astype(float))

    assert (fused.name.text, fused.words, fused.order, fused.score) == ("colds", ("colds",), 2.0, 0.8808)
    assert fused.channels == (("exact", 1.0), ("dense", 0.9))
    assert fused.features == tuple(range(len(FEATURES)))
    assert (fused.probability, fused.relation) == (None, "exact")


def test_without_a_model_exact_names_lead_and_the_rest_follows_in_the_order_of_trust():
    fused = fuse(
        {
            "exact": Retrieval((name("X:1", "cold", 1.0),)),
            "dense": Retrieval((name("X:2", "colds", 0.9), name("X:1", "a cold", 0.8))),
            "lexical": Retrieval((name("X:3", "old", 0.7),)),
        }
    )

    assert [(f.concept_id, f.name.text, f.score) for f in fused] == [
        ("X:1", "cold", 1.0),
        ("X:2", "colds", 0.9),
        ("X:3", "old", 0.7),
    ]
    assert fused[0].channels == (("exact", 1.0), ("dense", 0.8))


PIN = Pin("X:2", Name("Cold", "T"), entry=1, why="decided")


def test_what_is_pinned_leads_as_sure_as_an_exact_name():
    fused = fuse({"dense": Retrieval((name("X:1"), name("X:2", "colds", 0.3)))})

    first, *others = lead(fused, PIN)

    assert (first.concept_id, first.name.text, first.score, first.order, first.pin) == ("X:2", "colds", 1, np.inf, PIN)
    assert (first.probability, first.case_mismatch, first.relation) == (None, False, "exact")
    assert others == [fused[0]]


def test_what_is_pinned_but_was_not_found_leads_under_its_preferred_name():
    fused = fuse({"dense": Retrieval((name("X:1"),))})

    first, *others = lead(fused, PIN)

    assert (first.concept_id, first.name, first.channels) == ("X:2", PIN.name, ())
    assert others == fused


def test_a_model_orders_by_its_trees_to_four_decimals():
    model = FusionModel(stored(trees=[[[FEATURES.index("dense"), 0.5, 1], [-0.123449], [0.123451]]]))
    features = np.zeros((2, len(FEATURES)))
    features[1, FEATURES.index("dense")] = 0.6

    assert model.orders(features).tolist() == [-0.1234, 0.1235]


def test_what_annotators_chose_is_known_of_the_facts_that_are_asked_about():
    model = FusionModel(stored())
    facts = ConceptFacts(Concept("X:1", "", ()), (), frozenset(), 1, 0, 0)
    others = ConceptFacts(Concept("X:1", "", ()), (), frozenset(), 5, 0, 0)

    assert model.known(facts)[-1] == pytest.approx(np.log(4))
    assert model.known(others)[0] == pytest.approx(np.log(6))
    assert model.known(facts)[0] == pytest.approx(np.log(2))


@pytest.mark.parametrize(
    "other", [{"format": FORMAT + 1}, {"features": list(FEATURES[:-1])}, {"features": list(FEATURES[::-1])}]
)
def test_a_model_of_another_version_says_how_to_make_one(other):
    with pytest.raises(ValueError, match="run `medlink train fusion`"):
        FusionModel(stored(**other))


@pytest.mark.parametrize("content", ["", "[]", "1", '"fusion"', "{}", "null"])
def test_a_file_that_is_no_model_is_refused(tmp_path, content):
    (tmp_path / "fusion.json").write_text(content)

    with pytest.raises(ValueError, match=r"fusion|Expecting"):
        FusionModel.read(tmp_path / "fusion.json")


@pytest.mark.parametrize("missing", ["trees", "annotated", "trained_on", "features", "format"])
def test_a_model_that_lacks_something_is_refused(missing):
    with pytest.raises(ValueError, match="model"):
        FusionModel({key: value for key, value in stored().items() if key != missing})


def test_a_model_goes_by_its_content(tmp_path):
    (tmp_path / "fusion.json").write_text(json.dumps(stored(), indent=2, sort_keys=True))

    read = FusionModel.read(tmp_path / "fusion.json")

    assert read.fingerprint == FusionModel(stored()).fingerprint
    assert read.fingerprint != FusionModel(stored(annotated={})).fingerprint
    assert len(read.fingerprint) == 64
