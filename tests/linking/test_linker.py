import random

import pytest

from medlink.errors import NotCalibratedError, UnknownValueError
from medlink.linking.linker import Linker
from medlink.types import Concept, LinkOptions, Mention, Name


def link(build, *texts, **options):
    return build.linker.link([Mention(t) for t in texts], LinkOptions(**options))


def ids(result):
    return [c.concept.id for c in result.candidates]


def test_an_exact_name_leads_and_the_dense_channel_follows(build):
    (result,) = link(build, "Heart attack!")

    assert result.status == "linked"
    assert ids(result)[0] == "C0027051"
    assert result.candidates[0].name.text == "heart attack"
    assert result.candidates[0].channels == (
        ("exact", 1.0),
        ("dense", pytest.approx(1.0, abs=0.3)),
        ("lexical", pytest.approx(1.0, abs=0.3)),
    )
    assert [c.rank for c in result.candidates] == [1, 2, 3, 4, 5]


def test_a_candidate_carries_the_facts_of_its_concept(build):
    (result,) = link(build, "hartinfarct", top_k=1)

    concept = result.candidates[0].concept
    assert (concept.preferred_name, concept.semantic_types[0].tui) == ("Myocardial infarction", "T047")
    assert ("MESH", "D009203") in [(c.sab, c.code) for c in concept.codes]
    assert result.candidates[0].name.language == "DUT"
    assert result.candidates[0].probability is None


def test_concepts_that_share_the_best_name_are_a_reported_tie(build):
    (result,) = link(build, "cold")

    assert result.status == "ambiguous"
    assert result.ties == ("HP:0000001", "MESH:D003139")
    assert ids(result)[:2] == ["HP:0000001", "MESH:D003139"]


@pytest.mark.parametrize("channels", [("exact", "dense"), ("exact",), ("dense",), ("lexical",)])
def test_a_tie_is_reported_however_few_concepts_are_asked_for(build, channels):
    (result,) = link(build, "cold", top_k=1, channels=channels)

    assert (result.status, ids(result)) == ("ambiguous", ["HP:0000001"])
    assert result.ties == ("HP:0000001", "MESH:D003139")


def test_a_name_asked_verbatim_has_similarity_one(build):
    (result,) = link(build, "lung disease", channels=("dense",))

    assert (ids(result)[0], result.candidates[0].score) == ("MONDO:0005087", 1.0)


@pytest.mark.parametrize("text", ["", " ", "\t\u00a0", "#", "...", "®", "\u200b", "🫀"])
def test_a_mention_of_nothing_is_nil(build, text):
    (result,) = link(build, text)

    assert (result.status, result.reason, result.candidates) == ("nil", "empty_after_normalisation", ())
    assert result.mention.text == text


@pytest.mark.parametrize(
    "text",
    ["x", "7", "1234567890", "a" * 10_000, "\x07\x1b[0m", "<b>asthma</b>", "'; DROP TABLE name; --", "name:* OR 1",
     "Croé", "m²", "Müller", "ضيق التنفس", "喘息", "hydroxytryptophan", '"hydroxytryptophan"'],
)  # fmt: skip
def test_odd_text_gets_an_answer(build, text):
    (result,) = link(build, text)

    assert result.status in {"linked", "ambiguous", "nil"}
    assert result.mention.text == text


def test_a_filter_works_inside_the_search(build):
    (result,) = link(build, "asthma", semantic_types=frozenset({"T033", "T184"}), top_k=2)

    assert sorted(ids(result)) == ["HP:0000001", "MONDO:0099999"]


def test_a_source_filter_looks_at_codes_too_whatever_name_was_found(build):
    (result,) = link(build, "heart attack", sabs=frozenset({"ICD10CM"}))

    assert ids(result) == ["C0027051"]


def test_what_only_a_filter_took_away_is_said_with_the_nearest(build):
    (result,) = link(build, "asthma", semantic_types=frozenset({"T184"}), channels=("exact",))

    assert (result.status, result.reason) == ("nil", "filtered_out")
    assert result.nearest.concept.id == "C0004096"


def test_without_a_name_in_common_the_exact_channel_says_nil(build):
    (result,) = link(build, "no such thing", channels=("exact",))

    assert (result.status, result.reason, result.nearest) == ("nil", "no_candidate", None)


def test_suppressed_names_answer_only_when_asked(build):
    (without,) = link(build, "scratchy skin", channels=("exact",))
    (included,) = link(build, "scratchy skin", channels=("exact",), include_suppressed=True)

    assert without.status == "nil"
    assert included.candidates[0].name.suppressed


