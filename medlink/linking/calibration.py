"""How probable it is that a candidate is right, and whether it is the concept or one broader than the mention."""

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from hashlib import sha256
from math import log1p
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medlink.linking.features import FEATURES, Asked
from medlink.linking.fusion import Fused, FusionModel
from medlink.linking.letter_case import mismatches_case
from medlink.linking.trees import is_model, read_trees

FORMAT = 1
FILE = "calibration.json"
JUDGED = 10
"""So many candidates are judged; those behind them are not worth the work."""
OWN_FEATURES = (
    "fit",
    "ahead_of_others",
    "case_mismatch",
    "covers_part",
    "plainest_word",
    "plainness",
)
"""What is looked at beside the features of fusion."""
OF_DICTIONARY = ("names", "name_sources", "codes", "sources", "has_cui", "literature_source", "annotated")
"""Features that say more of the dictionary and of what annotators could choose than of how well a candidate fits."""
CALIBRATION_FEATURES = (*OWN_FEATURES, *(feature for feature in FEATURES if feature not in OF_DICTIONARY))
_FITTING = [column for column, feature in enumerate(FEATURES) if feature not in OF_DICTIONARY]
# As if every concept were one that annotators could choose.
_AS_IF = {FEATURES.index("literature_source"): 1.0}
_HOLDS = {"fusion": str, "threshold": float, "fitted_on": dict, "texts": int, "plain_words": dict}
_DECIMALS = 4
_STEPS = 10**_DECIMALS
# Words in so large a share of texts, outside of mentions, say nothing about what is meant.
_PLAIN = 0.05
# More probable than this, a concept that covers a part of the mention is what annotators would choose for it.
_FITS = 0.4

Floats = NDArray[np.float64]


