"""Says what an answer is worth: linked, ambiguous or not in this knowledge base."""

from collections.abc import Sequence

from medlink.linking.fusion import Fused
from medlink.text import match_key


def tied(fused: Sequence[Fused]) -> tuple[str, ...]:
    """Return the concepts that own the best name with the best score; empty when there is only one."""
    if not fused:
        return ()
    best = fused[0]
    key = match_key(best.name.text)
    ids = tuple(f.concept_id for f in fused if f.score == best.score and match_key(f.name.text) == key)
    return ids if len(ids) > 1 else ()
