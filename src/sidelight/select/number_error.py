"""The score of MWEM as printed: how far the model is off on one number, among very many."""

from dataclasses import dataclass
from fractions import Fraction

from sidelight.privacy.unit import Unit
from sidelight.queries.numbers import Batch
from sidelight.queries.query import Query
from sidelight.select.score import CellError


@dataclass(frozen=True)
class NumberError(CellError):
    """|q(D) − q(A)| for each cell of a marginal and each member of a batch."""

    def sensitivity(self, unit: Unit, query: Query) -> Fraction:
        # PRIVACY: scores are compared one by one, so what counts is how far a single member can move.
        return query.widest(unit) if isinstance(query, Batch) else super().sensitivity(unit, query)
