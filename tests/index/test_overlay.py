"""Curation without a rebuild answers as a rebuild with the same corrections would."""

import math
import random
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from index.lexical import lexical_text
from index.overlay import SAB, lay_over
from medlink.encoders.hashing import HashingEncoder
from medlink.errors import UnknownConceptError, UnknownValueError
from medlink.kb.curation import CurationState, Entry, curated_key
from medlink.types import Concept, Embeddings, LinkOptions, Mention, Name, SemanticType

REBUILT = [("exact",), ("dense",), ("exact", "dense")]
CHANNELS = [*REBUILT, ("lexical",), ("exact", "dense", "lexical")]
COMPOSITE = "asthma or lung disease"
Correction = tuple[str, str | None, str | None]


def state(*corrections: Correction, revision: int = 1) -> CurationState:
    entries = [
        Entry(i, *c, who="ann", why="says so", created_at=datetime.now(UTC))
        for i, c in enumerate([(action, text, concept) for action, concept, text in corrections], start=1)
    ]
    return CurationState(revision, tuple(entries))


def link(build, text: str, **options):
    (result,) = build.linker.link([Mention(text)], LinkOptions(**options))
    return result


def ids(result) -> list[str]:
    return [c.concept.id for c in result.candidates]


@pytest.mark.parametrize("channels", CHANNELS)
def test_an_added_name_answers(build, channels):
    curated = build.curated(state(("add_synonym", "MONDO:0099999", "ants under it")))

    result = link(curated, "Ants under it", channels=channels)

    assert (result.status, ids(result)[0]) == ("linked", "MONDO:0099999")
    best = result.candidates[0]
    assert (best.name.text, best.name.sab, best.name.code, best.score) == ("ants under it", SAB, "1", 1.0)


@pytest.mark.parametrize("channels", CHANNELS)
def test_a_blocked_name_is_gone_as_a_tie_too(build, channels):
    curated = build.curated(state(("block_name", "HP:0000001", "cold!")))

    result = link(curated, "cold", channels=channels)

    assert (result.status, result.ties, ids(result)[0]) == ("linked", (), "MESH:D003139")
    assert "HP:0000001" not in ids(result)


@pytest.mark.parametrize("channels", CHANNELS)
def test_a_name_can_be_blocked_everywhere_and_added_where_it_belongs(build, channels):
    nowhere = build.curated(state(("block_name", None, "Cold")))
    back = build.curated(state(("block_name", None, "Cold"), ("add_synonym", "HP:0000001", "cold")))

    assert all(c.name.text.lower() != "cold" for c in link(nowhere, "cold", channels=channels).candidates)
    assert (ids(link(back, "cold", channels=channels))[0], link(back, "cold").status) == ("HP:0000001", "linked")


@pytest.mark.parametrize("channels", CHANNELS)
def test_a_blocked_concept_is_gone_with_what_was_added_to_it(build, channels):
    curated = build.curated(
        state(
            ("add_synonym", "HP:0000001", "chill"),
            ("pin_mention", "HP:0000001", "cold"),
            ("block_concept", "HP:0000001", None),
        )
    )

    for text in ("cold", "chill"):
        result = link(curated, text, channels=channels, top_k=100)
        assert "HP:0000001" not in ids(result)
        assert result.ties == ()
    assert ids(link(curated, "cold", channels=channels))[0] == "MESH:D003139"


def test_a_blocked_concept_is_not_even_the_nearest(build):
    curated = build.curated(state(("block_concept", "C0004096", None)))

    result = link(curated, "asthma", channels=("exact",), semantic_types=frozenset({"T184"}))

    assert (result.status, result.reason, result.nearest) == ("nil", "no_candidate", None)


def test_a_blocked_concept_is_not_found_by_its_codes(build):
    curated = build.curated(state(("block_concept", "C0027051", None)))

    assert build.concepts.coded("MESH", "D009203") == ["C0027051", "MONDO:0099999"]
    assert curated.concepts.coded("MESH", "D009203") == ["MONDO:0099999"]
    assert curated.concepts.concepts(["C0027051", "C0004096"]).keys() == {"C0004096"}
    with pytest.raises(UnknownConceptError, match="curation blocks"):
        curated.concepts.concept("C0027051")


