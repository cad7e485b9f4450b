"""How an estimate is made of what each ε pays for.

Nothing on this page changes what is promised: whatever is set, each group spends its own ε and no more.
Who is protected, in which currency and out of which ledger is said apart, in ``terms``. Every field is a
keyword of the statistic it belongs to: ``mixed_mean(groups, bounds=(0, 10), merge=True)``.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, Literal, TypeVar

from sidelight import _check
from sidelight.data.reading.file_format import FileFormat
from sidelight.errors import SettingError
from sidelight.statistics.card import AllowedBias
from sidelight.statistics.columns import Missing

Bias = float | Literal["measure"] | None
Variance = float | Literal["bound", "public", "private"]
Density = float | Literal["public", "private"] | None

_LEAST_DENSITY = 1e-30
"""Standard errors, which are divided by the density, stay finite."""

S = TypeVar("S")


@dataclass(frozen=True, kw_only=True)
class MixSettings:
    """The settings that a mixed mean and a mixed quantile share."""

    bias: Bias = None
    """How far the public groups may be off: None for not at all, a bound on it, or ``"measure"``."""
    bias_factor: float = 1.5
    """With ``bias="measure"``: the error is at most so many times that of ignoring the public groups."""
    confidence: float = 0.95
    """Confidence of the interval."""
    alone: bool = False
    """Whether one group alone may be estimated."""

    def __post_init__(self) -> None:
        if isinstance(self.bias, str):
            _check.one_of(("measure",), bias=self.bias)
        elif self.bias is not None and (isinstance(self.bias, bool) or not 0 <= self.bias < math.inf):
            raise SettingError(f"bias must be a bound of at least 0, 'measure' or None; got {self.bias!r}.")
        if not 1 < self.bias_factor < math.inf:
            raise SettingError(f"bias_factor must be a finite number above 1; got {self.bias_factor!r}.")
        _check.share(confidence=self.confidence)

    @property
    def allowed_bias(self) -> AllowedBias:
        """The public groups' bias, as the card tells it."""
        factor = self.bias_factor if self.bias == "measure" else None
        return AllowedBias(option=self.bias, factor=factor)


@dataclass(frozen=True, kw_only=True)
class MeanSettings(MixSettings):
    """How ``mixed_mean`` estimates. None of this changes what is promised."""

    variance: Variance = "bound"
    """σ² of one person's value: a number, ``"bound"`` (the most that the bounds allow), ``"public"`` (that of
    the public groups) or ``"private"`` (measured with ``variance_share`` of each ε)."""
    weights: Literal["inverse-variance", "proportional"] = "inverse-variance"
    """``"inverse-variance"`` is best if all groups have one mean. ``"proportional"``, to the groups' sizes,
    estimates the mean of all people together, whatever the groups' own means."""
    merge: bool = False
    """Whether to sum groups of similar ε together, at the least of their ε, where that lowers the error."""
    variance_share: float = 0.2
    """Share of each ε that measures σ², with ``variance="private"``."""
    size_share: float = 0.2
    """Share of each ε that measures group sizes, under add-or-remove."""
    clipped_share: float = 0.0
    """Share of each ε that counts the values outside the bounds, for the card; 0 for no count."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_variance(self.variance)
        _check.one_of(("inverse-variance", "proportional"), weights=self.weights)
        if self.weights == "proportional" and (self.bias is not None or self.merge):
            raise SettingError("weights='proportional' takes no bias and no merge; leave them out.")
        _check.share(variance_share=self.variance_share, size_share=self.size_share)
        left_after(variance_share=self.measured_share, clipped_share=self.clipped_share)

    @property
    def measured_share(self) -> float:
        """The share of each ε that measures σ²: 0 where σ² is known otherwise."""
        return self.variance_share if self.variance == "private" else 0.0


@dataclass(frozen=True, kw_only=True)
class QuantileSettings(MixSettings):
    """How ``mixed_quantile`` estimates. None of this changes what is promised."""

    weights: Literal["rank", "mean"] = "rank"
    """``"rank"``: from the law of the noise in ranks, ours; ``"mean"``: those of the mean, the paper's."""
    variance: float | None = None
    """σ² of one person's value, for ``weights="mean"``; the most that the bounds allow if None."""
    density: Density = None
    """Density of the values at the quantile, for the standard error: a number, ``"public"`` (from the public
    groups) or ``"private"`` (measured with ``density_share`` of each ε). None: public if at least 100 people
    are public, else private."""
    density_share: float = 0.25
    """Share of each ε that measures the density, where it is private."""
    size_share: float = 0.1
    """Share of each ε that measures group sizes, under add-or-remove."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _check.one_of(("rank", "mean"), weights=self.weights)
        if self.variance is not None:
            _check.positive(variance=self.variance)
        if isinstance(self.density, str):
            _check.one_of(("public", "private"), density=self.density)
        elif self.density is not None:
            _check.positive(density=self.density)
            if not _LEAST_DENSITY <= self.density <= 1 / _LEAST_DENSITY:
                raise SettingError(
                    f"density must be from {_LEAST_DENSITY:g} to {1 / _LEAST_DENSITY:g}; got "
                    f"{self.density:g}. It is the share of people for each step of 1 in the value, near the "
                    "quantile."
                )
        _check.share(density_share=self.density_share, size_share=self.size_share)
        left_after(density_share=self.density_share, size_share=self.size_share)

    def sigma2(self, width: float) -> float:
        """σ² for the paper's weights, given the width of the bounds."""
        return width**2 / 4 if self.variance is None else self.variance


