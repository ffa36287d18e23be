from collections.abc import Sequence
from pathlib import Path

import faiss
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from index.arrays import NameArrays, NameArraysWriter
from index.dense import DenseRetriever, DenseWriter
from index.recipes import RECIPES
from index.snapshot import FILE, Snapshot, SnapshotWriter
from medlink.types import Concept, Embeddings, LinkOptions, Name, SemanticType

DIM = 8


class TableEncoder:
    """Gives the texts "0", "1", ... the rows of a table, so that a test chooses every vector."""

    dim = DIM
    lowercase = True
    fingerprint = "table"

    def __init__(self, table: np.ndarray) -> None:
        self.table = table

    def encode(self, texts: Sequence[str]) -> Embeddings:
        rows = np.array([int(t) for t in texts], dtype=np.int64)
        return Embeddings(self.table[rows].reshape(len(rows), DIM), np.zeros(len(rows), np.bool_))


def unit(rng: np.random.Generator, n: int, distinct: int) -> np.ndarray:
    vectors = rng.standard_normal((distinct, DIM)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors[rng.integers(distinct, size=n)]


def make_concepts(rng: np.random.Generator, names: int) -> list[Concept]:
    """Names "0", "1", ... over concepts of very uneven size; some names belong to two concepts."""
    owners: dict[str, list[Name]] = {}
    for i in range(names):
        for concept in {f"X:{int(rng.integers(1, 2 + names // 2)) ** 2 // (1 + names // 2):04d}", f"X:{i % 3:04d}"}:
            owners.setdefault(concept, []).append(Name(str(i), "S", suppressed=bool(rng.random() < 0.2)))
    return [
        Concept(c, owned[0].text, tuple(owned), (SemanticType(f"T{int(rng.integers(3)):03d}", ""),))
        for c, owned in sorted(owners.items())
    ]


def build_dense(directory: Path, concepts: list[Concept], table: np.ndarray, recipe: str) -> DenseRetriever:
    snapshot, arrays = SnapshotWriter(directory / FILE), NameArraysWriter()
    texts: dict[str, int] = {}
    for concept in concepts:
        snapshot.add(concept)
        arrays.add(concept)
    row_of_name = [texts.setdefault(n.text, len(texts)) for c in concepts for n in c.names]
    snapshot.close()
    arrays.save(directory)
    encoder = TableEncoder(table)
    writer = DenseWriter(RECIPES[recipe], DIM)
    writer.add(encoder.encode(list(texts)).vectors)
    writer.save(directory, np.array(row_of_name, np.int32))
    return DenseRetriever(
        directory, RECIPES[recipe], encoder=encoder, arrays=NameArrays(directory), snapshot=Snapshot(directory / FILE)
    )


def brute_force(concepts: list[Concept], table: np.ndarray, query: np.ndarray, options: LinkOptions) -> list[tuple]:
    """The slow and obvious way: every allowed name of every concept, best one kept, sorted."""
    found = []
    for concept in concepts:
        if options.semantic_types and concept.semantic_types[0].tui not in options.semantic_types:
            continue
        scores = [
            round(float(table[int(n.text)].astype(np.float64) @ query.astype(np.float64)), 4)
            for n in concept.names
            if options.include_suppressed or not n.suppressed
        ]
        if scores:
            found.append((concept.id, max(scores)))
    return sorted(found, key=lambda f: (-f[1], f[0]))[: options.top_k]


@pytest.mark.parametrize("recipe", ["flat", "hnsw"])
@settings(deadline=None, max_examples=40)
@given(
    names=st.integers(1, 120),
    distinct=st.integers(1, 120),
    k=st.integers(1, 100),
    types=st.sets(st.sampled_from(["T000", "T001", "T002"])),
    suppressed=st.booleans(),
    seed=st.integers(0, 2**16),
)
def test_agrees_with_brute_force(tmp_path_factory, recipe, names, distinct, k, types, suppressed, seed):
    rng = np.random.default_rng(seed)
    table, queries = unit(rng, names, distinct), unit(rng, 5, 5)
    concepts = make_concepts(rng, names)
    present = {c.semantic_types[0].tui for c in concepts}
    options = LinkOptions(top_k=k, semantic_types=frozenset(types & present), include_suppressed=suppressed)
    dense = build_dense(tmp_path_factory.mktemp("dense"), concepts, table, recipe)

    found = dense.nearest(queries, options)

    expected = [brute_force(concepts, table, q, options) for q in queries]
    assert [[(r.concept_id, pytest.approx(r.score, abs=1e-9)) for r in one] for one in found] == expected


def test_an_answer_does_not_depend_on_what_else_is_asked(tmp_path):
    rng = np.random.default_rng(1)
    table, queries = unit(rng, 2000, 2000), unit(rng, 300, 300)
    dense = build_dense(tmp_path, make_concepts(rng, 2000), table, "flat")

    together = dense.nearest(queries, LinkOptions(top_k=10))

    alone = [dense.nearest(queries[i : i + 1], LinkOptions(top_k=10))[0] for i in range(300)]
    assert together == alone


def test_a_name_that_rounds_up_is_not_lost_at_the_edge_of_what_was_fetched(tmp_path):
    rng = np.random.default_rng(7)
    (query,) = unit(rng, 1, 1)
    axis = query / np.linalg.norm(query.astype(np.float64))
    aside = rng.standard_normal((4000, DIM))
    aside -= (aside @ axis)[:, None] * axis
    aside /= np.linalg.norm(aside, axis=1, keepdims=True)
    edge = 0.81235  # scores on both sides of it, closer than FAISS's own sums can tell
    table = (edge * axis + np.sqrt(1 - edge**2) * aside).astype(np.float32)
    cosines = table.astype(np.float64) @ query
    near, above = np.abs(cosines - edge) < 3e-8, cosines >= edge
    table = table[near & (~above | (np.cumsum(near & above) <= 6))]
    concepts = [Concept(f"X:{i:04d}", str(i), (Name(str(i), "S"),)) for i in range(len(table))]

    for k in (1, 3, 5):
        directory = tmp_path / str(k)
        directory.mkdir()
        (found,) = build_dense(directory, concepts, table, "flat").nearest(query[None], LinkOptions(top_k=k))

        expected = brute_force(concepts, table, query, LinkOptions(top_k=k))
        assert [(r.concept_id, r.score) for r in found] == expected


@pytest.mark.parametrize("recipe", ["flat", "hnsw"])
def test_a_comparison_in_small_parts_is_the_same(tmp_path, monkeypatch, recipe):
    rng = np.random.default_rng(2)
    table, queries = unit(rng, 500, 500), unit(rng, 40, 40)
    dense = build_dense(tmp_path, make_concepts(rng, 500), table, recipe)
    options = LinkOptions(top_k=20, semantic_types=frozenset({"T001"}))
    whole = dense.nearest(queries, options)

    monkeypatch.setattr("index.dense._IN_MEMORY", 1000)

    assert dense.nearest(queries, options) == whole


def test_what_a_wide_filter_leaves_out_does_not_answer(tmp_path, monkeypatch):
    monkeypatch.setattr("index.dense._GRAPH_ROWS", 10)
    rng = np.random.default_rng(3)
    table, queries = unit(rng, 400, 400), unit(rng, 20, 20)
    concepts = make_concepts(rng, 400)

    for recipe in ("flat", "hnsw"):
        directory = tmp_path / recipe
        directory.mkdir()
        found = build_dense(directory, concepts, table, recipe).nearest(queries, LinkOptions(top_k=3))

        assert [[(r.concept_id, r.score) for r in one] for one in found] == [
            brute_force(concepts, table, q, LinkOptions(top_k=3)) for q in queries
        ]


def test_a_few_mentions_are_searched_on_one_thread(tmp_path):
    rng = np.random.default_rng(4)
    table = unit(rng, 100, 100)
    dense = build_dense(tmp_path, make_concepts(rng, 100), table, "flat")
    faiss.omp_set_num_threads(2)

    dense.nearest(table[:3], LinkOptions())

    assert faiss.omp_get_max_threads() == 1


def test_a_concept_with_many_names_does_not_fill_the_list(tmp_path):
    near = np.zeros((60, DIM), np.float32)
    near[:, 0], near[:, 1] = 1, np.linspace(0, 0.1, 60)
    near /= np.linalg.norm(near, axis=1, keepdims=True)
    names = [Name(str(i), "S") for i in range(60)]
    concepts = [
        Concept("A:1", "0", tuple(names[:50])),
        *(Concept(f"B:{i}", str(i), (names[i],)) for i in range(50, 60)),
    ]
    dense = build_dense(tmp_path, concepts, near, "flat")

    (found,) = dense.nearest(near[:1], LinkOptions(top_k=5))

    assert [r.concept_id for r in found] == ["A:1", "B:50", "B:51", "B:52", "B:53"]
    assert found[0].score == 1.0