def test_a_concept_shows_its_names_as_curated(build):
    curated = build.curated(state(("add_synonym", "C0027051", "MI"), ("block_name", "C0027051", "hartinfarct")))

    names = [name.text for name in curated.concepts.concept("C0027051").names]

    assert names == ["Myocardial infarction", "heart attack", "MI"]


@pytest.mark.parametrize("channels", CHANNELS)
def test_a_pinned_mention_yields_its_concept_first_and_says_why(build, channels):
    curated = build.curated(state(("pin_mention", "MONDO:0005087", "cold")))

    result = link(curated, "Cold!", channels=channels, top_k=2)

    assert (result.status, result.ties, ids(result)[0]) == ("linked", (), "MONDO:0005087")
    first, second = result.candidates
    assert (first.pin.entry, first.pin.why, first.score, first.name.text) == (1, "says so", 1.0, "Lung disease")
    assert second.pin is None


def test_a_pin_keeps_the_name_that_a_channel_found(build):
    curated = build.curated(state(("pin_mention", "MESH:D003139", "cold")))

    first, second = link(curated, "cold", top_k=2).candidates

    assert (first.concept.id, first.name.text, first.channels[0]) == ("MESH:D003139", "cold", ("exact", 1.0))
    assert second.concept.id == "HP:0000001"


def test_a_short_pin_in_capitals_leaves_small_letters_alone(build):
    curated = build.curated(state(("pin_mention", "MONDO:0005087", "COLD")))

    assert ids(link(curated, "COLD."))[0] == "MONDO:0005087"
    assert ids(link(curated, "cold"))[0] == "HP:0000001"


def test_a_filter_is_stronger_than_a_pin(build):
    curated = build.curated(state(("pin_mention", "MONDO:0005087", "cold")))

    assert ids(link(curated, "cold", semantic_types=frozenset({"T033"}))) == ["HP:0000001"]
    nil = link(curated, "cold", channels=("exact",), semantic_types=frozenset({"T184"}))
    assert (nil.reason, nil.nearest.concept.id) == ("filtered_out", "MONDO:0005087")


def test_an_added_name_is_filtered_by_its_concept(build):
    curated = build.curated(state(("add_synonym", "C0004096", "wheezing illness")))

    for channels in CHANNELS:
        kept = link(curated, "wheezing illness", channels=channels, sabs=frozenset({"MESH"}))
        lost = link(curated, "wheezing illness", channels=channels, semantic_types=frozenset({"T033"}))
        assert ids(kept)[0] == "C0004096"
        assert "C0004096" not in ids(lost)
    with pytest.raises(UnknownValueError, match="valid: HPO, ICD10CM"):
        link(curated, "wheezing illness", sabs=frozenset({SAB}))


def test_a_correction_of_what_the_build_lacks_means_nothing(build):
    curated = build.curated(
        state(
            ("add_synonym", "C9999999", "asthma"),
            ("pin_mention", "C9999999", "asthma"),
            ("block_concept", "C9999999", None),
            ("block_name", "C9999999", "asthma"),
            ("block_name", "C0004096", "no such name"),
            ("block_name", None, "no such name"),
        )
    )

    for text in ("asthma", "cold", "heart attack", "zzz"):
        assert link(curated, text, top_k=100) == link(build, text, top_k=100)


def test_the_build_and_earlier_overlays_stay_as_they_are(build):
    before = link(build, "cold", top_k=100)
    first = build.curated(state(("block_concept", "HP:0000001", None), revision=1))
    second = first.curated(state(("add_synonym", "HP:0000001", "chill"), revision=2))

    assert "HP:0000001" not in ids(link(first, "cold", top_k=100))
    assert link(build, "cold", top_k=100) == before
    assert link(second, "cold", top_k=100) == before
    assert [b.overlay.revision for b in (build, first, second)] == [0, 1, 2]


