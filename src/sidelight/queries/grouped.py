"""From queries about groups of values to the same queries about the values themselves."""

from sidelight.data.grouping import Grouping, Groups
from sidelight.errors import WorkloadError
from sidelight.queries.merged import Merged
from sidelight.queries.query import Cell, Marginal, Query, Range


def of_values(query: Query, grouping: Grouping) -> Query:
    """The query that a table of all values answers as the table of groups answers this one.

    >>> from sidelight.data.domain import Domain
    >>> grouping = Grouping(Domain.of({"age": 4, "sex": 2}), {"age": (0, 0, 1, 1)})
    >>> of_values(Marginal(("sex", "age")), grouping)
    Merged(attrs=('sex', 'age'), groups=((0, 1), (0, 0, 1, 1)))
    >>> of_values(Cell(("age",), (1,)), grouping)
    Range(bounds=(('age', 2, 3),))
    """
    if not grouping.touches(query.attrs):
        return query
    groups = [grouping.of(attr) for attr in query.attrs]
    match query:
        case Marginal(attrs):
            return Merged(attrs, tuple(groups))
        case Merged(attrs, inner):
            return Merged(
                attrs,
                tuple(tuple(of[g] for g in outer) for outer, of in zip(groups, inner, strict=True)),
            )
        case Cell(attrs, values):
            ends = [(value, value) for value in values]
        case Range(bounds):
            ends = [(low, high) for _, low, high in bounds]
        case _:
            raise WorkloadError(f"{query.describe()} cannot be asked of groups of values.")
    return Range(
        tuple(
            (attr, *_codes(outer, low, high))
            for attr, outer, (low, high) in zip(query.attrs, groups, ends, strict=True)
        )
    )


def _codes(groups: Groups, low: int, high: int) -> tuple[int, int]:
    """The first and the last code of these groups, which are groups of neighbours."""
    within = [code for code, group in enumerate(groups) if low <= group <= high]
    return within[0], within[-1]
