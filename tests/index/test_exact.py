"""The exact channel asks the match key first, and the loose key where no name answers to that."""

from datetime import UTC, datetime

import pytest

from index.exact import LOOSE_SCORE, SCORE
from medlink.kb.curation import CurationState, Entry
from medlink.types import Concept, LinkOptions, Mention, Name, SemanticType

KINDS = (SemanticType("T047", "Disease or Syndrome"), SemanticType("T033", "Finding"))
NAMES = {
    "X:ALS": ("Amyotrophic lateral sclerosis", "ALS"),
    "X:CHEST": ("Chest pain",),
    "X:CATENIN": ("β-catenin",),
    "X:COLOUR": ("Colour blindness",),
    "X:COLOR": ("Color blindness",),
    "X:ESO": ("Neoplasm of esophagus", "Esophageal tumor"),
    "X:GAP": ("GAP",),
    "X:GAPJ": ("Gap junction",),
    "X:IFN": ("IFN-gamma",),
    "X:IL6": ("Interleukin 6", "IL-6"),
    "X:INFUSION": ("IV infusion",),
    "X:LEUK": ("Leukemia",),
    "X:NSAID": ("NSAID",),
    "X:STEM": ("Leukemic cell", "Leukemia stem cell"),
    "X:CELL": ("Stem cell leukemia",),
    "X:T1": ("Type 1 diabetes",),
    "X:T2": ("Type 2 diabetes",),
    "X:T3": ("Type 3 diabetes",),
}


@pytest.fixture(scope="module")
def build(make_build, tmp_path_factory):
    concepts = [
        Concept(id_, names[0], tuple(Name(name, "T") for name in names), (KINDS[id_ == "X:COLOUR"],))
        for id_, names in NAMES.items()
    ]
    return make_build(tmp_path_factory.mktemp("builds"), concepts)


def curated(build, *corrections):
    entries = [
        Entry(i, action, text, concept, who="ann", why="", created_at=datetime.now(UTC))
        for i, (action, concept, text) in enumerate(corrections, start=1)
    ]
    return build.curated(CurationState(1, tuple(entries)))


def search(build, mention: str, **options) -> list[tuple[str, str, float]]:
    channel = build.retrievers["exact"].under(build.overlay)
    (retrieval,) = channel.search([mention], LinkOptions(**options))
    return [(r.concept_id, r.name.text, r.score) for r in retrieval.found]


@pytest.mark.parametrize(
    ("mention", "concept_id"),
    [
        ("chest pains", "X:CHEST"),
        ("pain, chest", "X:CHEST"),
        ("beta catenin", "X:CATENIN"),
        ("IFNγ", "X:IFN"),
        ("leukaemias", "X:LEUK"),
        ("oesophageal tumours", "X:ESO"),
        ("oesophagus neoplasms", "X:ESO"),
        ("diabetes type II", "X:T2"),
        ("type III diabetes", "X:T3"),
        ("NSAIDs", "X:NSAID"),
    ],
)
def test_a_variant_of_a_name_is_found_and_scores_less_than_the_name(build, mention, concept_id):
    assert [(id_, score) for id_, _, score in search(build, mention)] == [(concept_id, LOOSE_SCORE)]


@pytest.mark.parametrize(
    "mention", ["gaps", "als syndrome", "4 infusion", "type IV diabetes", "IL-7", "no such thing", "#", ""]
)
def test_what_is_no_variant_is_not_found(build, mention):
    assert search(build, mention) == []


def test_a_variant_does_not_answer_where_the_name_itself_does(build):
    assert search(build, "color-blindness") == [("X:COLOR", "Color blindness", SCORE)]
    assert search(build, "colour blindness") == [("X:COLOUR", "Colour blindness", SCORE)]
    assert [found[0] for found in search(build, "blindness, colour")] == ["X:COLOR", "X:COLOUR"]


def test_a_variant_answers_where_a_filter_keeps_the_name_itself_from_answering(build):
    only_findings = frozenset({"T033"})

    assert search(build, "color blindness", semantic_types=only_findings) == [
        ("X:COLOUR", "Colour blindness", LOOSE_SCORE)
    ]
    assert search(build, "chest pains", semantic_types=only_findings) == []


def test_a_variant_in_the_order_of_the_mention_comes_first(build):
    assert [name for _, name, _ in search(build, "leukaemia stem cells")] == [
        "Leukemia stem cell",
        "Stem cell leukemia",
    ]
    assert [name for _, name, _ in search(build, "stem cell leukaemias")] == [
        "Stem cell leukemia",
        "Leukemia stem cell",
    ]


def test_mentions_are_answered_in_their_order_and_each_as_if_alone(build):
    mentions = ["chest pains", "Chest pain", "gaps", "pain in chest", "chest pains"]

    together = build.retrievers["exact"].search(mentions, LinkOptions())

    alone = [build.retrievers["exact"].search([mention], LinkOptions())[0] for mention in mentions]
    assert together == alone
    assert [[r.score for r in retrieval.found] for retrieval in together] == [[0.95], [1.0], [], [], [0.95]]


@pytest.mark.parametrize(("mention", "name"), [("il6", "IL-6"), ("nsaids", "NSAID")])
def test_a_variant_of_a_short_form_in_small_letters_is_demoted_and_flagged(build, mention, name):
    (result,) = build.linker.link([Mention(mention)], LinkOptions(channels=("exact",)))

    best = result.candidates[0]
    assert (best.name.text, best.score, best.case_mismatch) == (name, 0.76, True)


def test_an_added_name_is_found_by_its_variants(build):
    after = curated(build, ("add_synonym", "X:LEUK", "blood tumour"))

    assert search(build, "blood tumors") == []
    assert search(after, "blood tumors") == [("X:LEUK", "blood tumour", LOOSE_SCORE)]
    assert search(after, "blood tumors", semantic_types=frozenset({"T033"})) == []


def test_an_added_name_keeps_variants_of_others_from_answering(build):
    after = curated(build, ("add_synonym", "X:LEUK", "chest pains"))

    assert search(after, "chest pains") == [("X:LEUK", "chest pains", SCORE)]


def test_a_blocked_name_or_concept_is_not_found_by_its_variants(build):
    nameless = curated(build, ("block_name", "X:ESO", "esophageal tumor"))
    gone = curated(build, ("block_concept", "X:ESO", None), ("add_synonym", "X:ESO", "gullet tumor"))

    assert search(nameless, "oesophageal tumours") == []
    assert search(nameless, "oesophagus neoplasms") == [("X:ESO", "Neoplasm of esophagus", LOOSE_SCORE)]
    assert search(gone, "oesophagus neoplasms") == search(gone, "gullet tumours") == []
