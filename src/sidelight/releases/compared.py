"""The private table as a comparison with its release takes it.

PRIVACY: what is read here is exact. It serves evaluations and reports that say PRIVATE, and nothing else.
"""

from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from sidelight.data.reading.read import open_table
from sidelight.data.schema import Schema
from sidelight.data.table import Table
from sidelight.releases.release import Release


@dataclass(frozen=True)
class Compared:
    """A table, and what a reader must know about it before its figures are read."""

    table: Table
    remark: str


def compared(source: Any, release: Release, *, seed: int = 0) -> Compared:
    """The table beside a release; where the release used k records of each person, k of each are taken too.

    Which records the release used is known to nobody any more, so others are chosen, by the ``seed``.
    """
    unit = release.card.unit
    table = source if isinstance(source, Table) else _read(source, release)
    if unit.person is None:
        return Compared(table, _on_records(table, release))
    used = f"{'one record' if unit.records == 1 else f'up to {unit.records} records'} of each {unit.person}"
    if table.kept is None and table.knows(unit):
        kept = table.keeping(unit, sha256(f"compared with a release {seed}".encode()).hexdigest())
        return Compared(
            kept,
            f"The release used {used}, and is compared with as many: {kept.records:,} of {table.records:,} "
            "records. They are chosen anew, since nobody knows any more which ones the release used.",
        )
    if table.kept == unit:
        return Compared(table, f"The release used {used}, and so does the table that it is compared with.")
    return Compared(
        table,
        f"The table has {table.records:,} records, and the release counts {release.total:,.0f}, since it "
        f"used {used}. The table does not say who is who, so all of its records are compared: that "
        "difference is part of these errors.",
    )


def _read(source: Any, release: Release) -> Table:
    """The table, with its people where it says who they are."""
    schema = release.schema if release.schema is not None else Schema.from_domain(release.model.domain)
    unit = release.card.unit
    if unit.person is None or unit.person not in open_table(source, schema, unit.person).names:
        return Table.read(source, schema)
    return Table.read(source, schema, unit=unit, may_be_empty=True)


def _on_records(table: Table, release: Release) -> str:
    """A word on the numbers of records, which the errors include, where they clearly differ."""
    # A public total is exact; a measured one has noise.
    most = 0.5 if release.card.unit.total_is_public else 0.1 * max(table.records, release.total)
    if abs(table.records - release.total) <= most:
        return ""
    return (
        f"The table has {table.records:,} records, and the release counts {release.total:,.0f}: is it the "
        "table that the release was made from? The errors are about this one."
    )
