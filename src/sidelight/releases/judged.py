"""The facts of a card about the error of its model: measured quality, calibration, acceptance."""

from functools import partial
from typing import Any

from sidelight.curator.curator import Curator
from sidelight.mechanisms.base import Outcome
from sidelight.progress import Progress
from sidelight.releases.plan import Plan
from sidelight.releases.quality import Quality
from sidelight.uncertainty.calibration import calibrated
from sidelight.uncertainty.chance import Chance
from sidelight.uncertainty.count_errors import CountErrors


def judged(plan: Plan, curator: Curator, outcome: Outcome, progress: Progress) -> dict[str, Any]:
    """Quality, calibration and verdict, measured with the budget that was set aside for them; or no facts."""
    if plan.mean_errors is None:
        return {}
    model, measurements, told = outcome.model, outcome.measurements, outcome.model_error
    is_public = plan.unit.total_is_public
    with progress.phase("quality"):
        measured = curator.mean_errors(plan.mean_errors, model)
        chance = Chance(
            model.domain, model.total, measurements, _records(plan, outcome), curator.total_stddev
        )
        guess = CountErrors(model, measurements, told, total_is_public=is_public, chance=chance)
        calibration = calibrated(guess.parts, plan.mean_errors, measured, model.domain, model.total)
        found: dict[str, Any] = {
            "quality": Quality.of(plan.mean_errors, measured, total=model.total),
            "calibration": calibration,
        }
        if plan.accept is not None:
            errors = CountErrors(model, measurements, told, calibration, total_is_public=is_public)
            found["acceptance"] = plan.accept.judged(
                plan.mean_errors, measured, model, total=outcome.total, cost=plan.set_aside,
                most=partial(_most_records, errors, plan.accept.confidence),
            )  # fmt: skip
    return found


def _records(plan: Plan, outcome: Outcome) -> dict[str, float]:
    """How many public records the model rests on, by attribute."""
    every, told = plan.public_records, outcome.public_attrs
    return {attr: outcome.public_share * number for attr, number in every.items() if attr in told}


def _most_records(errors: CountErrors, confidence: float, attr: str) -> list[float] | None:
    """The upper ends of the intervals of an attribute's counts; None where nothing private told of them.

    A release that hides a group must not be let off for it: what a model or public data say does not count.
    """
    bars = errors.bars((attr,))
    interval = bars.interval(confidence) if bars.source in ("private", "both") else None
    return None if interval is None else interval[1].tolist()
