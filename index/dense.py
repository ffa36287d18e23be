"""The dense channel: nearest names by vector. The only code that sees FAISS and its rows."""

from collections.abc import Iterator, Sequence
from copy import copy
from functools import lru_cache
from pathlib import Path
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from index.arrays import Bools, NameArrays, map_ragged, save_ragged
from index.nearest import DECIMALS, Names, Scored, rank_in_query, retrieved
from index.overlay import AddedNames, Overlay
from index.recipes import Recipe
from index.snapshot import Snapshot
from medlink.errors import IndexMismatchError
from medlink.protocols import Encoder
from medlink.ragged import Ragged
from medlink.stages import stage
from medlink.text import encoder_text
from medlink.types import LinkOptions, Retrieval, Retrieved

FILE = "dense.faiss"
ROWS = "dense_rows"
Vectors = NDArray[np.float32]

# Mentions searched at once: enough for FAISS to use a matrix product, few enough that rescoring stays small.
_TOGETHER = 256
_FIRST_FETCH = 32
# A graph is poor at long lists and at narrow filters; from here on looking at every allowed vector is better.
_GRAPH_FETCH = 2048
_GRAPH_ROWS = 20_000
# Waking FAISS's other threads costs more than a few mentions take.
_SHARE_FROM = 64
# FAISS compares fewer vectors than this one by one, others as a matrix product: ten times as fast already for eight.
_PRODUCT_FROM = 4
# Numbers that a comparison with stored vectors holds at a time, whatever the caller asks for.
_IN_MEMORY = 1 << 24


class DenseWriter:
    """Fills a FAISS index with the vectors of the distinct encoder texts, in row order."""

    def __init__(self, recipe: Recipe, dim: int) -> None:
        self._index = faiss.index_factory(dim, recipe.factory, faiss.METRIC_INNER_PRODUCT)

    def add(self, vectors: Vectors) -> None:
        """Append unit vectors, float32 (n, dim); the first batch also trains what needs training."""
        if not self._index.is_trained:
            self._index.train(vectors)
        self._index.add(vectors)

    def save(self, directory: Path, row_of_name: NDArray[np.int32]) -> None:
        """Write the index and which names stand behind each row."""
        save_ragged(Ragged.group(row_of_name, self._index.ntotal), directory, ROWS)
        faiss.write_index(self._index, str(directory / FILE))


