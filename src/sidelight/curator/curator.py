"""The one door to private tables: pay, write, look, draw.

Exact counts of a private table are seen in this file and nowhere else. Three doors of their own serve private
values (``statistics/curator.py``), discovery (``statistics/discovery_curator.py``) and screening
(``evaluation/screening_curator.py``). Each public method makes an event and hands it to ``Door``, which
charges and writes it before the table is looked at.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from sidelight.curator.door import Door
from sidelight.data.compact import Compact, count_compactly
from sidelight.data.count_source import CountSource, ManyCountSource
from sidelight.data.domain import Attrs, Domain
from sidelight.data.engines.base import smallest_dtype
from sidelight.data.grouping import Grouping
from sidelight.data.table import Table
from sidelight.errors import SettingError
from sidelight.mean_errors import MeanErrors, NoisyMeans
from sidelight.measurement import (
    Measurement,
    NoiseKind,
    gaussian,
    gaussians,
    laplace,
    measuring,
    measuring_together,
)
from sidelight.privacy import event as events
from sidelight.privacy.budget import Cost, Rho
from sidelight.privacy.unit import Unit
from sidelight.progress import in_percent
from sidelight.queries.query import Marginal, Query, whole
from sidelight.queries.strategy import Strategy
from sidelight.select.exponential import exponential, exponentials
from sidelight.select.judgement import OPTIONS, Contest
from sidelight.select.permute_and_flip import permute_and_flip
from sidelight.select.score import Score, WeightedError, l1_error

Q = TypeVar("Q", bound=Query)

_CACHE_BYTES = 2**30
"""Most memory for exact counts; what does not fit is counted again each round."""
_BYTES_PER_CELL = 4
"""Bytes of a count where n is private: enough for four thousand million records."""

_METHODS: dict[str, tuple[Any, Any]] = {
    "exponential": (events.Exponential, exponential),
    "permute-and-flip": (events.PermuteAndFlip, permute_and_flip),
}


def require_kept(table: Table, unit: Unit) -> None:
    """Refuse a table with all records of everybody where the unit says how many of each may be used."""
    # PRIVACY: every sensitivity of such a unit holds only if at most that many are there.
    if unit.person is not None and table.kept != unit:
        raise SettingError(
            f"a curator under {unit.spelled()} takes a table of which just those records were kept: "
            "Table.read(…, unit=unit).keeping(unit, key)."
        )


def fits_in_cache(domain: Domain, marginals: Iterable[Attrs]) -> bool:
    """Whether the exact counts of all these marginals are kept, so that none is counted twice."""
    return _BYTES_PER_CELL * sum(map(domain.size, marginals)) <= _CACHE_BYTES


class Scored(NamedTuple):
    """Scores of candidates, each with one or several cells, one after another."""

    scores: NDArray[np.float64]
    ends: NDArray[np.int64]
    """Where the scores of each candidate end."""

    def cells_at(self, places: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Which candidate the score at each of these places belongs to, and to which of its cells."""
        which = np.searchsorted(self.ends, places, side="right").astype(np.int64)
        return which, np.asarray(places, dtype=np.int64) - self.starts[which]

    @property
    def starts(self) -> NDArray[np.int64]:
        """Where the scores of each candidate begin."""
        return np.append(0, self.ends[:-1])


