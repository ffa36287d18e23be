"""Fusion learns from a small corpus of our own what annotators prefer, and from no mention about itself."""

import json
from math import log1p

import numpy as np
import pytest

from medlink.corpora.records import LabeledDocument, LabeledMention
from medlink.linking.features import FEATURES
from medlink.linking.fusion import FusionModel
from medlink.linking.ranking import Query
from medlink.types import Code, Concept, LinkOptions, Mention, Name
from training.boosting import Boosting
from training.fusion import FEATURE_GROUPS, Lesson, annotated_by, fit, samples_of
from training.measured import Labeled, Measuring, count_annotations, labeled_mentions, labeled_texts

BOOSTING = Boosting(trees=30, leaves=4, learning_rate=0.2, least_rows=3)
KINDS = [
    "fever", "gout", "mumps", "scurvy", "measles", "rabies", "lupus", "tetanus", "anthrax", "cholera",
    "typhus", "malaria", "plague", "pellagra", "rickets", "shingles",
]  # fmt: skip
ANNOTATED = FEATURES.index("annotated")


def document(id_: str, text: str, *labeled: tuple[str, str]) -> LabeledDocument:
    mentions = [
        LabeledMention(id_, text.index(m), text.index(m) + len(m), m, "Disease", ((gold,),)) for m, gold in labeled
    ]
    return LabeledDocument(id_, text, tuple(mentions))


@pytest.fixture(scope="module")
def homonyms(make_build, tmp_path_factory):
    """A build in which every name has two owners, of which the second by id is in the annotators' vocabulary."""
    concepts = []
    for at, kind in enumerate(KINDS):
        name = Name(kind, "OURS")
        concepts.append(Concept(f"A:{at:02}", kind, (name,)))
        concepts.append(Concept(f"B:{at:02}", kind, (name,), codes=(Code("MESH", f"D{at:06}"),)))
    return make_build(tmp_path_factory.mktemp("homonyms"), concepts)


@pytest.fixture(scope="module")
def lesson():
    """All kinds but the last two, each in a text of its own."""
    named = enumerate(KINDS[:-2])
    return Lesson("ours", [document(str(at), f"He had {kind}.", (kind, f"MESH:D{at:06}")) for at, kind in named])


@pytest.fixture(scope="module")
def samples(homonyms, lesson):
    whole, own = annotated_by([lesson])
    return samples_of(Measuring(homonyms, whole), [lesson], own)


def test_a_model_learns_what_annotators_prefer(homonyms, lesson, samples, tmp_path):
    stored = fit(samples, annotated_by([lesson])[0], {"corpora": ["ours"]}, boosting=BOOSTING)
    (tmp_path / "fusion.json").write_text(json.dumps(stored))
    trained = homonyms.with_models(tmp_path)

    for build, first in ((homonyms, "A:15"), (trained, "B:15")):
        (result,) = build.linker.link([Mention("shingles")], LinkOptions())
        assert result.candidates[0].concept.id == first
        assert (result.status, set(result.ties)) == ("ambiguous", {"A:15", "B:15"})
    assert trained.manifest["fusion"]["trained_on"]["corpora"] == ["ours"]


def test_the_same_samples_make_the_same_model(samples, lesson):
    one, other = (fit(samples, annotated_by([lesson])[0], {}, boosting=BOOSTING) for _ in range(2))

    assert json.dumps(one) == json.dumps(other)
    assert FusionModel(one).fingerprint == FusionModel(other).fingerprint


def test_a_model_does_not_look_at_what_it_must_not(samples):
    without = ["literature_source", "codes", "sources", "annotated"]

    stored = fit(samples, {"MESH:D000001": 1}, {}, boosting=BOOSTING, without=without)

    used = {FEATURES[int(node[0])] for nodes in stored["trees"] for node in nodes if len(node) == 3}
    assert not used & set(without)
    assert stored["annotated"] == {}


def test_samples_are_left_as_they_were(samples):
    before = [s.measured.features.copy() for s in samples]

    fit(samples, {}, {}, boosting=BOOSTING, without=["dense"])

    assert all((s.measured.features == b).all() for s, b in zip(samples, before, strict=True))


def test_a_feature_that_does_not_exist_is_named(samples):
    with pytest.raises(ValueError, match="no such features: dence"):
        fit(samples, {}, {}, boosting=BOOSTING, without=["dense", "dence"])


def test_a_corpus_of_another_dictionary_teaches_nothing_and_says_so(homonyms):
    elsewhere = Lesson("other", [document("1", "He had gout.", ("gout", "OMIM:1"))])
    measured = samples_of(Measuring(homonyms, {}), [elsewhere], {})

    with pytest.raises(ValueError, match="does the index hold the concepts of the corpus"):
        fit(measured, {}, {}, boosting=BOOSTING)
    with pytest.raises(ValueError, match="no mention has a right"):
        fit([], {}, {}, boosting=BOOSTING)


