"""Why a candidate is there, worked out only for a request that asks for it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import WithJsonSchema

from app.facts import Out
from medlink.linking.letter_case import is_short_form
from medlink.loose_key import STEP_NAMES, differing_steps
from medlink.types import AbbreviationDefinition, Candidate, Channel, LinkedPart, LinkResult, concept_id

StepName = Annotated[str, WithJsonSchema({"type": "string", "enum": list(STEP_NAMES)})]
BroaderBecause = Literal["nothing_fits", "successor_is_broader"]


class PinOut(Out):
    """The correction by which a person said that the mention is this concept."""

    entry: int
    why: str


class ShortFormOut(Out):
    """A short form that was written out before the search."""

    short: str
    long: str


class ExplanationOut(Out):
    """Why a candidate is there."""

    channels: dict[Channel, float]
    """Similarity in every channel that found the concept; empty if only a pin put it there."""
    searched: str
    """What was compared with names: the mention, or its part, with its short forms written out."""
    matched_name: str | None
    """Null where its source's licence keeps it from being shown; then `steps` is null too."""
    matched_sab: str
    matched_tty: str
    by_id: bool
    """True if the mention is an id of the concept; `matched_name` is then its preferred name, and no text matched."""
    steps: list[StepName] | None
    """What makes `searched` and `matched_name` equal: empty if they are, null if they differ in more than spelling."""
    case_mismatch: bool
    """True if the mention spells this short form ("ALL") as an ordinary word ("all"), and is demoted for it."""
    via_short_form: bool
    """True if the matched name is a short form ("RTA"), or one of the mention was written out: it may mean another."""
    expanded: list[ShortFormOut]
    """The short forms of the mention that were written out."""
    truncated: bool
    """True if the encoder read only the beginning of `searched`."""
    broader_because: BroaderBecause | None
    """Why a broader concept is offered: no concept fits the whole mention, or it is all that a retired id left."""
    pin: PinOut | None = None
    """Set if the mention is pinned to the concept, which is first then whatever the channels found."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the candidates of an answer were found for, as far as their explanations tell of it."""

    searched: str
    expanded: tuple[AbbreviationDefinition, ...] = ()
    truncated: bool = False
    retired_from: str | None = None

    @classmethod
    def by(cls, result: LinkResult) -> "Asked":
        """Return what was searched for a mention as a whole."""
        if result.expansion is None:
            return cls(result.mention.text, (), result.truncated, result.retired_from)
        # What the mention says itself was not written out: its short form in brackets was dropped.
        said = result.mention.text.casefold()
        used = [d for d in result.expansion.used if d.long.casefold() not in said]
        return cls(result.expansion.text, tuple(used), result.truncated, result.retired_from)

    @classmethod
    def by_part(cls, part: LinkedPart, whole: LinkResult) -> "Asked":
        """Return what was searched for a part of a mention, with the short forms that were written out in it."""
        forms = {
            whole.mention.text[change.start : change.end].removesuffix("s")
            for change in (whole.expansion.replaced if whole.expansion else ())
            if any(start < change.end and change.start < end for start, end in part.spans)
        }
        used = [definition for definition in cls.by(whole).expanded if definition.short.removesuffix("s") in forms]
        return cls(part.result.mention.text, tuple(used), part.result.truncated)


def explain(candidate: Candidate, asked: Asked) -> ExplanationOut:
    """Return what speaks for a candidate."""
    name = candidate.name
    by_id = asked.retired_from is not None or concept_id(candidate.concept.id) == concept_id(asked.searched)
    steps = None if by_id or name.withheld else differing_steps(asked.searched, name.text)
    pin = {"pin": PinOut(entry=candidate.pin.entry, why=candidate.pin.why)} if candidate.pin else {}
    return ExplanationOut(
        channels=dict(candidate.channels),
        searched=asked.searched,
        matched_name=None if name.withheld else name.text,
        matched_sab=name.sab,
        matched_tty=name.tty,
        by_id=by_id,
        steps=None if steps is None else list(steps),
        case_mismatch=candidate.case_mismatch,
        via_short_form=not by_id and (is_short_form(name.text) or bool(asked.expanded)),
        expanded=[ShortFormOut(short=d.short, long=d.long) for d in asked.expanded],
        truncated=asked.truncated,
        broader_because=_broader_because(candidate, asked),
        **pin,
    )


def reasons(explanation: ExplanationOut) -> Sequence[str]:
    """Return an explanation in short words, for people.

    >>> asked = {"searched": "als", "matched_name": "ALS", "by_id": False, "steps": ["case"], "case_mismatch": True}
    >>> found = {"channels": {"exact": 1.0}, "matched_sab": "MESH", "matched_tty": "ET", "via_short_form": True}
    >>> rest = {"expanded": [], "truncated": False, "broader_because": None}
    >>> "; ".join(reasons(ExplanationOut(**asked, **found, **rest)))
    'exact 1.0000; MESH ET; equal but for case; case mismatch; by a short form'
    """
    if explanation.by_id:
        spelling = "by id"
    elif explanation.steps is None:
        spelling = "not the same words"
    else:
        spelling = f"equal but for {', '.join(explanation.steps)}" if explanation.steps else "as written"
    said = {
        "case mismatch": explanation.case_mismatch,
        "by a short form": explanation.via_short_form,
        **{f"{e.short} = {e.long}": True for e in explanation.expanded},
        "truncated": explanation.truncated,
        "broader: nothing fits": explanation.broader_because == "nothing_fits",
        "broader: successor of a retired id": explanation.broader_because == "successor_is_broader",
        f"pin {explanation.pin.entry if explanation.pin else ''}": explanation.pin is not None,
    }
    channels = [f"{channel} {score:.4f}" for channel, score in explanation.channels.items()]
    source = f"{explanation.matched_sab} {explanation.matched_tty}".strip()
    return [*channels, source, spelling, *(word for word, holds in said.items() if holds)]


def _broader_because(candidate: Candidate, asked: Asked) -> BroaderBecause | None:
    if candidate.relation == "exact":
        return None
    return "successor_is_broader" if asked.retired_from else "nothing_fits"
