"""What a build says about the pack that it wrote."""

from dataclasses import dataclass
from pathlib import Path

from medlink.kb.records import SourceRecord


@dataclass(frozen=True, slots=True)
class BuildReport:
    """What a pack holds, how its terms were joined, and what was left out by rule."""

    pack: str
    path: Path
    sha256: str
    size: int
    sources: tuple[SourceRecord, ...]
    concepts: int
    cui_concepts: int
    names: dict[str, int]
    distinct_names: int
    retired: int
    joins: dict[str, int]
    left_out: dict[str, int]
