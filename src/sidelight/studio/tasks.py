"""The work for each kind of job: a worker calls the library as commands do, and keeps the result."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sidelight._files import write_text
from sidelight.curator.journal import Journal
from sidelight.data.drafting.draft import draft as drafting
from sidelight.data.drafting.public_sample import public_sample
from sidelight.data.leak_guard import refuse_same
from sidelight.data.reading.file_format import FileFormat
from sidelight.data.reading.frames import write_file
from sidelight.data.schema import Schema
from sidelight.errors import InputError, ReleaseError, UnsavedError
from sidelight.evaluation.rehearsal import rehearse as play
from sidelight.models.support import Support
from sidelight.privacy.chained_ledger import Ledger
from sidelight.privacy.purpose import Purpose
from sidelight.privacy.sql_ledger import open_ledger
from sidelight.progress import Progress
from sidelight.queries.workload import Workload
from sidelight.releases.plan import Plan
from sidelight.releases.plan_digest import plan_digests, require_approved, source_digest
from sidelight.releases.plan_words import facts
from sidelight.releases.public_data import whole_records
from sidelight.releases.release import Release
from sidelight.releases.run import run
from sidelight.reports.report import report
from sidelight.studio import store
from sidelight.studio.jobs import Kind, Request
from sidelight.studio.looking import Sampled
from sidelight.studio.places import Place
from sidelight.studio.plans import FrozenPlan, Made, Plans
from sidelight.studio.project import Ask

SAMPLED = 5_000
"""Public records that the schema's histograms are drawn from."""
COMPARED = 200_000
"""Most public records that a release is compared with on its page."""
KEPT_SAMPLES = 20
"""Synthetic tables of a project that are kept for downloading."""
_SEED = 0
"""Chooses public records; it protects nobody."""

Task = Callable[[Place, Request, Progress], Any]


def draft(place: Place, request: Request, progress: Progress) -> dict[str, Any]:
    """A first schema from a public table, and some of its records to look at."""
    args, file = request.args, FileFormat(**request.args.get("file", {}))
    with progress.phase("draft"):
        made = drafting(args["public"], bins=args.get("bins", 32), missing=args.get("missing", ()), file=file)
    with progress.phase("look"):
        records = keep_sample(place, args["public"], file)
    write_text(place.schema, made.schema.to_toml(), "the schema")
    return {"remarks": list(made.remarks), "records": records, "columns": len(made.schema.columns)}


def keep_sample(place: Place, public: str, file: FileFormat) -> int:
    """Some records of a public table, kept as they stand in it; how many records it has."""
    table, records = public_sample(public, records=SAMPLED, file=file)
    is_typed = Path(public).suffix.lower() in (".parquet", ".pq")
    for ending in ("csv", "parquet"):
        (place.own / f"sample.{ending}").unlink(missing_ok=True)
    write_file(table, place.own / f"sample.{'parquet' if is_typed else 'csv'}")
    store.write(place.own / "sample.json", Sampled(of=public, records=records))
    return records


def check(place: Place, request: Request, progress: Progress) -> dict[str, Any]:
    """The misfits of the private table: columns and reasons, no value and no count."""
    schema = Schema.read(place.schema)
    with progress.phase("check"):
        misfits = schema.check(request.args["private"])
    return {
        "schema": schema.fingerprint,
        "misfits": [
            {"column": one.column, "what": one.what, "problem": one.message, "fatal": one.is_fatal}
            for one in misfits
        ],
    }


def rehearse(place: Place, request: Request, progress: Progress) -> Any:
    """Error against ε, played on a public table alone."""
    args, ledger, schema = request.args, place.project().ledger, Schema.read(place.schema)
    assert ledger is not None  # nothing is played without one
    promise = open_ledger(place.resolved(ledger)).promise
    return play(
        args["public"], schema=schema, epsilon=args["epsilon"], delta=promise.budget.delta,
        unit=promise.unit if schema.declared_unit is None else None,
        mechanism=args["mechanism"], workload=_workload(args["workload"]), records=args["records"],
        runs=args["runs"], alone=args["alone"], quality_share=args["quality_share"], progress=progress,
    )  # fmt: skip


def _workload(said: Any) -> Any:
    """A workload's name, or picked tables with their weights."""
    return said if isinstance(said, str) else Workload(said["attrs"], weights=said["weights"])


def workload_of(ask: Ask) -> Any:
    """The workload that was asked for, as ``_workload`` reads it."""
    if ask.workload != "picked":
        return ask.workload
    return {
        "attrs": [list(one.attrs) for one in ask.picked],
        "weights": [one.weight for one in ask.picked],
    }


def plan(place: Place, request: Request, progress: Progress) -> dict[str, Any]:
    """The frozen plan with its digest: cost, noise, what is left; nothing private is read."""
    frozen = _frozen(place, request)
    with progress.phase("plan"):
        planned, book, digests = _planned(frozen)
        planned = planned.asked(book, _said(frozen))
    made = Made(
        digest=digests[-1],
        facts=facts(planned),
        mechanism=planned.mechanism.name,
        sources={public: source_digest(public) for public in frozen.proposal.public},
    )
    store.write(frozen.folder / "plan.json", made)
    if not frozen.proposal.ask.second_person:
        frozen.keep_approval()
    return {"plan": frozen.number}


