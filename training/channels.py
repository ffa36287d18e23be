"""The channels of an index build as systems under test, in this process or over HTTP."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from medlink.client import Client, MentionJson
from medlink.corpora.ids import candidate_ids, spellings
from medlink.text import match_key
from medlink.types import CHANNELS, Channel, Code, LinkOptions, LinkResult, Mention
from training.protocols import CandidateIds, as_names
from training.strict import Answer
from training.systems import Ranks, System, asked_by

if TYPE_CHECKING:
    from index.store import IndexBuild


@dataclass(frozen=True, slots=True)
class Reply:
    """What a linker says of a mention, whichever way it was asked."""

    status: str
    candidates: tuple[CandidateIds, ...] = ()
    parts: tuple["Reply", ...] = ()

    @property
    def answer(self) -> Answer:
        """The reply as the strict protocol reads it."""
        return Answer(self._concepts, tuple(next(iter(part._concepts), frozenset()) for part in self.parts))

    @property
    def _concepts(self) -> tuple[frozenset[str], ...]:
        if self.status == "nil":
            return ()
        # A refusal to answer is no NIL.
        return tuple(candidate.ids for candidate in self.candidates) or (frozenset(),)


Ask = Callable[[Sequence[Mention], int, Sequence[Channel], bool], Sequence[Reply]]
"""Takes mentions, k, channels, and whether the mentions are as written: if not, they lost their case and were split."""


class ChannelSource:
    """Systems over one index build.

    Args:
        chosen: The channels of each system to run, by what rows call it.
        manifest: What the build was made of.
        ask: Asks its linker.
        known: Returns those of some ids that it has.
        longest_context: Most characters of context that it takes.
        label: What rows call its names; its sources if empty.
        encoder: What rows call its encoder; its fingerprint if empty.
        revision: Revision of its curation; 0 if it is as it was built.
    """

    def __init__(
        self,
        chosen: Mapping[str, Sequence[Channel]],
        manifest: Mapping[str, Any],
        ask: Ask,
        known: Callable[[Collection[str]], Collection[str]],
        *,
        longest_context: int,
        label: str = "",
        encoder: str = "",
        revision: int = 0,
    ) -> None:
        self.known = known
        self.label = label or "+".join(source["sab"] for source in manifest["sources"])
        self._chosen = chosen
        self._ask = ask
        self._longest_context = longest_context
        self._encoder = encoder or str(manifest["encoder"]["fingerprint"])[:12]
        self._facts = _facts(manifest, revision)

    def exact(self, texts: Sequence[str], k: int) -> list[list[frozenset[str]]]:
        """Answer a text that is a name of the build, and no other, be it a variant of a name."""
        replies = self._ask([Mention(text) for text in texts], k, ("exact",), False)
        return [
            as_names(c for c in reply.candidates if match_key(c.name) == match_key(text))
            for text, reply in zip(texts, replies, strict=True)
        ]

    def systems(self, protocol: str, added: Mapping[str, frozenset[str]]) -> Iterator[System]:
        """Yield one system after another.

        Args:
            protocol: How it is to be asked.
            added: Must be empty.

        Raises:
            ValueError: There are names to add, which a build never takes; see `scratch`.
        """
        if added:
            raise ValueError("nothing can be added to an index build")
        for name, channels in self._chosen.items():
            encoder = self._encoder if "dense" in channels else None
            yield System(name, encoder, self._asked(channels, protocol), self._facts)

    def _asked(self, channels: Sequence[Channel], protocol: str) -> Ranks:
        def rank(texts: Sequence[str], k: int) -> list[list[frozenset[str]]]:
            return self._rank(texts, k, channels)

        def link(mentions: Sequence[Mention], k: int) -> list[Answer]:
            return [reply.answer for reply in self._ask(mentions, k, channels, True)]

        return asked_by(protocol, rank, link, self._longest_context)

    def _rank(self, texts: Sequence[str], k: int, channels: Sequence[Channel]) -> list[list[frozenset[str]]]:
        # The protocols that ask by text have put it in lower case and split the composites themselves.
        replies = self._ask([Mention(text) for text in texts], k, channels, False)
        return [as_names(reply.candidates) for reply in replies]


def of_build(
    build: "IndexBuild",
    chosen: Mapping[str, Sequence[Channel]],
    *,
    longest_context: int,
    label: str = "",
    encoder: str = "",
) -> ChannelSource:
    """Answer in this process."""

    def ask(mentions: Sequence[Mention], k: int, channels: Sequence[Channel], as_written: bool) -> list[Reply]:
        # Accuracy is of the best answer, however improbable; `nil` measures what is better refused.
        threshold = 0.0 if build.models[1] and set(channels) == set(CHANNELS) else None
        options = LinkOptions(k, threshold=threshold, channels=tuple(channels), composites=as_written, case=as_written)
        results = build.linker.link(mentions, options)
        return [_reply(result) for result in results]

    def there(id_: str) -> bool:
        spelt = spellings(id_)
        codes = (s.split(":", 1) for s in spelt if ":" in s)
        return bool(build.concepts.concepts(spelt)) or any(build.concepts.coded(*code) for code in codes)

    return ChannelSource(
        chosen,
        build.manifest,
        ask,
        _those(there),
        longest_context=longest_context,
        label=label,
        encoder=encoder,
        revision=build.overlay.revision,
    )


def of_service(
    client: Client, chosen: Mapping[str, Sequence[Channel]], *, label: str = "", encoder: str = ""
) -> ChannelSource:
    """Answer over HTTP, as any other client would be answered: a service always takes case as it comes."""

    def ask(mentions: Sequence[Mention], k: int, channels: Sequence[Channel], as_written: bool) -> list[Reply]:
        options: dict[str, Any] = {"channels": list(channels), "include": ["codes"], "composites": as_written}
        if info["index"].get("calibration") and set(channels) == set(CHANNELS):
            options["threshold"] = 0.0
        reply = client.link_bulk([_sent(mention) for mention in mentions], top_k=k, **options)
        return [_reply_sent(result) for result in reply["results"]]

    def there(id_: str) -> bool:
        concepts = (client.concept(spelt) for spelt in spellings(id_))
        # A retired id is answered too, but without a name.
        return any(concept is not None and concept["preferred_name"] for concept in concepts)

    info = client.info()
    return ChannelSource(
        chosen,
        info["index"],
        ask,
        _those(there),
        longest_context=int(info["limits"]["max_context_chars"]),
        label=label,
        encoder=encoder,
        revision=int(info["index"]["curation_revision"]),
    )


def _facts(manifest: Mapping[str, Any], revision: int) -> dict[str, Any]:
    """Return what else decides the answers, where there is anything else: corrections, a learned fusion."""
    fusion = manifest.get("fusion")
    return {**({"curation": revision} if revision else {}), **({"fusion": fusion["fingerprint"]} if fusion else {})}


def _those(there: Callable[[str], bool]) -> Callable[[Collection[str]], Collection[str]]:
    return lambda ids: {id_ for id_ in ids if there(id_)}


def _reply(result: LinkResult) -> Reply:
    candidates = (CandidateIds(c.name.text, candidate_ids(c.concept.id, c.concept.codes)) for c in result.candidates)
    return Reply(result.status, tuple(candidates), tuple(_reply(part.result) for part in result.parts))


def _reply_sent(result: Mapping[str, Any]) -> Reply:
    candidates = (
        CandidateIds(c["matched_name"], candidate_ids(c["cui"], [Code(**code) for code in c["codes"]]))
        for c in result.get("candidates", ())
    )
    parts = result.get("parts") or ()
    return Reply(result.get("status", "error"), tuple(candidates), tuple(_reply_sent(part) for part in parts))


def _sent(mention: Mention) -> MentionJson:
    facts = {"context": mention.context, "start": mention.start, "end": mention.end}
    return cast(MentionJson, {"text": mention.text, **{key: fact for key, fact in facts.items() if fact is not None}})
