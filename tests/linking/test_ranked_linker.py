"""The linker over a build that has models: learned order, probabilities, thresholds."""

import random
from datetime import UTC, datetime

import pytest

from medlink.errors import NotCalibratedError
from medlink.kb.curation import CurationState, Entry
from medlink.linking.ranking import DEPTH
from medlink.types import Concept, LinkOptions, Mention, Name, SemanticType

TEXTS = [
    "heart attack", "heart atack", "cold", "Colds", "lung", "severe asthma", "a cold heart", "zzz", "itching lung", "",
    "asthma and cold", "C0027051", "breast or lung disease",
]  # fmt: skip


def link(build, *mentions, **options):
    sent = [Mention(m) if isinstance(m, str) else m for m in mentions]
    return build.linker.link(sent, LinkOptions(**options))


def best(result):
    return result.candidates[0]


def ids(result):
    return [c.concept.id for c in result.candidates]


def curated(build, action, concept, text):
    entry = Entry(1, action, text, concept, who="ann", why="says so", created_at=datetime.now(UTC))
    return build.curated(CurationState(1, (entry,)))


def test_candidates_carry_a_probability_and_a_relation_that_fit_their_order(ranked_build):
    for result in link(ranked_build, *TEXTS, threshold=0.0, composites=False):
        stated = [c.probability for c in result.candidates]
        if result.mention.text != "C0027051":
            assert all(0 <= p <= 1 for p in stated)
            assert stated == sorted(stated, reverse=True)
            assert sum(stated) <= 1 + 1e-9
        assert {c.relation for c in result.candidates} <= {"exact", "broader"}
        assert [c.rank for c in result.candidates] == list(range(1, len(stated) + 1))


def test_a_name_is_more_probable_than_a_misspelling_and_that_than_nonsense(ranked_build):
    name, misspelt, nonsense = link(ranked_build, "heart attack", "heart atack", "zzz", threshold=0.0)

    assert best(name).concept.id == best(misspelt).concept.id == "C0027051"
    assert best(name).probability > best(misspelt).probability > best(nonsense).probability


def test_what_is_nothing_like_any_name_is_nil_with_the_nearest(ranked_build):
    (result,) = link(ranked_build, "zzz")

    assert (result.status, result.reason, result.candidates) == ("nil", "below_threshold", ())
    assert result.nearest.probability < 0.2


def test_the_threshold_of_a_request_holds_instead_of_that_of_the_model(ranked_build):
    (sure,) = link(ranked_build, "heart atack")
    at = best(sure).probability

    assert link(ranked_build, "heart atack", threshold=at)[0] == sure
    (refused,) = link(ranked_build, "heart atack", threshold=at + 0.001)
    assert (refused.status, refused.reason, refused.nearest) == ("nil", "below_threshold", best(sure))
    assert link(ranked_build, "zzz", threshold=0.0)[0].status != "nil"


@pytest.mark.parametrize("channels", [("exact",), ("exact", "dense"), ("dense", "lexical")])
def test_a_threshold_needs_all_channels(ranked_build, channels):
    with pytest.raises(NotCalibratedError, match="leave threshold out"):
        link(ranked_build, "asthma", threshold=0.5, channels=channels)


def test_a_threshold_needs_a_calibration(ranked_build, build, models, tmp_path):
    (tmp_path / "fusion.json").write_bytes((models / "fusion.json").read_bytes())
    uncalibrated = build.with_models(tmp_path)

    with pytest.raises(NotCalibratedError):
        link(uncalibrated, "asthma", threshold=0.5)
    assert ids(link(uncalibrated, "heart atack")[0]) == ids(link(ranked_build, "heart atack", threshold=0.0)[0])
    assert {c.probability for c in link(uncalibrated, "heart atack")[0].candidates} == {None}


@pytest.mark.parametrize("channels", [("exact",), ("exact", "dense"), ("lexical",)])
def test_fewer_channels_are_answered_as_without_models(ranked_build, build, channels):
    assert link(ranked_build, *TEXTS, channels=channels) == link(build, *TEXTS, channels=channels)


