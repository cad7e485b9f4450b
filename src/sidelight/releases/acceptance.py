"""Acceptance: criteria that are fixed before a release, and judged with the noise taken into account.

    confidence = 0.95

    [[criterion]]
    tables = "2-way"                 # or a list of tables: [["age", "sex"], ["age"]]
    at_most = 0.05                   # their mean error, as a share of the records

    [[criterion]]
    tables = "2-way"
    worst = "attribute"              # every attribute's tables by themselves; the worst attribute counts
    at_most = 0.10

    [[criterion]]
    tables = [["age"], ["income"]]
    between = "sex"                  # each sex by itself, as a share of its records: how far apart they are
    values = ["F", "M"]              # these alone; without this line, all that enough records have
    at_most = 0.05

An error is Σ|exact − released| over the cells of a table, divided by n (``quality.py``). The means are
measured together with the release's quality, in one draw (``mean_errors.py``), from what was set aside
before the mechanism ran. A mean that came out as m̂ is known to ± r at the confidence asked for, one-sided:

    passed         m̂ + r ≤ t for every mean of the criterion
    failed         m̂ − r′ > t for some mean, where r′ allows for the largest of several noisy means
    cannot tell    otherwise

So a criterion that is not met passes with probability 1 − confidence at most, and one that is met fails with
no larger one. With ``between``, m̂ is the difference of two values' errors, and r allows for the noise of both
means; how many records a value has is counted by the release, which is fixed by then.

Noise hides the error of a value that hardly anybody has. So a value is left out, and named, if the upper end
of the release's own count of it is below 2r/t, the number of records from which on an exact release passes.
That count must rest on a measurement, which was paid for: a model, or public data, may have lost a group. The
measured error of a value has no part in leaving it out. Values that a file names are all judged.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import NormalDist
from typing import Any

from sidelight import _check
from sidelight._foreign import ForeignError, parse_toml, read_text
from sidelight.data.count_source import CountSource
from sidelight.data.domain import Attrs, Domain
from sidelight.errors import SettingError, WorkloadError
from sidelight.mean_errors import MOST_CELLS, MeanErrors, NoisyMeans, Subgroup, Tables
from sidelight.privacy.budget import Cost, Rho
from sidelight.privacy.unit import Unit
from sidelight.queries.workload import Workload
from sidelight.releases.findings import Acceptance, Finding, held_against, percent, together, verdict_of
from sidelight.releases.quality import MeanError

LabelsOf = Callable[[str], Sequence[object]]
"""From an attribute to the names of its values."""
MostOf = Callable[[str], Sequence[float] | None]
"""From an attribute to the most records that each of its values may have; None where nothing is known."""
_MOST_VALUES = 20
"""Most values of an attribute whose values are compared: each is measured by itself."""
_WORST = 2.0
"""The error of two tables that have no record in common."""


@dataclass(frozen=True, kw_only=True)
class Criterion:
    """A threshold on the mean error of some tables, of every attribute's tables, or between values."""

    what: str
    """The tables in words, as the file names them."""
    at_most: float
    means: Mapping[str, Tables]
    """The tables of each mean: a single mean, or one for each attribute or value by its name."""
    between: str | None = None
    """The attribute whose values are compared."""
    is_named: bool = False
    """Whether the file names the values to compare: then none is left out."""

    @property
    def fewest_values(self) -> int:
        """How many values are compared at least."""
        return len(self.means) if self.is_named else 2

    @property
    def rule(self) -> str:
        """The criterion in words."""
        if self.between is not None:
            return f"{self.what}, values of {self.between} apart: at most {percent(self.at_most)}"
        each = "worst attribute of " if len(self.means) > 1 else ""
        return f"{each}{self.what}: at most {percent(self.at_most)}"


