"""Pairs of a terminology: which names serve, what is left out, and the same bytes for the same input."""

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from medlink.errors import EncoderError, SourceError, UnknownValueError
from medlink.kb.records import BroaderRecord, NameRecord, Record, SourceRecord, TradeNameRecord
from medlink.types import Concept, Name
from training.heldout import hold_out
from training.names import NameRule
from training.pairs import PairRecipe, make_pairs
from training.pairset import PairSet, read_pairs
from training.sampler import PairSampler

RRF = Path(__file__).parents[1] / "data" / "rrf" / "META"


class Terms:
    """A terminology in memory."""

    def __init__(self, records: Iterable[Record]) -> None:
        self._records = list(records)

    def records(self) -> Iterable[Record]:
        return self._records

    def facts(self) -> Mapping[str, Any]:
        return {"kind": "memory"}


def names(concept_id: str, *texts: str) -> list[Record]:
    return [NameRecord(concept_id, text, "SRC") for text in texts]


def made(directory: Path, records: Iterable[Record], **recipe: Any) -> PairSet:
    make_pairs(Terms(records), directory, PairRecipe(**recipe))
    return read_pairs(directory)


def pairs_of(found: PairSet) -> list[tuple[str, str, str]]:
    pairs = found.pairs
    left, right = found.texts(pairs.left), found.texts(pairs.right)
    ids = found.concepts
    return [(ids[c], a, b) for c, a, b in zip(pairs.concept.tolist(), left, right, strict=True)]


def owners(found: PairSet) -> dict[str, set[str]]:
    texts, ids = found.texts(np.arange(found.text_count)), found.concepts
    return {text: {ids[c] for c in found.memberships.row(i).tolist()} for i, text in enumerate(texts)}


def content(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir())}


def test_names_of_a_concept_make_pairs_in_the_form_of_the_encoder(tmp_path):
    found = made(tmp_path / "out", names("C1", "Heart  Attack", "ﬁbrosis", "heart attack", "MI"))

    assert pairs_of(found) == [
        ("C1", "fibrosis", "heart attack"),
        ("C1", "fibrosis", "mi"),
        ("C1", "heart attack", "mi"),
    ]
    assert found.manifest["counts"]["duplicates"] == 1


def test_a_cased_encoder_sees_case(tmp_path):
    found = made(tmp_path / "out", names("C1", "Heart Attack", "heart attack"), rule=NameRule(lowercase=False))

    assert pairs_of(found) == [("C1", "Heart Attack", "heart attack")]


def test_names_with_quotes_and_pipes_are_kept_as_they_are(tmp_path):
    found = made(tmp_path / "out", names("C1", '"Black" lung', '2"-deoxy', "a||b", "c|d"))

    assert set(owners(found)) == {"black lung", "2 deoxy", "a b", "c d"}


def test_names_that_do_not_serve_are_left_out_and_counted(tmp_path):
    records = [
        *names("C1", "one", "two", "\u200b", " \t", "#", "x" * 21),
        NameRecord("C1", "drei", "SRC", language="GER"),
        NameRecord("C1", "old", "SRC", suppress="O"),
        NameRecord("C1", "odd", "SRC", suppress="E"),
    ]

    found = made(tmp_path / "out", records, rule=NameRule(max_chars=20))

    assert set(owners(found)) == {"one", "two", "#"}
    skipped = {"blank after normalisation": 2, "language": 1, "suppressed": 2, "too long": 1}
    assert found.manifest["skipped"] == skipped
    assert found.manifest["counts"]["names_read"] == 9
    assert found.manifest["counts"]["names_used"] == 3


def test_suppressed_names_and_other_languages_come_if_asked_for(tmp_path):
    records = [
        *names("C1", "one"),
        NameRecord("C1", "drei", "SRC", language="GER"),
        NameRecord("C1", "old", "SRC", suppress="O"),
    ]

    found = made(tmp_path / "out", records, rule=NameRule(languages=None, include_suppressed=True))

    assert set(owners(found)) == {"one", "drei", "old"}


def test_a_language_that_no_name_has_is_an_error_that_lists_them(tmp_path):
    with pytest.raises(UnknownValueError, match="language 'EGN'; valid: ENG"):
        made(tmp_path / "out", names("C1", "one", "two"), rule=NameRule(languages=("ENG", "EGN")))

    assert list(tmp_path.iterdir()) == []


