"""What counts as NIL, what refusing costs, and how true stated probabilities are."""

from dataclasses import replace

import pytest

from medlink.corpora.records import Gold, LabeledDocument, LabeledMention
from medlink.errors import NotCalibratedError, UnknownValueError
from medlink.kb.curation import CurationState
from medlink.types import Candidate, Code, Concept, LinkResult, Mention, Name
from training.hidden import without
from training.nil import NilTest, Outcome, Top, below, by_default, questions_of, rows, run
from training.protocols import Question

ASTHMA, ATTACK, COLD, LUNG = ("MESH:D001249",), ("MESH:D009203",), ("MESH:D003139",), ("MONDO:0005087",)
RIGHT, WRONG = frozenset({"A", "MESH:A"}), frozenset({"B"})


def candidate(id_: str = "C1", **facts) -> Candidate:
    concept = Concept(id_, "x", (), codes=(Code("MESH", "D000001"),))
    return Candidate(1, concept, Name("x", "MINE"), 0.5, (), **facts)


def document(text: str, *labeled: tuple[str, Gold]) -> LabeledDocument:
    mentions = (LabeledMention("1", text.index(m), text.index(m) + len(m), m, "Disease", gold) for m, gold in labeled)
    return LabeledDocument("1", text, tuple(mentions))


def test_the_best_concept_of_an_answer_is_its_first_candidate_or_what_was_refused():
    linked = Top.of(LinkResult(Mention("x"), "linked", (candidate(probability=0.9), candidate("C2"))))
    refused = Top.of(LinkResult(Mention("x"), "nil", reason="below_threshold", nearest=candidate(probability=0.2)))
    listed = LinkResult(Mention("x"), "nil", (candidate("C2"),), "below_threshold", candidate(probability=0.2))
    blank = Top.of(LinkResult(Mention(""), "nil", reason="empty_after_normalisation"))

    assert linked == Top(frozenset({"C1", "MESH:D000001"}), 0.9, refused=False, barred=False)
    assert refused == Top(linked.ids, 0.2, refused=True, barred=False)
    assert Top.of(listed) == refused
    assert blank == Top(frozenset(), None, refused=True, barred=True)
    assert (by_default(refused), below(0.1)(refused), below(0.3)(refused)) == (True, False, True)


def test_a_broader_concept_and_a_text_without_any_are_refused_at_every_threshold():
    broader = Top.of(LinkResult(Mention("x"), "linked", (candidate(probability=0.9, relation="broader"),)))
    nothing = Top.of(LinkResult(Mention("x"), "nil", reason="no_candidate"))

    assert all(refuses(top) for top in (broader, nothing) for refuses in (by_default, below(0.0)))
    assert broader.ids


def test_what_a_person_or_an_id_decided_has_no_probability_and_is_never_refused():
    assert not below(1.0)(Top.of(LinkResult(Mention("x"), "linked", (candidate(),))))


def asked(gold: Gold, *texts: str) -> Question:
    return Question(LabeledMention("1", 0, 1, "x", "Disease", gold), texts or ("x",))


def top(ids: frozenset[str], probability: float | None = None, *, refused: bool = False) -> Top:
    return Top(ids, probability, refused=refused, barred=False)


def nil_test(protocol: str, *cases: tuple[str, Gold, Outcome]) -> NilTest:
    standing, gold, outcomes = zip(*cases, strict=True)
    questions = [
        asked(g, *("x" for _ in o.texts)) if protocol == "dictionary" else asked(g)
        for g, o in zip(gold, outcomes, strict=True)
    ]
    return NilTest(protocol, questions, standing, [False] * len(cases), outcomes)


def one(ids: frozenset[str], probability: float | None = None, *, refused: bool = False) -> Outcome:
    return Outcome((top(ids, probability, refused=refused),))


CASES = (
    ("present", (("A",),), one(RIGHT, 0.9)),
    ("present", (("A",),), one(RIGHT, 0.6)),
    ("present", (("A",),), one(RIGHT, 0.3, refused=True)),
    ("present", (("A",),), one(WRONG, 0.2, refused=True)),
    ("present", (("A",),), one(WRONG, 0.8)),
    ("absent", (("Z",),), one(WRONG, 0.1, refused=True)),
    ("absent", (("Z",),), one(WRONG, 0.2, refused=True)),
    ("absent", (), one(WRONG, 0.7)),
    ("partly", (("A",), ("Z",)), one(WRONG, 0.1, refused=True)),
    ("unclear", (("Z",),), one(WRONG, 0.1, refused=True)),
)