class Curator(Door):
    """Holds a private table; answers only with noise that was paid for.

    ``domain``, ``unit``, ``remaining`` and ``events`` are public. Everything that a method
    returns is public once it is returned.
    """

    def __init__(
        self,
        table: Table,
        *,
        earlier: Sequence[Measurement] = (),
        foreseen: Sequence[Attrs] = (),
        **settings: Any,
    ) -> None:
        require_kept(table, settings["unit"])
        super().__init__(**settings)
        self._foreseen = tuple(foreseen)
        """Marginals that are asked for in any case: a file is read once for all of them."""
        self._earlier = list(earlier)
        """Noisy answers of earlier releases about the same records, which may be used again for nothing."""
        self.used_again: list[Measurement] = []
        """The earlier answers that were taken, or averaged with a new answer."""
        self.domain: Domain = table.domain
        self._table = table
        self._counts: dict[Attrs, Compact] = {}
        self._errors: dict[Attrs, tuple[NDArray[np.float64], float]] = {}
        """Errors of answers that a model keeps from round to round, each with that answer."""
        self.total_stddev = 0.0
        """σ of the noise in what ``total`` last gave; 0 where n is public."""
        self.noisy_total: float | None = None
        """The last noisy answer of ``total``; None where n is public, or nobody asked."""
        self._rounds = 0

    @contextmanager
    def in_groups(self, grouping: Grouping) -> Iterator[None]:
        """Count groups of values within this block; whoever asks there has the rest of the allotment.

        A record stands in one group where it had one value, so no sensitivity changes.
        """
        # PRIVACY: records are given the codes of their groups, which are public; nothing comes out of it.
        whole = self.domain, self._table, self._counts
        self.domain, self._table, self._counts = grouping.domain, self._table.grouped(grouping), {}
        self._errors = {}
        self._before = self._accountant.spent.value
        # An earlier answer about single values is no answer about groups of them.
        earlier, grouped = self._earlier, set(grouping.groups)
        self._earlier = [made for made in earlier if grouped.isdisjoint(made.query.attrs)]
        try:
            yield
        finally:
            # PRIVACY: single values again, of the same table.
            self.domain, self._table, self._counts = whole
            self._errors = {}
            self._before, used = Fraction(0), set(map(id, self.used_again))
            self._earlier = [made for made in earlier if id(made) not in used]

    @property
    def earlier(self) -> tuple[Measurement, ...]:
        """Answers of earlier releases that nobody has taken yet."""
        return tuple(self._earlier)

    def take_earlier(self, is_wanted: Callable[[Measurement], bool]) -> list[Measurement]:
        """Answers of earlier releases that a mechanism starts from; each is given once, and costs nothing.

        An earlier answer that nobody takes is averaged with the new one if its query is measured again.
        """
        # PRIVACY: they were paid for, and released, before; nothing is looked at.
        taken = [made for made in self._earlier if is_wanted(made)]
        self._earlier = [made for made in self._earlier if not is_wanted(made)]
        self.used_again += taken
        return taken

    def _with_earlier(self, made: Measurement) -> Measurement:
        """A measurement, averaged with what is known of the same query."""
        same = self.take_earlier(lambda one: one.query == made.query)
        return made.averaged(*same) if same else made

    def total(self, cost: Cost) -> float:
        """How many records there are: free where the unit keeps n fixed, measured otherwise."""
        if self.unit.total_is_public:
            # PRIVACY: neighbouring tables have the same n under replacement, so n is public (spec 9.2, N9).
            return float(self._table.records)
        noisy = self.measure(Marginal(()), cost)
        self.total_stddev = noisy.stddev
        self.noisy_total = max(1.0, float(noisy.answer[0]))
        return self.noisy_total

    def select(self, candidates: Sequence[Q], score: Score, cost: Cost, *, method: str = "exponential") -> Q:
        """One candidate, drawn so that high scores are likely."""
        chosen, _ = self.select_cell(candidates, score, cost, method=method)
        return chosen

    def select_cell(
        self, candidates: Sequence[Q], score: Score, cost: Cost, *, method: str = "exponential"
    ) -> tuple[Q, int]:
        """One candidate, and one of its cells where the score has a number for each cell.

        A score gives one number for a query or one for each of its cells; selection is among all of them.
        """
        _, method_draw = _METHODS[method]
        event = self._selection(candidates, score, cost, method=method)

        def draw(scored: Scored) -> NDArray[np.int64]:
            index = method_draw(self._noise, scored.scores, event)
            return np.array([*scored.cells_at([index])], dtype=np.int64)[:, 0]

        which, cell = self._pay_then(event, lambda: self._scores(candidates, score), draw).tolist()
        chosen = candidates[which]
        self._rounds += 1
        self._tell(f"round {self._rounds}: selected {chosen.describe()}")
        return chosen, cell

    def select_many(
        self,
        candidates: Sequence[Q],
        score: Score,
        cost: Cost,
        *,
        number: int,
        closed: Callable[[list[int]], Sequence[int]] | None = None,
    ) -> list[Q]:
        """``number`` different candidates, one after another; each selection costs ``cost``.

        All selections use the same scores, one for each query, so the table is looked at once. ``closed``
        tells from the places of those chosen so far which candidates may not be chosen any more, these
        among them.
        """
        if number > len(candidates):
            raise SettingError(f"number = {number} is more than the {len(candidates)} candidates there are.")
        event = self._selection(candidates, score, cost, method="exponential")
        scores = np.empty(0)
        chosen: list[int] = []

        def look() -> NDArray[np.float64]:
            # PRIVACY: the first selection that is not in the journal looks, and it is paid for by then.
            nonlocal scores
            if not scores.size:
                scores = self._scores(candidates, score).scores
            open_ = scores.copy()
            # PRIVACY: what is closed follows from earlier outputs, and from nothing else that is private.
            open_[chosen if closed is None else list(closed(chosen))] = -np.inf
            return open_

        def draw(open_: NDArray[np.float64]) -> NDArray[np.int64]:
            return np.array([exponential(self._noise, open_, event)], dtype=np.int64)

        for _ in range(number):
            chosen += self._pay_then(event, look, draw).tolist()
            self._rounds += 1
            self._tell(f"round {self._rounds}: selected {candidates[chosen[-1]].describe()}")
        return [candidates[place] for place in chosen]

    def draw_cells(
        self, candidates: Sequence[Query], score: Score, cost: Cost, *, number: int
    ) -> list[tuple[int, int]]:
        """``number`` independent draws of a candidate's index and one of its scores; with replacement.

        All of them use the same scores and are one event: ``cost`` pays for them together.
        """
        if not candidates:
            raise SettingError("there is nothing to draw from: the list of candidates is empty.")
        event = events.Exponentials.together(
            cost,
            what=f"{number} draws from {len(candidates)} queries",
            sensitivity=score.largest_sensitivity(self.unit, candidates),
            candidates=len(candidates),
            draws=number,
        )

        def draw(scored: Scored) -> NDArray[np.int64]:
            places = exponentials(self._noise, scored.scores, event, draws=number)
            return np.concatenate(scored.cells_at(places))

        found = self._pay_then(
            event, lambda: self._scores(candidates, score), draw, numbers=2 * number
        ).tolist()
        self._rounds += 1
        self._tell(f"round {self._rounds}: drew {number} queries")
        return list(zip(found[:number], found[number:], strict=True))

    def choose(self, queries: Sequence[Query], contest: Contest, cost: Cost) -> int:
        """The index of one option, drawn so that options that do well on all these queries are likely."""
        event = events.Exponential.at(
            cost,
            what=f"{contest.options} {OPTIONS} {len(queries)} queries",
            sensitivity=contest.sensitivity(self.unit, queries),
            candidates=contest.options,
        )

        def look() -> NDArray[np.float64]:
            self._count_together([query.attrs for query in queries])
            # PRIVACY: the start is public, so the same on neighbours: Pr[k] ∝ odds_k · exp(ε s_k / 2Δ).
            parts = [contest.start(float(2 * event.sensitivity / event.epsilon))]
            parts += [added(self._exact(queries[place])) for place, added in contest.each(queries)]
            # PRIVACY: rounded once, however many queries there are, as the sensitivity allows for.
            return np.array([math.fsum(of_option) for of_option in zip(*parts, strict=True)])

        def draw(scores: NDArray[np.float64]) -> NDArray[np.int64]:
            return np.array([exponential(self._noise, scores, event)], dtype=np.int64)

        (chosen,) = self._pay_then(event, look, draw).tolist()
        self._tell(f"chose option {chosen + 1} of {contest.options}")
        return int(chosen)

    def measure(self, query: Query, cost: Cost, *, noise: NoiseKind | None = None) -> Measurement:
        """The query's noisy answer: Gaussian noise for zCDP, Laplace for pure ε, or the ``noise`` named."""
        event = measuring(query, cost, self.unit, noise=noise)

        noisy = self._pay_then(
            event,
            lambda: whole(query, self._exact(query)),
            lambda exact: self._noisy(exact, event),
            numbers=query.cells(self.domain),
        )
        where = f"round {self._rounds}: " if self._rounds else ""
        self._tell(f"{where}measured {query.describe()}")
        step = float(query.resolution)
        made = Measurement(query, np.asarray(noisy * step, dtype=np.float64), event.stddev * step)
        return self._with_earlier(made)

    def measure_together(self, strategy: Strategy, cost: Rho) -> list[Measurement]:
        """The answers of many queries with exact Gaussian noise, in one event: they are paid for together."""
        sizes = [query.cells(self.domain) for query in strategy.queries]
        event = measuring_together(strategy, cost, self.unit)
        # PRIVACY: the loss is that of tables of the strategy's domain.
        assert event.numbers == sum(sizes), "the strategy is of another domain"
        ends = np.cumsum(sizes)
        variances = [events.Gaussians.scaled(variance, event.scale) for variance in strategy.variances]

        def look() -> NDArray[np.int64]:
            exact = np.empty(event.numbers, dtype=np.int64)
            counted = strategy.counted()
            self._count_together(list(counted))
            for attrs, places in counted.items():
                counts = self._exact(Marginal(attrs)).reshape(self.domain.project(attrs).shape)
                for place in places:
                    answered = whole(strategy.queries[place], strategy.exact(place, attrs, counts))
                    exact[ends[place] - sizes[place] : ends[place]] = answered
            return exact

        noisy = self._pay_then(
            event, look, lambda exact: gaussians(self._noise, exact, variances, sizes), numbers=event.numbers
        )
        self._tell(f"measured {len(sizes):,} queries together")
        return [
            self._with_earlier(
                Measurement(query, part.astype(np.float64), events.Gaussians.stddev_of(variance))
            )
            for query, part, variance in zip(
                strategy.queries, np.split(noisy, ends[:-1]), variances, strict=True
            )
        ]

    def mean_errors(self, asked: MeanErrors, model: CountSource) -> NoisyMeans:
        """How far the model is from the table, as mean errors over sets of marginals: the end of a run.

        Pays with all that was set aside. The model must be final: these errors are about no other model.
        """
        event = asked.event(self._accountant.free(), self.unit)

        def look() -> NDArray[np.int64]:
            self._count_together(tuple(dict.fromkeys(asked.marginals)))
            return asked.counted(
                {
                    place: error(self._exact(Marginal(asked.marginals[place])))
                    for place, error in asked.each(model)
                }
            )

        noisy = self._pay_then(event, look, lambda exact: self._noisy(exact, event), numbers=len(asked.sets))
        self._progress.step("measured how far off the model is", share=1.0)
        self._forget()  # nothing is left to pay for another look at them
        return asked.measured(noisy, event.stddev)

    def _tell(self, what: str) -> None:
        super()._tell(what)
        if not self.remaining and not self._accountant.set_aside:
            self._forget()  # nobody can pay for another look at them

    def _forget(self) -> None:
        self._counts.clear()
        self._errors.clear()

    def _selection(self, candidates: Sequence[Query], score: Score, cost: Cost, *, method: str) -> Any:
        """The event of one selection."""
        if not candidates:
            raise SettingError("there is nothing to select from: the list of candidates is empty.")
        make, _ = _METHODS[method]
        sensitivity = score.largest_sensitivity(self.unit, candidates)
        return make.at(
            cost, what=f"{len(candidates)} candidates", sensitivity=sensitivity, candidates=len(candidates)
        )

    def _noisy(self, exact: NDArray[np.int64], event: events.Gaussian | events.Laplace) -> NDArray[np.int64]:
        """Exact numbers with the noise that was paid for."""
        if isinstance(event, events.Gaussian):
            return gaussian(self._noise, exact, event)
        return laplace(self._noise, exact, event)

    # PRIVACY: the four methods below see exact private counts. They are called only
    # inside a look, that is, after the event is paid and written.

    def _scores(self, candidates: Sequence[Query], score: Score) -> "Scored":
        """The score of each candidate: one number, or one for each of its cells."""
        self._count_together([query.attrs for query in candidates])
        if isinstance(score, WeightedError):
            errors, cells = self._errors_of(candidates, score.model)
            return Scored(score.of_errors(candidates, errors, cells), np.arange(1, len(candidates) + 1))
        found = {
            place: np.atleast_1d(score_of(self._exact(candidates[place])))
            for place, score_of in score.each(candidates)
        }
        listed = [found[place] for place in range(len(candidates))]
        return Scored(np.concatenate(listed).astype(np.float64), np.cumsum([part.size for part in listed]))

    def _errors_of(
        self, candidates: Sequence[Query], model: ManyCountSource
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """How far a model is off on each candidate, and how many cells each has.

        An answer that the model keeps from round to round, and so gives out read-only, has the error that it
        had: of a wide table, most of them.
        """
        # PRIVACY: which errors are known already follows from the model's answers, which are public.
        errors, cells = np.empty(len(candidates)), np.empty(len(candidates), dtype=np.int64)
        for place, counts in model.count_each([query.attrs for query in candidates]):
            query = candidates[place]
            assert type(query) is Marginal  # an error is known by its attributes alone
            known = self._errors.get(query.attrs)
            if known is None or known[0] is not counts:
                known = counts, l1_error(self._exact(query), counts.reshape(-1))
                if not counts.flags.writeable:
                    self._errors[query.attrs] = known
            errors[place], cells[place] = known[1], counts.size
        return errors, cells

    def _exact(self, query: Query) -> NDArray[np.int64]:
        if query.attrs:
            self._count_together([query.attrs])
        counts = self._counts.get(query.attrs)
        return query.apply(self._table.count(query.attrs) if counts is None else counts.wide())

    def _count_together(self, wanted: Sequence[Attrs]) -> None:
        """Count in one pass the marginals that selection needs, and keep as many as memory allows."""
        if all(attrs in self._counts for attrs in wanted):
            return
        # PRIVACY: what is counted ahead stays here until a look at it is paid for. In memory that saves
        # nothing, but whether a table is there follows from its size, and progress would show it.
        every = dict.fromkeys((*wanted, *self._foreseen))
        missing = [attrs for attrs in every if attrs not in self._counts]
        # PRIVACY: decided by the most that they can take. What they really take depends on how many cells
        # are empty, or on n, and progress would show it.
        is_public = self.unit.total_is_public
        bytes_per_cell = smallest_dtype(self._table.records + 1).itemsize if is_public else _BYTES_PER_CELL
        held = bytes_per_cell * sum(map(self.domain.size, self._counts))
        affordable = []
        for attrs in missing:
            held += bytes_per_cell * self.domain.size(attrs)
            if held > _CACHE_BYTES:
                break
            affordable.append(attrs)
        if affordable:
            with self._progress.phase("count"):
                tell = in_percent(lambda share: self._progress.step("", share=share))
                self._counts |= count_compactly(
                    self._table, affordable, total_is_public=self.unit.total_is_public, tell=tell
                )
                tell(1.0)