@pytest.fixture(scope="module")
def wide(make_build, models, tmp_path_factory):
    concepts = [Concept(f"X:{i:03}", f"ache {i}", (Name(f"ache {i}", "T"), Name(f"pain {i}", "T"))) for i in range(70)]
    named = [Concept(f"Y:{i:03}", f"kind {i}", (Name(f"kind {i}", "T"), Name("ACH", "T"))) for i in range(15)]
    return make_build(tmp_path_factory.mktemp("wide"), [*concepts, *named]).with_models(models)


@pytest.mark.parametrize("text", ["ache 7", "aches", "ach", "ACH", "pain ach 12", "kind of ache"])
@pytest.mark.parametrize("filters", [{}, {"sabs": frozenset({"T"})}])
def test_a_short_list_is_the_beginning_of_a_long_one(wide, text, filters):
    results = {k: link(wide, text, top_k=k, threshold=0.0, **filters)[0] for k in (1, 3, 20, 50, 100)}

    for k, result in results.items():
        assert result.candidates == results[100].candidates[:k]
        assert len(result.candidates) == min(k, 85)
        assert (result.status, result.ties) == (results[100].status, results[100].ties)


def test_what_lies_deeper_than_the_models_look_follows_behind_without_a_chance(wide):
    (result,) = link(wide, "ache 7", top_k=100, threshold=0.0)

    deep = result.candidates[2 * DEPTH :]
    assert len(deep) > 0
    assert {(c.probability, c.score) for c in deep} == {(0.0, 0.0)}
    assert len(set(ids(result))) == len(ids(result))


def test_an_answer_does_not_depend_on_what_else_is_asked(ranked_build):
    contexts = [None, "a severe disease of the lung", "heart attack (HA)"]
    mentions = [Mention(text, context=context) for text in [*TEXTS, "HA"] for context in contexts]
    shuffled = random.Random(3).sample(range(len(mentions)), len(mentions))

    together = link(ranked_build, *mentions)

    assert link(ranked_build, *(mentions[i] for i in shuffled)) == [together[i] for i in shuffled]
    assert [link(ranked_build, mention)[0] for mention in mentions] == together


def test_a_pin_leads_without_a_probability_and_is_no_nil(ranked_build):
    build = curated(ranked_build, "pin_mention", "MONDO:0005087", "zzz")

    (pinned,) = link(build, "zzz")

    assert (pinned.status, ids(pinned)[0], best(pinned).pin.why) == ("linked", "MONDO:0005087", "says so")
    assert (best(pinned).score, best(pinned).probability, best(pinned).relation) == (1.0, None, "exact")


def test_concepts_of_one_name_stay_a_tie(ranked_build):
    (result,) = link(ranked_build, "cold")

    assert (result.status, result.ties) == ("ambiguous", ("HP:0000001", "MESH:D003139"))


def test_a_filter_that_leaves_nothing_names_what_is_nearest_beyond_it(ranked_build):
    (result,) = link(ranked_build, "asthma", semantic_types=frozenset({"T184"}), sabs=frozenset({"HPO"}))

    assert (result.status, result.reason, result.nearest.concept.id) == ("nil", "filtered_out", "C0004096")


def test_a_part_of_a_mention_is_offered_as_broader(make_build, models, tmp_path):
    kind = SemanticType("T047", "Disease or Syndrome")
    concepts = [Concept("X:1", "wuchereria", (Name("wuchereria", "T"),), (kind,)),
                Concept("X:2", "gout", (Name("gout", "T"),), (kind,))]  # fmt: skip
    build = make_build(tmp_path, concepts).with_models(models)

    within, plain = link(build, "qqqq jjjjj wuchereria", "patient with wuchereria", threshold=0.0)

    assert (best(within).concept.id, best(within).relation) == ("X:1", "broader")
    assert (best(plain).concept.id, best(plain).relation) == ("X:1", "exact")
