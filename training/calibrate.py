"""Calibration learns how often candidates are right, over mentions of which some have no concept in the dictionary."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from medlink import metrics
from medlink.corpora.ids import vocabulary_of
from medlink.corpora.records import LabeledDocument
from medlink.kb.curation import CurationState
from medlink.linking.calibration import (
    CALIBRATION_FEATURES,
    FORMAT,
    PlainWords,
    calibration_features,
    covers_part,
    fits,
    is_broader,
    probabilities,
)
from medlink.linking.evidence import words
from medlink.linking.fusion import FusionModel, ranked
from medlink.linking.letter_case import settle_case
from medlink.linking.trees import Trees
from training.boosting import Boosting, probability_trees
from training.fusion import Lesson
from training.hidden import choose, concepts_of, without
from training.measured import Measuring, Sample, labeled_mentions, labeled_texts

if TYPE_CHECKING:
    from index.store import IndexBuild

BOOSTING = Boosting(trees=250, leaves=12, learning_rate=0.05, least_rows=60, columns=0.5)
FOLDS = 5
SEEDS = (1, 2)
"""Of the draws of concepts to hide; evaluation draws with 0."""
_SHARE = 0.3
_BESIDE = 25
# A group with fewer absent mentions has no say about the threshold.
_LEAST_ABSENT = 100
_RISING = tuple(CALIBRATION_FEATURES.index(feature) for feature in ("fit", "ahead_of_others"))
# A rarer word says little about how texts are written.
_LEAST_TEXTS = 5


@dataclass(frozen=True, slots=True)
class Judged:
    """The first candidates of a mention as calibration sees them, and which are right; `group` names a corpus."""

    group: str
    document: str
    count: int
    answerable: bool
    """Whether any concept that is left would be right."""
    covers: bool
    """Whether the first candidate covers a part of the mention only."""
    rows: NDArray[np.float64]
    right: NDArray[np.bool_]
    choosable: NDArray[np.bool_]
    """Whether each is of a vocabulary that the annotators chose from: else nothing says that it is wrong."""


def plain_words(documents: Iterable[LabeledDocument]) -> tuple[dict[str, int], int]:
    """Return in how many texts each word stands outside of mentions, and how many texts there are."""
    counts: Counter[str] = Counter()
    texts = 0
    for document in documents:
        left, end = [], 0
        for mention in sorted(document.mentions, key=lambda m: m.start):
            left.append(document.text[end : mention.start])
            end = max(end, mention.end)
        counts.update(set(words(" ".join([*left, document.text[end:]]))))
        texts += 1
    return {word: count for word, count in sorted(counts.items()) if count >= _LEAST_TEXTS}, texts


def judged_samples(
    group: str,
    samples: Sequence[Sample],
    model: FusionModel,
    plain: PlainWords,
    measuring: Measuring,
    answerable: Sequence[bool],
) -> list[Judged]:
    """Return samples as calibration sees them, ranked by a fusion model.

    Args:
        group: What the report calls them.
        samples: The mentions.
        model: The fusion model.
        plain: How common words are.
        measuring: What measured them.
        answerable: Whether the dictionary has a right concept for each.
    """
    settled = [
        settle_case(m.asked.text, ranked(m.found, m.names, model.orders(m.features), m.features))
        for m in (sample.measured for sample in samples)
    ]
    vocabularies = {vocabulary_of(id_) for sample in samples for id_ in sample.labeled.gold}
    judged = []
    for sample, there, fused, fit in zip(samples, answerable, settled, fits(settled, model), strict=True):
        asked, labeled = sample.measured.asked, sample.labeled
        covers = [covers_part(asked, f, plain) for f in fused]
        rows = calibration_features(asked, fused, covers, fit, plain)
        ids = [measuring.ids(f.concept_id) for f in fused[: len(rows)]]
        right = np.array([bool(labeled.gold & own) for own in ids], np.bool_)
        choosable = np.array([not vocabularies.isdisjoint(map(vocabulary_of, own)) for own in ids], np.bool_)
        one = Judged(group, labeled.document, labeled.count, there, any(covers[:1]), rows, right, choosable)
        judged.append(one)
    return judged


def gather_judged(
    build: "IndexBuild",
    model: FusionModel,
    plain: tuple[Mapping[str, int], int],
    fitted: Sequence[Lesson],
    beside: Sequence[Lesson],
) -> list[Judged]:
    """Return mentions as calibration sees them: with the whole dictionary, and with shares of their concepts hidden.

    Args:
        build: The dictionary.
        model: The fusion model.
        plain: How common words are, as `plain_words` returns it.
        fitted: Documents whose concepts are hidden in turn.
        beside: Documents with mentions of all kinds. Those that name a concept of the build which has not their id
            are left out: it may be theirs.
    """
    common = PlainWords(*plain)
    judged: list[Judged] = []
    for lesson in fitted:
        gold = {id_ for document in lesson.documents for mention in document.mentions for id_ in mention.gold_ids}
        concepts = concepts_of(build, gold)
        for seed in (None, *SEEDS):
            hidden = choose(concepts, _SHARE, seed) if seed is not None else []
            left = without(build, CurationState(), hidden, homonyms=True) if hidden else build
            known = {id_ for id_ in gold if concepts_of(left, [id_])}
            measuring = Measuring(left, model.annotated)
            group = f"{lesson.corpus}, {'some hidden' if hidden else 'whole dictionary'}"
            for labeled in (labeled_mentions(lesson.documents), labeled_texts(lesson.documents, lesson.typos)):
                samples = measuring.samples(labeled)
                there = [bool(one.gold & known) for one in labeled]
                judged += judged_samples(group, samples, model, common, measuring, there)
    for lesson in beside:
        measuring = Measuring(build, model.annotated)
        labeled = labeled_mentions(lesson.documents[::_BESIDE])
        known = {id_ for one in labeled for id_ in one.gold if concepts_of(build, [id_])}
        samples = [
            s
            for s in measuring.samples(labeled)
            if s.labeled.gold & known or not any("exact" in e.channels for e in s.measured.found)
        ]
        there = [bool(s.labeled.gold & known) for s in samples]
        judged += judged_samples(lesson.corpus, samples, model, common, measuring, there)
    return judged


def fit(
    judged: Sequence[Judged],
    plain: tuple[Mapping[str, int], int],
    fusion: str,
    fitted_on: Mapping[str, Any],
    *,
    boosting: Boosting = BOOSTING,
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return a calibration as `Calibration` takes it, and figures that each document's own mentions had no part in.

    Args:
        judged: What it learns from.
        plain: How common words are, as `plain_words` returns it.
        fusion: Fingerprint of the fusion model.
        fitted_on: What the file says of its origin.
        boosting: How trees are grown.
    """
    stated = _cross_fitted(judged, boosting)
    threshold = _threshold(judged, stated)
    stored = {
        "format": FORMAT,
        "fusion": fusion,
        "features": list(CALIBRATION_FEATURES),
        "threshold": threshold,
        "fitted_on": {**fitted_on, "mentions": sum(j.count for j in judged), "boosting": str(boosting)},
        "texts": plain[1],
        "plain_words": dict(plain[0]),
        "trees": _trees(judged, boosting),
    }
    return stored, report(judged, stated, threshold)


