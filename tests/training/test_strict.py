"""The strict protocol asks as written and counts concepts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medlink.corpora.records import LabeledDocument, LabeledMention
from training.protocols import Question
from training.strict import Answer, mention_in_context, questions_as_written, rank_all_strictly, rank_strictly

A, B, C = "MESH:D000001", "MESH:D000002", "MESH:D000003"


def ids(*found: str) -> frozenset[str]:
    return frozenset(found)


@pytest.mark.parametrize(
    ("gold", "answer", "rank"),
    [
        (((A,),), Answer((ids(B), ids(A, "MONDO:1"))), 2),
        (((A, B),), Answer((ids(B),)), 1),
        (((A,),), Answer((ids(B),)), 0),
        (((A,),), Answer(), 0),
        # one gold concept named twice is no composite
        (((A,), (A,)), Answer((ids(A),)), 1),
        # a single answer is never two concepts, not even if it goes by both ids
        (((A,), (B,)), Answer((ids(A, B),)), 0),
        (((A,), (B,)), Answer((ids(A), ids(B))), 0),
        (((A,), (B,)), Answer(parts=(ids(B), ids(A))), 1),
        (((A,), (B,)), Answer(parts=(ids(A), ids(A, B))), 1),
        (((A,), (B,)), Answer(parts=(ids(A), ids(A))), 0),
        (((A,), (B,)), Answer(parts=(ids(A), ids(C))), 0),
        (((A,), (B,)), Answer(parts=(ids(A), ids(B), ids(C))), 0),
        (((A,), (B,), (C,)), Answer(parts=(ids(A), ids(B))), 0),
        # a mention that is split although it means one concept
        (((A,),), Answer((ids(A),), (ids(A), ids(B))), 0),
        (((A,),), Answer((), (ids(A), ids(A))), 1),
        # a part without a concept is right iff it is NIL
        (((A,), ()), Answer(parts=(ids(), ids(A))), 1),
        (((A,), ()), Answer(parts=(ids(B), ids(A))), 0),
        ((), Answer(), 1),
        ((), Answer(parts=(ids(), ids())), 1),
        ((), Answer((ids(A),)), 0),
        ((), Answer((), (ids(), ids(A))), 0),
    ],
)
def test_what_is_right(gold, answer, rank):
    assert rank_strictly(gold, answer) == rank


DOCUMENT = "Heart failure in gout, and failure of nerve."


def question(start: int, text: str, document: str = DOCUMENT) -> Question:
    mention = LabeledMention("1", start, start + len(text), text, "Disease", ((A,),))
    return Question(mention, (text,), document)


def test_a_mention_is_asked_as_written_with_its_place_in_the_document():
    mention = LabeledMention("1", 17, 21, "gout", "Disease", ((A,),))

    (asked,) = questions_as_written([LabeledDocument("1", DOCUMENT, (mention,))])
    sent = mention_in_context(asked, 1000)

    assert asked.texts == ("gout",)
    assert (sent.text, sent.context, sent.start, sent.end) == ("gout", DOCUMENT, 17, 21)


@given(start=st.integers(0, 39), length=st.integers(1, 5), longest=st.integers(5, 60))
def test_a_context_that_is_cut_still_holds_the_mention_at_its_offsets(start, length, longest):
    text = DOCUMENT[start : start + length]

    sent = mention_in_context(question(start, text), longest)

    assert sent.context is not None
    assert sent.context[sent.start : sent.end] == text
    assert len(sent.context) == min(longest, len(DOCUMENT))
    assert sent.context in DOCUMENT


def test_offsets_that_do_not_fit_the_document_are_left_out():
    sent = mention_in_context(question(3, "gout"), 13)

    assert (sent.context, sent.start, sent.end) == ("Heart failure", None, None)


def test_every_mention_is_asked_for_in_its_own_place():
    asked = [question(17, "gout"), question(0, "Heart failure"), question(17, "gout")] * 100
    sent: list[tuple[str, int | None]] = []

    def link(mentions, k):
        sent.extend((mention.text, mention.start) for mention in mentions)
        return [Answer((ids(B),) * (k - 1) + (ids(A),)) if m.text == "gout" else Answer() for m in mentions]

    assert rank_all_strictly(asked, link, 3, 100) == [3, 0, 3] * 100
    assert sent == [("gout", 17), ("Heart failure", 0), ("gout", 17)] * 100