@dataclass(frozen=True, kw_only=True)
class Criteria:
    """The criteria that a release must keep to be accepted, fixed before anything private is read."""

    criteria: tuple[Criterion, ...]
    confidence: float = 0.95

    @classmethod
    def of(
        cls,
        asked: "Criteria | str | Path | Mapping[str, Any]",
        domain: Domain,
        *,
        labels: LabelsOf | None = None,
    ) -> "Criteria":
        """Criteria from themselves, from a file, or from the table that such a file holds.

        ``labels`` names the values of an attribute; without it they go by their codes.
        """
        named = labels or (lambda attr: tuple(range(domain.size((attr,)))))
        if isinstance(asked, Criteria):
            return asked
        if isinstance(asked, Mapping):
            return _parsed(asked, domain, named)
        path = Path(asked)
        try:
            return _parsed(parse_toml(read_text(path)), domain, named)
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
        stddev, is_gaussian = asked.event(cost, unit).stddev, isinstance(cost, Rho)
        return [
            _reach(
                [stddev / steps] * (2 if one.between else 1),
                steps,
                1 - self.confidence,
                is_gaussian=is_gaussian,
            )
            for one, steps in zip(self.criteria, self._steps(asked), strict=True)
        ]

    def least_thresholds(self, asked: MeanErrors, cost: Cost, unit: Unit) -> list[float]:
        """The least threshold of each criterion, in records.

        From there on, an exact release passes at this confidence.
        """
        return [2 * reach for reach in self.reaches(asked, cost, unit)]

    def outlook(self, asked: MeanErrors, cost: Cost, unit: Unit) -> tuple[str, ...]:
        """How well each criterion can be told at this cost, in sentences."""
        reaches = self.reaches(asked, cost, unit)
        return tuple(
            f"{one.rule}. Noise moves it by at most {_check.rounded(reach)} records "
            f"({percent(self.confidence)}), so it can be told "
            f"{'where each value has' if one.between else 'in a table of'} "
            f"{math.ceil(2 * reach / one.at_most):,} records or more"
            f"{'; values that fewer have are left out' if one.between and not one.is_named else ''}."
            for one, reach in zip(self.criteria, reaches, strict=True)
        )

    def refuse_untellable(self, asked: MeanErrors, cost: Cost, unit: Unit, *, total: float) -> None:
        """Refuse thresholds that noise hides, where n is public: even an exact release might not pass."""
        for one, least in zip(self.criteria, self.least_thresholds(asked, cost, unit), strict=True):
            # At best all values that are compared have equally many records.
            total_each = total / one.fewest_values if one.between else total
            if one.at_most * total_each < least:
                raise SettingError(
                    f"{one.rule} cannot be told with this budget: the noise on it has to be allowed for, and "
                    f"the least threshold for {total:,.0f} records is {_up(least / total_each)}. Raise "
                    "at_most or epsilon, or give quality_share a larger part of the budget. Nothing was "
                    "charged."
                )

    def judged(
        self,
        asked: MeanErrors,
        measured: NoisyMeans,
        model: CountSource,
        *,
        total: float,
        cost: Cost,
        most: MostOf | None = None,
    ) -> Acceptance:
        """The verdicts, from the noisy means, the release's n and the records that it counts in subgroups.

        ``most`` tells how many records each value may have, by the release; without it none is left out.
        """
        is_gaussian = isinstance(cost, Rho)
        found = {
            name: (part, mean, stddev)
            for part, mean, stddev in zip(asked.sets, measured.means, measured.stddevs, strict=True)
            for name in part.criteria
        }
        findings = []
        for place, one in enumerate(self.criteria):
            errors, finest = {}, math.inf
            few = set[str]()
            if most is not None and one.between is not None and not one.is_named:
                part, _, stddev = found[self._name(place, next(iter(one.means)))]
                reach = _reach([stddev] * 2, part.steps, 1 - self.confidence, is_gaussian=is_gaussian)
                few = _too_few(one, most(one.between), 2 * reach / one.at_most)
            for name, tables in one.means.items():
                if name in few:
                    continue
                part, value, stddev = found[self._name(place, name)]
                n = max(1.0, _records(tables, model, total))
                finest = min(finest, part.steps * n)
                errors[name] = MeanError(
                    error=value / n, standard_error=stddev / n, marginals=len(part.places), of=part.of
                )
            found_here = self._finding(one, errors, finest, is_gaussian=is_gaussian)
            findings.append(replace(found_here, left_out=tuple(name for name in one.means if name in few)))
        return Acceptance(
            confidence=self.confidence,
            findings=tuple(findings),
            verdict=together(finding.verdict for finding in findings),
        )

    def _finding(
        self, one: Criterion, errors: Mapping[str, MeanError], steps: float, *, is_gaussian: bool
    ) -> Finding:
        alpha, sigmas = 1 - self.confidence, sorted(each.standard_error for each in errors.values())
        # Of two values the noisiest pair decides; each difference has two sides.
        noisiest = sigmas[-2:] if one.between else sigmas[-1:]
        number = len(errors) * (len(errors) - 1) if one.between else len(errors)
        reach, far = (
            _reach(noisiest, steps, level, is_gaussian=is_gaussian) for level in (alpha, alpha / number)
        )
        return Finding(
            what=one.what, at_most=one.at_most, errors=errors, reach=reach, reach_of_largest=far,
            verdict=verdict_of(one.at_most, held_against(errors, one.between), reach, far),
            between=one.between,
        )  # fmt: skip

    def as_json(self) -> dict[str, Any]:
        """In plain values; a checkpoint is recognised by them."""
        return {
            "confidence": self.confidence,
            "criteria": [
                {
                    "what": one.what,
                    "at_most": one.at_most,
                    "means": {k: list(v.marginals) for k, v in one.means.items()},
                    "between": one.between,
                    "is_named": one.is_named,
                }
                for one in self.criteria
            ],
        }

    def _steps(self, asked: MeanErrors) -> list[int]:
        steps = {name: part.steps for part in asked.sets for name in part.criteria}
        return [steps[self._name(place, next(iter(one.means)))] for place, one in enumerate(self.criteria)]

    @staticmethod
    def _name(place: int, mean: str) -> str:
        return f"{place} {mean}"


