"""What a release says about itself, as plain facts for the page.

Only the release is read: its card, events and measurements, never a table. Where the card and the
events disagree, somebody edited one of them, and no report is written.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from sidelight.data.domain import Attrs, Domain
from sidelight.errors import ReleaseError, SidelightError
from sidelight.mean_errors import MEAN_ERRORS
from sidelight.measurement import Measurement, noise_stddev
from sidelight.privacy.budget import Budget, Epsilon
from sidelight.privacy.event import Event, Exponential, Gaussian, Laplace, Parallel, PermuteAndFlip
from sidelight.privacy.rational import parse_fraction
from sidelight.privacy.unit import Unit
from sidelight.queries.query import Marginal, expected_l1_noise
from sidelight.releases.release import Release
from sidelight.report.words import joined, shortened

Step = Literal["total", "select", "measure", "quality"]
STEPS: tuple[Step, ...] = ("total", "select", "measure", "quality")

_LISTED, _TRIED, _TRIED_CELLS = 150, 30, 50_000
"""How many measured marginals have their expected error listed, how many others, and of what size at most."""


@dataclass(frozen=True)
class Promise:
    """What was promised about this release."""

    epsilon: float
    delta: float
    unit: Unit
    epsilon_spent: float

    @property
    def odds(self) -> float:
        """e^ε: by how much the odds of any guess about one person can grow."""
        return math.exp(min(self.epsilon, 700.0))

    @property
    def belief(self) -> float:
        """What an even guess about one person can become at most: e^ε / (1 + e^ε)."""
        return 1 / (1 + math.exp(-min(self.epsilon, 700.0)))


@dataclass(frozen=True)
class Spending:
    """One event: a step of the mechanism, its noise and its cost."""

    number: int
    step: Step
    what: str
    noise: str
    cost: Fraction
    share: float
    """Of what the promise holds, or of what was spent where no card says what was promised."""


@dataclass(frozen=True)
class Measured:
    """All measurements of one set of attributes."""

    name: str
    attrs: Attrs
    numbers: int
    """How many noisy numbers there are."""
    whole: bool
    """Whether they are whole marginals, or single queries about these attributes."""
    stddev: float
    """σ of one number; of the least noisy where several differ."""
    misfit: float
    """Root mean square of (model − measurement)/σ: near 1 where the model says what was measured."""


@dataclass(frozen=True)
class Expected:
    """The error to expect in one marginal's counts."""

    name: str
    degree: int
    cells: int
    stddev: float | None
    """σ of the noise on a cell; None where nothing measured these attributes together."""
    model_error: float | None
    """Root mean square of the model's error on a cell; None where it is not known."""
    error: float
    """Expected L1 error over n; at most 2, as for tables with nothing in common."""


@dataclass(frozen=True)
class ExpectedErrors:
    """Expected error by query of the workload."""

    known: tuple[Expected, ...]
    """Marginals whose error can be told; the largest first."""
    unmeasured: tuple[Attrs, ...]
    """What was not measured as a whole; of some of these, ``known`` tells the model's error."""
    about: str
    """Which queries these are, in words."""
    left_out: int = 0
    """Measured marginals that are not listed."""

    def unmeasured_names(self, most: int) -> str:
        """Those that were not measured as a whole, the rest counted."""
        named = ", ".join(joined(attrs) for attrs in self.unmeasured[:most])
        more = len(self.unmeasured) - most
        return f"{named} and {more:,} more" if more > 0 else named


@dataclass(frozen=True)
class Facts:
    """All that the page says about budget and noise."""

    card: dict[str, Any]
    promise: Promise | None
    currency: str
    """ρ or ε: what costs are counted in."""
    spendings: tuple[Spending, ...]
    spent: Fraction
    unspent: float
    """As a share of what the promise holds."""
    paid_again: Fraction
    """For draws that are not in the release: a crash lost them, or they went to a copy of its checkpoint."""
    measured: tuple[Measured, ...]
    reach: float
    """Half a 95% interval, in σ."""
    is_private: bool
    """Whether the noise was drawn from the operating system."""

    def share_of(self, step: Step) -> float:
        """How much of what the promise holds went to this step."""
        return sum(spending.share for spending in self.spendings if spending.step == step)

    def times(self, step: Step) -> int:
        """How many events this step took."""
        return sum(1 for spending in self.spendings if spending.step == step)