def report(judged: Sequence[Judged], stated: Sequence[float], threshold: float) -> list[dict[str, Any]]:
    """Return calibration error and NIL figures by group.

    Args:
        judged: The mentions.
        stated: The probability of the first candidate of each.
        threshold: Below it a mention is refused.
    """
    rows = []
    for group in sorted({j.group for j in judged}):
        members = [(j, p) for j, p in zip(judged, stated, strict=True) if j.group == group for _ in range(j.count)]
        said = [p < threshold or is_broader(j.covers, p) for j, p in members]
        precision, recall = metrics.nil_precision_recall(said, [not j.answerable for j, _ in members])
        first = [bool(j.right[:1].any()) for j, _ in members]
        present = [at for at, (j, _) in enumerate(members) if j.answerable]
        rows.append(
            {
                "group": group,
                "n": len(members),
                "n_nil": len(members) - len(present),
                "ece": round(metrics.expected_calibration_error([p for _, p in members], first), 4),
                "nil_precision": _percent(precision),
                "nil_recall": _percent(recall),
                "kept": _percent(
                    sum(first[at] and not said[at] for at in present) / max(1, sum(first[at] for at in present))
                ),
            }
        )
    return rows


def _percent(share: float | None) -> float | None:
    return None if share is None else round(100 * share, 1)


def _trees(judged: Sequence[Judged], boosting: Boosting) -> list[Any]:
    telling = [j for j in judged if len(j.rows)]
    rows = np.concatenate([j.rows[j.choosable] for j in telling])
    right = np.concatenate([j.right[j.choosable] for j in telling])
    weights = np.concatenate([np.full(int(j.choosable.sum()), float(j.count)) for j in telling])
    return probability_trees(rows, right, boosting, rising=_RISING, weights=weights)


def _cross_fitted(judged: Sequence[Judged], boosting: Boosting) -> list[float]:
    """Return the probability of each first candidate by trees that saw no mention of its document."""
    fold = np.array([crc32(j.document.encode()) % FOLDS for j in judged])
    stated = np.zeros(len(judged))
    for number in range(FOLDS):
        trees = Trees.of_nodes(_trees([j for j, f in zip(judged, fold, strict=True) if f != number], boosting))
        for at in np.flatnonzero(fold == number).tolist():
            if len(judged[at].rows):
                stated[at] = probabilities(trees.predict(judged[at].rows))[0]
    return stated.tolist()


def _threshold(judged: Sequence[Judged], stated: Sequence[float]) -> float:
    """Return where the poorer one of precision and recall of NIL is best, on average over the groups with both."""
    group = np.array([j.group for j in judged])
    absent = np.array([not j.answerable for j in judged])
    counts = np.array([j.count for j in judged])
    chosen = [group == g for g in sorted(set(group)) if counts[(group == g) & absent].sum() >= _LEAST_ABSENT]

    def poorer(threshold: float) -> float:
        said = np.array([p < threshold or is_broader(j.covers, p) for j, p in zip(judged, stated, strict=True)])
        both = [counts[g & said & absent].sum() for g in chosen]
        of_said, of_absent = [counts[g & said].sum() for g in chosen], [counts[g & absent].sum() for g in chosen]
        return float(sum(b / max(1, s, a) for b, s, a in zip(both, of_said, of_absent, strict=True)))

    return max((float(t) for t in np.round(np.arange(0.05, 0.96, 0.01), 2)), key=poorer)