_LOOKS = (
    'Criteria look like this: [[criterion]], then tables = "2-way" or tables = [["age", "sex"]], and '
    "at_most = 0.05."
)


def _parsed(tree: Mapping[str, Any], domain: Domain, labels: LabelsOf) -> Criteria:
    _check.known("accept", tree, ("confidence", "criterion"))
    confidence = tree.get("confidence", 0.95)
    if not _check.is_number(confidence) or not 0.5 < confidence < 1:
        raise SettingError(
            f"confidence must be above 0.5 and below 1, such as 0.95; got {_check.brief(confidence)}."
        )
    listed = tree.get("criterion", [])
    if not isinstance(listed, list) or not listed or not all(isinstance(one, Mapping) for one in listed):
        raise SettingError(f"accept must hold at least one criterion. {_LOOKS}")
    criteria = tuple(_criterion(one, domain, labels) for one in listed)
    _refuse_repeated(criteria)
    return Criteria(criteria=criteria, confidence=float(confidence))


def _criterion(keys: Mapping[str, Any], domain: Domain, labels: LabelsOf) -> Criterion:
    _check.known("a criterion", keys, ("tables", "at_most", "worst", "between", "values"))
    at_most: Any = keys.get("at_most")
    if not _check.is_number(at_most) or not 0 < at_most < _WORST:
        raise SettingError(
            "at_most must be above 0 and below 2 (200%), the error of tables that have no record in common; "
            f"got {_check.brief(at_most)}."
        )
    if "worst" in keys:
        _check.one_of(("attribute",), worst=keys["worst"])
    tables = _tables(keys.get("tables"), domain)
    what = f"{keys['tables']} tables" if isinstance(keys["tables"], str) else _named(tables)
    if "between" in keys:
        if "worst" in keys:
            raise SettingError("a criterion has worst or between, not both. Write two criteria.")
        between = keys["between"]
        means = _subgroups(between, keys.get("values"), tables, domain, labels)
        return Criterion(
            what=what, at_most=float(at_most), means=means, between=between, is_named="values" in keys
        )
    if "values" in keys:
        raise SettingError("values are those of the attribute that between names; name it, too.")
    means = {"": Tables(tables)}
    if "worst" in keys:
        by_attribute = {attr: tuple(one for one in tables if attr in one) for attr in domain.attrs}
        means = {attr: Tables(held) for attr, held in by_attribute.items() if held}
    return Criterion(what=what, at_most=float(at_most), means=means)


