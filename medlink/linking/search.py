"""Asks the channels of a build for mentions, and which parts of a mention are names."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from medlink.errors import UnknownValueError
from medlink.linking.evidence import parts_of
from medlink.linking.letter_case import mismatches_case
from medlink.linking.ranking import DEPTH, Found, Query
from medlink.protocols import Retriever
from medlink.stages import stage
from medlink.types import CHANNELS, Channel, LinkOptions


class Channels:
    """The channels that a build has.

    Args:
        retrievers: By channel, in any order.
    """

    def __init__(self, retrievers: Mapping[Channel, Retriever]) -> None:
        # The order of CHANNELS is the order of trust that `fuse` relies on.
        self._retrievers = {channel: retrievers[channel] for channel in CHANNELS if channel in retrievers}

    @property
    def names(self) -> tuple[Channel, ...]:
        """Which they are, in the order of trust."""
        return tuple(self._retrievers)

    @property
    def has_exact(self) -> bool:
        """Whether names can be looked up."""
        return "exact" in self._retrievers

    def all_used(self, options: LinkOptions) -> bool:
        """Say whether the build has every channel and the options use them all."""
        return set(CHANNELS) <= {*options.channels} & {*self._retrievers}

    def search(self, queries: Sequence[Query], options: LinkOptions, *, deep: int) -> list[Found]:
        """Return what each channel that the options name finds for each query; equal texts are searched once.

        Args:
            queries: What is searched.
            options: The channels and filters.
            deep: How many concepts to find by each channel.

        Raises:
            UnknownValueError: The build has none of the channels, or not a semantic type or source.
        """
        chosen = {c: r for c, r in self._retrievers.items() if c in options.channels}
        if not chosen:
            raise UnknownValueError("channel", ", ".join(options.channels), list(self._retrievers))
        texts = list(dict.fromkeys(query.text for query in queries))
        wider = replace(options, top_k=deep)
        by_channel = {}
        for channel, retriever in chosen.items():
            with stage(channel, len(texts)):
                by_channel[channel] = dict(zip(texts, retriever.search(texts, wider), strict=True))
        return [Found(query, {c: of_text[query.text] for c, of_text in by_channel.items()}) for query in queries]

    def with_parts(self, found: Sequence[Found], options: LinkOptions) -> list[Found]:
        """Return the same with those parts of each text that are names, where the text itself is none."""
        unnamed = {f.query.text for f in found if not f.retrievals["exact"].found}
        within = {text: list(dict.fromkeys(parts_of(text))) for text in sorted(unnamed)}
        distinct = sorted({part for parts in within.values() for part in parts})
        strict = replace(options, top_k=DEPTH, variants=False)
        named = dict(zip(distinct, self._retrievers["exact"].search(distinct, strict), strict=True))
        parts = {text: [(p, named[p]) for p in parts if named[p].found] for text, parts in within.items()}
        return [replace(f, parts=parts.get(f.query.text, ())) for f in found]

    def named(self, texts: Iterable[str], options: LinkOptions) -> set[str]:
        """Return those texts that are a name of the build, with or without the filters, in their own case."""
        asked = list(dict.fromkeys(texts))
        if not asked or not self.has_exact:
            return set()
        found = self._retrievers["exact"].search(asked, replace(options.unfiltered(), top_k=1, variants=False))
        return {
            text
            for text, retrieval in zip(asked, found, strict=True)
            if any(not (options.case and mismatches_case(text, r.name.text)) for r in retrieval.found)
        }