def test_trade_names_of_all_partners_join_both_ways(tmp_path):
    records = [
        *names("G", "generic"),
        *names("T1", "brand one"),
        *names("T2", "brand two"),
        TradeNameRecord("G", "T1"),
        TradeNameRecord("G", "T2"),
        TradeNameRecord("G", "T2"),
        TradeNameRecord("G", "nameless"),
        *(TradeNameRecord(concept, concept) for concept in ("G", "T1")),
    ]

    found = made(tmp_path / "out", records)

    assert pairs_of(found) == [
        ("G", "brand one", "brand two"),
        ("G", "brand one", "generic"),
        ("G", "brand two", "generic"),
        ("T1", "brand one", "generic"),
        ("T2", "brand two", "generic"),
    ]
    # Two brands of one generic drug have no concept of their own in common, and must not be pushed apart.
    assert owners(found) == {"brand one": {"G", "T1"}, "brand two": {"G", "T2"}, "generic": {"G", "T1", "T2"}}
    assert found.manifest["counts"]["trade_name_links"] == 2
    assert found.manifest["counts"]["trade_name_links_without_names"] == 1


def test_broader_concepts_are_kept_where_both_have_names(tmp_path):
    records = [
        *names("C2", "lung cancer", "cancer of the lung"),
        *names("C1", "cancer", "malignancy"),
        BroaderRecord("C2", "C1", "SRC"),
        BroaderRecord("C2", "C1", "OTHER"),
        BroaderRecord("C1", "nameless", "SRC"),
        BroaderRecord("C1", "C1", "SRC"),
    ]

    found = made(tmp_path / "out", records)

    assert [found.broader.row(concept).tolist() for concept in range(2)] == [[], [0]]
    assert found.manifest["counts"]["broader_links"] == 1


def test_a_string_of_several_concepts_knows_all_of_them(tmp_path):
    found = made(
        tmp_path / "out", [*names("C2", "Cold", "chill"), *names("C1", "cold", "common cold"), *names("C3", "COLD")]
    )

    assert owners(found) == {"chill": {"C2"}, "cold": {"C1", "C2", "C3"}, "common cold": {"C1"}}
    assert found.manifest["counts"]["concepts_with_one_name"] == 1


def test_a_concept_with_two_thousand_names_has_as_many_pairs_as_it_may(tmp_path):
    records = names("C1", *(f"name {n}" for n in range(2000)))

    found = made(tmp_path / "out", records)
    among_others = made(tmp_path / "more", [*names("A", "another", "and one"), *records])
    reseeded = made(tmp_path / "seed", records, seed=1)

    assert len(set(pairs_of(found))) == 50
    assert all(a != b for _, a, b in pairs_of(found))
    assert found.manifest["counts"]["pairs_possible"] == 1_999_000
    assert found.manifest["counts"]["concepts_capped"] == 1
    # The seed comes from the concept: what else is in the release does not matter.
    assert [pair for pair in pairs_of(among_others) if pair[0] == "C1"] == pairs_of(found)
    assert set(pairs_of(reseeded)) != set(pairs_of(found))


TEXTS = st.sampled_from(["Fever", "fever", "fièvre", "Ödem", "zoster", "a b", "a-b", "𝔸", "\uffee", "熱", "ab", "abc"])
IDS = st.sampled_from(["C1", "c1", "C10", "MONDO:1", "é1", "𝔸", "\uffee"])
NAMES = st.lists(st.builds(NameRecord, IDS, TEXTS, st.just("SRC")), min_size=2, max_size=25)
LINKS = st.lists(st.builds(TradeNameRecord, IDS, IDS), max_size=5)


def slow(records: list[Record]) -> tuple[dict[str, set[str]], set[tuple[str, str, str]]]:
    """Owners of each text and every pair, the obvious way."""
    rule = NameRule()
    own: dict[str, set[str]] = defaultdict(set)
    for record in records:
        if isinstance(record, NameRecord):
            own[record.concept_id].add(rule.form(record.text, "ENG", suppressed=False)[0])
    pool = {concept: set(texts) for concept, texts in own.items()}
    for record in records:
        if isinstance(record, TradeNameRecord) and {record.generic_id, record.trade_id} <= set(own):
            pool[record.generic_id] |= own[record.trade_id]
            pool[record.trade_id] |= own[record.generic_id]
    of_text: dict[str, set[str]] = defaultdict(set)
    for concept, texts in pool.items():
        for text in texts:
            of_text[text].add(concept)
    return dict(of_text), {(c, a, b) for c, texts in pool.items() for a, b in combinations(sorted(texts), 2)}