class CountingEncoder:
    """Counts the texts that it encodes."""

    def __init__(self) -> None:
        self._encoder = HashingEncoder(dim=128)
        self.dim, self.lowercase, self.fingerprint = 128, self._encoder.lowercase, self._encoder.fingerprint
        self.encoded: list[str] = []

    def encode(self, texts: Sequence[str]) -> Embeddings:
        self.encoded += texts
        return self._encoder.encode(texts)


def test_an_added_name_is_encoded_once(build):
    encoder = CountingEncoder()
    one, two = ("add_synonym", "C0004096", "Wheeze"), ("add_synonym", "HP:0000001", "wheeze")

    first = lay_over(state(one), build.snapshot, build.arrays, encoder)
    second = lay_over(state(one, two), build.snapshot, build.arrays, encoder, before=first)
    third = lay_over(state(two, ("add_synonym", "C0004096", "sneeze")), build.snapshot, build.arrays, encoder, second)

    assert encoder.encoded == ["wheeze", "sneeze"]
    assert third.added.vectors.tolist() == encoder.encode(["wheeze", "sneeze"]).vectors.tolist()


WORDS = "acute chronic fever rash pain knee skin lung gland cyst".split()


def made_up_concepts(rng: random.Random) -> list[Concept]:
    def name(sab: str) -> Name:
        return Name(" ".join(rng.sample(WORDS, rng.randint(1, 3))), sab, suppressed=rng.random() < 0.2)

    concepts = []
    for i in range(25):
        sab = rng.choice("AB")
        names = tuple(dict.fromkeys(name(sab) for _ in range(rng.randint(1, 6))))
        concepts.append(Concept(f"X:{i:03d}", names[0].text, names, (SemanticType(f"T{rng.randint(0, 2):03d}", ""),)))
    return concepts


def made_up_corrections(rng: random.Random, concepts: list[Concept]) -> list[Correction]:
    """Additions, and blocks of names other than preferred ones: those change which name is preferred on a rebuild."""
    added: list[Correction] = [
        ("add_synonym", rng.choice(concepts).id, " ".join(rng.sample(WORDS, 2))) for _ in range(12)
    ]
    blocked: list[Correction] = [("block_concept", c.id, None) for c in rng.sample(concepts, 3)]
    for concept in rng.sample(concepts, 10):
        preferred, *others = concept.names
        blocked += [("block_name", concept.id, n.text) for n in others[:1] if not same(n.text, preferred.text)]
    return list(dict.fromkeys(added + blocked))


def same(one: str, other: str) -> bool:
    return curated_key(one) == curated_key(other)


def rebuilt(concepts: list[Concept], corrections: list[Correction]) -> list[Concept]:
    kept = []
    for c in concepts:
        if ("block_concept", c.id, None) in corrections:
            continue
        own = [(action, str(text)) for action, owner, text in corrections if owner == c.id]
        blocked = [text for action, text in own if action == "block_name"]
        names = [n for n in c.names if not any(same(n.text, text) for text in blocked)]
        added = [Name(text, SAB) for action, text in own if action == "add_synonym"]
        kept.append(Concept(c.id, c.preferred_name, (*names, *added), c.semantic_types))
    return kept


def seen(result) -> tuple:
    shown = [(c.concept.id, c.name.text, c.score, c.channels) for c in result.candidates]
    return result.status, result.reason, result.ties, shown