class Calibration:
    """Turns a list of candidates into probabilities, and marks those that are broader than the mention.

    Args:
        stored: The JSON object of a model file: `format`, `fusion` (fingerprint of the model that it is for),
            `features` by name, `trees` whose sum is the logit, `threshold`, `fitted_on`, and in how many of so many
            `texts` each of its `plain_words` stands outside of mentions.

    Raises:
        ValueError: It is no such model, or one of other features than this code measures.
    """

    def __init__(self, stored: Mapping[str, Any]) -> None:
        if not is_model(stored, FORMAT, CALIBRATION_FEATURES, _HOLDS):
            raise ValueError("the calibration is of another version; run `medlink train calibrate`")
        self._stored = stored
        self._trees = read_trees(stored, len(CALIBRATION_FEATURES))
        self.plain = PlainWords(stored["plain_words"], stored["texts"])

    @classmethod
    def read(cls, path: Path) -> "Calibration":
        """Read a model file.

        Raises:
            OSError: It cannot be read.
            ValueError: It is no calibration of this version.
        """
        return cls(json.loads(path.read_text("utf-8")))

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the model."""
        return sha256(json.dumps(self._stored, sort_keys=True).encode()).hexdigest()

    @property
    def fusion(self) -> str:
        """Fingerprint of the fusion model whose candidates are judged."""
        return str(self._stored["fusion"])

    @property
    def threshold(self) -> float:
        """The probability below which a mention is NIL unless the request says otherwise."""
        return float(self._stored["threshold"])

    @property
    def fitted_on(self) -> Mapping[str, Any]:
        """The dictionary and the corpora that the calibration was fitted on."""
        fitted_on: Mapping[str, Any] = self._stored["fitted_on"]
        return fitted_on

    def judge(self, asked: Sequence[Asked], lists: Sequence[Sequence[Fused]], model: FusionModel) -> list[list[Fused]]:
        """Return the same candidates with relation and probability; probabilities fall along a list.

        Args:
            asked: The mentions.
            lists: The candidates of each, best first.
            model: The fusion model.
        """
        covers = [[covers_part(m, f, self.plain) for f in fused] for m, fused in zip(asked, lists, strict=True)]
        rows = [
            calibration_features(*one, self.plain) for one in zip(asked, lists, covers, fits(lists, model), strict=True)
        ]
        if not sum(map(len, rows)):
            return [list(fused) for fused in lists]
        logits = self._trees.predict(np.concatenate([row for row in rows if len(row)]))
        judged, start = [], 0
        for fused, row, part in zip(lists, rows, covers, strict=True):
            stated = probabilities(logits[start : start + len(row)])
            start += len(row)
            padded = [*stated, *[0.0] * (len(fused) - len(row))]
            judged.append(
                [
                    replace(f, probability=p, relation="broader" if is_broader(covered, p) else "exact")
                    for f, p, covered in zip(fused, padded, part, strict=True)
                ]
            )
        return judged


class PlainWords:
    """How common words are in running text where they do not belong to a mention.

    Args:
        counts: In how many texts each word stands so.
        texts: How many texts there are.
    """

    def __init__(self, counts: Mapping[str, int], texts: int) -> None:
        self._counts = counts
        self._texts = max(1, texts)

    def is_plain(self, word: str) -> bool:
        """Say whether a word is so common that it says nothing about what is meant."""
        return self._counts.get(word, 0) >= _PLAIN * self._texts

    def plainness(self, word: str) -> float:
        """Return how common a word is: the logarithm of its texts in a thousand."""
        return log1p(1000 * self._counts.get(word, 0) / self._texts)


def covers_part(asked: Asked, fused: Fused, plain: PlainWords) -> bool:
    """Say whether a candidate's name is a part of the mention only, or it is there for what is below it.

    Words that say nothing about what is meant may be left over: "patients with asthma" is asthma.
    """
    feature = dict(zip(FEATURES, fused.features, strict=True))
    if feature["exact"]:
        return False
    if feature["is_above"]:
        return True
    if feature["name_words_in_mention"] < 1 and feature["preferred_words_in_mention"] < 1:
        return False
    left = feature["mention_words_in_name"] < 1
    return left and not all(plain.is_plain(word) for word in asked.words if word not in fused.words)


def is_broader(covers: bool, probability: float) -> bool:
    """Say whether a candidate is offered for want of one that fits the whole mention.

    Args:
        covers: Whether it covers a part of the mention only.
        probability: That it is what is meant all the same: annotators often take the broader concept.
    """
    return covers and probability < _FITS


def fits(lists: Sequence[Sequence[Fused]], model: FusionModel) -> list[list[float]]:
    """Return how well each of the first candidates fits, as if annotators could choose from its vocabulary.

    Annotators choose concepts of their own vocabulary only, so that a concept of another one was never right where a
    fusion model learnt; how well its name fits the mention is not to depend on that.

    Args:
        lists: The candidates of each mention, best first.
        model: The fusion model.
    """
    rows = np.array([f.features for fused in lists for f in fused[:JUDGED]]).reshape(-1, len(FEATURES))
    for column, value in _AS_IF.items():
        rows[:, column] = value
    orders = model.orders(rows).tolist()
    starts = np.cumsum([0, *(min(len(fused), JUDGED) for fused in lists)]).tolist()
    return [orders[start:end] for start, end in itertools.pairwise(starts)]


def calibration_features(
    asked: Asked, fused: Sequence[Fused], covers: Sequence[bool], fit: Sequence[float], plain: PlainWords
) -> Floats:
    """Return the features of the first candidates, (at most JUDGED, len(CALIBRATION_FEATURES)).

    Args:
        asked: The mention.
        fused: Its candidates, best first.
        covers: Whether each covers a part of the mention only.
        fit: How well each of the first fits.
        plain: How common words are.
    """
    plainness = [plain.plainness(word) for word in asked.words] or [0.0]
    rows = []
    for at, f in enumerate(fused[:JUDGED]):
        others = max([*fit[:at], *fit[at + 1 :]], default=fit[at] - 10.0)
        rows.append(
            (
                fit[at],
                fit[at] - others,
                mismatches_case(asked.text, f.name.text),
                covers[at],
                min(plainness),
                sum(plainness) / len(plainness),
                *(f.features[column] for column in _FITTING),
            )
        )
    return np.array(rows, np.float64).reshape(len(rows), len(CALIBRATION_FEATURES))


def probabilities(logits: Floats) -> list[float]:
    """Return the probabilities of the candidates of one mention, best first, from their logits.

    Together they are at most one, and none is more than the one before it.

    >>> probabilities(np.array([0.0, -2.0, -1.0]))
    [0.5, 0.1192, 0.1192]
    """
    stated = 1 / (1 + np.exp(-logits))
    stated = np.minimum.accumulate(stated)
    if len(stated) and stated.sum() > 1:
        # What the first says of itself is fitted best; the others share what it leaves.
        stated[1:] *= (1 - stated[0]) / stated[1:].sum()
        stated = np.minimum.accumulate(stated)
    # All but the first are rounded down, or together they might come to more than one.
    return [round(float(p), _DECIMALS) for p in [*stated[:1], *np.floor(stated[1:] * _STEPS) / _STEPS]]