def collect(release: Release) -> Facts:
    """The facts of a release, checked against each other."""
    promise = _promise(release.card)
    spent = sum((event.cost.value for event in release.events), start=Fraction(0))
    _check(release, spent)
    is_pure = any(isinstance(event.cost, Epsilon) for event in release.events)
    whole = max(_held(promise, is_pure=is_pure), spent) or Fraction(1)
    spendings = tuple(
        Spending(
            number,
            step_of(event),
            shortened(event.what, 160),
            _noise(event),
            event.cost.value,
            float(event.cost.value / whole),
        )
        for number, event in enumerate(release.events, start=1)
    )
    return Facts(
        card=release.card,
        promise=promise,
        currency="ε" if is_pure else "ρ",
        spendings=spendings,
        spent=spent,
        unspent=float(1 - spent / whole),
        paid_again=_paid_again(release.card),
        measured=_measured(release),
        reach=reach_of(release.events),
        is_private=release.card.get("private") is not False,
    )


def step_of(event: Event) -> Step:
    """Which step of the loop an event paid for."""
    if isinstance(event, Exponential | PermuteAndFlip):
        return "select"
    if event.what.startswith(MEAN_ERRORS):
        return "quality"
    return "total" if event.what == Marginal(()).describe() else "measure"


def reach_of(events: Sequence[Event]) -> float:
    """Half a 95% interval in σ: 1.96 for Gaussian noise, ln 20 / √2 for Laplace noise and its tails."""
    leaves = [leaf for event in events for leaf in (event.parts if isinstance(event, Parallel) else (event,))]
    return math.log(20) / math.sqrt(2) if any(isinstance(leaf, Laplace) for leaf in leaves) else 1.96