@pytest.mark.parametrize(("recipe", "seed"), [("flat", 0), ("flat", 1), ("flat", 2), ("hnsw", 3)])
def test_an_overlay_answers_as_a_rebuild_would(make_build, tmp_path, recipe, seed):
    rng = random.Random(seed)
    concepts = made_up_concepts(rng)
    corrections = made_up_corrections(rng, concepts)
    curated = make_build(tmp_path / "before", concepts, recipe=recipe).curated(state(*corrections))
    reference = make_build(tmp_path / "after", rebuilt(concepts, corrections), recipe=recipe)
    texts = [" ".join(rng.sample(WORDS, rng.randint(1, 3))) for _ in range(25)]

    for channels in REBUILT:
        for top_k in (1, 3, 10, 100):
            for filters in ({}, {"semantic_types": frozenset({"T001"})}, {"sabs": frozenset({"A"})}):
                for suppressed in (False, True):
                    options = {"channels": channels, "top_k": top_k, "include_suppressed": suppressed, **filters}
                    answers, expected = (
                        [seen(r) for r in b.linker.link([Mention(t) for t in texts], LinkOptions(**options))]
                        for b in (curated, reference)
                    )
                    assert answers == expected, options


def trigram_counts(text: str) -> Counter[str]:
    padded = [f" {word} " for word in lexical_text(text).split()]
    return Counter(word[i : i + 3] for word in padded for i in range(len(word) - 2))


class SlowLexical:
    """TF-IDF cosines over dictionaries, with the rarities of the build, and what no name of it has rarest of all."""

    def __init__(self, built: list[Concept], now: list[Concept]) -> None:
        distinct = {lexical_text(n.text) for c in built for n in c.names}
        holding = Counter(t for text in distinct for t in trigram_counts(text))
        known = {t for c in [*built, *now] for n in c.names for t in trigram_counts(n.text)}
        self.rarity = {t: math.log((1 + len(distinct)) / (1 + holding[t])) + 1 for t in known}
        self.concepts = now

    def vector(self, text: str) -> dict[str, float]:
        weights = {t: n * self.rarity[t] for t, n in trigram_counts(text).items() if t in self.rarity}
        length = math.hypot(*weights.values())
        return {t: weight / length for t, weight in weights.items()}

    def scores(self, mention: str) -> dict[str, float]:
        asked = self.vector(mention)
        return {
            c.id: max(
                sum(asked.get(t, 0) * w for t, w in self.vector(n.text).items()) for n in c.names if not n.suppressed
            )
            for c in self.concepts
            if not all(n.suppressed for n in c.names)
        }


@pytest.mark.parametrize("seed", range(3))
def test_the_lexical_channel_scores_curated_names_by_the_rarities_of_the_build(make_build, tmp_path, seed):
    rng = random.Random(seed)
    concepts = made_up_concepts(rng)
    new: list[Correction] = [("add_synonym", c.id, f"quartz {rng.choice(WORDS)}") for c in rng.sample(concepts, 3)]
    corrections = made_up_corrections(rng, concepts) + new
    curated = make_build(tmp_path, concepts).curated(state(*corrections))
    reference = SlowLexical(concepts, rebuilt(concepts, corrections))
    texts = [" ".join(rng.sample([*WORDS, "quartz"], rng.randint(1, 3))) for _ in range(30)]

    found = curated.linker.link([Mention(t) for t in texts], LinkOptions(channels=("lexical",), top_k=100))

    for text, result in zip(texts, found, strict=True):
        expected = {id_: score for id_, score in reference.scores(text).items() if score >= 1e-4}
        assert {c.concept.id: c.score for c in result.candidates} == pytest.approx(expected, abs=1.01e-4)
        assert [c.score for c in result.candidates] == sorted((c.score for c in result.candidates), reverse=True)


def test_an_added_name_of_new_trigrams_does_not_draw_what_lacks_them(build):
    curated = build.curated(state(("add_synonym", "MONDO:0005087", "asthma zzyzx")))

    whole, old, new = (link(curated, text, channels=("lexical",)) for text in ("asthma zzyzx", "asthma", "zzyzx"))

    assert [(ids(r)[0], r.candidates[0].score) for r in (whole, old)] == [("MONDO:0005087", 1.0), ("C0004096", 1.0)]
    assert ids(new) == ["MONDO:0005087"]


