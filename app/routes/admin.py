"""`/admin/index` and `/admin/jobs`: rebuild, watch, switch and compare index builds."""

from typing import Annotated

from fastapi import APIRouter, Body, Depends, Header, Path, Request
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from app.administration import ActiveOut, BuildOut, BuildsOut, JobOut, JobsOut, RebuildIn
from app.auth import AdminDep, get_admin
from app.deps import BuildsDep, RebuildsDep, SettingsDep, StoreDep
from app.drift import DriftOut, Drifts
from app.errors import problems
from app.old_builds import remove_build
from index.store import BuildStore, checked_manifest
from medlink.errors import IndexMismatchError, NoIndexError, UnknownIdError, UnknownValueError
from medlink.kb.builds import Builds
from medlink.kb.jobs import Jobs

router = APIRouter(
    prefix="/admin", tags=["admin"], dependencies=[Depends(get_admin)], responses=problems(401, 403, 404, 422, 503)
)
IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        description="Names the request among those of the same API key: sent again, it gets the job that it made.",
        pattern=r"^[!-~]{1,255}$",
        examples=["8e03978e-40d5-43dd-bc93-6894a57f9324"],
    ),
]
Id = Annotated[str, Path(pattern=r"^[0-9A-Za-z]{1,40}$")]


@router.post("/index/rebuild", status_code=202, responses=problems(400, 408, 409, 413, 415))
def rebuild(
    caller: AdminDep,
    store: StoreDep,
    rebuilds: RebuildsDep,
    wanted: Annotated[RebuildIn | None, Body()] = None,
    idempotency_key: IdempotencyKey = None,
) -> JobOut:
    """Make an index build of what is in the store now, in a process of its own while this one goes on answering.

    With an Idempotency-Key the request may be sent again, at any time and to any replica: it makes one job, and the
    answer is that job as it is by then. The same key with another body is 422, `key_reused`.
    """
    parameters = (wanted or RebuildIn()).model_dump()
    job = Jobs(store).request("rebuild", by=caller.name, parameters=parameters, key=idempotency_key)
    if job.state == "queued":
        rebuilds.start()
    return JobOut.of(job)


@router.get("/jobs")
def list_jobs(store: StoreDep) -> JobsOut:
    """List the latest hundred jobs, the newest first."""
    return JobsOut(jobs=[JobOut.of(job) for job in Jobs(store).jobs()])


@router.get("/jobs/{job_id}")
def show_job(job_id: Id, store: StoreDep) -> JobOut:
    """Show how far a job is."""
    return JobOut.of(Jobs(store).job(job_id))


@router.delete("/jobs/{job_id}", status_code=202, responses=problems(409))
def cancel_job(job_id: Id, store: StoreDep) -> JobOut:
    """Cancel a job: one that waits at once, one at work within seconds; no build comes of it."""
    return JobOut.of(Jobs(store).cancel(job_id))


@router.get("/index")
def list_builds(store: StoreDep, settings: SettingsDep, builds: BuildsDep) -> BuildsOut:
    """List the index builds, oldest first."""
    records, here = Builds(store), set(BuildStore(settings.builds_dir).ids())
    active = records.active_build()
    try:
        serving = builds.current().id
    except NoIndexError:
        serving = None
    active_id = active.build_id if active else None
    return BuildsOut(
        generation=active.generation if active else None,
        active=active_id,
        serving=serving,
        builds=[BuildOut.of(record, active_id, record.id in here) for record in records.builds()],
    )


@router.post("/index/rollback", responses=problems(409))
def roll_back(store: StoreDep, settings: SettingsDep) -> ActiveOut:
    """Let the build answer that did before; twice goes back twice. Removed builds are passed over."""
    records = Builds(store)
    earlier = records.earlier_build()
    try:
        if earlier is not None:
            checked_manifest(settings.builds_dir / earlier)
        records.roll_back()
    except (IndexMismatchError, UnknownIdError) as error:
        raise HTTPException(409, str(error)) from error
    return ActiveOut.of(records.active_build())


@router.post("/index/{build_id}/activate", responses=problems(409))
def activate(build_id: Id, store: StoreDep, settings: SettingsDep) -> ActiveOut:
    """Compare every file of a build with its manifest and let it answer from now on."""
    records = Builds(store)
    state = records.states().get(build_id)
    if state is None:
        raise UnknownIdError("index build")
    if state == "deleted":
        raise HTTPException(409, f"index build {build_id} was removed; activate another")
    try:
        checked_manifest(settings.builds_dir / build_id)
        records.activate_build(build_id)
    except (IndexMismatchError, UnknownValueError) as error:
        raise HTTPException(409, str(error)) from error
    return ActiveOut.of(records.active_build())


@router.delete("/index/{build_id}", responses=problems(409))
def remove(build_id: Id, store: StoreDep, settings: SettingsDep) -> BuildOut:
    """Remove a build that is not the active one, for good; a service that answers from it yet goes on."""
    remove_build(store, BuildStore(settings.builds_dir), build_id)
    (record,) = (record for record in Builds(store).builds() if record.id == build_id)
    return BuildOut.of(record, None, here=False)


@router.get("/index/{earlier}/diff/{later}", responses=problems(409))
async def diff(earlier: Id, later: Id, request: Request, store: StoreDep, settings: SettingsDep) -> DriftOut:
    """Link the mentions of the file in MEDLINK_DRIFT_MENTIONS by both builds, and send what differs and why."""
    here = await run_in_threadpool(BuildStore(settings.builds_dir).ids)
    known = {record.id for record in await run_in_threadpool(Builds(store).builds)}
    if not {earlier, later} <= known & set(here):
        raise UnknownIdError("index build")
    drifts: Drifts = request.state.drifts
    return await drifts.compare(earlier, later)
