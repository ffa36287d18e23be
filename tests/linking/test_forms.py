"""Short forms, the case of short names, and composites, as the linker answers them over a small knowledge base."""

import random

import pytest

from medlink.encoders.hashing import HashingEncoder
from medlink.types import Concept, LinkOptions, LinkResult, Mention, Name, SemanticType

DISEASE, EVENT = SemanticType("T047", "Disease or Syndrome"), SemanticType("T068", "Human-caused Phenomenon or Process")
NAMES = {
    "T:AIDS": ("Acquired immunodeficiency syndrome", "AIDS"),
    "T:ALL": ("Acute lymphoblastic leukaemia", "ALL"),
    "T:BECKER": ("Becker muscular dystrophy",),
    "T:BREAST": ("Breast cancer", "mammary carcinoma"),
    "T:COLON": ("Colorectal cancer",),
    "T:CROSS": ("Road traffic accident",),
    "T:DEVICE": ("Hearing aid", "aids", "Hearing aids"),
    "T:DM": ("Diabetes mellitus", "DM"),
    "T:DYS": ("Dystrophia myotonica", "DM"),
    "T:DUCHENNE": ("Duchenne muscular dystrophy",),
    "T:FEVER": ("Fever", "pyrexia"),
    "T:HBOC": ("Hereditary breast and ovarian cancer",),
    "T:MS": ("Multiple sclerosis", "MS"),
    "T:MS2": ("Mitral stenosis", "MS"),
    "T:NAUSEA": ("Nausea and vomiting",),
    "T:OVARY": ("Ovarian cancer",),
    "T:RENAL": ("Renal tubular acidosis", "RTA"),
    "T:UTERUS": ("Endometrial cancer",),
}


@pytest.fixture(scope="module")
def build(make_build, tmp_path_factory):
    concepts = [
        Concept(id_, names[0], tuple(Name(n, "T") for n in names), (EVENT if id_ == "T:CROSS" else DISEASE,))
        for id_, names in NAMES.items()
    ]
    return make_build(tmp_path_factory.mktemp("forms"), concepts)


def ask(build, *mentions: Mention | str, **options) -> list[LinkResult]:
    sent = [Mention(m) if isinstance(m, str) else m for m in mentions]
    return build.linker.link(sent, LinkOptions(**options))


def best(result: LinkResult) -> str:
    return result.candidates[0].concept.id


def test_a_short_form_is_what_its_context_says(build):
    context = "Dystrophia myotonica (DM) is rare. DM runs in families."

    without, within = ask(build, "DM", Mention("DM", context=context, start=35, end=37))

    assert (without.status, without.ties, without.expansion) == ("ambiguous", ("T:DM", "T:DYS"), None)
    assert (within.status, best(within), within.mention.text) == ("linked", "T:DYS", "DM")
    assert within.expansion.text == "Dystrophia myotonica"
    (used,) = within.expansion.used
    assert context[used.long_start : used.long_end] == used.long == "Dystrophia myotonica"
    assert context[used.short_start : used.short_end] == used.short == "DM"


def test_of_two_definitions_the_last_one_before_the_mention_counts(build):
    context = "Diabetes mellitus (DM) was common. Of dystrophia myotonica (DM) we saw one: DM is rare."

    early, late = (Mention("DM", context=context, start=at, end=at + 2) for at in (19, context.rindex("DM")))

    assert [best(result) for result in ask(build, early, late)] == ["T:DM", "T:DYS"]


def test_a_mention_that_defines_its_own_short_form_is_that_name(build):
    (result,) = ask(build, "multiple sclerosis (MS)", channels=("exact",))

    assert (best(result), result.expansion.text) == ("T:MS", "multiple sclerosis")


def test_a_long_form_is_whole_or_the_mention_stays_as_it_is(build):
    whole, none = ask(build, "Mindful memoization (MM)", "human cells (hiPSC)")

    assert [d.long for d in whole.expansion.used] == ["Mindful memoization"]
    assert none.expansion is None


