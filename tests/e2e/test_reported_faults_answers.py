"""What reports about other linkers complain of, in their answers: order, distinct concepts, filters, scores, ties."""

import csv
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient

from app.main import create_app
from app.settings import Settings
from index.recipes import RECIPES
from index.store import open_build
from medlink.text import encoder_text
from medlink.types import Concept, LinkOptions, Mention, Name

ROOT = Path(__file__).parents[2]
CHANNELS = [("exact", "dense"), ("dense",), ("lexical",), ("exact", "dense", "lexical")]
MENTIONS = [
    "heart attack", "hart atack", "cold", "leukaemia", "IFN-γ", "aids", "AIDS", "breast and ovarian cancer", "headache",
    "", "#", "Crohn’s", "type II diabetes", "N/V/D", "glycyl-alanine", "zzz", "warblers", "Müller", "m²", "🫀 asthma",
]  # fmt: skip
ANSWER = """
import json, sys
from dataclasses import asdict
from pathlib import Path
from index.store import open_build
from medlink.types import LinkOptions, Mention
build = open_build(Path(sys.argv[1]), threads=1)
options = LinkOptions(channels=("exact", "dense", "lexical"))
results = build.linker.link([Mention(text) for text in json.loads(sys.argv[2])], options)
print(json.dumps([asdict(result) for result in results]))
"""


def ids(result):
    return [candidate.concept.id for candidate in result.candidates]


@pytest.fixture(scope="module")
def directory(faults):
    """Where the files of the index build lie."""
    return Path(faults.snapshot._uri.removeprefix("file://").partition("?")[0]).parent


@pytest.fixture(scope="module")
def names():
    with (ROOT / "tests/data/faults.tsv").open(encoding="utf-8", newline="") as source:
        return [(row["id"], row["name"]) for row in csv.DictReader(source, delimiter="\t", quoting=csv.QUOTE_NONE)]


@pytest.fixture(scope="module")
def client(faults, tmp_path_factory):
    with TestClient(create_app(Settings(data_dir=tmp_path_factory.mktemp("data")), build=faults)) as client:
        yield client


# The same answer anywhere and in any order


def test_two_processes_give_the_same_concepts_order_and_scores(directory):
    def answers(seed: str, mentions: list[str]) -> list[dict]:
        command = [sys.executable, "-c", ANSWER, str(directory), json.dumps(mentions)]
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
        return json.loads(subprocess.run(command, env=environment, capture_output=True, check=True, timeout=120).stdout)

    shuffled = random.Random(1).sample(range(len(MENTIONS)), len(MENTIONS))
    first, second = answers("0", MENTIONS), answers("1", [MENTIONS[i] for i in shuffled])

    assert second == [first[i] for i in shuffled]
    assert any(answer["candidates"] for answer in first)


@pytest.mark.parametrize("channels", CHANNELS)
def test_an_answer_does_not_depend_on_what_else_is_asked(ask, faults, channels):
    alone = [ask(mention, channels=channels) for mention in MENTIONS]
    many = random.Random(2).choices(range(len(MENTIONS)), k=150)

    together = faults.linker.link([Mention(MENTIONS[i]) for i in many], LinkOptions(channels=channels))

    assert together == [alone[i] for i in many]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_bulk_request_in_another_order_gives_each_item_its_answer(client, seed):
    def bulk(mentions: list[object]) -> list[dict]:
        return client.post("/link/bulk", json={"mentions": mentions, "explain": True}).json()["results"]

    items = [*MENTIONS, {"text": "MS", "context": "mitral stenosis (MS)"}, {"text": "MS"}, "a\0b", 7]
    shuffled = random.Random(seed).sample(range(len(items)), len(items))

    def without_place(result: dict) -> dict:
        return {key: value for key, value in result.items() if key != "item"}

    straight, mixed = bulk(items), bulk([items[i] for i in shuffled])

    assert [without_place(result) for result in mixed] == [without_place(straight[i]) for i in shuffled]