def test_a_mention_that_came_twice_counts_twice(homonyms):
    once = Lesson("ours", [document("1", "He had gout.", ("gout", "MESH:D000001"))])
    twice = Lesson("ours", [document("1", "He had gout, not mumps.", ("gout", "MESH:D000001"))] * 2)
    measuring = Measuring(homonyms, {})

    queries = [fit(samples_of(measuring, [one], {}), {}, {}, boosting=BOOSTING)["trained_on"]["queries"]
               for one in (once, twice)]  # fmt: skip

    assert queries == [2, 4]


def test_every_feature_is_of_one_group():
    grouped = [feature for group in FEATURE_GROUPS.values() for feature in group]

    assert sorted(grouped) == sorted(FEATURES)


# What annotators chose


@pytest.fixture
def counted():
    return [
        document("1", "gout and fever", ("gout", "MESH:D000001"), ("fever", "MESH:D000000")),
        document("2", "gout", ("gout", "MESH:D000001")),
        document("2", "gouts", ("gout", "MESH:D000001")),
    ]


def test_choices_are_counted_in_all_and_by_document(counted):
    whole, own = count_annotations(counted)

    assert whole == {"MESH:D000001": 3, "MESH:D000000": 1}
    assert own == {"1": {"MESH:D000001": 1, "MESH:D000000": 1}, "2": {"MESH:D000001": 2}}


def annotated_of(sample) -> dict[str, float]:
    found = zip(sample.measured.found, sample.measured.features[:, ANNOTATED], strict=True)
    return {evidence.concept_id: value for evidence, value in found if value}


def test_a_mention_does_not_see_what_its_own_document_says(homonyms, counted):
    whole, own = count_annotations(counted)
    measuring = Measuring(homonyms, whole)
    labeled = [Labeled(Query("gout"), frozenset({"MESH:D000001"}), id_) for id_ in ("1", "2", "3")]

    first, second, other = measuring.samples(labeled, own=own)

    assert annotated_of(first) == {"B:01": log1p(2)}
    assert annotated_of(second) == {"B:01": log1p(1), "B:00": log1p(1)}
    assert annotated_of(other) == annotated_of(measuring.samples(labeled)[0]) == {"B:01": log1p(3), "B:00": log1p(1)}


def test_the_same_mentions_can_be_seen_with_other_counts(homonyms, counted):
    measuring = Measuring(homonyms, count_annotations(counted)[0])
    labeled = [Labeled(Query("gout"), frozenset(), "1")]
    before = measuring.samples(labeled)[0]

    other = measuring.recounted({"MESH:D000002": 5}).samples(labeled)[0]

    assert annotated_of(other) == {"B:02": log1p(5)}
    kept = [at for at in range(len(FEATURES)) if at != ANNOTATED]
    assert (other.measured.features[:, kept] == before.measured.features[:, kept]).all()
    assert annotated_of(before)["B:01"] == log1p(3)


def test_a_candidate_is_right_by_any_of_its_ids(homonyms):
    labeled = [Labeled(Query("gout"), frozenset({gold}), "1") for gold in ("MESH:D000001", "A:01", "OMIM:1")]

    by_code, by_id, nowhere = Measuring(homonyms, {}).samples(labeled)

    def right(sample) -> list[str]:
        return [sample.measured.found[at].concept_id for at in np.flatnonzero(sample.right)]

    assert (right(by_code), right(by_id), right(nowhere)) == (["B:01"], ["A:01"], [])


# What is asked


def test_texts_are_asked_plain_with_their_short_forms_written_out_and_the_parts_of_lists():
    text = "Familial gout (FG): FG, and breast or ovarian cancer."
    mentions = document("1", text, ("Familial gout", "X:1"), ("breast or ovarian cancer", "X:2"))
    short = LabeledMention("1", 20, 22, "FG", "Disease", (("X:1",),))
    both = LabeledDocument("1", text, (*mentions.mentions, short))

    asked = {one.query.text: (one.query.context, one.gold, one.count) for one in labeled_texts([both])}

    assert asked == {
        "familial gout": (None, {"X:1"}, 2),
        "breast cancer": (None, {"X:2"}, 1),
        "ovarian cancer": (None, {"X:2"}, 1),
    }
    assert {one.query.text for one in labeled_texts([both], {"ovarian": "ovary"})} >= {"ovary cancer"}


def test_mentions_are_asked_as_written_within_their_text_and_without_composites():
    text = "Familial gout (FG) is FG."
    one = document("1", text, ("Familial gout", "X:1"))
    short = LabeledMention("1", 22, 24, "FG", "Disease", (("X:1",),))
    composite = LabeledMention("1", 0, 18, "Familial gout (FG)", "Disease", (("X:1",), ("X:2",)))

    asked = labeled_mentions([LabeledDocument("1", text, (*one.mentions, short, composite))])

    assert [(each.query, each.count) for each in asked] == [(Query("Familial gout", text), 2)]
