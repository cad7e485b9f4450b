"""Work under way: how far it is, for the page that waits; and to stop it."""

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from sidelight.releases.typed_json import to_json
from sidelight.studio.jobs import Job, Jobs
from sidelight.studio.visit import Visit

_BACK = {"draft": "schema", "check": "schema", "rehearse": "plan", "plan": "plan", "release": "release"}


def progress(visit: Visit) -> Response:
    """The state of a job, for a script; a reader may ask after drawings of samples alone."""
    job = _job(visit)
    if visit.person.role != "curator" and job.request.kind != "sample":
        raise HTTPException(404, "There is no such work.")
    state = job.state()
    phases = to_json(state.phases) if visit.person.role == "curator" else []
    return JSONResponse({"status": state.status, "is_over": job.is_over, "phases": phases})


def cancel(visit: Visit) -> Response:
    """Stop a job."""
    job = _job(visit)
    is_asked = job.cancel()
    return visit.go(_BACK.get(job.request.kind, "explore"), said="cancelling" if is_asked else "over")


def _job(visit: Visit) -> Job:
    found = Jobs(visit.here).get(visit.path["job"])
    if found is None:
        raise HTTPException(404, "There is no such work.")
    return found