def test_a_channel_that_the_build_lacks_is_left_out(build):
    linker = Linker({"dense": build.dense}, build.snapshot)
    mentions = [Mention("asthma")]

    with_lexical = linker.link(mentions, LinkOptions(channels=("dense", "lexical")))
    without = linker.link(mentions, LinkOptions(channels=("dense",)))

    assert with_lexical == without
    with pytest.raises(UnknownValueError, match="valid: dense"):
        linker.link(mentions, LinkOptions(channels=("lexical",)))


def test_the_lexical_channel_answers_when_asked_for(build):
    (alone,) = link(build, "atsma disorder", channels=("lexical",))
    (beside,) = link(build, "heart atack", channels=("exact", "dense", "lexical"))

    assert (ids(alone)[0], alone.candidates[0].name.text) == ("C0004096", "asthmatic disorder")
    assert [channel for channel, _ in alone.candidates[0].channels] == ["lexical"]
    assert [channel for channel, _ in beside.candidates[0].channels] == ["dense", "lexical"]


def test_all_channels_are_used_unless_some_are_asked_for(build):
    assert link(build, "atsma disorder") == link(build, "atsma disorder", channels=("exact", "dense", "lexical"))
    assert link(build, "atsma disorder") != link(build, "atsma disorder", channels=("exact", "dense"))


@pytest.mark.parametrize("filters", [{"semantic_types": frozenset({"T999"})}, {"sabs": frozenset({"MSHH"})}])
def test_a_misspelt_filter_names_the_valid_values(build, filters):
    with pytest.raises(UnknownValueError, match="valid: "):
        link(build, "asthma", **filters)


def test_a_threshold_needs_calibration(build):
    with pytest.raises(NotCalibratedError):
        link(build, "asthma", threshold=0.5)


def test_duplicates_stay_and_order_changes_no_answer(build):
    texts = ["heart attack", "cold", "astma", "", "heart attack", "lung", "itching", "zzz"] * 40
    shuffled = list(range(len(texts)))
    random.Random(0).shuffle(shuffled)

    straight = link(build, *texts)
    mixed = link(build, *(texts[i] for i in shuffled))

    assert [straight[i] for i in shuffled] == mixed
    assert all(one == straight[0] for one in straight[4:5])


def test_five_distinct_concepts_come_back_under_a_filter(make_build, tmp_path):
    many = Concept("A:1", "fever 0", tuple(Name(f"fever {i}", "A") for i in range(40)))
    others = [Concept(f"B:{i}", f"fevers {i}", (Name(f"fevers {i}", "B"),)) for i in range(6)]
    build = make_build(tmp_path, [many, *others])

    (unfiltered,) = link(build, "fever")
    (filtered,) = link(build, "fever", sabs=frozenset({"B"}))

    assert len(set(ids(unfiltered))) == 5
    assert ids(unfiltered)[0] == "A:1"
    assert len(set(ids(filtered))) == 5
    assert all(i.startswith("B:") for i in ids(filtered))


@pytest.mark.parametrize("text", ["C0027051", "umls:C0027051"])
def test_a_mention_that_is_a_concept_id_is_that_concept(build, text):
    before, result, after = link(build, "asthma", text, "cold")

    assert (result.status, ids(result), result.retired_from) == ("linked", ["C0027051"], None)
    assert result.candidates[0].name.text == "Myocardial infarction"
    assert (before, after) == tuple(link(build, "asthma", "cold"))


@pytest.mark.parametrize("text", ["C0155626", "umls:C0155626"])
def test_a_retired_id_is_answered_by_its_successor_and_says_so(build, text):
    (result,) = link(build, text)

    assert (result.status, ids(result), result.retired_from) == ("linked", ["C0027051"], "C0155626")


def test_an_id_that_is_gone_without_a_successor_says_so(build):
    (result,) = link(build, "C0999999")

    assert (result.status, result.reason, result.candidates) == ("nil", "no_candidate", ())
    assert result.retired_from == "C0999999"


def test_filters_hold_for_ids_too(build):
    kept, lost = (link(build, "C0155626", semantic_types=frozenset({tui}))[0] for tui in ("T047", "T184"))

    assert ids(kept) == ["C0027051"]
    assert (lost.status, lost.reason, lost.nearest.concept.id) == ("nil", "filtered_out", "C0027051")
    with pytest.raises(UnknownValueError, match="valid: "):
        link(build, "C0155626", sabs=frozenset({"MSHH"}))


def test_what_only_looks_like_an_id_is_a_mention_like_any_other(build):
    (result,) = link(build, "C9999999", channels=("exact",))

    assert (result.status, result.reason, result.retired_from) == ("nil", "no_candidate", None)