def _planned(frozen: FrozenPlan) -> tuple[Plan, Ledger, list[str]]:
    """The plan of a frozen proposal, its ledger and its digests."""
    asked, ask = frozen.proposal, frozen.proposal.ask
    assert ask.epsilon is not None  # checked before it was frozen
    refuse_same(asked.private, list(asked.public))
    book = open_ledger(asked.ledger)
    public = list(asked.public) if len(asked.public) > 1 else asked.public[0] if asked.public else None
    planned = Plan.of(
        schema=frozen.schema, epsilon=ask.epsilon, delta=None, mechanism=ask.mechanism,
        workload=frozen.workload, public=public, ledger=book, quality_share=ask.quality_share,
        accept=frozen.accept,
    )  # fmt: skip
    if asked.records is not None:
        planned = planned.knowing(asked.records)
    # What is approved is what runs: the mechanism stays, whatever the table's n turns out to be.
    planned = planned.fixed()
    return (
        planned,
        book,
        plan_digests(planned, private=asked.private, public=public, ledger=book, project=ask.project or None),
    )


def _said(frozen: FrozenPlan) -> Purpose:
    """The purpose of the run as people said it, beside who approved it."""
    return Purpose(project=frozen.proposal.ask.project or None)


def release(place: Place, request: Request, progress: Progress) -> dict[str, Any]:
    """Carry out a frozen plan, exactly as it was approved; or resume it."""
    frozen = _frozen(place, request)
    approval = frozen.approval()
    if (frozen.out / "release.json").is_file():
        Journal.remove(frozen.checkpoint)
        return {"release": frozen.release}
    with progress.phase("plan"):
        planned, book, digests = _planned(frozen)
        require_approved(approval, digests)
    store.private_folder(frozen.out.parent)
    made = run(
        planned, frozen.proposal.private, ledger=book, checkpoint=frozen.checkpoint, progress=progress,
        is_confirmed=frozen.proposal.ask.other_schema, said=_said(frozen).approved(approval),
    )  # fmt: skip
    with progress.phase("save"):
        try:
            _keep_beside(frozen, planned, made)
            made.save(frozen.out)
        except (ReleaseError, InputError, OSError) as error:
            raise UnsavedError(
                f"the release could not be written: {error} Nothing is lost: everything that was paid for is "
                "kept. Make room on the disk, and resume; nothing is paid again."
            ) from error
        Journal.remove(frozen.checkpoint)
    return {"release": frozen.release}


def _keep_beside(frozen: FrozenPlan, planned: Plan, made: Release) -> None:
    """The report, and public records to compare with; before the folder that says that all is done."""
    report(made, frozen.out.with_name(f"{frozen.release}.html"), overwrite=True)
    model = None if planned.public is None else whole_records(planned.public, planned.domain)
    if isinstance(model, Support):
        keep_public(frozen.out.with_name(f"{frozen.release}.public.parquet"), model)


def keep_public(path: Path, support: Support) -> None:
    """Public records as codes with weights; a random part of them where they are very many."""
    import pyarrow as pa

    codes, weights = support.records, support.weights
    if len(codes) > COMPARED:
        kept = np.sort(np.random.default_rng(_SEED).choice(len(codes), COMPARED, replace=False))
        codes, weights = codes[kept], weights[kept]
    columns = {f"c{place}": np.ascontiguousarray(codes[:, place]) for place in range(codes.shape[1])}
    write_file(pa.table(columns | {"weight": weights}), path)


def sample(place: Place, request: Request, progress: Progress) -> dict[str, Any]:
    """A synthetic table, as a file to download."""
    args = request.args
    released = replace(Release.load(place.release(args["release"])), kind="pyarrow")
    with progress.phase("sample"):
        drawn = released.sample(args["records"], where=args["where"] or None, seed=args["seed"])
        folder = store.private_folder(place.own / "samples")
        write_file(drawn, folder / args["file"], safe_cells=args["safe_cells"])
        by_age = sorted(folder.iterdir(), key=lambda path: -path.stat().st_mtime)
        for old in by_age[KEPT_SAMPLES:]:  # they can be drawn again
            old.unlink(missing_ok=True)
    return {"file": args["file"], "records": drawn.num_rows, "seed": released.draws[-1].seed}


def _frozen(place: Place, request: Request) -> FrozenPlan:
    found = Plans(place).get(str(request.args.get("plan")))
    if found is None:
        raise InputError("the plan was removed. Nothing was read and nothing was charged.")
    return found


TASKS: dict[Kind, Task] = {
    "draft": draft,
    "check": check,
    "rehearse": rehearse,
    "plan": plan,
    "release": release,
    "sample": sample,
}
