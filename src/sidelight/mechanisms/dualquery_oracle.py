"""DualQuery's oracle: the record that satisfies most of a list of counting queries, as an integer program.

    maximise  Σ_i c_i      c_i ∈ {0, 1}: query i is satisfied
    x_av ∈ {0, 1}          attribute a has value v;   Σ_v x_av = 1
    c_i ≤ Σ_{v∈i} x_av                    for each attribute a of a query
    c_i ≤ Σ_a (1 − Σ_{v∈i} x_av)          for a negated query: some attribute is elsewhere
    Σ_a Σ_{v∈k} x_av ≤ |k| − 1            for each combination k that the schema declares impossible

Values that no query and no combination names are one value, "another one", which is drawn afterwards. HiGHS
solves the program (SciPy's ``milp``) by branch and bound, and is stopped after so many nodes; where it has
found nothing by then, the record of a greedy ascent is taken. Nodes are counted, not seconds, so that a run
which is repeated or resumed has the same records on any machine.

PRIVACY: the oracle sees queries that were drawn, and were paid for, and the public domain. Whatever record it
gives, by whatever way, is post-processing: a worse one costs accuracy alone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from sidelight.data.domain import Domain
from sidelight.data.impossible import is_possible

Record = NDArray[np.int64]

_ASCENTS, _TRIES = 8, 200
"""Greedy ascents where the solver fails, and draws of a record that is possible."""


@dataclass(frozen=True)
class Clause:
    """A query as one looks at it here: values of attributes that must all hold, or must not all hold."""

    allowed: tuple[tuple[str, frozenset[int]], ...]
    """Attributes, each with the values that satisfy the query."""
    is_negated: bool

    def satisfied(self, domain: Domain, records: NDArray[np.integer]) -> NDArray[np.bool_]:
        """For each record, one a line, whether it satisfies the query."""
        holds = np.ones(len(records), dtype=np.bool_)
        for attr, values in self.allowed:
            holds &= np.isin(records[:, domain.attrs.index(attr)], list(values))
        return ~holds if self.is_negated else holds


@dataclass(frozen=True, eq=False)
class Answer:
    """A record, and whether it is known to be the best."""

    record: Record
    is_best: bool


def best_record(domain: Domain, queries: Sequence[Clause], *, nodes: int, rng: np.random.Generator) -> Answer:
    """A record that satisfies as many of these queries as so many nodes can find.

    >>> domain = Domain.of({"a": 2, "b": 3})
    >>> is_a, is_b = (("a", frozenset([1])),), (("b", frozenset([2])),)
    >>> queries = [Clause(is_a, is_negated=False), Clause(is_b, is_negated=True)]
    >>> found = best_record(domain, queries, nodes=100, rng=np.random.default_rng(0))
    >>> found.is_best, int(found.record[0]), int(found.record[1]) != 2
    (True, 1, True)
    """
    program = _Program(domain, queries)
    solved = milp(
        program.objective,
        constraints=program.constraints,
        integrality=program.integrality,
        bounds=Bounds(0, 1),
        options={"node_limit": nodes},
    )
    found = [] if solved.x is None else [program.record(np.rint(solved.x), rng)]
    if solved.status != 0 or not found:
        found += [_ascent(domain, queries, rng) for _ in range(_ASCENTS)]
    possible = [record for record in found if is_possible(domain, record[None, :]).all()]
    best = max(possible or found, key=lambda record: _number(domain, queries, record))
    return Answer(best, is_best=solved.status == 0)


class _Line(NamedTuple):
    """One constraint: low ≤ Σ weight · variable ≤ high."""

    places: list[int]
    """Which variables."""
    weights: list[float]
    low: float
    high: float


class _Program:
    """The integer program of some queries: first a variable for each value that is named, then the c_i."""

    def __init__(self, domain: Domain, queries: Sequence[Clause]) -> None:
        self._domain, self._queries = domain, queries
        self._impossible = [
            [
                (attr, int(str(code)))
                for attr, codes in zip(one.attrs, one.values, strict=True)
                for code in codes
            ]
            for one in domain.impossible
        ]
        self._named = self._values_named()
        every = [(attr, value) for attr, values in self._named.items() for value in values]
        self._place = {named: place for place, named in enumerate(every)}
        lines = [*self._one_value_each(), *self._satisfied(), *self._not_impossible()]
        variables = len(every) + len(queries)
        rows = np.repeat(np.arange(len(lines)), [len(line.places) for line in lines])
        columns = np.concatenate([np.array(line.places, dtype=np.intp) for line in lines])
        weights = np.concatenate([np.array(line.weights) for line in lines])
        matrix = csr_array((weights, (rows, columns)), shape=(len(lines), variables))
        self.constraints = LinearConstraint(
            matrix, [line.low for line in lines], [line.high for line in lines]
        )
        self.objective = np.concatenate([np.zeros(len(every)), -np.ones(len(queries))])
        # With whole x_av, no c_i is better off between 0 and 1.
        self.integrality = np.concatenate([np.ones(len(every)), np.zeros(len(queries))])

    def _values_named(self) -> dict[str, list[int]]:
        """For each attribute that is named, the values that are."""
        named: dict[str, set[int]] = {attr: set() for attr in self._domain.attrs}
        for query in self._queries:
            for attr, values in query.allowed:
                named[attr] |= values
        for cells in self._impossible:
            for attr, value in cells:
                named[attr].add(value)
        return {attr: sorted(values) for attr, values in named.items() if values}

    def _one_value_each(self) -> Iterator[_Line]:
        for attr, values in self._named.items():
            is_every_value = len(values) == self._domain.sizes[attr]
            places = [self._place[attr, value] for value in values]
            yield _Line(places, [1.0] * len(places), 1.0 if is_every_value else 0.0, 1.0)

    def _satisfied(self) -> Iterator[_Line]:
        for c, query in enumerate(self._queries, start=len(self._place)):
            held = [[self._place[attr, value] for value in values] for attr, values in query.allowed]
            if query.is_negated:
                flat = [place for places in held for place in places]
                yield _Line([c, *flat], [1.0] * (1 + len(flat)), -np.inf, float(len(held)))
            else:
                for places in held:
                    yield _Line([c, *places], [1.0] + [-1.0] * len(places), -np.inf, 0.0)

    def _not_impossible(self) -> Iterator[_Line]:
        for one, cells in zip(self._domain.impossible, self._impossible, strict=True):
            places = [self._place[named] for named in cells]
            yield _Line(places, [1.0] * len(places), -np.inf, float(len(one.attrs) - 1))

    def record(self, solution: NDArray[np.float64], rng: np.random.Generator) -> Record:
        """The record of a solution; where it says "another value", one that nothing names is drawn."""
        found = np.empty(len(self._domain), dtype=np.int64)
        for place, (attr, size) in enumerate(self._domain.sizes.items()):
            named = self._named.get(attr, [])
            chosen = [value for value in named if solution[self._place[attr, value]] > 0.5]
            others = np.setdiff1d(np.arange(size), named)
            found[place] = chosen[0] if chosen else rng.choice(others if others.size else np.arange(size))
        return found


def _ascent(domain: Domain, queries: Sequence[Clause], rng: np.random.Generator) -> Record:
    """From a random record, one attribute after another is set to what satisfies most."""
    record = _possible(domain, rng)
    for place in rng.permutation(len(domain)):
        tried = np.repeat(record[None, :], domain.shape[place], axis=0)
        tried[:, place] = np.arange(domain.shape[place])
        tried = tried[is_possible(domain, tried)]
        numbers = sum(query.satisfied(domain, tried).astype(np.int64) for query in queries)
        record = tried[int(np.argmax(numbers))]
    return record


def _possible(domain: Domain, rng: np.random.Generator) -> Record:
    """A random record that holds no impossible combination."""
    for _ in range(_TRIES):
        drawn = np.stack([rng.integers(0, size, 64) for size in domain.shape], axis=1)
        kept = drawn[is_possible(domain, drawn)]
        if len(kept):
            return np.asarray(kept[0], dtype=np.int64)
    return np.array([0] * len(domain), dtype=np.int64)


def _number(domain: Domain, queries: Sequence[Clause], record: Record) -> int:
    return sum(int(query.satisfied(domain, record[None, :])[0]) for query in queries)
