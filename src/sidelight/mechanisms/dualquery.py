"""DualQuery: a record a round, against the queries that the records so far answer worst.

    Q ← the queries of the workload and their negations
    for t = 1 … T:
        q_1 … q_s ~ exp(η Σ_{τ<t} (q(D) − q(x_τ)))     independently; in round 1 uniform, and free     select
        x_t ← a record that satisfies as many of them as possible                                     optimise
    return x_1 … x_T, all of the same weight

A draw of round t is an exponential mechanism with ε_t = 2η(t − 1)/n, so that ρ = s Σ_t ε_t²/8 in all. T
follows from the budget: the last round that it pays for.

Gaboardi, Gallego Arias, Hsu, Roth, Wu (2014), "Dual Query: practical private query release for high
dimensional data", arXiv:1402.1526; spec 7.4. Where we differ: composition is counted in zCDP, and each draw
as the bounded-range mechanism that it is; the budget is checked before a round is drawn (spec 9.5, D1); q and
1 − q are both there (D2); the integer program runs on HiGHS; under add-or-remove n is measured.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sidelight import _check
from sidelight._memory import check_room
from sidelight.curator.curator import Curator
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.errors import SettingError, TooLargeError, WorkloadError
from sidelight.measurement import measuring
from sidelight.mechanisms.base import Mechanism, Outcome, Outlook
from sidelight.mechanisms.candidates import check_asks_attributes
from sidelight.mechanisms.dualquery_oracle import Clause, Record, best_record
from sidelight.mechanisms.paper import Paper
from sidelight.models.support import Support, compact
from sidelight.privacy.budget import Budget, Cost, Rho
from sidelight.privacy.event import Event
from sidelight.privacy.unit import Unit
from sidelight.queries.query import Cell, Marginal, Query, Range
from sidelight.queries.workload import Workload
from sidelight.select.score import SignedError

_SEED = 0
"""Seed of the first round's queries, and of values that no drawn query names: both are public."""
_COPIES = 4
"""Tables of all scores that a round holds at a time."""


