"""Acceptance: criteria that are fixed before a release, and judged with the noise taken into account.

    confidence = 0.95

    [[criterion]]
    tables = "2-way"                 # or a list of tables: [["age", "sex"], ["age"]]
    at_most = 0.05                   # their mean error, as a share of the records

    [[criterion]]
    tables = "2-way"
    worst = "attribute"              # every attribute's tables by themselves; the worst attribute counts
    at_most = 0.10

An error is Σ|exact − released| over the cells of a table, divided by n (``quality.py``). The means are
measured together with the release's quality, in one draw (``mean_errors.py``), from what was set aside
before the mechanism ran. A mean that came out as m̂ is known to ± r at the confidence asked for, one-sided:

    passed         m̂ + r ≤ t for every mean of the criterion
    failed         m̂ − r′ > t for some mean, where r′ allows for the largest of several noisy means
    cannot tell    otherwise

So a criterion that is not met passes with probability 1 − confidence at most, and so fails one that is met.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Any, Literal

from sidelight import _check
from sidelight._foreign import ForeignError, parse_toml, read_text
from sidelight.data.domain import Attrs, Domain
from sidelight.errors import SettingError, WorkloadError
from sidelight.mean_errors import MOST_CELLS, MeanErrors, NoisyMeans
from sidelight.privacy.budget import Cost, Rho
from sidelight.privacy.unit import Unit
from sidelight.queries.workload import Workload
from sidelight.releases.quality import MeanError

Verdict = Literal["passed", "failed", "cannot tell"]
_WORST = 2.0
"""The error of two tables that have no record in common."""


@dataclass(frozen=True, kw_only=True)
class Criterion:
    """A threshold on the mean error of some tables; or on that of every attribute's tables."""

    what: str
    """The tables in words, as the file names them."""
    at_most: float
    means: Mapping[str, tuple[Attrs, ...]]
    """The tables of each mean: a single mean, or one for each attribute by its name."""

    @property
    def rule(self) -> str:
        """The criterion in words."""
        each = "worst attribute of " if len(self.means) > 1 else ""
        return f"{each}{self.what}: at most {_percent(self.at_most)}"