# What is not in the knowledge base


@pytest.mark.parametrize(
    "mention", ["vorasidenib", "palivizumab", "hippopotamus", "Wolfram syndrome", "stock exchange", "wabler syndrome"]
)
def test_what_is_not_there_is_nil_with_the_nearest_shown_as_nearest(judged, mention):
    (result,) = judged.linker.link([Mention(mention)], LinkOptions())

    assert (result.status, result.reason, result.candidates) == ("nil", "below_threshold", ())
    assert result.nearest.score < 1


@pytest.mark.parametrize("mention", ["asthma", "heart attack", "leukaemia", "ALS", "headache", "hearing aids"])
def test_what_is_there_is_linked_though_nonsense_is_nil(judged, mention):
    (result,) = judged.linker.link([Mention(mention)], LinkOptions())

    assert (result.status, result.candidates[0].relation) == ("linked", "exact")


@pytest.mark.parametrize("mention", ["vorasidenib", "Wolfram syndrome", "stock exchange"])
def test_what_is_not_there_is_no_exact_name(ask, mention):
    result = ask(mention, channels=("exact",))

    assert (result.status, result.reason, result.candidates) == ("nil", "no_candidate", ())


# Distinct concepts, under filters too


@pytest.mark.parametrize("channels", CHANNELS[1:])
@pytest.mark.parametrize("mention", ["headache", "headache of snow", "head pain", "headaches of morning"])
def test_a_concept_of_forty_names_fills_one_place(ask, mention, channels):
    found = ids(ask(mention, channels=channels))

    assert len(found) == len(set(found)) == 5
    assert found[0] == "F:HEADACHE"


@pytest.mark.parametrize("channels", CHANNELS[1:])
@pytest.mark.parametrize(
    ("mention", "filters"),
    [
        ("headache", {"sabs": frozenset({"HEADS"})}),
        ("headache", {"semantic_types": frozenset({"T047"})}),
        ("headache of light", {"semantic_types": frozenset({"T047", "T191"})}),
        ("headache", {"semantic_types": frozenset({"T047", "T184"}), "sabs": frozenset({"HEADS"})}),
        ("lung cancer", {"semantic_types": frozenset({"T191"})}),
    ],
)
def test_a_filter_leaves_five_distinct_concepts(ask, faults, mention, filters, channels):
    found = ids(ask(mention, channels=channels, **filters))

    assert len(found) == len(set(found)) == 5
    for concept in map(faults.snapshot.concept, found):
        assert {t.tui for t in concept.semantic_types} & filters.get("semantic_types", {"T047", "T184", "T191"})
        assert {n.sab for n in concept.names} & filters.get("sabs", {"OURS", "HEADS"})


@pytest.mark.parametrize("channels", CHANNELS)
def test_a_filter_that_leaves_fewer_gives_those(ask, channels):
    result = ask("lark", semantic_types=frozenset({"T012"}), channels=channels)

    assert ids(result)[0] == "F:LARK"
    assert set(ids(result)) <= {"F:LARK", "F:WARBLER"}


# One metric


def test_vectors_have_length_one_and_scores_lie_in_range(faults, ask, names):
    long = " ".join(name for _, name in names)
    texts = [encoder_text(text, lowercase=faults.encoder.lowercase) for text in ("a", "heart attack", long)]

    norms = np.linalg.norm(faults.encoder.encode(texts).vectors, axis=1)

    assert norms == pytest.approx(np.ones(3), abs=1e-5)
    for mention in [*MENTIONS, long]:
        for candidate in ask(mention, channels=("exact", "dense", "lexical"), top_k=100).candidates:
            assert all(-1 <= score <= 1 for _, score in candidate.channels)


