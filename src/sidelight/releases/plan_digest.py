"""A digest of all that a run will do, so that what was approved is exactly what runs.

    SHA-256 of   the plan (mechanism, settings, ε, δ, unit, shares, criteria)
                 the whole schema, how public tables are read included
                 the workload's queries and weights
                 the private table by its name; public files by their bytes, other public tables by name
                 the ledger by the hash of its first line
                 the project that it is for, where one is named
                 how often the same plan was carried out before: an approval serves one run

PRIVACY: the private table goes in by its name alone. Its content is recognised by its ledger, under a key; a
digest that people compare and keep must not tell one private table from another.
"""

import json
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from sidelight.data.reading.read import files_of
from sidelight.data.schema_toml import render
from sidelight.errors import LedgerError
from sidelight.privacy.approval import Approval
from sidelight.privacy.chained_ledger import Ledger
from sidelight.releases.plan import Plan
from sidelight.releases.public_data import each_given
from sidelight.sources import source_name

_AT_ONCE = 1 << 20


def plan_digest(
    plan: Plan, *, private: str | Path, public: Any, ledger: Ledger, project: str | None = None
) -> str:
    """The digest of a plan with its sources, as they are now; ``public`` as it was given to the plan.

    No run of the ledger has carried it out, so it can be approved.
    """
    return plan_digests(plan, private=private, public=public, ledger=ledger, project=project)[-1]


def plan_digests(
    plan: Plan, *, private: str | Path, public: Any, ledger: Ledger, project: str | None = None
) -> list[str]:
    """The digests of runs that carried the same plan out, in their order, and that of one run more."""
    facts = {
        "plan": plan.identity(),
        "schema": sha256(render(plan.schema, notes=False, unit=True).encode()).hexdigest(),
        "private": source_name(private),
        "public": [source_digest(one) for one in each_given(public)],
        "ledger": ledger.origin,
    } | ({} if project is None else {"project": project})
    runs, digests = ledger.runs(), [_digest(facts)]
    while any(run.has_used(digests[-1]) for run in runs):
        digests.append(_digest(facts | {"again": len(digests)}))
    return digests


def _digest(facts: dict[str, Any]) -> str:
    return sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()


def source_digest(public: str | Path) -> str:
    """A digest of PUBLIC data: of a file's or a folder's bytes, or else of the name of a table."""
    hashed = sha256()
    for part in _parts(public):
        hashed.update(part)
    return hashed.hexdigest()


def _parts(public: str | Path) -> Iterator[bytes]:
    folder = Path(public)
    if folder.is_dir():
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        names = [path.relative_to(folder).as_posix() for path in files]
    else:
        files = [Path(path) for path in files_of(str(public))]
        names = ["" for _ in files]
    if not files:
        yield b"name " + source_name(public).encode()
    for path, name in zip(files, names, strict=True):
        yield f"file {name} {path.stat().st_size} ".encode()
        with path.open("rb") as content:
            while some := content.read(_AT_ONCE):
                yield some


def require_approved(approval: Approval, digests: Sequence[str]) -> None:
    """Refuse to run anything but what was approved; of ``plan_digests``, the ledger refuses what was used."""
    if approval.digest not in digests:
        raise LedgerError(
            "this is not what was approved: the plan, the schema, a public table or the ledger has changed "
            "since. Show the new plan to whoever approves it. Nothing was read and nothing was charged."
        )