@dataclass(frozen=True, kw_only=True)
class Criteria:
    """What a release must keep to be accepted, fixed before anything private is read."""

    criteria: tuple[Criterion, ...]
    confidence: float = 0.95

    @classmethod
    def of(cls, asked: "Criteria | str | Path | Mapping[str, Any]", domain: Domain) -> "Criteria":
        """Criteria from themselves, from a file, or from the table that such a file holds."""
        if isinstance(asked, Criteria):
            return asked
        if isinstance(asked, Mapping):
            return _parsed(asked, domain)
        path = Path(asked)
        try:
            return _parsed(parse_toml(read_text(path)), domain)
        except ForeignError as error:
            raise SettingError(f"{path} cannot be read as criteria: {error}. {_LOOKS}") from error
        except OSError as error:
            raise SettingError(f"{path} cannot be read: {error.strerror}. {_LOOKS}") from error

    def added_to(self, quality: MeanErrors | None, domain: Domain, currency: type[Cost]) -> MeanErrors:
        """The means that are measured: those of quality, and those of every criterion."""
        base = MeanErrors((), ()) if quality is None else quality
        return base.also(
            {
                self._name(place, mean): tables
                for place, one in enumerate(self.criteria)
                for mean, tables in one.means.items()
            },
            domain,
            currency,
        )

    def reaches(self, asked: MeanErrors, cost: Cost, unit: Unit) -> list[float]:
        """How far off each criterion's means may be by noise, in records, at this confidence."""
        stddev = asked.event(cost, unit).stddev
        return [
            _reach(stddev / steps, steps, 1 - self.confidence, is_gaussian=isinstance(cost, Rho))
            for steps in self._steps(asked)
        ]

    def least_thresholds(self, asked: MeanErrors, cost: Cost, unit: Unit) -> list[float]:
        """Of each criterion, in records: from here on, an exact release passes with this confidence."""
        return [2 * reach for reach in self.reaches(asked, cost, unit)]

    def outlook(self, asked: MeanErrors, cost: Cost, unit: Unit) -> tuple[str, ...]:
        """How well each criterion can be told at this cost, in sentences."""
        reaches = self.reaches(asked, cost, unit)
        return tuple(
            f"{one.rule}. It is known to ± {reach:,.3g} records, and can be told in a table of "
            f"{math.ceil(2 * reach / one.at_most):,} records or more."
            for one, reach in zip(self.criteria, reaches, strict=True)
        )

    def refuse_untellable(self, asked: MeanErrors, cost: Cost, unit: Unit, *, total: float) -> None:
        """Refuse thresholds that noise hides, where n is public: even an exact release might not pass."""
        for one, least in zip(self.criteria, self.least_thresholds(asked, cost, unit), strict=True):
            if one.at_most * total < least:
                raise SettingError(
                    f"{one.rule} cannot be told with this budget: the noise on it has to be allowed for, and "
                    f"the least threshold for {total:,.0f} records is {_up(least / total)}. Raise at_most or "
                    "epsilon, or give quality_share a larger part of the budget. Nothing was charged."
                )

    def judged(self, asked: MeanErrors, measured: NoisyMeans, *, total: float, cost: Cost) -> "Acceptance":
        """The verdicts, from the noisy means and the release's n."""
        n, alpha, is_gaussian = max(1.0, total), 1 - self.confidence, isinstance(cost, Rho)
        found = {
            part.name: (part, mean, stddev)
            for part, mean, stddev in zip(asked.sets, measured.means, measured.stddevs, strict=True)
            if part.kind == "criterion"
        }
        findings = []
        for place, one in enumerate(self.criteria):
            looks = {mean: found[self._name(place, mean)] for mean in one.means}
            part, _, stddev = next(iter(looks.values()))
            reach, far = (
                _reach(stddev, part.steps, level, is_gaussian=is_gaussian) / n
                for level in (alpha, alpha / len(looks))
            )
            errors = {
                mean: MeanError(
                    error=value / n, standard_error=sigma / n, marginals=len(each.places), of=each.of
                )
                for mean, (each, value, sigma) in looks.items()
            }
            findings.append(
                Finding(
                    what=one.what, at_most=one.at_most, errors=errors, reach=reach, reach_of_largest=far,
                    verdict=_verdict(one.at_most, [error.error for error in errors.values()], reach, far),
                )
            )  # fmt: skip
        return Acceptance(
            confidence=self.confidence,
            findings=tuple(findings),
            verdict=_together(finding.verdict for finding in findings),
        )

    def as_json(self) -> dict[str, Any]:
        """In plain values; a checkpoint is recognised by them."""
        return {
            "confidence": self.confidence,
            "criteria": [
                {
                    "what": one.what,
                    "at_most": one.at_most,
                    "means": {k: list(v) for k, v in one.means.items()},
                }
                for one in self.criteria
            ],
        }

    def _steps(self, asked: MeanErrors) -> list[int]:
        steps = {part.name: part.steps for part in asked.sets if part.kind == "criterion"}
        return [steps[self._name(place, next(iter(one.means)))] for place, one in enumerate(self.criteria)]

    @staticmethod
    def _name(place: int, mean: str) -> str:
        return f"{place} {mean}"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One criterion, as it was judged."""

    what: str
    """The tables in words."""
    at_most: float
    """The threshold, as a share of the records."""
    errors: Mapping[str, MeanError]
    """The measured mean; or that of each attribute, where the worst one counts."""
    reach: float
    """The noise that is allowed for before a criterion passes, as a share of the records."""
    reach_of_largest: float
    """The noise that is allowed for before it fails."""
    verdict: Verdict

    def __post_init__(self) -> None:
        if not self.errors or self.verdict != _verdict(
            self.at_most, [error.error for error in self.errors.values()], self.reach, self.reach_of_largest
        ):
            raise SettingError("a verdict must follow from the measured error, its noise and the threshold.")

    @property
    def worst(self) -> str:
        """The mean that is largest, as far as the noise lets one see."""
        return max(self.errors, key=lambda name: self.errors[name].error)

    @property
    def sentence(self) -> str:
        """The finding in a line."""
        who = f", worst attribute {_check.listed([self.worst])}" if len(self.errors) > 1 else ""
        return (
            f"{self.verdict}: {self.what}{who}: {self.errors[self.worst]}, at most {_percent(self.at_most)}"
        )


@dataclass(frozen=True, kw_only=True)
class Acceptance:
    """Whether a release keeps the criteria that were fixed before it was made."""

    confidence: float
    """With this confidence each verdict is right, one-sided."""
    findings: tuple[Finding, ...]
    """Criterion by criterion, in the file's order."""
    verdict: Verdict
    """Failed where a criterion failed, passed where all passed, and otherwise neither can be told."""

    def __post_init__(self) -> None:
        if self.verdict != _together(finding.verdict for finding in self.findings):
            raise SettingError("the verdict must follow from those of the criteria.")

    @property
    def sentence(self) -> str:
        """The verdict in a line."""
        said = {
            "passed": "Accepted: every criterion passed",
            "failed": "Not accepted: a criterion failed",
            "cannot tell": "Not accepted: noise hides whether every criterion is met",
        }[self.verdict]
        return f"{said} (at {_percent(self.confidence)} confidence each)."


_LOOKS = (
    'Criteria look like this: [[criterion]], then tables = "2-way" or tables = [["age", "sex"]], and '
    "at_most = 0.05."
)


