"""Measured quality: how far off a release's tables are, found out under ε.

Once the model is final, the curator measures its mean error, with noise that was paid for (``mean_errors.py``
has the formula and its sensitivity). So the numbers here are about the very tables that were released, and
may be published like the release itself.

An **error** is Σ|exact − released| over the cells of a table, divided by n, and then averaged over tables: 0
where every count is right, 2 (200%) where the tables have no record in common. A record in a wrong cell
counts twice, where it is and where it is not: half the error is the share of records in a wrong cell.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sidelight import _check
from sidelight.errors import SettingError
from sidelight.mean_errors import MeanErrors, NoisyMeans
from sidelight.privacy.budget import Cost

Degree = Literal["1-way", "2-way", "3-way"]
_DEGREES: dict[str, Degree] = {"1": "1-way", "2": "2-way", "3": "3-way"}
SHARE = 0.02
"""Share of the budget that measures quality, by default."""
MOST = 0.9
"""The largest share: the rest has to measure the table."""
_LARGEST = 2.0**64
"""More than any noise that can be drawn: noisy numbers have 64 bits."""
WORDS = (
    "To read it: add up by how many records each count of a table is wrong, and divide by the number of "
    "records. Half of that is the share of records in a wrong cell. This number is measured with noise, too: "
    "± is two standard errors of that noise, so it holds in about 95 of 100 releases."
)
"""For people who do not know what an L1 error is."""


@dataclass(frozen=True, kw_only=True)
class MeanError:
    """A mean error as it was measured: with noise, so it can come out below 0 or above 2."""

    error: float
    """Mean over the marginals of Σ|exact − released| / n."""
    standard_error: float
    """σ of the noise on ``error``."""
    marginals: int
    """How many were measured; the mean is over these."""
    of: int
    """How many the workload has of this kind; an even part of them was measured where that is more."""

    def __post_init__(self) -> None:
        if not (self.standard_error > 0 and 0 < self.marginals <= self.of):
            raise SettingError("a measured mean has a standard error, and is over some of the marginals.")
        if max(abs(self.error), self.standard_error) > _LARGEST:
            raise SettingError("a measured mean and its standard error are below 2^64: noise is less.")

    def __str__(self) -> str:
        return self._numbers(1.0)

    @property
    def in_part(self) -> str:
        """How many of the marginals were measured, in brackets; empty where all were."""
        if self.marginals == self.of:
            return ""
        return f" (an even part of them was measured: {self.marginals:,} of {self.of:,})"

    @property
    def _possible(self) -> float:
        """The error that is said: none is below 0 or above 2; with its noise it may be."""
        return min(max(0.0, self.error), 2.0)

    @property
    def words(self) -> str:
        """The error with its noise; nothing but the noise, where that hides the error."""
        return f"unknown (± {_percent(self.margin)})" if self.is_hidden else str(self)

    @property
    def misplaced(self) -> str:
        """The share of records that stand in a wrong cell: half of the error, and half of its noise."""
        return "unknown" if self.is_hidden else self._numbers(0.5)

    @property
    def is_hidden(self) -> bool:
        """Whether noise leaves anything open: no error at all, and half of the records in a wrong cell."""
        return self._possible - self.margin <= 0 and self._possible + self.margin >= 1

    def _numbers(self, part: float) -> str:
        margin = part * self.margin
        return f"{_percent(part * self._possible, margin)} ± {_percent(margin)}"

    @property
    def margin(self) -> float:
        """± wherever a sentence says so: two standard errors, about 95%."""
        return 2 * self.standard_error


@dataclass(frozen=True, kw_only=True)
class Quality:
    """How far off the release's tables are: by degree, and by attribute.

    >>> def off(error, sigma):
    ...     return MeanError(error=error, standard_error=sigma, marginals=9, of=9)
    >>> by_attribute = {"age": off(0.09, 0.01), "job": off(0.14, 0.01)}
    >>> Quality(degrees={"3-way": off(0.106, 0.003)}, attributes=by_attribute).sentence
    '3-way tables are off by 10.6% ± 0.6% of records on average; worst attribute: job, 14% ± 2%'
    """

    degrees: Mapping[Degree, MeanError]
    """Mean errors by number of attributes; the highest that the workload asks for (at most 3) is first."""
    attributes: Mapping[str, MeanError]
    """Each attribute over the marginals of the highest degree that it is in; none where there is only one."""

    def __post_init__(self) -> None:
        if not self.degrees:
            raise SettingError("measured quality is about one degree at least.")

    @classmethod
    def of(cls, asked: MeanErrors, measured: NoisyMeans, *, total: float) -> "Quality | None":
        """The measured means as shares of n, which is public or itself measured; None without a degree."""
        found = [
            (
                part,
                MeanError(
                    error=mean / total, standard_error=stddev / total, marginals=len(part.places), of=part.of
                ),
            )
            for part, mean, stddev in zip(asked.sets, measured.means, measured.stddevs, strict=True)
        ]
        degrees = {_DEGREES[part.name]: mean for part, mean in found if part.kind == "degree"}
        if not degrees:
            return None
        # One attribute alone is all there is, and its mean is the headline.
        attributes = {attr: mean for part, mean in found for attr in part.attributes}
        return cls(degrees=degrees, attributes=attributes if len(attributes) > 1 else {})

    @property
    def degree(self) -> Degree:
        """The highest degree that was measured: the headline's."""
        return max(self.degrees)

    @property
    def headline(self) -> MeanError:
        """The mean error over the marginals of the highest degree."""
        return self.degrees[self.degree]

    @property
    def worst(self) -> str | None:
        """The attribute whose tables are off by most, as far as the noise lets one see."""
        return max(self.attributes, key=lambda attr: self.attributes[attr].error, default=None)

    @property
    def worst_stands_out(self) -> bool:
        """Whether the worst attribute is above the headline by more than noise explains."""
        if self.worst is None:
            return False
        # The largest of d noisy means of equal errors is above them by up to √(2 log d) σ by chance.
        worst = self.attributes[self.worst]
        chance = math.sqrt(2 * math.log(2 * len(self.attributes))) * worst.standard_error
        return worst.error > self.headline.error + chance

    @property
    def sentence(self) -> str:
        """The answer to "how good is it, and for whom", in one line."""
        if self.headline.is_hidden:
            noise = f"noise of ± {_percent(self.headline.margin)} of records hides it{self.headline.in_part}"
            return f"How far {self.degree} tables are off on average is unknown: {noise}"
        said = f"{self.degree} tables are off by {self.headline} of records on average{self.headline.in_part}"
        if self.worst is None:
            return said
        worst = self.attributes[self.worst]
        if self.worst_stands_out:
            return f"{said}; worst attribute: {_check.listed([self.worst])}, {worst}"
        known = f"known only to ± {_percent(worst.margin)}"
        return f"{said}; the error of the tables of each attribute is {known}, so none can be named"


def set_aside(allotment: Cost, share: float) -> tuple[Cost, Cost]:
    """The part of an allotment that measures quality, and the rest; a share of 0 keeps nothing."""
    if _is_share(share) and share > MOST:
        raise SettingError(
            f"quality_share = {share:g} leaves hardly any budget to measure the table with. Give it at most "
            f"{MOST:g}. Nothing was charged."
        )
    if not _is_share(share):
        raise SettingError(
            "quality_share must be at least 0 and below 1: the part of the budget that measures how far off "
            f"the release is. 0 switches that off; got {_check.brief(share)}."
        )
    return allotment.split(share)


def _is_share(share: Any) -> bool:
    return _check.is_number(share) and 0 <= share < 1


def _percent(share: float, known_to: float | None = None) -> str:
    """A share in per cent, with no more digits than the noise leaves.

    >>> _percent(0.1063, 0.003), _percent(0.003), _percent(0.1426, 0.02), _percent(0.000312)
    ('10.6%', '0.3%', '14%', '0.03%')
    """
    scale = 100 * (share if known_to is None else known_to)
    digits = 0 if not scale > 0 else max(0, -math.floor(math.log10(scale) + 1e-9))
    return f"{100 * share:.{min(digits, 6)}f}%"