@settings(max_examples=40, deadline=None)
@given(records=NAMES, links=LINKS, shuffle=st.randoms(use_true_random=False))
def test_agrees_with_the_obvious_way_and_order_does_not_matter(tmp_path_factory, records, links, shuffle):
    of_text, pairs = slow([*records, *links])
    if not pairs:
        return
    folder = tmp_path_factory.mktemp("pairs")
    mixed: list[Record] = [*records, *links]
    shuffle.shuffle(mixed)

    found = made(folder / "one", [*records, *links])
    made(folder / "other", mixed)

    assert owners(found) == of_text
    assert sorted(pairs_of(found)) == sorted(pairs)
    assert found.texts(np.arange(found.text_count)) == sorted(of_text)
    assert found.concepts == sorted(found.concepts)
    assert content(folder / "one") == content(folder / "other")


def many(concepts: int = 300) -> list[Record]:
    texts = [[f"w{(n * 7 + k * 31) % 400} v{k}" for k in range(1 + n % 14)] for n in range(concepts)]
    return [
        *(record for n in range(concepts) for record in names(f"C{n:04d}", *texts[n])),
        *(TradeNameRecord(f"C{n:04d}", f"C{n + 7:04d}") for n in range(0, 200, 20)),
        SourceRecord("SRC", "Invented", "2026", "CC0"),
    ]


def test_the_same_input_gives_the_same_bytes_in_any_order(tmp_path):
    records = many()
    mixed = random.Random(5).sample(records, len(records))

    for directory, each in (("first", records), ("again", records), ("mixed", mixed)):
        made(tmp_path / directory, each, max_pairs=20, held_out_percent=5)

    first = content(tmp_path / "first")
    assert len(first) == 6
    assert content(tmp_path / "again") == first
    assert content(tmp_path / "mixed") == first


def test_the_pairs_stay_what_they_are(tmp_path):
    found = made(tmp_path / "out", many(), max_pairs=20, held_out_percent=5)

    # Rows, not bytes, which are another pyarrow's to change.
    rows = "\n".join("|".join(pair) for pair in pairs_of(found))
    assert found.manifest["counts"]["pairs"] == 4141
    assert blake2b(rows.encode(), digest_size=8).hexdigest() == "beeca519cb7e4c44"


def test_hidden_names_are_in_no_file_whatever_their_order_of_words(tmp_path):
    records = [*many(), *names("C0001", "beta alpha", "alpha beta", "x y", "y x")]
    concepts = as_concepts(records)
    held_out = hold_out(concepts, percent=30, seed=3)

    found = made(tmp_path / "out", records, held_out_percent=30, seed=3)

    expected = {n.text for c in concepts for n in c.names if not held_out.is_held_out(n.text)}
    assert set(owners(found)) == expected
    assert found.manifest["held_out"] == held_out.facts()
    counts = found.manifest["counts"]
    assert counts["held_out_names"] == sum(held_out.is_held_out(n.text) for c in concepts for n in c.names) > 100
    assert len(found.concepts) == len(concepts)


def as_concepts(records: list[Record]) -> list[Concept]:
    texts: dict[str, dict[str, None]] = defaultdict(dict)
    for record in records:
        if isinstance(record, NameRecord):
            texts[record.concept_id][record.text] = None
    return [Concept(c, next(iter(t)), tuple(Name(text, "SRC") for text in t)) for c, t in texts.items()]


def test_a_terminology_without_two_names_of_a_concept_is_refused_and_leaves_nothing(tmp_path):
    with pytest.raises(SourceError, match="two names"):
        made(tmp_path / "out", [*names("C1", "one", "One"), *names("C2", "two")])
    with pytest.raises(SourceError, match="two names"):
        made(tmp_path / "out", [], rule=NameRule(languages=None))

    assert list(tmp_path.iterdir()) == []


def test_pairs_are_never_written_over(tmp_path):
    made(tmp_path / "out", names("C1", "one", "two"))

    with pytest.raises(EncoderError, match="exists"):
        made(tmp_path / "out", names("C1", "one", "two"))


def test_pairs_go_through_the_sampler(tmp_path):
    found = made(tmp_path / "out", many(60))

    batch = next(PairSampler(found.pairs, np.ones(found.text_count, np.int32), batch_pairs=16).epoch(0))

    rows = found.memberships.take(batch.texts)
    assert all(label in rows.row(i) for i, label in enumerate(batch.labels.tolist()))