def test_a_name_outranks_an_acronym_and_the_way_by_the_acronym_is_shown(build):
    context = "A road traffic accident (RTA) in May. The RTA was fatal."

    name, acronym, defined = ask(build, "road traffic accident", "RTA", Mention("RTA", context=context))

    assert (best(name), name.candidates[0].name.text) == ("T:CROSS", "Road traffic accident")
    assert (best(acronym), acronym.candidates[0].name.text) == ("T:RENAL", "RTA")
    assert (best(defined), defined.expansion.used[0].long) == ("T:CROSS", "road traffic accident")


def test_case_that_was_lost_before_is_not_read(build):
    as_written, lowered = (ask(build, "rta", "fever and ms", case=case) for case in (True, False))

    assert [as_written[0].candidates[0].case_mismatch, lowered[0].candidates[0].case_mismatch] == [True, False]
    assert (best(lowered[0]), lowered[0].candidates[0].score) == ("T:RENAL", 1.0)
    assert [len(result[1].parts) for result in (as_written, lowered)] == [0, 2]


@pytest.mark.parametrize("channels", [("exact", "dense"), ("exact",), ("dense",)])
def test_a_short_name_matches_case(build, channels):
    upper, lower, title = ask(build, "AIDS", "aids", "Aids", channels=channels)

    assert (best(upper), upper.status, upper.candidates[0].case_mismatch) == ("T:AIDS", "linked", False)
    assert [best(lower), best(title)] == ["T:DEVICE", "T:DEVICE"]
    demoted = next(c for c in lower.candidates if c.concept.id == "T:AIDS")
    assert (demoted.case_mismatch, demoted.score < upper.candidates[0].score) == (True, True)


def test_hearing_aids_are_not_aids(build):
    (result,) = ask(build, "hearing aids", channels=("dense",), top_k=18)

    flagged = {c.name.text for c in result.candidates if c.case_mismatch}
    assert best(result) == "T:DEVICE"
    assert flagged <= {"AIDS"}


def test_a_lower_case_answer_that_is_left_alone_is_flagged(build):
    every, multiple = ask(build, "all", "ms", channels=("exact",))

    assert (best(every), every.candidates[0].case_mismatch, every.candidates[0].score) == ("T:ALL", True, 0.8)
    assert multiple.ties == ("T:MS", "T:MS2")
    assert all(c.case_mismatch for c in multiple.candidates)


@pytest.mark.parametrize("text", ["aids", "AIDS", "all", "ms", "DM", "hearing aids"])
def test_an_answer_begins_the_same_however_much_of_it_is_asked_for(build, text):
    (whole,) = ask(build, text, top_k=18)

    for k in range(1, 18):
        (part,) = ask(build, text, top_k=k)
        assert part.candidates == whole.candidates[:k]
        assert part.status == whole.status


@pytest.mark.parametrize(
    ("mention", "parts", "conjunction"),
    [
        ("breast and ovarian cancer", ["T:BREAST", "T:OVARY"], "and"),
        ("breast or ovarian cancer", ["T:BREAST", "T:OVARY"], "or"),
        ("Duchenne or Becker muscular dystrophy", ["T:DUCHENNE", "T:BECKER"], "or"),
        ("multiple sclerosis, pyrexia and AIDS", ["T:MS", "T:FEVER", "T:AIDS"], "and"),
        ("colorectal, endometrial and ovarian cancers", ["T:COLON", "T:UTERUS", "T:OVARY"], "and"),
    ],
)
def test_a_composite_has_parts_that_are_linked(build, mention, parts, conjunction):
    (result,) = ask(build, mention)

    assert [best(part.result) for part in result.parts] == parts
    assert [part.result.status for part in result.parts] == ["linked"] * len(parts)
    assert result.conjunction == conjunction
    assert result.mention.text == mention
    assert result.candidates == ask(build, mention, composites=False)[0].candidates


