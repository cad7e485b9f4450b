"""One run of a mechanism on a public support, and its largest error: what the PMW-Pub scripts share."""

from functools import cache
from typing import Any

import numpy as np

from sidelight.curator.curator import Curator
from sidelight.data.table import Table
from sidelight.mechanisms.base import Mechanism
from sidelight.models.projections import Projections
from sidelight.models.support import Support
from sidelight.privacy.budget import Budget
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit
from sidelight.queries.workload import Workload
from sidelight.testing import SeededNoise

UNIT = Unit("replace")
EPSILONS = (0.1, 0.15, 0.2, 0.25, 0.5, 1.0)
SEEDS = range(5)


def run(
    mechanism: Mechanism, private: Table, public: Table, workload: Workload, *, epsilon: float, seed: int
) -> dict[str, float]:
    """Errors of one release at δ = 1/n², as shares of n. Exact answers are used: the figures are PRIVATE."""
    n = private.records
    budget = Budget(epsilon=epsilon, delta=1 / n**2)
    ledger = MemoryLedger(Promise(budget, UNIT, "experiment"))
    curator = Curator(
        private, allotment=mechanism.allotment(budget), unit=UNIT, ledger=ledger, noise=SeededNoise(seed)
    )
    # Every run of one script counts the same private table; counting it once is no part of what is compared.
    curator._counts.update(_exact(private, workload))
    release = mechanism.run(curator, workload, public=public)
    return errors(release.model, private, workload)


def errors(model: Any, private: Table, workload: Workload) -> dict[str, float]:
    exact = _exact(private, workload)
    n = private.records
    if isinstance(model, Support):
        projections = _projections(model, workload)
        counted = projections.count(model.weights)
        answers = {attrs: counted[projections.places[attrs]] for attrs in workload.attribute_sets}
    else:
        answers = {attrs: model.count(attrs).reshape(-1) for attrs in workload.attribute_sets}
    gaps = (
        np.concatenate(
            [np.abs(answers[attrs] - exact[attrs].reshape(-1)) for attrs in workload.attribute_sets]
        )
        / n
    )
    return {"max_error": float(gaps.max()), "mean_squared_error": float((gaps**2).mean())}


_kept: dict[int, tuple[Any, Any]] = {}


def _projections(model: Support, workload: Workload) -> Projections:
    key = id(workload)
    held = _kept.get(key)
    if held is None or held[0].shape != model.records.shape or not np.array_equal(held[0], model.records):
        _kept[key] = (model.records, Projections(model.domain, model.records, workload.attribute_sets))
    return _kept[key][1]


@cache
def _exact(private: Table, workload: Workload) -> dict[tuple[str, ...], np.ndarray]:
    wanted = list(workload.attribute_sets)
    return dict(zip(wanted, private.count_many(wanted), strict=True))
