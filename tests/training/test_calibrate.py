"""Calibration learns from mentions of our own how often candidates are right, some of whose concepts are hidden."""

import json
from dataclasses import replace

import numpy as np
import pytest

from medlink.corpora.records import LabeledDocument, LabeledMention
from medlink.linking.calibration import CALIBRATION_FEATURES, Calibration, PlainWords
from medlink.types import Code, Concept, LinkOptions, Mention, Name
from training.boosting import Boosting
from training.calibrate import Judged, fit, gather_judged, judged_samples, plain_words, report
from training.fusion import Lesson
from training.measured import Measuring, labeled_mentions

BOOSTING = Boosting(trees=20, leaves=4, learning_rate=0.2, least_rows=3)
FIT = CALIBRATION_FEATURES.index("fit")


def document(id_: str, text: str, *labeled: tuple[str, str]) -> LabeledDocument:
    mentions = [
        LabeledMention(id_, text.index(m), text.index(m) + len(m), m, "Disease", ((gold,),)) for m, gold in labeled
    ]
    return LabeledDocument(id_, text, tuple(mentions))


def judged(order: float, *, right: bool, document: str = "1", group: str = "ours", **other) -> Judged:
    row = np.zeros((1, len(CALIBRATION_FEATURES)))
    row[0, FIT] = order
    facts = {"count": 1, "answerable": right, "covers": False} | other
    return Judged(group, document, rows=row, right=np.array([right]), choosable=np.array([True]), **facts)


@pytest.fixture(scope="module")
def telling():
    """Mentions of many documents that are right where the order is high, a few of them against it."""
    rng = np.random.default_rng(0)
    orders = rng.uniform(-3, 3, 400)
    rights = orders + rng.normal(0, 0.7, 400) > 0
    return [
        judged(float(o), right=bool(r), document=str(at)) for at, (o, r) in enumerate(zip(orders, rights, strict=True))
    ]


# Words of running text


def test_words_are_counted_by_text_and_outside_of_mentions():
    same = [document(str(i), "A severe gout, severe indeed, of the toe", ("gout", "X:1")) for i in range(5)]
    few = [document(str(i), "rarely", ("rarely", "X:1")) for i in range(4)]

    counts, texts = plain_words([*same, *few])

    assert texts == 9
    assert counts["severe"] == counts["toe"] == 5
    assert not {"gout", "rarely"} & counts.keys()
    assert plain_words([]) == ({}, 0)


def test_mentions_within_each_other_hide_what_the_longest_covers():
    text = "acute liver failure today"
    nested = [document(str(i), text, ("acute liver failure", "X:1"), ("liver", "X:2")) for i in range(5)]

    assert plain_words(nested)[0] == {"today": 5}


# What is fitted


def test_stated_probabilities_follow_how_often_candidates_are_right(telling):
    stored, rows = fit(telling, ({}, 0), "f", {}, boosting=BOOSTING)

    stated = _stated(stored, [-2.5, 0.0, 2.5])
    assert stated[0] < 0.15 < stated[1] < 0.85 < stated[2]
    assert rows[0]["ece"] < 0.1
    assert 0.05 <= stored["threshold"] <= 0.95


def test_a_higher_order_is_never_less_probable(telling):
    stated = _stated(fit(telling, ({}, 0), "f", {}, boosting=BOOSTING)[0], np.linspace(-4, 4, 50).tolist())

    assert stated == sorted(stated)


def _stated(stored, orders) -> list[float]:
    logits = Calibration(stored)._trees.predict(np.concatenate([judged(o, right=True).rows for o in orders]))
    return (1 / (1 + np.exp(-logits))).tolist()


def test_the_same_mentions_make_the_same_calibration(telling):
    one, other = (fit(telling, ({"with": 9}, 10), "f", {"corpora": ["ours"]}, boosting=BOOSTING) for _ in range(2))

    assert json.dumps(one) == json.dumps(other)
    assert (one[0]["fusion"], one[0]["texts"], one[0]["plain_words"]) == ("f", 10, {"with": 9})
    assert (one[0]["fitted_on"]["corpora"], one[0]["fitted_on"]["mentions"]) == (["ours"], 400)


def test_figures_are_of_trees_that_saw_no_mention_of_the_document():
    rng = np.random.default_rng(1)
    # Whether it is right has to do with nothing: only what has seen a mention can state it.
    one_document = [judged(float(o), right=bool(rng.random() < 0.5)) for o in rng.uniform(-3, 3, 200)]
    others = [replace(one, document=str(at), right=~one.right) for at, one in enumerate(one_document)]

    _, (row,) = fit([*one_document, *others], ({}, 0), "f", {}, boosting=replace(BOOSTING, leaves=32, least_rows=1))

    assert row["ece"] > 0.1


