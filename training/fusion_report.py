"""Scores fusion models on mentions that are measured once, so that many models can be compared."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from medlink.linking.fusion import FusionModel, ranked
from medlink.linking.ranking import Query
from medlink.text import match_key
from training.hidden import concepts_of
from training.measured import Measuring
from training.protocols import CandidateIds, as_names
from training.systems import System, asked_by

if TYPE_CHECKING:
    from index.store import IndexBuild
    from training.strict import Answer


@dataclass(frozen=True, slots=True)
class Variant:
    """A model under test: what rows call it, and what measures the mentions with what it knows."""

    name: str
    model: FusionModel
    measuring: Measuring


class FusionSource:
    """Fusion models over one index build, asked by text.

    Args:
        build: The build.
        variants: The models.
        label: What rows call the dictionary.
    """

    def __init__(self, build: "IndexBuild", variants: Sequence[Variant], label: str) -> None:
        self.label = label
        self._build = build
        self._variants = variants

    def exact(self, texts: Sequence[str], k: int) -> list[list[frozenset[str]]]:
        """Answer a text that is a name of the build, and no other, be it a variant of a name."""
        measuring = self._variants[0].measuring
        found = measuring.measure(Query(text) for text in texts)
        return [
            as_names(
                CandidateIds(name.name.text, measuring.ids(name.concept_id))
                for name in m.names
                if match_key(name.name.text) == match_key(text)
            )[:k]
            for text, m in zip(texts, found, strict=True)
        ]

    def known(self, ids: Collection[str]) -> Collection[str]:
        """Return those ids that the build has."""
        return {id_ for id_ in ids if concepts_of(self._build, [id_])}

    def systems(self, protocol: str, added: Mapping[str, frozenset[str]]) -> Iterator[System]:
        """Yield one system a model.

        Args:
            protocol: How it is to be asked; by text only.
            added: Must be empty.

        Raises:
            ValueError: The protocol asks otherwise, or there are names to add.
        """
        if added or protocol != "dictionary":
            raise ValueError("models are compared under the protocol dictionary")
        for variant in self._variants:
            yield System(variant.name, None, asked_by(protocol, _Ranker(variant), _by_text_only, 0))


@dataclass(frozen=True, slots=True)
class _Ranker:
    variant: Variant

    def __call__(self, texts: Sequence[str], k: int) -> list[list[frozenset[str]]]:
        model, measuring = self.variant.model, self.variant.measuring
        answers = []
        for m in measuring.measure(Query(text) for text in texts):
            fused = ranked(m.found, m.names, model.orders(m.features), m.features)[:k]
            answers.append(as_names(CandidateIds(f.name.text, measuring.ids(f.concept_id)) for f in fused))
        return answers


def _by_text_only(mentions: Sequence[object], k: int) -> Sequence["Answer"]:
    raise NotImplementedError("models are compared by text")