@pytest.mark.parametrize("protocol", ["strict", "dictionary"])
def test_the_figures_of_a_row(protocol):
    default, low, high = rows(nil_test(protocol, *CASES), [None, 0.25, 0.85])

    assert (default["n"], default["n_nil"], default["n_partly"], default["n_unclear"]) == (8, 3, 1, 1)
    # refused: two of three absent ones, one right and one wrong answer of those present
    assert (default["nil_precision"], default["nil_recall"]) == (50.0, 66.67)
    assert (default["accuracy"], default["accuracy_unrefused"], default["kept"]) == (40.0, 60.0, 66.67)
    assert (low["threshold"], low["nil_precision"], low["nil_recall"], low["kept"]) == (0.25, 66.67, 66.67, 100.0)
    assert (high["nil_recall"], high["kept"]) == (100.0, 33.33)
    assert default["threshold"] == "default"


def test_the_sweep_goes_through_all_thresholds_and_refuses_more_and_more():
    (row,) = rows(nil_test("strict", *CASES), [None])

    assert [point["threshold"] for point in row["sweep"]] == [round(0.05 * n, 2) for n in range(1, 20)]
    recall = [point["nil_recall"] for point in row["sweep"]]
    kept = [point["kept"] for point in row["sweep"]]
    assert (recall, kept) == (sorted(recall), sorted(kept, reverse=True))
    assert (recall[0], kept[0], recall[-1], kept[-1]) == (0.0, 100.0, 100.0, 0.0)


def test_calibration_is_of_every_answer_that_can_be_judged_whether_refused_or_not():
    certain = ("present", (("A",),), one(RIGHT, 1.0))
    unlikely = ("absent", (("Z",),), one(WRONG, 0.0, refused=True))
    half = ("present", (("A",),), one(WRONG, 0.5)), ("present", (("A",),), one(RIGHT, 0.5))
    unclear = ("unclear", (("Z",),), one(WRONG, 1.0))
    decided = ("present", (("A",),), one(RIGHT))

    (row,) = rows(nil_test("strict", *[certain] * 4, *[unlikely] * 4, *half * 2, unclear, decided), [None])

    assert (row["n_ece"], sum(part["count"] for part in row["bins"])) == (12, 12)
    assert [part["probability"] for part in row["bins"]] == sorted(part["probability"] for part in row["bins"])
    # In bins of one or two answers even a half that is true is half an answer off.
    assert row["ece"] == pytest.approx(2 * 0.5 / 12 + 2 * 0.0, abs=0.1)
    assert all(part["accuracy"] == part["probability"] for part in row["bins"] if part["probability"] in (0.0, 1.0))


def test_a_build_without_probabilities_has_no_calibration_and_takes_no_threshold():
    test = nil_test("strict", ("present", (("A",),), one(RIGHT)), ("absent", (("Z",),), one(WRONG, refused=True)))

    (row,) = rows(test, [None])

    assert (row["ece"], row["bins"], row["sweep"], row["kept"], row["nil_recall"]) == (None, [], [], 100.0, 100.0)
    with pytest.raises(NotCalibratedError, match="--threshold"):
        rows(test, [0.5])


def test_a_mention_that_was_split_is_refused_only_with_all_of_its_parts():
    gold = (("A",), ("B",))
    whole, right, wrong = top(frozenset({"C"}), 0.1, refused=True), top(RIGHT, 0.9), top(WRONG, 0.1, refused=True)
    present, absent = ("present", gold, Outcome((whole,), (right, wrong))), ("absent", (("Z",),))
    half, none = Outcome((whole,), (right, wrong)), Outcome((whole,), (wrong, wrong))

    (row,) = rows(nil_test("strict", present, (*absent, half), (*absent, none)), [None])

    assert (row["nil_precision"], row["nil_recall"]) == (100.0, 50.0)
    assert (row["accuracy"], row["accuracy_unrefused"], row["kept"]) == (0.0, 100.0, 0.0)
    # The parts answer, so that they are what is judged, and the whole is not.
    assert row["n_ece"] == 6


