"""What became of concept ids that are no longer in use, with chains followed to their end."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from medlink.kb.records import RetiredRecord
from medlink.types import Retirement

_RELATIONS = ("SY", "RB", "RN", "RO")  # nearest first
_GONE = "DEL"


def resolve(records: Iterable[RetiredRecord], links: Mapping[str, Sequence[RetiredRecord]]) -> Iterator[Retirement]:
    """Yield the fate of each retired id.

    A successor that is itself retired is replaced by its own successors. A chain is as good as its weakest step,
    and only the ends of the best chains are successors; cycles and chains that end in a deleted id lead nowhere.

    Args:
        records: What the sources say, all records of an id side by side.
        links: The records of every retired id that is somebody's successor.

    >>> merged, replaced = RetiredRecord("C1", "C2", "SY", "2020AA"), RetiredRecord("C2", "C3", "RB")
    >>> list(resolve([merged, replaced], {"C2": [replaced]}))[0]
    Retirement(id='C1', successors=('C3',), reason='RB', release='2020AA')
    """
    for retired, group in groupby(records, key=lambda record: record.concept_id):
        own = list(group)
        release = max(record.release for record in own)
        for best in range(len(_RELATIONS)):
            if ends := _ends(retired, own, links, _RELATIONS[: best + 1]):
                yield Retirement(retired, tuple(sorted(ends)), _RELATIONS[best], release)
                break
        else:
            yield Retirement(retired, (), _GONE, release)


def _ends(
    retired: str,
    own: Sequence[RetiredRecord],
    links: Mapping[str, Sequence[RetiredRecord]],
    allowed: Sequence[str],
) -> set[str]:
    """Return the ids in use that steps of the allowed relations lead to."""
    seen = {retired}
    ends = set()
    steps = list(own)
    while steps:
        step = steps.pop()
        if step.relation not in allowed or step.successor_id is None or step.successor_id in seen:
            continue
        seen.add(step.successor_id)
        if step.successor_id in links:
            steps.extend(links[step.successor_id])
        else:
            ends.add(step.successor_id)
    return ends