def test_parts_say_where_their_words_stand(build):
    mention = "  fever, mild 😀 cough and ovarian cancer"

    (result,) = ask(build, mention)

    assert [[mention[start:end] for start, end in part.spans] for part in result.parts] == [
        ["fever"],
        ["mild 😀 cough"],
        ["ovarian cancer"],
    ]
    (shared,) = ask(build, "breast and ovarian cancer")
    assert [part.spans for part in shared.parts] == [((0, 6), (19, 25)), ((11, 25),)]


def test_a_part_that_was_a_short_form_stands_where_the_short_form_does(build):
    context = "Diabetes mellitus (DM) and multiple sclerosis (MS)."

    (result,) = ask(build, Mention("fever and MS", context=context))

    assert [(part.result.mention.text, best(part.result), part.spans) for part in result.parts] == [
        ("fever", "T:FEVER", ((0, 5),)),
        ("multiple sclerosis", "T:MS", ((10, 12),)),
    ]


@pytest.mark.parametrize("channels", [("exact", "dense"), ("dense",)])
@pytest.mark.parametrize("options", [{}, {"semantic_types": frozenset({"T068"})}])
def test_a_mention_that_is_a_name_stays_whole(build, channels, options):
    named, not_one = ask(build, "Nausea and vomiting", "fever and vomiting", channels=channels, **options)

    assert (named.parts, named.conjunction) == ((), None)
    assert len(not_one.parts) == 2


def test_a_short_form_of_a_list_is_one_concept(build):
    (result,) = ask(build, Mention("BOC", context="breast and ovarian cancer (BOC)"))

    assert (result.expansion.text, result.parts) == ("breast and ovarian cancer", ())


@pytest.mark.parametrize("mention", ["Duchenne and Emery muscular dystrophy", "pyrexia and aches", "all and MS"])
def test_what_no_rule_splits_stays_whole_unless_every_part_is_a_name(build, mention):
    (result,) = ask(build, mention)

    assert result.parts == ()


def test_composites_stay_whole_on_request(build):
    (result,) = ask(build, "breast and ovarian cancer", composites=False)

    assert (result.parts, result.conjunction) == ((), None)


def test_initials_with_slashes_are_split_and_never_one_wrong_concept(build):
    (result,) = ask(build, "N/V/D", channels=("exact",))

    assert result.status == "nil"
    assert [part.result.status for part in result.parts] == ["nil"] * 3


def test_a_part_is_answered_as_if_it_were_asked_alone(build):
    (composite,) = ask(build, "breast and ovarian cancer", top_k=3)
    alone = ask(build, "breast cancer", "ovarian cancer", top_k=3)

    assert [part.result for part in composite.parts] == alone


def test_everything_is_encoded_in_one_batch(build, monkeypatch):
    encode = HashingEncoder.encode
    batches = []

    def watched(encoder, texts):
        batches.append(list(texts))
        return encode(encoder, texts)

    monkeypatch.setattr(HashingEncoder, "encode", watched)

    ask(build, "breast and ovarian cancer", Mention("DM", context="diabetes mellitus (DM)"), "fever", "breast cancer")

    (batch,) = filter(None, batches)
    assert sorted(batch) == [
        "breast and ovarian cancer",
        "breast cancer",
        "diabetes mellitus",
        "fever",
        "ovarian cancer",
    ]


def test_no_mention_changes_the_answer_to_another(build):
    contexts = [None, "diabetes mellitus (DM)", "dystrophia myotonica (DM)", "multiple sclerosis (MS)"]
    texts = ["DM", "MS", "aids", "AIDS", "breast and ovarian cancer", "DM and fever", "", "N/V/D"]
    mentions = [Mention(text, context=context) for text in texts for context in contexts]
    shuffled = random.Random(0).sample(range(len(mentions)), len(mentions))

    together = ask(build, *mentions)

    assert ask(build, *(mentions[i] for i in shuffled)) == [together[i] for i in shuffled]
    assert [ask(build, mention)[0] for mention in mentions] == together