def test_a_pin_holds_for_a_part_of_a_composite(build):
    curated = build.curated(state(("pin_mention", "HP:0000001", "lung disease")))

    before, after = ([part.result for part in link(b, COMPOSITE).parts] for b in (build, curated))

    assert [ids(result)[0] for result in before] == ["C0004096", "MONDO:0005087"]
    assert [ids(result)[0] for result in after] == ["C0004096", "HP:0000001"]
    assert after[1].candidates[0].pin.entry == 1


def test_a_pinned_mention_is_not_split(build):
    curated = build.curated(state(("pin_mention", "HP:0000001", COMPOSITE)))

    result = link(curated, COMPOSITE)

    assert (result.parts, ids(result)[0]) == ((), "HP:0000001")


def test_a_concept_that_is_blocked_answers_no_part(build):
    curated = build.curated(state(("block_concept", "C0004096", None)))

    part, _ = link(curated, COMPOSITE, channels=("exact",)).parts

    assert (part.result.status, part.result.reason) == ("nil", "no_candidate")


def test_a_composite_that_is_added_as_a_name_is_not_split_and_one_that_is_blocked_is(make_build, tmp_path):
    both = Concept("T:BOTH", "Fever and rash", (Name("Fever and rash", "T"), Name("hot spots", "T")))
    fever, rash = (Concept(f"T:{name}", name, (Name(name, "T"),)) for name in ("Fever", "Rash"))
    build = make_build(tmp_path, [both, fever, rash])

    blocked = build.curated(state(("block_name", "T:BOTH", "fever and rash")))
    added = build.curated(state(("add_synonym", "T:BOTH", "fever or rash")))

    assert [len(link(b, "fever and rash").parts) for b in (build, blocked)] == [0, 2]
    assert [len(link(b, "fever or rash").parts) for b in (build, added)] == [2, 0]


def test_what_a_short_form_stands_for_is_searched_under_the_overlay(build):
    context = "The big one (TBO) came in May, after a wheezy lung (WL)."
    curated = build.curated(
        state(
            ("add_synonym", "C0027051", "the big one"),
            ("pin_mention", "C0004096", "wheezy lung"),
        )
    )

    added, pinned = (
        curated.linker.link([Mention(short, context=context)], LinkOptions())[0] for short in ("TBO", "WL")
    )

    assert (added.expansion.text, ids(added)[0], added.candidates[0].name.sab) == ("The big one", "C0027051", SAB)
    assert (pinned.expansion.text, ids(pinned)[0], pinned.candidates[0].pin.entry) == ("wheezy lung", "C0004096", 2)


def test_the_context_says_what_a_pinned_short_form_means_there(build):
    curated = build.curated(state(("pin_mention", "C0027051", "CC")))

    alone, defined = curated.linker.link([Mention("CC"), Mention("CC", context="A common cold (CC).")], LinkOptions())

    assert [ids(alone)[0], ids(defined)[0]] == ["C0027051", "MESH:D003139"]


def test_a_pin_is_not_demoted_for_its_case(make_build, tmp_path):
    concepts = [Concept("T:1", "AIDS", (Name("AIDS", "T"),)), Concept("T:2", "Aid", (Name("Aid", "T"),))]
    build = make_build(tmp_path, concepts)

    before, after = (
        link(b, "aids", channels=("exact",)).candidates[0]
        for b in (build, build.curated(state(("pin_mention", "T:1", "aids"))))
    )

    assert [(c.score, c.case_mismatch) for c in (before, after)] == [(0.8, True), (1.0, False)]


def test_a_pinned_id_is_a_mention_like_others(build):
    curated = build.curated(state(("pin_mention", "C0004096", "C0999999")))

    assert (ids(link(build, "C0999999")), link(build, "C0999999").retired_from) == ([], "C0999999")
    assert ids(link(curated, "C0999999"))[0] == "C0004096"


def test_a_blocked_concept_does_not_answer_to_its_id(build):
    curated = build.curated(state(("block_concept", "HP:0000001", None)))

    assert ids(link(build, "HP:0000001")) == ["HP:0000001"]
    assert "HP:0000001" not in ids(link(curated, "HP:0000001", top_k=100))