def test_under_the_dictionary_protocol_every_text_must_be_right():
    gold = (("A",), ("B",))
    both = ("present", gold, Outcome((top(RIGHT, 0.9), top(WRONG, 0.3))))
    one_of_them = ("present", gold, Outcome((top(RIGHT, 0.9), top(frozenset({"C"}), 0.9))))

    all_in, without_one = rows(nil_test("dictionary", both, one_of_them), [0.1, 0.5])

    assert (all_in["accuracy"], without_one["accuracy"]) == (50.0, 0.0)


TEXT = document(
    "heart attack, Asthma; asthma and lung disease; a cold, ###, gout",
    ("heart attack", (ATTACK,)),
    ("Asthma", (ASTHMA,)),
    ("asthma and lung disease", (ASTHMA, LUNG)),
    ("cold", (COLD,)),
    ("###", ()),
    ("gout", (("MESH:D006073",),)),
)


@pytest.mark.parametrize("protocol", ["strict", "dictionary"])
def test_a_mention_is_nil_where_nothing_left_answers_it(build, protocol):
    questions = questions_of([TEXT], protocol, build)
    hidden = without(build, CurationState(), ["C0004096", "C0027051"])

    before, after = (run(b, questions, protocol, longest_context=100) for b in (build, hidden))

    assert before.standing == ["present"] * 4 + ["absent"] * 2
    # MESH:D009203 is a code of another concept too.
    assert after.standing == ["present", "absent", "partly", "present", "absent", "absent"]
    assert before.named[:2] == [True, True]
    assert after.named[:2] == [False, False]
    assert rows(before, [None])[0]["accuracy_unrefused"] >= 75.0


def test_what_is_asked_twice_is_linked_once_and_answers_keep_their_places(build):
    questions = questions_of([TEXT], "dictionary", build) * 3
    said: list[tuple[int, int]] = []

    test = run(build, questions, "dictionary", longest_context=100, advance=lambda *done: said.append(done))

    assert test.outcomes[:6] * 3 == test.outcomes
    distinct = len({text for question in questions for text in question.texts})
    assert said == [(distinct, distinct)]


def test_a_mention_that_names_a_concept_without_a_cui_is_left_out_where_gold_is_a_cui(build):
    cui = (("UMLS:C0009443",),)
    text = document(
        "a cold, COLD, heart attack, gout, old attack",
        ("cold", cui),
        ("heart attack", (("UMLS:C0027051",),)),
        ("gout", cui),
        ("old attack", (("UMLS:C0155626",),)),
    )

    test = run(build, questions_of([text], "strict", build), "strict", longest_context=100)

    assert test.standing == ["unclear", "present", "absent", "present"]
    (row,) = rows(test, [None])
    assert (row["n"], row["n_nil"], row["n_unclear"]) == (3, 1, 1)


def test_a_short_name_in_another_case_does_not_make_a_mention_unclear(make_build, tmp_path):
    short = Concept("MONDO:1", "ALL", (Name("ALL", "MONDO"),))
    build = make_build(tmp_path, [short])
    text = document("all of ALL", ("all", (("UMLS:C0444868",),)), ("ALL", (("UMLS:C0023449",),)))

    test = run(build, questions_of([text], "strict", build), "strict", longest_context=100)

    assert test.standing == ["absent", "unclear"]


def test_a_broader_answer_is_right_for_the_accuracy_that_refuses_nothing_and_refused_otherwise():
    broader = replace(top(RIGHT, 0.9), refused=True, barred=True)

    (row,) = rows(nil_test("strict", ("present", (("A",),), Outcome((broader,)))), [None])

    assert (row["accuracy_unrefused"], row["accuracy"], row["kept"], row["nil_precision"]) == (100.0, 0.0, 0.0, 0.0)


def test_another_protocol_is_refused(build):
    with pytest.raises(UnknownValueError, match="dictionary, strict"):
        questions_of([TEXT], "paper", build)
