"""The findings of a release's criteria, as the card and the report tell them.

``acceptance.py`` reads the criteria, measures and judges.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from sidelight import _check
from sidelight.errors import SettingError
from sidelight.releases.quality import MeanError

Verdict = Literal["passed", "failed", "cannot tell"]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One criterion, as it was judged."""

    what: str
    """The tables in words."""
    at_most: float
    """The threshold, as a share of the records."""
    errors: Mapping[str, MeanError]
    """The measured mean; or that of each attribute, where the worst one counts; or that of each value."""
    reach: float
    """The noise that is allowed for before a criterion passes, as a share of the records."""
    reach_of_largest: float
    """The noise that is allowed for before it fails."""
    verdict: Verdict
    between: str | None = None
    """The attribute whose values are compared; errors are then shares of each value's records."""
    left_out: tuple[str, ...] = ()
    """Values that were not judged, since too few records have them, as the release counts them."""

    def __post_init__(self) -> None:
        if not self.errors or self.verdict != verdict_of(
            self.at_most, held_against(self.errors, self.between), self.reach, self.reach_of_largest
        ):
            raise SettingError("a verdict must follow from the measured error, its noise and the threshold.")

    @property
    def worst(self) -> str:
        """The mean that is largest, as far as the noise lets one see."""
        return max(self.errors, key=lambda name: self.errors[name].error)

    @property
    def sentence(self) -> str:
        """The finding in a line."""
        if self.between is not None:
            ranked = sorted(self.errors.items(), key=lambda one: -one[1].error)
            each = ", ".join(f"{_check.listed([name])} {error}" for name, error in ranked)
            few = f"; not judged, since too few records have it: {_check.listed(self.left_out)}"
            return (
                f"{self.verdict}: {self.what}, values of {self.between} apart: {each}, at most "
                f"{percent(self.at_most)}{few if self.left_out else ''}"
            )
        who = f", worst attribute {_check.listed([self.worst])}" if len(self.errors) > 1 else ""
        error = self.errors[self.worst]
        return f"{self.verdict}: {self.what}{who}{error.in_part}: {error}, at most {percent(self.at_most)}"


@dataclass(frozen=True, kw_only=True)
class Acceptance:
    """Whether a release keeps the criteria that were fixed before it was made."""

    confidence: float
    """The confidence with which each verdict is right, one-sided."""
    findings: tuple[Finding, ...]
    """Criterion by criterion, in the file's order."""
    verdict: Verdict
    """Failed where a criterion failed, passed where all passed, and otherwise neither can be told."""

    def __post_init__(self) -> None:
        if self.verdict != together(finding.verdict for finding in self.findings):
            raise SettingError("the verdict must follow from those of the criteria.")

    @property
    def sentence(self) -> str:
        """The verdict in a line."""
        said = {
            "passed": "Accepted: every criterion passed",
            "failed": "Not accepted: a criterion failed",
            "cannot tell": "Not accepted: noise hides whether every criterion is met",
        }[self.verdict]
        return f"{said} (at {percent(self.confidence)} confidence each)."


def held_against(errors: Mapping[str, MeanError], between: str | None) -> list[float]:
    """The numbers that a threshold is held against: the errors, or the largest difference of two."""
    values = [error.error for error in errors.values()]
    return values if between is None else [max(values) - min(values)]


def verdict_of(at_most: float, errors: Sequence[float], reach: float, far: float) -> Verdict:
    """The verdict on these numbers, given the noise that is allowed for on either side."""
    if max(errors) + reach <= at_most:
        # All of them are tested at 1 − confidence, and all must pass: no correction is needed.
        return "passed"
    return "failed" if max(errors) - far > at_most else "cannot tell"


def together(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict on all criteria."""
    found = set(verdicts)
    return "failed" if "failed" in found else "passed" if found == {"passed"} else "cannot tell"


def percent(share: float) -> str:
    """A share in words."""
    return f"{100 * share:.4g}%"