def test_mentions_without_candidates_count_as_refused(telling):
    empty = Judged("ours", "x", 3, False, False, np.zeros((0, len(CALIBRATION_FEATURES))), *[np.zeros(0, bool)] * 2)

    _, (row,) = fit([*telling, empty], ({}, 0), "f", {}, boosting=BOOSTING)

    assert row["n"] == 403
    assert row["n_nil"] == 3 + sum(not j.answerable for j in telling)


# What is reported


def test_figures_are_by_group_and_count_what_came_several_times():
    mentions = [
        judged(0, right=True, count=3),
        judged(0, right=True),
        judged(0, right=False),
        judged(0, right=True, covers=True, answerable=False),
        judged(0, right=False, group="theirs"),
    ]

    ours, theirs = report(mentions, [0.9, 0.1, 0.1, 0.3, 0.9], 0.5)

    assert (ours["group"], ours["n"], ours["n_nil"]) == ("ours", 6, 2)
    # Three of the six are refused, two of them rightly; of the four right ones that are there, three are kept.
    assert (ours["nil_precision"], ours["nil_recall"], ours["kept"]) == (66.7, 100.0, 75.0)
    assert (theirs["n"], theirs["nil_recall"], theirs["kept"]) == (1, 0.0, 0.0)


# What is judged


@pytest.fixture(scope="module")
def kinds():
    return ["fever", "gout", "mumps", "scurvy", "measles", "rabies", "lupus", "tetanus", "anthrax", "cholera"]


@pytest.fixture(scope="module")
def known(make_build, models, kinds, tmp_path_factory):
    concepts = [Concept(f"X:{at:02}", kind, (Name(kind, "T"),), codes=(Code("MESH", f"D{at:06}"),))
                for at, kind in enumerate(kinds)]  # fmt: skip
    return make_build(tmp_path_factory.mktemp("known"), concepts).with_models(models)


@pytest.fixture(scope="module")
def lesson(kinds):
    return Lesson("ours", [document(str(at), f"He had {k}.", (k, f"MESH:D{at:06}")) for at, k in enumerate(kinds)])


def test_samples_are_judged_as_the_linker_would_rank_them(known, lesson):
    model, calibrated = known.models
    measuring = Measuring(known, model.annotated)

    ours = judged_samples(
        "ours", measuring.samples(labeled_mentions(lesson.documents)), model, PlainWords({}, 0), measuring, [True] * 10
    )

    asked = [Mention(m.text, context=d.text) for d in lesson.documents for m in d.mentions]
    results = known.linker.link(asked, LinkOptions(threshold=0.0, top_k=10))
    for one, result in zip(ours, results, strict=True):
        assert (one.right[0], one.right.sum()) == (True, 1)
        assert one.rows[0, FIT] == max(one.rows[:, FIT])
        stated = 1 / (1 + np.exp(-calibrated._trees.predict(one.rows[:1])))
        assert result.candidates[0].probability == pytest.approx(float(stated[0]), abs=1e-3)


def test_some_concepts_are_hidden_in_turn_and_the_same_ones_every_time(known, lesson):
    model, _ = known.models

    ours, again = (gather_judged(known, model, ({}, 0), [lesson], []) for _ in range(2))

    groups = {j.group for j in ours}
    assert groups == {"ours, whole dictionary", "ours, some hidden"}
    assert all(j.answerable for j in ours if j.group == "ours, whole dictionary")
    hidden = [j for j in ours if not j.answerable]
    assert 0 < len(hidden) < len(ours) / 2
    assert not any(j.right.any() for j in hidden)
    assert [(j.document, j.answerable, j.rows.tolist()) for j in ours] == [
        (j.document, j.answerable, j.rows.tolist()) for j in again
    ]


def test_of_other_corpora_no_mention_counts_whose_name_the_build_has_under_another_id(known):
    documents = [
        document(str(at), "gout zzzz", ("gout", "UMLS:C0000001"), ("zzzz", "UMLS:C0000002")) for at in range(3)
    ]
    model, _ = known.models

    beside = gather_judged(known, model, ({}, 0), [], [Lesson("beside", documents)])

    assert [(j.group, j.answerable, bool(j.right.any())) for j in beside] == [("beside", False, False)]
