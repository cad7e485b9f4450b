"""Error bars: how far released counts may be off, as people read them.

``count_errors.py`` finds them. Here their parts are put together: standard errors, intervals, sums of cells,
and what they are in words.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sidelight import _check
from sidelight.uncertainty.calibration import expected_errors
from sidelight.uncertainty.count_noise import CellNoise, CountNoise
from sidelight.uncertainty.misplaced import Misplaced
from sidelight.uncertainty.unbiased import Unbiased

Array = NDArray[np.float64]
Source = Literal["private", "both", "model", "unmeasured", "public"]
_SIZES = 24
"""Sizes of errors that stand for a log-normal law, by Gauss-Hermite quadrature."""


@dataclass(frozen=True, eq=False)
class ErrorBars:
    """Counts with what is known about their errors; arrays have the shape of the counts."""

    estimate: Array
    noise: CountNoise | None
    """None where no noise is known to be in these counts."""
    model_variance: Array | None
    """None where nothing is known about the model's error: the interval is of noise alone, or missing."""
    total: float
    source: Source
    """What the counts rest on. ``private``: noisy answers; ``both``: answers and public data; ``model``: the
    model, since nothing measured these attributes together; ``unmeasured``: the same, and one of them was
    never measured at all; ``public``: a number of records that is public."""
    unsure: float = 0.0
    """Where errors were fitted to measured quality: the standard deviation of the logarithm of their size."""
    unbiased: Unbiased | None = None
    """Where the model is a reconstruction: the answers that intervals are of."""
    misplaced: Misplaced | None = None
    """Where errors were fitted to measured quality, and the model errs: the records that it misplaced."""
    is_total_public: bool = True
    """Whether ``total`` is the number of records; otherwise it is itself measured, and no bound."""
    total_stddev: float = 0.0
    """σ of the noise in ``total``, where the model was scaled to a noisy count: all counts share it."""

    @property
    def noise_variance(self) -> Array | None:
        """The variance of the noise in every count."""
        return None if self.noise is None else np.asarray(self.noise.variance + self._from_total)

    @property
    def _from_total(self) -> Array:
        """The variance in every count that the noise in ``total`` makes."""
        return np.asarray((self.total_stddev * self.estimate / max(self.total, 1e-12)) ** 2)

    @property
    def noise_error(self) -> Array | None:
        """The standard error that noise makes."""
        return None if self.noise_variance is None else np.sqrt(self.noise_variance)

    @property
    def model_error(self) -> Array | None:
        """The standard error that the model makes, and the public data in it."""
        return None if self.model_variance is None else np.sqrt(self.model_variance)

    @property
    def standard_error(self) -> Array | None:
        """The standard error of noise and model, or of the one that is known; None where neither is."""
        if self.noise is None and self.model_variance is None:
            return None
        noise = self._from_total if self.noise_variance is None else self.noise_variance
        return np.sqrt(noise if self.model_variance is None else noise + self.model_variance)

    def interval(self, confidence: float = 0.95) -> tuple[Array, Array] | None:
        """From low to high; no count is below 0, or above n where that is known."""
        _check.share(confidence=confidence)
        if self.standard_error is None:
            return None
        if self.unbiased is not None:
            low, high = self.unbiased.interval(NormalDist().inv_cdf(0.5 + confidence / 2), self.estimate)
        else:
            quantile = self.quantile(confidence)
            low = self.estimate - quantile * self.standard_error
            high = self.estimate + quantile * self.standard_error
            if self.misplaced is not None:
                high = self.estimate + self.misplaced.reach(quantile, self._skewed, self.standard_error)
        return np.maximum(low, 0.0), np.clip(high, 0.0, self.total if self.is_total_public else None)

    @property
    def _skewed(self) -> Array:
        """The variance of errors that are skewed, as the model's are; noise of answers is not."""
        known = [self.model_variance, self.noise_variance if self.source in ("model", "unmeasured") else None]
        return np.asarray(np.sum([part for part in known if part is not None], axis=0))

    def quantile(self, confidence: float) -> float:
        """How many standard errors an interval reaches: more where their size is an estimate."""
        return _quantile(0.5 + confidence / 2, self.unsure)

    @property
    def expected_error(self) -> float | None:
        """E‖exact − estimate‖₁ / n, from 0 to 2; None where no error is known."""
        if self.standard_error is None:
            return None
        return float(expected_errors(self.standard_error**2, self.estimate, self.total).sum()) / self.total

    @property
    def words(self) -> str:
        """The errors that the interval covers, in a sentence."""
        if self.source == "public":
            return "The number of records is public: it has no noise and no error."
        if self.noise_variance is None and self.model_variance is None:
            return (
                "No interval: these attributes were not measured together, and nothing tells how far the "
                "model is off there. Ask for fewer attributes."
            )
        if self.unbiased is not None:
            return (
                "The interval is of noise alone, which is known exactly, around the least-squares answer; a "
                "count that was kept from being negative may stand at its end."
            )
        if self.source == "unmeasured":
            return (
                "Some of these attributes were never measured: what is said of them comes from public data "
                "alone, and the interval from how far the model was off elsewhere. Where public data are "
                "wrong about them, it may be far too narrow."
            )
        if self.source == "model":
            together = "Nothing measured these attributes together"
            return (
                f"{together}: the interval is of the model's error, {self._how} Where they are related "
                "beyond what other tables tell, it may be far too narrow."
            )
        if self.model_variance is None:
            return "The interval is of noise alone: how far the model is off was not estimated."
        added = "what the model and public data add" if self.source == "both" else "what the model adds"
        return f"The interval holds the noise, and {added} to it, {self._how}"

    @property
    def _how(self) -> str:
        """How the model's error is known."""
        if self.unsure:
            return "as far as the measured quality of this release tells."
        return "roughly estimated and mostly too wide: quality was not measured."

    def sum(self, cells: ArrayLike, kept: int = 0) -> "ErrorBars":
        """The sum over some cells, given as a mask of the counts' shape.

        The first ``kept`` axes are not summed over: there is a sum for each of their cells.
        """
        mask = np.asarray(cells, dtype=np.bool_)
        over = tuple(range(kept, mask.ndim))

        def total_of(part: Array) -> Array:
            return np.asarray(np.where(mask, part, 0.0).sum(axis=over))

        whole, model = total_of(self.estimate), None
        if self.model_variance is not None:
            apart = np.maximum(1 - self.estimate / self.total, 1e-9)
            model = total_of(self.model_variance / apart) * np.maximum(1 - whole / self.total, 0.0)
        return replace(
            self,
            estimate=whole,
            noise=None if self.noise is None else self.noise.sums(mask, kept),
            model_variance=model,
            unbiased=None if self.unbiased is None else self.unbiased.sum(mask, kept),
            misplaced=None if self.misplaced is None else self.misplaced.each(total_of),
        )

    def at(self, cells: NDArray[np.intp]) -> "ErrorBars":
        """Some cells, each by itself: one column of codes a cell, one line an attribute."""
        places = np.zeros(1, dtype=np.intp)  # of no attributes, there is one cell
        if len(cells):
            places = np.ravel_multi_index(tuple(cells), self.estimate.shape)

        def picked(part: Array) -> Array:
            return np.asarray(part.reshape(-1)[places])

        return replace(
            self,
            estimate=picked(self.estimate),
            noise=None if self.noise is None else CellNoise(picked(self.noise.variance)),
            model_variance=None if self.model_variance is None else picked(self.model_variance),
            unbiased=None if self.unbiased is None else self.unbiased.at(picked),
            misplaced=None if self.misplaced is None else self.misplaced.each(picked),
        )


@lru_cache(maxsize=1024)
def _quantile(chance: float, unsure: float) -> float:
    """The quantile of a normal error whose size is log-normal around 1: normal where the size is known.

    >>> [round(_quantile(0.975, unsure), 2) for unsure in (0.0, 0.28, 0.8)]
    [1.96, 2.18, 3.73]
    """
    low = NormalDist().inv_cdf(chance)
    if not unsure:
        return low
    places, weights = np.polynomial.hermite_e.hermegauss(_SIZES)
    sizes: list[float] = np.exp(unsure * places).tolist()
    shares, cdf = (weights / weights.sum()).tolist(), NormalDist().cdf
    high = low * max(sizes)
    for _ in range(40):
        middle = (low + high) / 2
        inside = sum(share * cdf(middle / size) for share, size in zip(shares, sizes, strict=True))
        low, high = (middle, high) if inside < chance else (low, middle)
    return high