@dataclass(frozen=True, kw_only=True)
class DualQuery(Mechanism):
    """Each round: draw queries that the records answer badly, and add the record that satisfies most."""

    name = "dualquery"
    public_data = "unused"
    papers = (
        Paper(
            authors=("Gaboardi", "Gallego Arias", "Hsu", "Roth", "Wu"),
            title="Dual Query: practical private query release for high dimensional data",
            year=2014,
            venue="ICML",
            arxiv="1402.1526",
        ),
    )

    step: float = 2.0
    """How strongly errors raise a query's chances (η)."""
    queries_per_round: int = 50
    """How many queries are drawn each round (s)."""
    max_rounds: int = 500
    """Most rounds, and records; fewer where the budget does not pay for more (T)."""
    oracle_nodes: int = 1000
    """Most nodes that branch and bound may visit for one record; then the best one found is taken."""
    total_share: float = 0.02
    """Share of the budget that counts the records, where that count is not public."""
    accounting: Literal["zcdp", "pure"] = "zcdp"
    """Draws counted in ρ, or in ε as in the paper's first theorem."""

    def __post_init__(self) -> None:
        _check.positive(step=self.step)
        _check.positive_integer(
            queries_per_round=self.queries_per_round,
            max_rounds=self.max_rounds,
            oracle_nodes=self.oracle_nodes,
        )
        _check.share(total_share=self.total_share)
        _check.one_of(("zcdp", "pure"), accounting=self.accounting)

    def run(self, curator: Curator, workload: Workload, *, public: Table | None = None) -> Outcome:
        domain, queries = curator.domain, list(workload)
        total_cost, _ = curator.allotment.split(self.total_share)
        n = curator.total(total_cost)
        records: list[Record] = []
        cut_off = 0
        for t in range(1, self.rounds(curator.remaining, n, curator.unit) + 1):
            rng = np.random.default_rng([_SEED, t])
            # SELECT queries that the records so far answer badly, each by itself.
            if t == 1:
                drawn = _uniform(queries, domain, self.queries_per_round, rng)
            else:
                score = SignedError(_model(domain, records, n))
                cost = self._round_cost(t, n, curator.unit, type(curator.allotment))
                drawn = curator.draw_cells(queries, score, cost, number=self.queries_per_round)
            # OPTIMISE: a record that satisfies as many of them as possible.
            clauses = [_clause(queries[which], domain, cell) for which, cell in drawn]
            answer = best_record(domain, clauses, nodes=self.oracle_nodes, rng=rng)
            records.append(answer.record)
            cut_off += not answer.is_best
        notes = (
            f"{len(records)} rounds gave {len(records)} records; in {cut_off} of them the integer program "
            f"was cut off after {self.oracle_nodes:,} nodes, and the best record found was taken.",
        )
        return Outcome(_model(domain, records, n), (), curator.events, notes=notes)

    def _round_cost(self, t: int, n: float, unit: Unit, kind: type[Cost]) -> Cost:
        """The cost of all draws of round t together: s ε_t²/8, or s ε_t, where ε_t = 2η(t − 1)Δ/n."""
        epsilon = 2 * Fraction(self.step) * (t - 1) * unit.records / Fraction(n)
        each = epsilon**2 / 8 if kind is Rho else epsilon
        return kind(self.queries_per_round * each)

    def rounds(self, budget: Cost, n: float, unit: Unit) -> int:
        """The last round that the budget pays for; the first is free.

        >>> DualQuery(step=1.0).rounds(Rho(Fraction(7125, 10**6)), 1000, Unit("replace"))
        10
        """
        spent, kind = Fraction(0), type(budget)
        for t in range(2, self.max_rounds + 1):
            spent += self._round_cost(t, n, unit, kind).value
            if spent > budget.value:
                return t - 1
        return self.max_rounds

    def allotment(self, budget: Budget) -> Cost:
        return budget.pure() if self.accounting == "pure" else budget.rho()

    def check(self, domain: Domain, workload: Workload, public: Table | None) -> None:
        super().check(domain, workload, public)
        for query in workload:
            if not isinstance(query, Marginal | Cell | Range):
                raise WorkloadError(
                    f"mechanism 'dualquery' draws queries that a record satisfies or not; {query.describe()} "
                    "is none. Ask for marginals, cells or ranges, or use mechanism='mwem'."
                )
        check_asks_attributes(workload)
        self._check_room(domain, workload)

    def _check_room(self, domain: Domain, workload: Workload) -> None:
        """Refuse a workload whose chances do not fit into memory, before anything is charged."""
        cells = sum(query.cells(domain) for query in workload)
        widest = max(workload, key=lambda query: query.cells(domain))
        try:
            check_room(_COPIES * 8 * 2 * cells, f"the chances of {cells:,} cells and their negations")
        except TooLargeError as error:
            raise TooLargeError(
                f"{error} Ask for fewer or smaller marginals (the widest, {widest.describe()}, has "
                f"{widest.cells(domain):,} cells), coarsen attributes, or use mechanism='mst', which counts "
                "pairs alone."
            ) from error

    def check_total(self, total: float, *, allotment: Cost, unit: Unit) -> None:
        if self.rounds(allotment, total, unit) > 1 or self.max_rounds == 1:
            return
        first = self._round_cost(2, total, unit, type(allotment)).value
        raise SettingError(
            f"the budget pays for no round that sees the data: the second needs {float(first):.3g}, and "
            f"there is {float(allotment):.3g}. Give a larger epsilon, or a smaller step (now {self.step:g}) "
            f"or queries_per_round (now {self.queries_per_round})."
        )

    def noisiest(self, domain: Domain, workload: Workload, *, allotment: Cost, unit: Unit) -> Iterable[Event]:
        if unit.total_is_public:
            return ()
        return [measuring(Marginal(()), allotment.split(self.total_share)[0], unit)]

    def outlook(self, domain: Domain, workload: Workload, *, allotment: Cost, unit: Unit) -> Outlook:
        cells = sum(query.cells(domain) for query in workload)
        examples = ", ".join(
            f"{self.rounds(allotment, float(n), unit):,} for {n:,} records" for n in (1_000, 10_000, 100_000)
        )
        return Outlook(
            measurements=0,
            stddev=0.0,
            model_bytes=8 * self.max_rounds * len(domain),
            counting_bytes=8 * cells,
            notes=(
                "DualQuery measures nothing: it draws queries, and a record answers each draw. Rounds, and "
                f"synthetic records of its own: {examples}.",
                f"Each round solves an integer program, with {self.oracle_nodes:,} nodes at most.",
            ),
        )


def _uniform(
    queries: Sequence[Query], domain: Domain, number: int, rng: np.random.Generator
) -> list[tuple[int, int]]:
    """Queries drawn without looking: each cell and each negation as likely as any other."""
    sizes = np.array([2 * query.cells(domain) for query in queries])
    ends = np.cumsum(sizes)
    places = rng.integers(0, ends[-1], number)
    which = np.searchsorted(ends, places, side="right")
    return list(zip(which.tolist(), (places - (ends[which] - sizes[which])).tolist(), strict=True))


def _clause(query: Query, domain: Domain, cell: int) -> Clause:
    """The query of one cell; the second half of a query's cells are their negations."""
    cells = query.cells(domain)
    is_negated, place = divmod(cell, cells)
    if isinstance(query, Range):
        allowed = [(attr, frozenset(range(low, high + 1))) for attr, low, high in query.bounds]
    else:
        shape = domain.project(query.attrs).shape
        codes = query.values if isinstance(query, Cell) else _codes(place, shape)
        allowed = [(attr, frozenset([code])) for attr, code in zip(query.attrs, codes, strict=True)]
    return Clause(tuple(allowed), is_negated=bool(is_negated))


def _codes(place: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The codes of a cell, from its number."""
    return tuple(int(codes[0]) for codes in np.unravel_index([place], shape)) if shape else ()


def _model(domain: Domain, records: Sequence[Record], total: float) -> Support:
    """All records so far, each of the same weight."""
    codes: NDArray[np.int64] = np.stack(records)
    weights = np.full(len(codes), total / len(codes))
    return Support(domain, compact(codes, domain), weights, total).distinct
