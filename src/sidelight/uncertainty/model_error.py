"""How far a model is off where nobody measured: learned from how far it was off before each measurement.

A measurement tries the model that was there before it (``Measurement.predicted``), and says how far the truth
strays from such models, s (dispersion.py). A selection picks what is worst, so s falls as the rounds go on,
and what counts is E[s] after the last trial. It tells of the next marginal that would be selected. Where
selection goes by error, those that it never picked are closer to the model on the whole, and E[s] errs on the
safe side; where it goes by what measuring would gain, as APERTURE's does, they need not be
(benchmarks/utility/coverage.py).

Marginals of which some two attributes were never measured together ("unmet") are kept apart from all
others ("met"): a limit on the model's size may leave nothing but the latter to select in late rounds,
and they say little about what the limit shut out. Of attributes that nothing told of, neither noisy
answers nor public data, no level is claimed: there the model is a mere start.

PRIVACY: functions of noisy answers and of the model alone; post-processing.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

from sidelight.data.domain import Attrs, Domain
from sidelight.measurement import Measurement
from sidelight.queries.merged import Merged
from sidelight.queries.query import Cell, Marginal, Range
from sidelight.uncertainty.dispersion import Trial, four_digits, level, variance_at_one

Kind = Literal["met", "unmet"]


@dataclass(frozen=True, kw_only=True)
class Dispersion:
    """How far the truth strays from the model on one measured marginal."""

    attrs: Attrs
    s: float
    """Variance of the private counts around the model, divided by what chance alone would give."""
    sampling: float
    """The s of a prior that is off by its own sampling alone."""


@dataclass(frozen=True, kw_only=True)
class ModelDispersion:
    """The error of a release's model, as far as its measurements tell of it."""

    levels: Mapping[Kind, float]
    """E[s] after the last trial of each kind; a kind that was never tried has none."""
    trials: Mapping[Kind, int]
    """How many measurements tried the model."""
    untold: tuple[str, ...] = ()
    """Attributes that neither noisy answers nor public data tell of."""
    spreads: tuple[Dispersion, ...] = ()
    """The dispersion of each measured marginal, where the fit weighed a prior against it."""
    told_by_public: tuple[str, ...] | None = None
    """Attributes that public data tell of; None on older cards."""
    total_stddev: float = 0.0
    """σ of the noise in n, where the model was scaled to a noisy count of the records."""


def model_error(
    domain: Domain,
    measurements: Sequence[Measurement],
    *,
    total: float,
    public_attrs: Collection[str] = (),
    dispersions: Mapping[Attrs, tuple[float, float]] | None = None,
    total_stddev: float = 0.0,
) -> ModelDispersion | None:
    """The error of a model, by the measurements that it was fitted to; None where they counted no records.

    ``dispersions`` are those of the measured marginals, where the fit weighed a prior against them: s, and
    what s would be if the prior were off by its own sampling alone.

    >>> from sidelight.models.histogram import Histogram
    >>> import numpy as np
    >>> domain = Domain.of({"a": 2, "b": 2})
    >>> made = Measurement(Marginal(("a", "b")), np.array([40.0, 10, 10, 40]), 0.1)
    >>> made = made.against(Histogram.uniform(domain, total=100.0))
    >>> model_error(domain, [made], total=100.0).levels
    {'unmet': 21.43}
    """
    if not any(_counts_records(made) for made in measurements):
        return None
    trials = trials_of(measurements, total=total, domain=domain)
    told = {*public_attrs, *(attr for made in measurements for attr in made.query.attrs)}
    return ModelDispersion(
        levels={kind: four_digits(level(made, total)) for kind, made in trials.items() if made},
        trials={kind: len(made) for kind, made in trials.items()},
        untold=tuple(attr for attr in domain.attrs if attr not in told),
        spreads=tuple(
            Dispersion(attrs=attrs, s=four_digits(s), sampling=four_digits(sampling))
            for attrs, (s, sampling) in (dispersions or {}).items()
        ),
        told_by_public=tuple(attr for attr in domain.attrs if attr in public_attrs),
        total_stddev=total_stddev,
    )


def trials_of(
    measurements: Iterable[Measurement], *, total: float, domain: Domain
) -> dict[Kind, list[Trial]]:
    """All trials in their order; a measurement without a prediction tries nothing."""
    trials: dict[Kind, list[Trial]] = {"met": [], "unmet": []}
    met = set[frozenset[str]]()
    for made in measurements:
        attrs = made.query.attrs
        if made.predicted is not None and _counts_records(made):
            is_single = made.predicted.size == 1  # a cell or a range of the marginal
            cells = domain.size(attrs) if is_single else made.predicted.size
            variance = variance_at_one(made.predicted, total=total, cells=cells)
            trial = Trial.of(made.answer - made.predicted, variance, made.stddev)
            if trial.sampling > 0:  # a marginal of a single cell tries nothing
                trials["met" if pairs(attrs) <= met else "unmet"].append(trial)
        met |= pairs(attrs)
    return trials


def _counts_records(made: Measurement) -> bool:
    return isinstance(made.query, Marginal | Merged | Cell | Range)


def pairs_of(measured: Iterable[Measurement]) -> set[frozenset[str]]:
    """All pairs of attributes, and single ones, that some measurement holds."""
    return set().union(*(pairs(made.query.attrs) for made in measured))


def pairs(attrs: Iterable[str]) -> set[frozenset[str]]:
    """All sets of one or two of these attributes."""
    listed = list(attrs)
    return {frozenset(pair) for pair in product(listed, listed)}