def _parsed(tree: Mapping[str, Any], domain: Domain) -> Criteria:
    _check.known("accept", tree, ("confidence", "criterion"))
    confidence = tree.get("confidence", 0.95)
    if not _is_number(confidence) or not 0.5 < confidence < 1:
        raise SettingError(
            f"confidence must be above 0.5 and below 1, such as 0.95; got {_check.brief(confidence)}."
        )
    listed = tree.get("criterion", [])
    if not isinstance(listed, list) or not listed or not all(isinstance(one, Mapping) for one in listed):
        raise SettingError(f"accept must hold at least one criterion. {_LOOKS}")
    criteria = tuple(_criterion(one, domain) for one in listed)
    _refuse_contradictions(criteria)
    return Criteria(criteria=criteria, confidence=float(confidence))


def _criterion(keys: Mapping[str, Any], domain: Domain) -> Criterion:
    _check.known("a criterion", keys, ("tables", "at_most", "worst"))
    at_most: Any = keys.get("at_most")
    if not _is_number(at_most) or not 0 < at_most < _WORST:
        raise SettingError(
            "at_most must be above 0 and below 2 (200%), the error of tables that have no record in common; "
            f"got {_check.brief(at_most)}."
        )
    if "worst" in keys:
        _check.one_of(("attribute",), worst=keys["worst"])
    tables = _tables(keys.get("tables"), domain)
    what = f"{keys['tables']} tables" if isinstance(keys["tables"], str) else _named(tables)
    means: dict[str, tuple[Attrs, ...]] = {"": tables}
    if "worst" in keys:
        by_attribute = {attr: tuple(one for one in tables if attr in one) for attr in domain.attrs}
        means = {attr: held for attr, held in by_attribute.items() if held}
    return Criterion(what=what, at_most=float(at_most), means=means)


def _tables(asked: Any, domain: Domain) -> tuple[Attrs, ...]:
    is_listed = isinstance(asked, list | tuple) and all(
        isinstance(one, list | tuple) and all(isinstance(attr, str) for attr in one) for one in asked
    )
    if not (is_listed and asked) and not (isinstance(asked, str) and asked.endswith("-way")):
        raise SettingError(
            f'tables must be a name such as "2-way", or a list such as [["age", "sex"], ["age"]]; got '
            f"{_check.brief(asked)}."
        )
    try:
        workload = Workload.of(asked, domain)
    except WorkloadError as error:
        raise SettingError(f"tables of a criterion: {error}") from error
    tables = tuple(dict.fromkeys(domain.canonical(attrs) for attrs in workload.attribute_sets))
    for attrs in tables:
        if not attrs or domain.size(attrs) > MOST_CELLS // 4:
            size = f"{domain.size(attrs):,} cells" if attrs else "no attribute"
            raise SettingError(
                f"the table {' × '.join(attrs) or '[]'} of a criterion has {size}; it must have an "
                f"attribute, and at most {MOST_CELLS // 4:,} cells."
            )
    return tables


def _refuse_contradictions(criteria: Sequence[Criterion]) -> None:
    seen: dict[frozenset[tuple[Attrs, ...]], Criterion] = {}
    for one in criteria:
        other = seen.setdefault(frozenset(one.means.values()), one)
        if other is not one:
            raise SettingError(
                f"two criteria are about the same tables: {other.rule}, and {one.rule}. Keep one of them."
            )


def _named(tables: Sequence[Attrs]) -> str:
    return _check.listed([" × ".join(attrs) for attrs in tables], 5)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _reach(stddev: float, steps: int, alpha: float, *, is_gaussian: bool) -> float:
    """One-sided quantile of the noise on a mean, in records, and half a step for its rounding.

    >>> [round(_reach(10.0, 16, 0.05, is_gaussian=kind), 2) for kind in (True, False)]
    [16.48, 16.31]
    """
    # Laplace noise with σ = b√2 is above b log(1/2α) with probability α.
    laplace = math.log(1 / (2 * alpha)) / math.sqrt(2)
    quantile = NormalDist().inv_cdf(1 - alpha) if is_gaussian else laplace
    return quantile * stddev + 0.5 / steps


def _verdict(at_most: float, errors: Sequence[float], reach: float, far: float) -> Verdict:
    if max(errors) + reach <= at_most:
        # All of them are tested at 1 − confidence, and all must pass: no correction is needed.
        return "passed"
    return "failed" if max(errors) - far > at_most else "cannot tell"


def _together(verdicts: Iterable[Verdict]) -> Verdict:
    found = set(verdicts)
    return "failed" if "failed" in found else "passed" if found == {"passed"} else "cannot tell"


def _percent(share: float) -> str:
    return f"{100 * share:.4g}%"


def _up(share: float) -> str:
    """A share in per cent, rounded up to two digits, so that the number that is said suffices.

    >>> _up(0.012301), _up(0.5)
    ('1.3%', '50%')
    """
    step = 10.0 ** (math.floor(math.log10(100 * share)) - 1)
    return f"{math.ceil(100 * share / step - 1e-9) * step:.6g}%"
