"""What two index builds answer differently, as the command line prints it and the service sends it."""

import asyncio
import os
import sys
from collections import Counter
from collections.abc import Iterable, Sequence

from pydantic import ValidationError
from sqlalchemy import Engine

from app.facts import Out
from app.mentions import check_each
from app.settings import Settings
from index.diff import Change, Why, compare_builds
from index.store import BuildStore
from medlink.errors import IndexMismatchError, JobError
from medlink.kb.curation import Curations
from medlink.types import LinkOptions, Mention, NilReason, Status

_SHOWN = 1000
_SECONDS = 900.0
_DIFF = (sys.executable, "-m", "medlink.cli", "index", "diff")


class AnswerOut(Out):
    """The first candidate of an answer; without one, why there is none."""

    status: Status
    cui: str | None
    score: float | None
    probability: float | None
    reason: NilReason | None


class ChangeOut(Out):
    """A mention of the file that is answered differently; its text is not sent."""

    item: int
    """Its place in the file, from 0."""
    id: str | None
    """Its id, if the file has a column `id`."""
    part: int | None
    """Which part of a mention of several concepts; null for the whole."""
    before: AnswerOut
    after: AnswerOut
    why: Why
    """The first that holds: the concept is retired or gone in the later build, or new to the earlier one; the name
    that was found is gone, or the one found now is new; `parts`: only one
    build takes the mention for several concepts; or `score`: compared, ranked or judged otherwise."""
    successors: list[str]
    """Of the concept, where it was retired."""


class DriftOut(Out):
    """What the later build answers differently."""

    earlier: str
    later: str
    curation_revision: int
    """The corrections that lay over both."""
    mentions: int
    refused: int
    """Mentions that cannot be linked as they are, and were left out."""
    changed: int
    by_why: dict[Why, int]
    changes: list[ChangeOut]
    """The first thousand."""


def measure_drift(
    settings: Settings, engine: Engine, earlier: str, later: str, rows: Iterable[tuple[str | None, object]]
) -> DriftOut:
    """Link mentions by two builds, under the corrections in force, and return what differs.

    Args:
        settings: Where the builds are, and the limits of a mention.
        engine: The store.
        earlier: Id of a build.
        later: Id of the other.
        rows: Id, if any, and text of each mention.
    """
    ids, texts = zip(*rows, strict=True) if (rows := list(rows)) else ((), ())
    checked = check_each(texts, settings)
    kept = [place for place, mention in enumerate(checked) if isinstance(mention, Mention)]
    state, store = Curations(engine).in_force(), BuildStore(settings.builds_dir)
    old, new = (store.open(build_id, threads=settings.threads).curated(state) for build_id in (earlier, later))
    mentions = [mention for mention in checked if isinstance(mention, Mention)]
    changes = list(compare_builds(old, new, mentions, LinkOptions(top_k=1)))
    return DriftOut(
        earlier=earlier,
        later=later,
        curation_revision=state.revision,
        mentions=len(checked),
        refused=len(checked) - len(kept),
        changed=len({change.item for change in changes}),
        by_why=dict(Counter(change.why for change in changes)),
        changes=[_shown(change, kept, ids) for change in changes[:_SHOWN]],
    )


def _shown(change: Change, kept: Sequence[int], ids: Sequence[str | None]) -> ChangeOut:
    before, after = (
        AnswerOut(
            status=answer.status,
            cui=answer.concept_id,
            score=answer.score,
            probability=answer.probability,
            reason=answer.reason,
        )
        for answer in (change.before, change.after)
    )
    item = kept[change.item]
    return ChangeOut(
        item=item,
        id=ids[item],
        part=change.part,
        before=before,
        after=after,
        why=change.why,
        successors=list(change.successors),
    )


class Drifts:
    """Comparisons in a process of their own, one at a time: two more builds and encoders do not fit everywhere."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._running = asyncio.Lock()

    async def compare(self, earlier: str, later: str) -> DriftOut:
        """Link the mentions of the file in the settings by both builds; the ids must be known ones.

        Raises:
            JobError: There is no such file, or a comparison runs.
            IndexMismatchError: They cannot be compared.
        """
        if self._settings.drift_mentions is None:
            raise JobError("set MEDLINK_DRIFT_MENTIONS to a file of mentions to compare builds by")
        if self._running.locked():
            raise JobError("two builds are being compared; wait for that")
        async with self._running:
            return _read(await self._run(earlier, later))

    async def _run(self, earlier: str, later: str) -> tuple[bytes, bytes]:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *(*_DIFF, earlier, later, "--json"),
            env={**os.environ, **self._settings.environment()},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
        )
        try:
            return await asyncio.wait_for(process.communicate(), _SECONDS)
        except TimeoutError:
            raise JobError(f"the comparison took more than {_SECONDS:.0f} seconds; take fewer mentions") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()


def _read(printed: tuple[bytes, bytes]) -> DriftOut:
    out, said = printed
    try:
        return DriftOut.model_validate_json(out)
    except ValidationError:
        lines = [line for line in said.decode(errors="replace").splitlines() if line.startswith("medlink: ")]
        reason = lines[-1].removeprefix("medlink: ") if lines else "the comparison did not end; the log says why"
        raise IndexMismatchError(f"the builds cannot be compared: {reason}") from None
