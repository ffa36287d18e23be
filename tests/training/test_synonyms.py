"""The held-out-synonym test asks for what training never saw, and finds among everything else."""

import numpy as np
import pytest

from medlink.errors import SourceError, UnknownValueError
from medlink.kb.records import CodeRecord, NameRecord
from medlink.types import Concept, Name
from training.heldout import HeldOut, hold_out, split_hash
from training.names import NameRule
from training.pairs import PairRecipe, make_pairs
from training.pairset import read_pairs
from training.synonyms import concepts_of_records, split_of_pairs, synonym_test

RULE = NameRule()


def records(concepts: int, first: int = 0) -> list[NameRecord | CodeRecord]:
    found: list[NameRecord | CodeRecord] = []
    for n in range(first, first + concepts):
        sab = ("MONDO", "CL", "DOID")[n % 3]
        found += [NameRecord(f"C{n:04d}", f"Name {word}-{n}", sab) for word in ("one", "two", "three", "four")]
        found.append(CodeRecord(f"C{n:04d}", "X", str(n)))
        found.append(NameRecord(f"C{n:04d}", f"shared {n // 2}", "MONDO"))
    return found


class Ours:
    def __init__(self, *found: NameRecord | CodeRecord) -> None:
        self.found = found

    def records(self):
        return self.found

    def facts(self):
        return {"kind": "test"}


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    directory = tmp_path_factory.mktemp("pairs") / "pairs"
    make_pairs(Ours(*records(120)), directory, PairRecipe(held_out_percent=60))
    return read_pairs(directory)


def texts(pairs) -> list[str]:
    return pairs.texts(np.arange(pairs.text_count))


def test_concepts_are_put_together_from_records_in_any_order():
    mixed = [
        NameRecord("C2", "b", "X", "PT", "DUT", "7", "O"),
        CodeRecord("C1", "X", "1"),
        NameRecord("C1", "a", "X"),
        NameRecord("C2", "c", "Y"),
    ]

    assert concepts_of_records(mixed) == [
        Concept("C1", "a", (Name("a", "X"),)),
        Concept("C2", "b", (Name("b", "X", "PT", "DUT", "7", True), Name("c", "Y"))),
    ]


def test_the_split_of_the_terminology_of_the_pairs_is_that_of_the_pairs(pairs):
    concepts = concepts_of_records(records(120))

    split = split_of_pairs(pairs.manifest, lambda: texts(pairs), concepts, RULE)

    assert split.fingerprint == pairs.manifest["held_out"]["fingerprint"]


def test_of_another_terminology_nothing_is_asked_for_that_the_pairs_show(pairs):
    # Here each name stands in a concept that has others; in the pairs some were the last of theirs.
    concepts = [
        Concept(f"D{n}", text, (Name(text, "MONDO"), Name("the name that everything keeps", "MONDO")))
        for n, text in enumerate([*texts(pairs), "one more", "and another"])
    ]
    alone = hold_out(concepts, percent=60, rule=RULE)
    last = {text for text in texts(pairs) if split_hash(text, 0) < alone.limit}

    split = split_of_pairs(pairs.manifest, lambda: texts(pairs), concepts, RULE)

    assert last
    assert all(alone.is_held_out(text) for text in last)
    assert not any(split.is_held_out(text) for text in texts(pairs))


@pytest.mark.parametrize(
    ("changed", "says"),
    [({"percent": 0.0}, "hide no name"), ({"text": {"encoder_text": 0, "match_key": 0}}, "reads texts otherwise")],
)
def test_pairs_that_do_not_say_what_is_hidden_are_refused(pairs, changed, says):
    manifest = {**pairs.manifest, "held_out": {**pairs.manifest["held_out"], **changed}}

    with pytest.raises(SourceError, match=says):
        split_of_pairs(manifest, list, concepts_of_records(records(3)), RULE)


@pytest.fixture(scope="module")
def split() -> HeldOut:
    return hold_out(concepts_of_records(records(120)), percent=20, rule=RULE)


def test_names_are_either_asked_for_or_there_to_be_found(split):
    concepts = concepts_of_records(records(120))
    everything = {form for concept in concepts for form in RULE.forms(concept)}

    test = synonym_test(concepts, split, RULE)

    asked = {text for questions in test.questions.values() for question in questions for text in question.texts}
    assert asked == {form for form in everything if split.is_held_out(form)}
    assert set(test.dictionary.names) == everything - asked
    assert set(test.questions) == {"MONDO", "CL", "DOID"}


def test_a_hidden_name_is_answered_by_every_concept_that_bears_it_and_each_of_them_is_there(split):
    concepts = concepts_of_records(records(120))
    bearers: dict[str, set[str]] = {}
    for concept in concepts:
        for form in RULE.forms(concept):
            bearers.setdefault(form, set()).add(concept.id)

    test = synonym_test(concepts, split, RULE)

    gold = {q.texts[0]: set(q.mention.gold_ids) for questions in test.questions.values() for q in questions}
    assert gold == {text: bearers[text] for text in gold}
    assert any(len(ids) > 1 for ids in gold.values())
    assert set().union(*gold.values()) <= test.dictionary.ids


def test_some_sources_are_asked_for_among_all_names_of_their_concepts_and_no_others(split):
    concepts = concepts_of_records(records(120))

    test = synonym_test(concepts, split, RULE, vocabularies=["CL"])

    assert list(test.questions) == ["CL"]
    assert test.questions["CL"] == synonym_test(concepts, split, RULE).questions["CL"]
    assert test.dictionary.ids == {f"C{n:04d}" for n in range(120) if n % 3 == 1}
    assert any(name.startswith("shared") for name in test.dictionary.names)


def test_a_sample_is_the_same_for_its_seed_whatever_else_is_asked_for(split):
    concepts = concepts_of_records(records(120))

    def asked(**options) -> list[str]:
        test = synonym_test(concepts, split, RULE, per_vocabulary=5, **options)
        return [question.texts[0] for question in test.questions["CL"]]

    assert len(asked()) == 5
    assert asked() == asked(vocabularies=["CL"])
    assert asked() != asked(seed=1)


def test_a_source_without_hidden_names_is_an_error_that_lists_those_with_some(split):
    with pytest.raises(UnknownValueError, match="valid: CL, DOID, MONDO"):
        synonym_test(concepts_of_records(records(120)), split, RULE, vocabularies=["HGNC"])