@dataclass(frozen=True, kw_only=True)
class CellSettings:
    """How ``grouped_mean`` estimates. None of this changes what is promised."""

    missing: Missing = "refuse"
    """The number, within the bounds, that stands for a value that is missing or no number. With ``"refuse"``
    a table that holds such a value is refused before anything is paid."""
    variance: Variance = "private"
    """σ² within a cell: a number, ``"bound"`` (the most that the bounds allow), ``"public"`` (that of the
    public table) or ``"private"`` (measured with ``variance_share`` of ε)."""
    confidence: float = 0.95
    """Confidence of each cell's interval."""
    size_share: float = 0.2
    """Share of ε that measures how many records each cell has."""
    variance_share: float = 0.1
    """Share of ε that measures σ², with ``variance="private"``."""
    file: FileFormat | None = None
    """How files of text are written, if not in UTF-8 with commas and points: ``Schema.file`` of a schema."""

    def __post_init__(self) -> None:
        _check.share(confidence=self.confidence)
        check_variance(self.variance)
        if not self.size_share:
            raise SettingError("size_share must be above 0: a cell's size is private, and a mean needs it.")
        left_after(size_share=self.size_share, variance_share=self.measured_share)

    @property
    def measured_share(self) -> float:
        """The share of ε that measures σ²: 0 where σ² is known otherwise."""
        return self.variance_share if self.variance == "private" else 0.0


def check_variance(variance: Variance) -> None:
    """Refuse what is no way to know σ²."""
    if isinstance(variance, str):
        _check.one_of(("bound", "public", "private"), variance=variance)
    else:
        _check.positive(variance=variance)


def left_after(**shares: float) -> float:
    """The part of an ε that these shares leave; refused where nothing is left."""
    for name, share in shares.items():
        if share != 0:
            _check.share(**{name: share})
    left = 1 - sum(Fraction(share) for share in shares.values())
    if left <= 0:
        listed = ", ".join(f"{name}={share:g}" for name, share in shares.items())
        raise SettingError(f"the shares must leave something for the estimate itself; got {listed}.")
    return float(left)


def check_keywords(function: str, given: Mapping[str, Any], *kinds: type) -> None:
    """Refuse a keyword that is a field of none of these kinds of settings."""
    _check.known(function, given, [field.name for kind in kinds for field in fields(kind)])


def of_keywords(kind: type[S], given: Mapping[str, Any]) -> S:
    """The settings of this kind that are among the keywords; defaults for the others."""
    names = {field.name for field in fields(kind)}  # type: ignore[arg-type]  # every kind is a dataclass
    return kind(**{name: value for name, value in given.items() if name in names})
