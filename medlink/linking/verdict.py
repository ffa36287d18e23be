"""Says what an answer is worth: linked, ambiguous or not in this knowledge base."""

from collections.abc import Sequence
from dataclasses import dataclass

from medlink.linking.fusion import Fused
from medlink.linking.letter_case import is_short_form
from medlink.text import match_key
from medlink.types import NilReason, Status

# Two candidates whose probabilities are no further apart cannot be told apart.
_TOO_CLOSE = 0.1


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of the candidates of a mention: they answer, or the first is the nearest that there is."""

    status: Status
    answers: Sequence[Fused] = ()
    nearest: Sequence[Fused] = ()
    """One, or none."""
    ties: tuple[str, ...] = ()
    reason: NilReason | None = None

    def shown(self, top_k: int) -> list[Fused]:
        """Return the candidates that the answer has."""
        return [*self.answers[:top_k], *self.nearest]


def verdict(fused: Sequence[Fused], beyond: Sequence[Fused], threshold: float) -> Verdict:
    """Judge the candidates of a mention.

    A mention is NIL when nothing was found, when only concepts that the filters leave out were, or when the best
    candidate is less probable than the threshold. It is ambiguous when several concepts own the best name, when the
    second is about as probable as the first, or when the mention is the very name of another concept than the first.
    What is pinned is linked.

    Args:
        fused: The candidates, best first.
        beyond: What would be found without filters, where they left nothing.
        threshold: Least probability of a link; candidates without one are above it.
    """
    if not fused:
        return Verdict("nil", nearest=beyond[:1], reason="filtered_out" if beyond else "no_candidate")
    best = fused[0]
    if best.pin:
        return Verdict("linked", fused)
    if best.probability is not None and best.probability < threshold:
        return Verdict("nil", nearest=fused[:1], reason="below_threshold")
    ties = tied(fused)
    unsure = ties or _too_close(fused) or _passes_over_exact(fused)
    return Verdict("ambiguous" if unsure else "linked", fused, ties=ties)


def tied(fused: Sequence[Fused]) -> tuple[str, ...]:
    """Return the concepts that own the best name as well as the first does; empty when there is only one.

    A short form and an ordinary word are two names, though they differ in case alone; so are a name of the concept
    meant and the same name found in a part of the mention.
    """
    if not fused:
        return ()
    best = _owned(fused[0])
    ids = tuple(f.concept_id for f in fused if _owned(f) == best)
    return ids if len(ids) > 1 else ()


def _owned(fused: Fused) -> tuple[object, ...]:
    return match_key(fused.name.text), is_short_form(fused.name.text), fused.case_mismatch, fused.channels


def _too_close(fused: Sequence[Fused]) -> bool:
    first, *others = (f.probability for f in fused[:2])
    return first is not None and any(p is not None and first - p <= _TOO_CLOSE for p in others)


def _passes_over_exact(fused: Sequence[Fused]) -> bool:
    return not _is_exact(fused[0]) and any(_is_exact(f) for f in fused)


def _is_exact(fused: Fused) -> bool:
    return not fused.case_mismatch and dict(fused.channels).get("exact") == 1.0
