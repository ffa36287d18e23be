"""What a mention asks for: its text with the short forms of its context written out, and the parts it coordinates."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from medlink.linking.abbreviations import expand, find_definitions, origin
from medlink.linking.composites import Composite, Part
from medlink.types import AbbreviationDefinition, Expansion, Mention

Spans = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """A mention with its expansion (of itself, where it has no short form) and, if it is to be split, its parts."""

    mention: Mention
    expansion: Expansion
    composite: Composite | None = None

    @property
    def text(self) -> str:
        """What is searched for the mention as a whole."""
        return self.expansion.text

    @property
    def texts(self) -> tuple[str, ...]:
        """All that is searched."""
        return (self.text, *(part.text for part in self.composite.parts)) if self.composite else (self.text,)


def write_out(mentions: Sequence[Mention]) -> Iterator[Expansion]:
    """Yield each mention with its short forms written out, as its context defines them, or itself without one."""
    known: dict[str, list[AbbreviationDefinition]] = {}
    for mention in mentions:
        source = mention.context or mention.text
        if source not in known:
            known[source] = find_definitions(source)
        yield expand(mention.text, known[source], at=mention.start if mention.context else None)


def spans_as_sent(asked: Asked, part: Part) -> Spans:
    """Return the stretches of the mention as sent that a part is put together from; blanks do not divide them.

    >>> from medlink.linking.composites import split_composite
    >>> asked = Asked(Mention(text := "fever or acute cough"), Expansion(text), split_composite(text))
    >>> [spans_as_sent(asked, part) for part in asked.composite.parts]
    [((0, 5),), ((9, 20),)]
    """
    spans: list[tuple[int, int]] = []
    for start, end in sorted(origin(asked.expansion, *span) for span in part.spans):
        if spans and not asked.mention.text[spans[-1][1] : start].strip():
            spans[-1] = (spans[-1][0], max(spans[-1][1], end))
        else:
            spans.append((start, end))
    return tuple(spans)