def expected_errors(release: Release) -> ExpectedErrors:
    """Expected L1 error for the workload's marginals, from noise and model as far as they are known.

    Where the card does not list them, for all one-way and two-way marginals. All that were measured are
    ranked by their noise, the noisiest are listed; of those that were not, some are tried, evenly chosen.
    """
    domain = release.model.domain
    asked, about = _asked(release, domain)
    by_attr: dict[str, set[int]] = {}
    for index, made in enumerate(release.measurements):
        for attr in made.query.attrs if isinstance(made.query, Marginal) else ():
            by_attr.setdefault(attr, set()).add(index)
    measured: list[tuple[float, Attrs]] = []
    unmeasured: list[Attrs] = []
    for attrs in asked:
        # Only what covers all attributes bears on them; sets find it without trying every measurement.
        held = set.intersection(*(by_attr.get(attr, set()) for attr in attrs)) if attrs else set()
        if held:
            covering = [release.measurements[index] for index in sorted(held)]
            stddev = noise_stddev(covering, attrs, domain)
            assert stddev is not None  # a measured marginal holds these attributes
            measured.append((expected_l1_noise(domain.size(attrs), stddev), attrs))
        else:
            unmeasured.append(attrs)
    measured.sort(key=lambda ranked: -ranked[0])
    tried = [attrs for attrs in unmeasured if attrs and domain.size(attrs) <= _TRIED_CELLS]
    tried = tried[:: max(1, -(-len(tried) // _TRIED))]
    listed = [attrs for _, attrs in measured[:_LISTED]]
    told = [_expected(release, attrs) for attrs in (*listed, *tried)]
    known = sorted((one for one in told if one is not None), key=lambda one: -one.error)
    return ExpectedErrors(tuple(known), tuple(unmeasured), about, left_out=len(measured) - len(listed))


def _expected(release: Release, attrs: Attrs) -> Expected | None:
    bars = release.error_bars(attrs)
    if bars.standard_error is None:
        return None
    # E|x| of a normal x is √(2/π) σ.
    error = math.sqrt(2 / math.pi) * float(bars.standard_error.sum()) / max(release.total, 1.0)
    return Expected(
        joined(attrs),
        len(attrs),
        bars.estimate.size,
        stddev=None if bars.noise_variance is None else math.sqrt(float(bars.noise_variance.mean())),
        model_error=None if bars.model_variance is None else math.sqrt(float(bars.model_variance.mean())),
        error=min(error, 2.0),
    )


def _asked(release: Release, domain: Domain) -> tuple[list[Attrs], str]:
    on_card = release.card.get("workload")
    supports = on_card.get("supports") if isinstance(on_card, dict) else None
    if supports:
        try:
            chosen = [tuple(attrs) for attrs in supports]
            for attrs in chosen:
                domain.require(attrs)
        except TypeError as error:
            raise ReleaseError(
                "the release's card cannot be read: its workload was edited. Get the release again."
            ) from error
        return chosen, "the workload's marginals"
    attrs = domain.attrs
    pairs = [(one, other) for index, one in enumerate(attrs) for other in attrs[index + 1 :]]
    return [*((attr,) for attr in attrs), *pairs], "all one-way and two-way marginals"


def _promise(card: dict[str, Any]) -> Promise | None:
    if not {"epsilon", "delta", "unit", "epsilon_spent"} <= card.keys():
        return None
    try:
        unit = Unit(card["unit"]["relation"], card["unit"]["records"])
        Budget(epsilon=card["epsilon"], delta=card["delta"])
        return Promise(card["epsilon"], card["delta"], unit, float(card["epsilon_spent"]))
    except (ArithmeticError, LookupError, SidelightError, TypeError, ValueError) as error:
        raise ReleaseError(
            "the release's card cannot be read: its promise (epsilon, delta, unit) was edited or cut "
            "off. Get the release again."
        ) from error


def _held(promise: Promise | None, *, is_pure: bool) -> Fraction:
    """All that the promise would have let this release spend, in the currency of its events."""
    if promise is None:
        return Fraction(0)
    budget = Budget(epsilon=promise.epsilon, delta=promise.delta)
    return budget.pure().value if is_pure or budget.is_pure else budget.rho().value


def _check(release: Release, spent: Fraction) -> None:
    """Refuse a card whose sum or whose events are not those of the release."""
    card = release.card
    plain = [event.as_json() for event in release.events]
    paid = str(spent + _paid_again(card))
    if card.get("spent", paid) != paid or card.get("events", plain) != plain:
        raise ReleaseError(
            "the release's card and its events disagree about what was spent: one of them was edited after "
            "the release was written. Get the release again."
        )


def _paid_again(card: dict[str, Any]) -> Fraction:
    try:
        return parse_fraction(card.get("paid_again", {}).get("cost", "0"))
    except (AttributeError, ArithmeticError, TypeError, ValueError) as error:
        raise ReleaseError(
            "the release's card cannot be read: what was paid again was edited. Get the release again."
        ) from error


def _noise(event: Event) -> str:
    match event:
        case Gaussian():
            return f"Gaussian, σ = {event.stddev:.4g}"
        case Laplace():
            return f"Laplace, b = {float(event.scale):.4g}"
        case Exponential():
            return f"exponential mechanism, {event.candidates:,} candidates"
        case PermuteAndFlip():
            return f"permute-and-flip, {event.candidates:,} candidates"
        case Parallel():
            return f"side by side, {len(event.parts):,} groups"
        case _:
            return event.name


def _measured(release: Release) -> tuple[Measured, ...]:
    groups: dict[tuple[Attrs, bool], list[Measurement]] = {}
    for measurement in release.measurements:
        key = (measurement.query.attrs, isinstance(measurement.query, Marginal))
        groups.setdefault(key, []).append(measurement)
    return tuple(
        Measured(
            name=joined(attrs),
            attrs=attrs,
            numbers=sum(measurement.answer.size for measurement in group),
            whole=whole,
            stddev=min(measurement.stddev for measurement in group),
            misfit=_misfit(release, group),
        )
        for (attrs, whole), group in groups.items()
    )


def _misfit(release: Release, group: Sequence[Measurement]) -> float:
    squares, numbers = 0.0, 0
    counts = release.model.count(group[0].query.attrs)
    for measurement in group:
        gap = np.asarray(measurement.query.apply(counts), dtype=np.float64).reshape(-1) - measurement.answer
        squares += float(np.square(gap / measurement.stddev).sum())
        numbers += gap.size
    return math.sqrt(squares / max(numbers, 1))
