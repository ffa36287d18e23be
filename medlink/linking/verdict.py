"""Says what an answer is worth: linked, ambiguous or not in this knowledge base."""

from collections.abc import Sequence

from medlink.linking.fusion import Fused
from medlink.linking.letter_case import is_short_form
from medlink.text import match_key


def tied(fused: Sequence[Fused]) -> tuple[str, ...]:
    """Return the concepts that own the best name with the best score; empty when there is only one.

    A short form and an ordinary word are two names, though they differ in case alone.
    """
    if not fused:
        return ()
    score, string = fused[0].score, _string(fused[0])
    ids = tuple(f.concept_id for f in fused if f.score == score and _string(f) == string)
    return ids if len(ids) > 1 else ()


def _string(fused: Fused) -> tuple[str, bool]:
    return match_key(fused.name.text), is_short_form(fused.name.text)
