"""Constraints in SQL: what becomes of a private record that violates one, record by record."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sidelight.data.columns.column import Column, RealColumn
from sidelight.data.columns.constraints import Constraint, Determines, Order, Sum
from sidelight.data.columns.moment_columns import MomentColumn

if TYPE_CHECKING:
    from sidelight.data.engines.sql_encoding import Dialect

_MOST = 1e300
"""Larger numbers are added up as if they were this one: PostgreSQL would stop where a sum overflows, and one
record would decide for all."""


def read_rules(
    sql: "Dialect", constraints: Sequence[Constraint], columns: Sequence[Column], refused: int
) -> dict[int, str]:
    """The code of each column that a rule may change, in terms of all codes (a0, …) and values (v0, …).

    Every rule looks at the record as it was read, so that their order does not matter.
    """
    place = {column.name: i for i, column in enumerate(columns)}
    cases: dict[int, list[str]] = {}
    for one in constraints:
        if one.violated == "keep":
            continue
        last = place[one.names[-1]]
        missing = columns[last].missing_code
        code = refused if one.violated == "refuse" else missing
        both = " AND ".join(
            f"a{i} BETWEEN 0 AND {columns[i].declared - 1}" for i in map(place.__getitem__, one.names)
        )
        cases.setdefault(last, []).append(
            f"WHEN {both} AND ({_is_violated(sql, one, columns, place)}) THEN {code}"
        )
    return {last: f"CASE {' '.join(found)} ELSE a{last} END" for last, found in cases.items()}


def _is_violated(sql: "Dialect", one: Constraint, columns: Sequence[Column], place: dict[str, int]) -> str:
    by_name = {column.name: column for column in columns}
    if isinstance(one, Order):
        first, second = f"v{place[one.first]}", f"v{place[one.second]}"
        if isinstance(by_name[one.first], MomentColumn):
            unit = sql.number(one.unit(by_name))
            first, second = f"FLOOR({first} / {unit})", f"FLOOR({second} / {unit})"
        return f"{first} > {second}"
    if isinstance(one, Determines):
        own, theirs = f"a{place[one.column]}", f"a{place[one.target]}"
        pairs = [f"({own} = {code} AND {theirs} <> {wanted})" for code, wanted in one.codes(by_name).items()]
        return " OR ".join(pairs)
    assert isinstance(one, Sum)  # there are no others
    total = by_name[one.total]
    near = 0.0
    if isinstance(total, RealColumn):
        # Sums of decimals are rounded; half of the last decimal is no difference.
        near = 0.5 * 10.0 ** -(6 if total.decimals is None else total.decimals)
    *added, whole = (
        f"LEAST(GREATEST(v{place[name]}, {sql.number(-_MOST)}), {sql.number(_MOST)})" for name in one.names
    )
    return f"ABS({' + '.join(added)} - {whole}) > {sql.number(near)}"
