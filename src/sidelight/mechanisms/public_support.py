"""The rounds that MWEM+PUB and PMW-Pub share: they reweigh public records, and measure one number a round."""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from sidelight import _check
from sidelight.curator.curator import Curator
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.errors import DataError, SettingError
from sidelight.measurement import Measurement, NoiseKind, measuring, stddev_of
from sidelight.mechanisms.base import Mechanism, Outcome, Outlook, total_and_rest
from sidelight.models.support import Support, missing_values
from sidelight.models.support_weights import SupportWeights
from sidelight.privacy.budget import Cost
from sidelight.privacy.event import Gaussian, Laplace
from sidelight.privacy.unit import Unit
from sidelight.public.source import PublicRecords, records_telling, require_whole_records, sources_of
from sidelight.queries.query import Cell, Marginal
from sidelight.queries.workload import Workload

_MOST_RECORDS = 2**31
"""Most records of a support: all there may be."""
_ONE_NUMBER = Cell((), ())
"""A cell of a marginal, for its sensitivity, which is the same for all cells."""


@dataclass(frozen=True, kw_only=True)
class SupportRounds(Mechanism):
    """Each round: select the one number that the model answers worst, measure it, reweigh public records."""

    public_data = "needed"
    noise: ClassVar[NoiseKind | None] = None
    """The noise of a measurement; None: Gaussian where costs are ρ, Laplace where they are ε."""

    rounds: int
    """How many numbers to measure (T)."""
    total_share: float = 0.02
    """Share of the budget that measures n, where n is not public."""
    selection: Literal["exponential", "permute-and-flip"] = "exponential"
    """How a round selects."""
    step: float
    """The step size η in A ∝ A · exp(η q(x) (a − q(A)) / n)."""
    output: Literal["average", "last"] = "average"
    """The mean of A₀ … A_{T−1}, or the last A."""
    prior: Literal["public", "uniform"] = "public"
    """Weights to start from: the public ones, or all equal ("support only")."""
    public_share: float = 1.0
    """Share of the public records to use, drawn at random."""
    seed: int = 0
    """Seed of all that is drawn at random beside noise; no noise depends on it."""
    max_cache_mb: float = 256.0
    """Memory for the public records' cell numbers; beyond it they are computed again each round."""

    def __post_init__(self) -> None:
        _check.positive_integer(rounds=self.rounds)
        _check.share(total_share=self.total_share)
        _check.positive(step=self.step, max_cache_mb=self.max_cache_mb, public_share=self.public_share)
        if self.public_share > 1:
            raise SettingError(f"public_share must be a share of at most 1; got {self.public_share!r}.")
        _check.one_of(("exponential", "permute-and-flip"), selection=self.selection)
        _check.one_of(("average", "last"), output=self.output)
        _check.one_of(("public", "uniform"), prior=self.prior)
        _check.natural(seed=self.seed)

    @abstractmethod
    def _costs(self, left: Cost) -> tuple[Cost, Cost]:
        """The costs of a round's selection and of its measurement, once n is paid for."""

    def _start(self, domain: Domain, public: Any, n: float) -> Support:
        """A₀: the public records that have every attribute, weighted as they count; or a share of them."""
        start = self._public_support(public, domain, total=n)
        return start.uniform if self.prior == "uniform" else start

    def _public_support(self, public: Any, domain: Domain, *, total: float) -> Support:
        if isinstance(public, Table) and public.domain == domain:
            return Support.of_table(
                public, total=total, share=self.public_share, seed=self.seed, domain=domain
            )
        records = PublicRecords.of(domain, sources_of(self.name, public))
        whole = records.whole(most=_MOST_RECORDS, seed=self.seed, share=self.public_share)
        if whole is None:
            raise DataError(
                "no public record has every attribute without a combination that the schema declares "
                "impossible. Check the combinations, or give another public table."
            )
        return whole.distinct.with_total(total)

    def _outcome(
        self,
        fit: SupportWeights,
        played: NDArray[np.float64],
        measurements: Sequence[Measurement],
        curator: Curator,
        workload: Workload,
    ) -> Outcome:
        """The model of the mean weights, or of the last, with remarks on values that no public record has."""
        missing = missing_values(fit.start, workload.attrs)
        return Outcome(
            fit.start.with_weights(played if self.output == "average" else fit.weights),
            tuple(measurements),
            curator.events,
            notes=tuple(
                f"{attr}: {number} of {fit.start.domain.sizes[attr]} values occur in no public record; "
                "the release counts 0 there, whatever the private table holds"
                for attr, number in missing.items()
            ),
            public_attrs=curator.domain.attrs,
            public_share=self.public_share,
        )

    def check_public(self, domain: Domain, public: Any) -> None:
        require_whole_records(self.name, domain, sources_of(self.name, public))
        if domain.impossible:
            self._public_support(public, domain, total=1.0)  # refuses tables of impossible records alone

    def public_notes(self, domain: Domain, public: Any) -> tuple[str, ...]:
        sources = sources_of(self.name, public)
        every = sum(source.records for source in sources)
        whole = sum(records_telling(source, domain.attrs) for source in sources)
        if round(whole) >= round(every):
            return ()
        return (
            f"{self.name} reweighs whole public records: it uses {whole:,.0f} of {every:,.0f}, and leaves "
            "out those that do not tell of every column; aperture would use them.",
        )

    def check_total(self, total: float, *, allotment: Cost, unit: Unit) -> None:
        """Refuse rounds whose noise exceeds the number of records, and say how many rounds make sense."""
        stddev = self._stddev(allotment, unit)
        if stddev <= max(total, 1.0):
            return
        # σ grows like √T for Gaussian noise and like T for Laplace noise; √T gives the larger number.
        sensible = int(self.rounds * (total / 4 / stddev) ** 2)
        advice = (
            f"use at most {sensible} rounds"
            if sensible
            else "no number of rounds makes sense here: raise epsilon"
        )
        raise SettingError(
            f"rounds = {self.rounds} leaves so little budget for each round that its noise "
            f"(σ = {stddev:.3g}) exceeds the number of records; {advice}. Nothing was charged."
        )

    def noisiest(
        self, domain: Domain, workload: Workload, *, allotment: Cost, unit: Unit
    ) -> Iterable[Gaussian | Laplace]:
        """The total where it is not public, and every single number of the workload at a round's cost."""
        if not unit.total_is_public:
            yield measuring(Marginal(()), allotment.split(self.total_share)[0], unit)
        cost = self._measure_cost(allotment, unit)
        for query in workload:
            asked = _ONE_NUMBER if isinstance(query, Marginal) else query
            yield measuring(asked, cost, unit, noise=self.noise)

    def outlook(self, domain: Domain, workload: Workload, *, allotment: Cost, unit: Unit) -> Outlook:
        answers = 8 * sum(domain.size(attrs) for attrs in workload.attribute_sets)
        return Outlook(
            measurements=self.rounds,
            stddev=self._stddev(allotment, unit),
            model_bytes=int(self.max_cache_mb * 2**20) + answers,
            counting_bytes=answers,
            notes=(
                f"the model takes {8 * (len(domain) + 4)} bytes for each distinct public record, and at most "
                f"max_cache_mb = {self.max_cache_mb:g} MB for their cell numbers; where that is too little, "
                "rounds take longer",
            ),
        )

    def _stddev(self, allotment: Cost, unit: Unit) -> float:
        """σ of each round's measurement."""
        return stddev_of(_ONE_NUMBER, self._measure_cost(allotment, unit), unit, noise=self.noise)

    def _measure_cost(self, allotment: Cost, unit: Unit) -> Cost:
        """The cost of each round's measurement, after n has been paid for where it is not public."""
        _, rest = total_and_rest(allotment, self.total_share, unit)
        return self._costs(rest)[1]
