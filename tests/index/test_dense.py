from collections.abc import Sequence
from pathlib import Path

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
