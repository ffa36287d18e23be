"""What a client sends, as pydantic models; pinned by docs/api/openapi.json."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, field_validator
from pydantic.config import JsonDict

from medlink.types import CHANNELS, DEFAULT_CHANNELS, Channel, LinkOptions, Mention

Include = Literal["codes", "types", "definition", "suppressed"]


def _whole(value: object) -> object:
    # To JSON 5.0 is as whole as 5.
    return int(value) if isinstance(value, float) and value.is_integer() else value


Offset = Annotated[int, Field(ge=0), BeforeValidator(_whole)]


class _In(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


class MentionIn(_In):
    """A mention with what is known about where it was found."""

    model_config = ConfigDict(strict=True)

    text: str
    id: str | None = None
    """Given back with the result."""
    context: str | None = None
    """The text around the mention; short forms that it defines are written out."""
    start: Offset | None = None
    """Where the mention begins in the context: 0-based, in code points."""
    end: Offset | None = None
    """Where it ends, exclusive."""

    def mention(self) -> Mention:
        """Return the domain record."""
        return Mention(self.text, self.id, self.context, self.start, self.end)


def _kind(value: object) -> str:
    return "text" if isinstance(value, str) else "mention"


AnyMention = Annotated[Annotated[str, Tag("text")] | Annotated[MentionIn, Tag("mention")], Discriminator(_kind)]


class Options(_In):
    """What a caller may choose about an answer."""

    top_k: Annotated[int, Field(ge=1, le=100), BeforeValidator(_whole)] = 5
    """Distinct concepts a mention."""
    semantic_types: list[str] = []
    """Answer only with concepts of one of these types (TUI)."""
    sabs: list[str] = []
    """Answer only with concepts that have a name or a code in one of these sources."""
    threshold: float | None = Field(None, ge=0, le=1)
    """Least probability of a link; needs an index build with calibration."""
    channels: list[Channel] = Field(list(DEFAULT_CHANNELS), min_length=1)
    """Ways to find candidates; those that the index build lacks are left out, `index.channels` names those it has."""
    composites: bool = True
    """Answer the parts of a mention of several concepts too, unless it is a name itself."""
    include: list[Include] = ["codes", "types"]
    """Parts of a candidate to send; `suppressed` lets suppressed names answer."""
    explain: bool = False
    """Say why each candidate is there: channel scores, the matched name and its source, what differs, and more."""

    def options(self) -> LinkOptions:
        """Return the domain record."""
        return LinkOptions(
            top_k=self.top_k,
            semantic_types=frozenset(self.semantic_types),
            sabs=frozenset(self.sabs),
            threshold=self.threshold,
            channels=tuple(c for c in CHANNELS if c in self.channels),
            include_suppressed="suppressed" in self.include,
            composites=self.composites,
        )


def _split(value: object) -> object:
    """Let a list in a query string be repeated (`sabs=MESH&sabs=MONDO`) or written with commas (`sabs=MESH,MONDO`)."""
    if not isinstance(value, list):
        return value
    return [part for item in value for part in (item.split(",") if isinstance(item, str) else [item])]


def _listed(values: Sequence[str], *, blank: bool) -> JsonDict:
    """Return the JSON schema of such a list, or one value, in a query string."""
    value = f"({'|'.join(values)}){'?' if blank else ''}"
    return {"items": {"type": "string", "pattern": f"^{value}(,{value})*$"}}


class QueryOptions(Options):
    """The options of a stream, from the query string."""

    channels: list[Channel] = Field(
        list(DEFAULT_CHANNELS),
        min_length=1,
        description=Options.model_fields["channels"].description,
        json_schema_extra=_listed(CHANNELS, blank=False),
    )
    include: list[Include] = Field(
        ["codes", "types"],
        description=Options.model_fields["include"].description,
        json_schema_extra=_listed(get_args(Include), blank=True),
    )

    @field_validator("semantic_types", "sabs", "include", mode="before")
    @classmethod
    def _split_lists(cls, value: object) -> object:
        parts = _split(value)
        return [part for part in parts if part] if isinstance(parts, list) else parts

    @field_validator("channels", mode="before")
    @classmethod
    def _split_channels(cls, value: object) -> object:
        # There is no asking for none.
        return _split(value)


class LinkRequest(Options):
    """Mentions to link; one bad mention refuses the request."""

    model_config = ConfigDict(strict=True, json_schema_extra={"examples": [{"mentions": ["heart attack"]}]})

    mentions: list[AnyMention]


BULK_EXAMPLES: dict[str, Any] = {"examples": [{"mentions": ["heart attack", "asthma"], "top_k": 3}]}


class BulkRequest(Options):
    """Many mentions to link; a bad mention gets an error in its place and the others their answers."""

    model_config = ConfigDict(strict=True)

    mentions: list[Any]
