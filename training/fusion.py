"""Fusion learns, from annotated mentions, which candidate the annotators chose."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from medlink.corpora.records import LabeledDocument
from medlink.linking.features import FEATURES
from medlink.linking.fusion import FORMAT
from training.boosting import Boosting, rank_trees
from training.measured import Labeled, Measuring, Sample, count_annotations, labeled_mentions, labeled_texts

if TYPE_CHECKING:
    pass

BOOSTING = Boosting(trees=300, leaves=63, learning_rate=0.05, least_rows=40, columns=0.5, depth=12)

FEATURE_GROUPS: Mapping[str, tuple[str, ...]] = {
    "exactness": ("exact", "exact_concepts"),
    "dense": ("dense", "dense_rank", "dense_gap"),
    "lexical": ("lexical", "lexical_rank", "lexical_gap"),
    "words of the matched name": (
        "mention_words_in_name",
        "name_words_in_mention",
        "rarity_only_in_mention",
        "rarity_only_in_name",
        "words_more_in_name",
    ),
    "words of the preferred name": ("mention_words_in_preferred", "preferred_words_in_mention", "matched_preferred"),
    "numbers": ("numbers",),
    "lengths": ("name_length", "preferred_length"),
    "homonymy": ("homonyms",),
    "parts": ("part", "part_ends"),
    "context": ("context",),
    "hierarchy": ("above_found", "below_found", "is_above", "descendants", "children"),
    "how well known": ("names", "name_sources", "codes", "sources", "has_cui"),
    "literature source": ("literature_source",),
    "annotated": ("annotated",),
}
"""Features that are switched off together to see what they are worth."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """What a model is trained on: documents of one corpus split."""

    corpus: str
    documents: Sequence[LabeledDocument]
    typos: Mapping[str, str] | None = None
    names: str = ""
    """The dictionary that they are asked over, in the words of whoever opens it."""


def annotated_by(lessons: Sequence[Lesson]) -> tuple[Counter[str], dict[str, Counter[str]]]:
    """Return how often annotators chose each id, in all and by document; a corpus over two dictionaries counts once."""
    corpora = {lesson.corpus: lesson for lesson in lessons}
    return count_annotations(document for lesson in corpora.values() for document in lesson.documents)


def samples_of(measuring: Measuring, lessons: Sequence[Lesson], own: Mapping[str, Counter[str]]) -> list[Sample]:
    """Return the mentions of the lessons in both forms, bare and within their documents.

    Args:
        measuring: Measures their candidates.
        lessons: The documents.
        own: What annotators chose in each document, which its own mentions must not see.
    """
    labeled: list[Labeled] = []
    for lesson in lessons:
        labeled += labeled_texts(lesson.documents, lesson.typos) + labeled_mentions(lesson.documents)
    return measuring.samples(labeled, own=own)


def fit(
    samples: Sequence[Sample],
    annotated: Mapping[str, int],
    trained_on: Mapping[str, Any],
    *,
    boosting: Boosting = BOOSTING,
    without: Sequence[str] = (),
) -> dict[str, Any]:
    """Return a fusion model as `FusionModel` takes it.

    Mentions without a right candidate, or with nothing but right ones, teach no order and are left out.

    Args:
        samples: What it learns from; one that came several times counts as often.
        annotated: How often annotators chose each id; ids are kept that some candidate may have.
        trained_on: What the model file says of its origin.
        boosting: How trees are grown.
        without: Features that it must not look at.

    Raises:
        ValueError: No sample teaches anything, or a feature is unknown.
    """
    if unknown := sorted(set(without) - set(FEATURES)):
        raise ValueError(f"no such features: {', '.join(unknown)}")
    telling = [s for s in samples if s.right.any() and not s.right.all() for _ in range(s.labeled.count)]
    if not telling:
        raise ValueError(
            "no mention has a right and a wrong candidate; does the index hold the concepts of the corpus?"
        )
    rows = np.concatenate([s.measured.features for s in telling])
    rows[:, [FEATURES.index(feature) for feature in without]] = 0.0
    right = np.concatenate([s.right for s in telling])
    return {
        "format": FORMAT,
        "features": list(FEATURES),
        "trained_on": {**trained_on, "queries": len(telling), "boosting": str(boosting)},
        "annotated": dict(sorted(annotated.items())) if "annotated" not in without else {},
        "trees": rank_trees(rows, right, [len(s.right) for s in telling], boosting),
    }