class DenseRetriever:
    """Finds the concepts whose names lie nearest to a mention; exhaustive where the recipe is."""

    def __init__(
        self,
        directory: Path,
        recipe: Recipe,
        *,
        encoder: Encoder,
        arrays: NameArrays,
        snapshot: Snapshot,
        threads: int = 1,
    ) -> None:
        self._index = _read(directory)
        if self._index.d != encoder.dim:
            raise IndexMismatchError(f"{FILE} has {self._index.d} dimensions, its encoder {encoder.dim}")
        self._recipe = recipe
        self._encoder = encoder
        self._arrays = arrays
        self._snapshot = snapshot
        self._threads = threads
        self._names = Names(map_ragged(directory, ROWS), arrays.concept_of_name)
        self._rows = lru_cache(maxsize=8)(self._compute_rows)
        self._added: AddedNames | None = None

    def under(self, overlay: Overlay) -> "DenseRetriever":
        """Return the same channel as curation leaves it; both search one FAISS index."""
        other = copy(self)
        other._arrays = overlay.arrays
        other._rows = lru_cache(maxsize=8)(other._compute_rows)
        other._added = overlay.added
        return other

    def search(self, mentions: Sequence[str], options: LinkOptions) -> list[Retrieval]:
        """Return, for each mention, `top_k` distinct concepts if they exist, best first.

        Equal scores are ordered by concept id. A mention of nothing but blanks finds nothing.
        """
        texts = [encoder_text(mention, lowercase=self._encoder.lowercase) for mention in mentions]
        distinct = sorted({text for text in texts if text})
        with stage("encode", len(distinct)):
            encoded = self._encoder.encode(distinct)
        nearest = self.nearest(encoded.vectors, options)
        found = {
            text: Retrieval(tuple(concepts), bool(cut))
            for text, concepts, cut in zip(distinct, nearest, encoded.truncated, strict=True)
        }
        return [found.get(text, Retrieval()) for text in texts]

    def nearest(self, vectors: Vectors, options: LinkOptions) -> list[list[Retrieved]]:
        """Return the concepts that `search` finds, for unit vectors (n, dim)."""
        allowed = self._arrays.allowed(options)
        rows = self._rows(options.semantic_types, options.sabs, options.include_suppressed)
        found: list[list[Retrieved]] = []
        for start in range(0, len(vectors), _TOGETHER):
            part = vectors[start : start + _TOGETHER]
            scored = list(self._best_concepts(part, options.top_k, allowed, rows))
            of_build = retrieved(scored, len(part), self._snapshot)
            found += _with_added(self._added, part, of_build, options) if self._added else of_build
        return found

    def recall(self, vectors: Vectors, k: int = 10) -> float:
        """Return which share of the true k nearest rows a search finds, for unit vectors (n, dim)."""
        k = min(k, self._index.ntotal)
        found, true = (
            self._rescore(vectors, rows) for rows in (self._near_rows(vectors, k, None), self._scan(vectors, k, None))
        )
        # Equal names are equally near: what counts is to be as near as the k-th.
        return float((found >= true.min(axis=1, keepdims=True)).mean())

    def _compute_rows(
        self, semantic_types: frozenset[str], sabs: frozenset[str], include_suppressed: bool
    ) -> NDArray[np.int64] | None:
        """Return the rows to look at; None where leaving the few others out is cheaper afterwards."""
        options = LinkOptions(semantic_types=semantic_types, sabs=sabs, include_suppressed=include_suppressed)
        allowed = self._arrays.allowed(options)
        rows = None if allowed is None else np.flatnonzero(self._names.of_row.any(allowed))
        few = rows is not None and (len(rows) <= _GRAPH_ROWS or 2 * len(rows) < self._index.ntotal)
        return rows if few else None

    def _best_concepts(
        self, vectors: Vectors, k: int, allowed: Bools | None, rows: NDArray[np.int64] | None
    ) -> Iterator[Scored]:
        """Yield the k best concepts of every query, fetching more names until that many are found."""
        total = self._index.ntotal if rows is None else len(rows)
        pending = np.arange(len(vectors))
        fetch = min(max(2 * k, _FIRST_FETCH), total)
        while len(pending) and total:
            near = self._near_rows(vectors[pending], fetch, rows)
            scores = self._rescore(vectors[pending], near)
            # FAISS pads a short result with row -1, which Python reads as "the last row".
            query, place = np.nonzero(near >= 0)
            scored = self._names.concepts(pending[query], near[query, place], scores[query, place], allowed)
            rank = rank_in_query(scored.query)
            kth = np.full(len(vectors), np.inf)
            kth[scored.query[rank == k - 1]] = scored.score[rank == k - 1]
            # Ties with the k-th may lie just beyond the last one fetched, and FAISS, which orders by sums of its
            # own, may have left out a name that is a step better: the list must reach two steps below.
            beyond = scores.min(axis=1) < kth[pending] - 1.5 * 10**-DECIMALS
            done = beyond & np.isfinite(kth[pending]) | (fetch >= total)
            yield scored.take((rank < k) & np.isin(scored.query, pending[done]))
            pending = pending[~done]
            fetch = min(fetch * 4, total)

    def _near_rows(self, vectors: Vectors, fetch: int, rows: NDArray[np.int64] | None) -> NDArray[np.int64]:
        """Return the rows of the nearest names, (n, fetch); -1 where a graph search came back short."""
        if not self._recipe.exact and (fetch > _GRAPH_FETCH or (rows is not None and len(rows) <= _GRAPH_ROWS)):
            return self._scan(vectors, fetch, rows)
        # This is a setting of the calling thread alone.
        faiss.omp_set_num_threads(self._threads if len(vectors) >= _SHARE_FROM else 1)
        # And this one of the process.
        faiss.cvar.distance_compute_blas_threshold = _PRODUCT_FROM
        selector = None if rows is None else faiss.IDSelectorBatch(rows)
        if self._recipe.exact:
            parameters = faiss.SearchParameters(sel=selector) if selector else None
        else:
            effort = max(self._recipe.effort, 2 * fetch)
            parameters = faiss.SearchParametersHNSW(sel=selector, efSearch=effort)
        return np.asarray(self._index.search(vectors, fetch, params=parameters)[1])

    def _scan(self, vectors: Vectors, fetch: int, rows: NDArray[np.int64] | None) -> NDArray[np.int64]:
        """Do without the graph: compare with every allowed vector."""
        rows = np.arange(self._index.ntotal) if rows is None else rows
        near = []
        for part in _parts(len(vectors), len(rows)):
            stored = (self._index.reconstruct_batch(r) for r in np.array_split(rows, len(rows) // 65536 + 1))
            scores = np.concatenate([vectors[part] @ s.T for s in stored], axis=1)
            near.append(rows[np.argsort(-scores, axis=1, kind="stable")[:, :fetch]])
        return np.concatenate(near)

    def _rescore(self, vectors: Vectors, near: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return cosines, rounded, that depend on the two vectors alone; FAISS's own vary with the batch size."""
        cosines = np.empty(near.shape)
        for part in _parts(len(near), near.shape[1] * self._index.d):
            stored = self._index.reconstruct_batch(np.maximum(near[part], 0).ravel())
            cosines[part] = _cosines(vectors[part, None, :], stored.reshape(*near[part].shape, -1))
        return np.where(near < 0, -np.inf, cosines)


class StoredVectors:
    """The vectors of a build by row, as its encoder gave them.

    Args:
        directory: The build.
        recipe: Its recipe, which must be lossless.

    Raises:
        IndexMismatchError: The file of the vectors cannot be read.
    """

    def __init__(self, directory: Path, recipe: Recipe) -> None:
        if not recipe.lossless:
            raise ValueError(f"recipe {recipe.name} does not keep vectors as they were added")
        self._index = _read(directory)
        behind = map_ragged(directory, ROWS)
        self.row_of_name: NDArray[np.int32] = np.empty(len(behind.values), np.int32)
        """The row of each name of the build, (names,)."""
        self.row_of_name[behind.values] = np.repeat(np.arange(len(behind), dtype=np.int32), behind.lengths)

    def take(self, rows: NDArray[np.int32]) -> Vectors:
        """Return the vectors of rows, (n, dim)."""
        return np.asarray(self._index.reconstruct_batch(rows.astype(np.int64)))


def _read(directory: Path) -> Any:  # noqa: ANN401  # FAISS has no types
    try:
        return faiss.read_index(str(directory / FILE), faiss.IO_FLAG_MMAP_IFC)
    except RuntimeError as error:
        raise IndexMismatchError(f"{FILE} cannot be read; run `medlink index build`") from error


def _parts(queries: int, numbers_each: int) -> Iterator[slice]:
    """Cut a run of queries so that a part stays small in memory."""
    size = max(1, _IN_MEMORY // max(1, numbers_each))
    return (slice(start, start + size) for start in range(0, queries, size))


def _with_added(
    added: AddedNames, vectors: Vectors, found: Sequence[Sequence[Retrieved]], options: LinkOptions
) -> list[list[Retrieved]]:
    """Score the added names that come near enough, and put them where they belong."""
    floor = np.array([concepts[-1].score if len(concepts) >= options.top_k else -np.inf for concepts in found])
    # A hair below: these sums are rougher than the scores.
    near = vectors @ added.vectors.T >= floor[:, None] - 10**-DECIMALS
    joined = []
    for vector, concepts, nearby in zip(vectors, found, near, strict=True):
        places = np.flatnonzero(nearby)
        joined.append(added.join(concepts, places, _cosines(vector, added.vectors[places]), options))
    return joined


def _cosines(queries: Vectors, names: Vectors) -> NDArray[np.float64]:
    """Return rounded cosines of unit vectors, over the last axis."""
    products = np.multiply(names, queries, dtype=np.float64)
    cosines: NDArray[np.float64] = np.round(products.sum(axis=-1), DECIMALS)
    return cosines
