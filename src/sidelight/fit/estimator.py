"""Estimators: what fits a model to noisy answers, in mechanisms that have a choice."""

from collections.abc import Sequence
from typing import Any, Protocol

from sidelight.data.domain import Domain
from sidelight.measurement import Measurement


class Estimator(Protocol):
    """From all measurements so far to a model, perhaps from the model that was fitted to some of them."""

    def estimate(
        self,
        domain: Domain,
        measurements: Sequence[Measurement],
        *,
        total: float | None = None,
        start: Any = None,
    ) -> Any:
        """The model; its total is the one given, or what the measurements say."""
        ...
