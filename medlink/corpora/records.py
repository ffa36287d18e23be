"""Annotated documents as frozen records, and the counts that a corpus reader keeps."""

from dataclasses import dataclass, field

Gold = tuple[tuple[str, ...], ...]
"""What a mention means: every part must be answered, the ids inside a part all name one concept.

A part without ids is one that the annotators found no concept for; no parts at all say so of the whole mention.
"""


@dataclass(frozen=True, slots=True)
class LabeledMention:
    """A mention with the concepts that annotators gave it.

    `start` and `end` are 0-based, end-exclusive code-point offsets into the document's text. `type` is blank where
    the corpus gives none. `part_texts` holds the sub-mentions where the corpus itself spells them out.
    """

    document_id: str
    start: int
    end: int
    text: str
    type: str
    gold: Gold
    part_texts: tuple[str, ...] = ()

    @property
    def gold_ids(self) -> frozenset[str]:
        """Every id of every part."""
        return frozenset(id_ for part in self.gold for id_ in part)


@dataclass(frozen=True, slots=True)
class LabeledDocument:
    """A text with its mentions in the order of the file.

    The id is the PMID where the text comes from PubMed; sentences of one abstract share it.
    """

    id: str
    text: str
    mentions: tuple[LabeledMention, ...]

    @classmethod
    def of_mention(cls, id: str, text: str, gold: Gold) -> "LabeledDocument":
        """Return what a corpus gives that has mentions but no text around them: the mention is its own document."""
        return cls(id, text, (LabeledMention(id, 0, len(text), text, "", gold),))


@dataclass(slots=True)
class CorpusReport:
    """Counts of one pass over a corpus file; complete once the reader is exhausted."""

    documents: int = 0
    mentions: int = 0
    relations: int = 0
    other_types: int = 0
    blank: int = 0
    """Mentions without a text; they are left out."""
    trimmed: int = 0
    """Mentions whose trailing blanks were cut off."""
    mismatches: int = 0
    """Mentions that are not what the text holds at their offsets; they are kept as annotated."""
    repeated_documents: list[str] = field(default_factory=list)
    """Ids that the file holds more than once; every copy is yielded."""

    def count(self, document: LabeledDocument) -> None:
        """Add a document that is complete."""
        self.documents += 1
        self.mentions += len(document.mentions)
        self.mismatches += sum(document.text[m.start : m.end] != m.text for m in document.mentions)