def _subgroups(
    between: Any, values: Any, tables: Sequence[Attrs], domain: Domain, labels: LabelsOf
) -> dict[str, Tables]:
    """Each value of an attribute by itself, in the tables with that attribute added."""
    if not isinstance(between, str) or between not in domain.attrs:
        hint = _check.hint(str(between), domain.attrs)
        raise SettingError(f"between must be an attribute; got {_check.brief(between)}.{hint}")
    codes = {str(label): code for code, label in enumerate(labels(between))}
    if values is not None:
        codes = _chosen(values, codes, between)
    if not 2 <= len(codes) <= _MOST_VALUES:
        raise SettingError(
            f"between compares 2 to {_MOST_VALUES} values of an attribute; {between!r} has {len(codes):,}. "
            "Name some of them (values), group them in the schema, or name another attribute."
        )
    crossed = tuple(dict.fromkeys(domain.canonical({*attrs, between}) for attrs in tables))
    _refuse_large(crossed, domain)
    return {label: Tables(crossed, Subgroup(between, code)) for label, code in codes.items()}


def _chosen(values: Any, codes: Mapping[str, int], between: str) -> dict[str, int]:
    """The values that a file names."""
    if not isinstance(values, list | tuple) or len(values) < 2 or len(set(map(str, values))) < len(values):
        raise SettingError(
            f"values must be a list of two values of {between!r} or more, each named once; got "
            f"{_check.brief(values)}."
        )
    for value in map(str, values):
        if value not in codes:
            hint = _check.hint(value, tuple(codes))
            raise SettingError(f"{between!r} has no value {_check.brief(value)}.{hint}")
    return {str(value): codes[str(value)] for value in values}


def _too_few(one: Criterion, most: Sequence[float] | None, fewest: float) -> set[str]:
    """The values that fewer records have than this, if that leaves two to compare."""
    if most is None:
        return set()
    few = {
        name
        for name, tables in one.means.items()
        if tables.subgroup is not None and most[tables.subgroup.code] < fewest
    }
    return few if len(one.means) - len(few) >= 2 else set()


def _records(tables: Tables, model: CountSource, total: float) -> float:
    """The records that errors are divided by: all, or the subgroup's as the release counts them."""
    if tables.subgroup is None:
        return total
    return float(model.count((tables.subgroup.attr,))[tables.subgroup.code])


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
    _refuse_large(tables, domain)
    return tables


def _refuse_large(tables: Sequence[Attrs], domain: Domain) -> None:
    for attrs in tables:
        if not attrs or domain.size(attrs) > MOST_CELLS // 4:
            size = f"{domain.size(attrs):,} cells" if attrs else "no attribute"
            raise SettingError(
                f"the table {' × '.join(attrs) or '[]'} of a criterion has {size}; it must have an "
                f"attribute, and at most {MOST_CELLS // 4:,} cells."
            )


def _refuse_repeated(criteria: Sequence[Criterion]) -> None:
    seen: dict[frozenset[Tables], Criterion] = {}
    for one in criteria:
        other = seen.setdefault(frozenset(one.means.values()), one)
        if other is not one:
            raise SettingError(
                f"two criteria are about the same tables: {other.rule}, and {one.rule}. Keep one of them."
            )


def _named(tables: Sequence[Attrs]) -> str:
    return _check.listed([" × ".join(attrs) for attrs in tables], 5)


def _reach(stddevs: Sequence[float], steps: float, alpha: float, *, is_gaussian: bool) -> float:
    """One-sided quantile of the noise on a mean, or on the difference of two, and half a step for rounding.

    >>> [round(_reach([10.0], 16, 0.05, is_gaussian=kind), 2) for kind in (True, False)]
    [16.48, 16.31]
    """
    if is_gaussian:
        noise = NormalDist().inv_cdf(1 - alpha) * math.hypot(*stddevs)
    else:
        # Laplace noise with σ = b√2 is above b log(1/2α) with probability α; of two, each half as often.
        noise = math.log(len(stddevs) / (2 * alpha)) / math.sqrt(2) * sum(stddevs)
    return noise + 0.5 * len(stddevs) / steps


def _up(share: float) -> str:
    """A share in per cent, rounded up to two digits, so that the number that is said suffices.

    >>> _up(0.012301), _up(0.5)
    ('1.3%', '50%')
    """
    step = 10.0 ** (math.floor(math.log10(100 * share)) - 1)
    return f"{math.ceil(100 * share / step - 1e-9) * step:.6g}%"