@pytest.mark.parametrize("mention", ["pain", "cancer", "headache of snow", "infarction of the heart muscle"])
def test_the_order_is_that_of_cosines_however_long_a_name_is(faults, ask, names, mention):
    texts = [encoder_text(text, lowercase=faults.encoder.lowercase) for text in (mention, *(n for _, n in names))]
    vectors = faults.encoder.encode(texts).vectors.astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    best: dict[str, float] = {}
    for (concept, _), cosine in zip(names, vectors[1:] @ vectors[0], strict=True):
        best[concept] = max(best.get(concept, -1), cosine)

    found = ask(mention, channels=("dense",), top_k=20).candidates

    scores = [dict(candidate.channels)["dense"] for candidate in found]
    assert scores == pytest.approx([best[c.concept.id] for c in found], abs=2e-4)
    assert scores == pytest.approx(sorted(best.values(), reverse=True)[:20], abs=2e-4)


@pytest.mark.parametrize("channel", ["dense", "lexical"])
def test_a_name_asked_verbatim_is_as_similar_as_can_be(faults, names, channel):
    results = faults.linker.link([Mention(n) for _, n in names], LinkOptions(channels=(channel,), composites=False))

    for (concept, name), result in zip(names, results, strict=True):
        scores = {c.concept.id: dict(c.channels)[channel] for c in result.candidates}
        assert scores.get(concept) == 1.0, name


@pytest.mark.parametrize("channels", [("exact",), *CHANNELS])
@pytest.mark.parametrize(
    ("mention", "owners"),
    [
        ("cold", ("F:COLD-FEELING", "F:COMMON-COLD")),
        ("« Cold. »", ("F:COLD-FEELING", "F:COMMON-COLD")),
        ("MS", ("F:MITRAL", "F:MS")),
        ("ＭＳ®", ("F:MITRAL", "F:MS")),
    ],
)
def test_concepts_of_one_name_are_a_reported_tie(ask, mention, owners, channels):
    result = ask(mention, channels=channels)

    assert (result.status, result.ties) == ("ambiguous", owners)
    assert set(ids(result)[:2]) == set(owners)
    assert result.candidates[0].channels == result.candidates[1].channels


# Approximate search and exported encoders


def test_a_graph_index_answers_the_same_whenever_it_is_opened_and_is_near_exact_search(make_build, tmp_path):
    concepts = [Concept(f"T:{i:04}", f"ache of kind {i * 7919}", (Name(f"ache of kind {i * 7919}", "T"),))
                for i in range(400)]  # fmt: skip
    graph, exact = (make_build(tmp_path / recipe, concepts, recipe=recipe) for recipe in ("hnsw", "flat"))
    mentions = [Mention(f"ache of kind {i * 7919 + 1}") for i in range(0, 400, 8)]
    options = LinkOptions(channels=("dense",))

    def found(build):
        return [{c.concept.id for c in result.candidates} for result in build.linker.link(mentions, options)]

    again = open_build(tmp_path / "hnsw" / graph.id, threads=4)

    assert graph.linker.link(mentions, options) == again.linker.link(mentions, options)
    assert graph.manifest["measured_recall"] >= RECIPES["hnsw"].recall
    shared = [len(one & other) / 5 for one, other in zip(found(graph), found(exact), strict=True)]
    assert np.mean(shared) >= RECIPES["hnsw"].recall


def test_the_shipped_encoder_agrees_with_what_it_was_exported_from():
    parity = json.loads((ROOT / "artefacts/encoder/manifest.json").read_text(encoding="utf-8"))["parity"]

    assert parity["fp32_to_torch"]["max_difference"] < 1e-4
    assert parity["fp32_to_torch"]["changed_top1"] == 0


def test_a_vector_does_not_count_padding_or_its_neighbours(faults, names):
    texts = [encoder_text(name, lowercase=faults.encoder.lowercase) for _, name in names]

    together = faults.encoder.encode(texts).vectors
    alone = np.vstack([faults.encoder.encode([text]).vectors for text in texts[::8]])

    assert np.sum(together[::8] * alone, axis=1).min() >= 0.99999
