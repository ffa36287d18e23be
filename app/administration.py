"""What administration sends and is sent, as pydantic models; pinned by docs/api/openapi.json."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from app import examples
from app.facts import Out, example
from medlink.kb.builds import ActiveBuild, BuildRecord
from medlink.kb.curation import Action, Entry
from medlink.kb.jobs import Job, State

# PostgreSQL stores neither.
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def _storable(text: str) -> str:
    if _UNSTORABLE.search(text):
        raise ValueError("a NUL character or a lone surrogate")
    return text


Stored = Annotated[
    str,
    Field(min_length=1, max_length=1000, json_schema_extra={"pattern": r"^[^\u0000]*$"}),
    AfterValidator(_storable),
]


class RebuildIn(BaseModel):
    """How an index build is made; all of it may be left out."""

    model_config = ConfigDict(extra="forbid", strict=True, use_attribute_docstrings=True)

    recipe: Literal["auto", "flat", "hnsw", "hnsw-sq8"] = "auto"
    """How vectors are laid out for search."""
    reuse: bool = True
    """Take the vectors of names that the active build, or one that did not end, has; they are the same."""
    activate: bool = True
    """Let the build answer once it is verified."""


class JobOut(Out):
    """A rebuild, asked for, at work or over."""

    model_config = example(examples.JOB)

    id: str
    kind: str
    state: State
    stage: str
    """`start`, `read`, `encode`, `verify` or `publish` while it is at work."""
    progress: float
    """How far it is in all, 0 to 1."""
    done: int
    """What is done within the stage: concepts read, texts encoded."""
    total: int
    """How much there is in the stage; 0 where that is not known."""
    rate: float | None
    """How much is done in a second."""
    eta_seconds: float | None
    """How long the stage will go on."""
    counts: dict[str, float]
    """What the build holds, once it is done."""
    requested_by: str
    """Name of the key that asked for it."""
    cancel_requested: bool
    build_id: str | None
    """The build that it made."""
    error: str | None
    """Why it failed or was cancelled."""
    created_at: datetime
    started_at: datetime | None
    heartbeat_at: datetime | None
    finished_at: datetime | None

    @classmethod
    def of(cls, job: Job) -> "JobOut":
        """Return a job without what its worker alone needs."""
        return cls.model_validate(job, from_attributes=True)


class JobsOut(Out):
    """The latest jobs, the newest first."""

    jobs: list[JobOut]


class BuildOut(Out):
    """An index build; `here` if its files are where this service looks for them."""

    model_config = example(examples.BUILD)

    id: str
    created_at: datetime
    state: Literal["ready", "quarantined", "deleted"]
    active: bool
    here: bool
    counts: dict[str, int]
    recipe: str
    loads: dict[str, str]
    """Fingerprint of every load of the store that it was made from, by name."""

    @classmethod
    def of(cls, record: BuildRecord, active: str | None, here: bool) -> "BuildOut":
        """Return what is known of a build."""
        facts: Mapping[str, Any] = record.manifest
        return cls.model_validate(
            {
                "id": record.id,
                "created_at": record.created_at,
                "state": record.state,
                "active": record.id == active,
                "here": here,
                "counts": facts.get("counts", {}),
                "recipe": facts.get("recipe", {}).get("name", ""),
                "loads": facts.get("loads", {}),
            }
        )


class BuildsOut(Out):
    """All index builds, oldest first, and which answers; `serving` is what this process answers from now."""

    generation: int | None
    active: str | None
    serving: str | None
    builds: list[BuildOut]


class ActiveOut(Out):
    """The build that answers from now on, in every service within seconds."""

    active: str
    generation: int

    @classmethod
    def of(cls, active: ActiveBuild | None) -> "ActiveOut":
        """Return the active build, which there must be."""
        if active is None:
            raise ValueError("no active build")
        return cls(active=active.build_id, generation=active.generation)


class _CorrectionIn(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    why: Stored
    """The reason, for whoever reads the list."""
    who: Stored | None = None
    """Who decides, where that is not the holder of the key."""


class AddSynonymIn(_CorrectionIn):
    """Give a concept one more name."""

    action: Literal["add_synonym"]
    concept: Stored
    """A CUI, source id or CURIE."""
    text: Stored
    """The name."""


class BlockNameIn(_CorrectionIn):
    """Let a name answer no longer, for one concept or for all."""

    action: Literal["block_name"]
    text: Stored
    """A name as the knowledge base has it."""
    concept: Stored | None = None
    """The concept that it is no name of; every one if left out."""


class BlockConceptIn(_CorrectionIn):
    """Let a concept answer no longer."""

    action: Literal["block_concept"]
    concept: Stored


class PinMentionIn(_CorrectionIn):
    """Link a mention to one concept before all others."""

    action: Literal["pin_mention"]
    concept: Stored
    text: Stored
    """The mention; a short one in capitals matches only as it is written."""


CorrectionIn = Annotated[
    AddSynonymIn | BlockNameIn | BlockConceptIn | PinMentionIn,
    Field(discriminator="action"),
]


class EntryOut(Out):
    """A correction of the knowledge base."""

    id: int
    action: Action
    text: str | None
    concept_id: str | None
    who: str
    why: str
    created_at: datetime
    revoked_at: datetime | None
    revoked_by: str | None
    dangling: str | None = None
    """Why it has no effect now: its concept or its name is gone."""

    @classmethod
    def of(cls, entry: Entry, dangling: str | None = None) -> "EntryOut":
        """Return a correction, with what keeps it from having an effect."""
        return cls.model_validate(entry, from_attributes=True).model_copy(update={"dangling": dangling})


class CurationOut(Out):
    """The corrections, oldest first, and how many changes led to them."""

    revision: int
    entries: list[EntryOut]


class CorrectedOut(Out):
    """A correction that is in force now, in every service within seconds."""

    revision: int
    entry: EntryOut


class UndoneOut(Out):
    """A correction was put out of force; the list keeps it."""

    revision: int
