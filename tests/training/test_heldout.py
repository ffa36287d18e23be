"""The held-out split hides a name everywhere, leaves every concept one, and is the same each time."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from medlink.text import encoder_text
from medlink.types import Concept, Name
from training.heldout import HeldOut, HeldOutQuery, held_out_queries, hold_out, split_hash, without_held_out
from training.names import NameRule

WORDS = st.lists(st.sampled_from(["liver", "heart", "of", "the", "acute", "disease", "B"]), min_size=1, max_size=3)
TEXTS = WORDS.map(" ".join)
CONCEPTS = st.lists(st.lists(TEXTS, min_size=1, max_size=5), min_size=1, max_size=12).map(
    lambda lists: [concept(f"C{n}", *texts) for n, texts in enumerate(lists)]
)


def concept(concept_id: str, *texts: str | Name, sab: str = "MONDO") -> Concept:
    names = tuple(text if isinstance(text, Name) else Name(text, sab) for text in texts)
    return Concept(concept_id, names[0].text, names)


def many(count: int) -> list[Concept]:
    return [concept(f"C{n:05d}", *(f"name {n} word{k}" for k in range(4))) for n in range(count)]


def words(text: str) -> tuple[str, ...]:
    return tuple(sorted(text.lower().split()))


def hidden(concepts: list[Concept], held_out: HeldOut) -> list[str]:
    return [name.text for c in concepts for name in c.names if held_out.is_held_out(name.text)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Heart Attack", "attack, heart"),
        ("Crohn’s disease", "disease, Crohn's"),
        ("β-catenin", "catenin β"),
        ("ﬁbrosis  type\u00a02", "Type 2 fibrosis"),
    ],
)
def test_spelling_and_order_of_words_do_not_matter(one, other):
    assert split_hash(one, 0) == split_hash(other, 0)


@given(text=st.text(max_size=20), seed=st.integers(0, 3))
def test_what_reads_the_same_to_an_encoder_is_hidden_together(text, seed):
    cased, uncased = (encoder_text(text, lowercase=lowercase) for lowercase in (False, True))

    assert split_hash(text, seed) == split_hash(uncased, seed) == split_hash(cased, seed)


@settings(deadline=None)
@given(concepts=CONCEPTS, percent=st.sampled_from([0.0, 5.0, 40.0, 90.0, 99.9]), seed=st.integers(0, 3))
def test_every_concept_keeps_a_name_and_no_hidden_name_shows_anywhere(concepts, percent, seed):
    held_out = hold_out(concepts, percent=percent, seed=seed)

    left = list(without_held_out(concepts, held_out))

    assert [c.id for c in left] == [c.id for c in concepts]
    shown = {words(name.text) for c in left for name in c.names}
    assert shown.isdisjoint(words(text) for text in hidden(concepts, held_out))
    assert all(c.preferred_name == c.names[0].text for c in left)


@settings(deadline=None)
@given(concepts=CONCEPTS, seed=st.integers(0, 3))
def test_order_of_concepts_and_names_does_not_matter(concepts, seed):
    mirrored = [concept(c.id, *reversed(c.names)) for c in reversed(concepts)]

    first, second = (hold_out(each, percent=50, seed=seed) for each in (concepts, mirrored))

    assert first == second
    assert first.fingerprint == second.fingerprint


def test_about_the_asked_share_is_hidden_and_another_seed_hides_others():
    concepts = many(2000)

    first, second = (set(hidden(concepts, hold_out(concepts, percent=5, seed=seed))) for seed in (0, 1))

    assert 300 < len(first) < 500
    assert len(first & second) < 60


def test_the_split_stays_what_it_is():
    # An encoder was trained without exactly these names: another hash would test it on what it has seen.
    assert split_hash("Heart attack", 0) == 12456513260893577440


def test_more_percent_hide_all_that_fewer_do():
    concepts = many(500)

    some, more = (set(hidden(concepts, hold_out(concepts, percent=percent))) for percent in (5, 20))

    assert some < more


def test_a_last_name_stays_even_where_another_concept_has_the_same():
    concepts = [concept("C1", "only name"), concept("C2", "only name", "second name", "third name")]

    held_out = hold_out(concepts, percent=99.99)

    assert not held_out.is_held_out("only name")
    assert len(hidden(concepts, held_out)) == 1


def test_a_name_without_letters_is_never_hidden():
    assert not HeldOut(99.9, 0).is_held_out("#")


def test_nothing_is_hidden_unless_asked_for():
    concepts = many(50)

    held_out = hold_out(concepts, percent=0)

    assert hidden(concepts, held_out) == []
    assert list(held_out_queries(concepts, held_out)) == []
    assert list(without_held_out(concepts, held_out)) == concepts


@pytest.mark.parametrize("percent", [-1, 100])
def test_an_impossible_share_is_refused(percent):
    with pytest.raises(ValueError, match="percent"):
        hold_out([], percent=percent)


def test_queries_are_the_hidden_names_once_a_vocabulary():
    asked = concept(
        "C1",
        Name("kept because its hash is larger", "MONDO"),
        Name("Heart attack", "MONDO"),
        Name("attack, heart", "MONDO"),
        Name("heart attack", "MESH", code="D009203"),
        Name("Attack heart", "MESH", code="C000001"),
    )
    held_out = HeldOut(99.9, 0, frozenset({split_hash("kept because its hash is larger", 0)}))

    queries = list(held_out_queries([asked], held_out))

    assert queries == [
        HeldOutQuery("C1", "MONDO", "Heart attack"),
        HeldOutQuery("C1", "MESH", "heart attack"),
        HeldOutQuery("C1", "MESH-SCR", "Attack heart"),
    ]


def test_only_names_that_serve_training_are_asked_for_and_count_as_a_last_name():
    concepts = [
        concept(
            "C1", "heart attack", Name("Herzinfarkt", "MONDO", language="GER"), Name("old", "MONDO", suppressed=True)
        )
    ]

    english = hold_out(concepts, percent=99.99)
    both = hold_out(concepts, percent=99.99, rule=NameRule(languages=None))

    assert not english.is_held_out("heart attack")
    assert list(held_out_queries(concepts, english)) == []
    assert len(list(held_out_queries(concepts, both, NameRule(languages=None)))) == 1


def test_the_fingerprint_tells_splits_apart():
    concepts = many(300)
    splits = [hold_out(concepts, percent=p, seed=s) for p, s in [(5, 0), (5, 1), (6, 0)]]
    splits.append(
        hold_out([*concepts, *many(600)[300:], *(concept(f"S{n}", f"single {n}") for n in range(99))], percent=5)
    )

    assert len({split.fingerprint for split in splits}) == 4
    assert splits[0].facts()["kept"] == len(splits[0].kept)
    assert splits[0].fingerprint == hold_out(concepts, percent=5.0).fingerprint
