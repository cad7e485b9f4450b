"""How much of the grain, of public records and what was drawn from models of them, APERTURE takes.

    λ ~ o^{λ/λ₀} exp(−ε Σ_c w_c ‖x_c − μ_c(λ)‖₁ / 2Δ),   μ(λ) = (1 − λ) p + λ r,   λ ∈ {0, ¼, ½, ¾, 1} λ₀

λ₀ is what public data alone would take (estimate/public_grain.py), and o = λ₀/(1 − λ₀) its odds: where the
budget tells nothing, records that public data think far better than a tree are still likely to be taken.
Public data cannot know how far the private table is from them, and noisy answers know it only of the
marginals that were selected for being far off; so the curator is asked. One number moves by Δ₁ at most, and a
small budget tells it well.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from sidelight.curator import Curator
from sidelight.data.domain import Attrs, Domain
from sidelight.estimate.beliefs import Beliefs
from sidelight.estimate.blend import Blend
from sidelight.estimate.cliques import BYTES_PER_CELL
from sidelight.estimate.graphical import GraphicalModel
from sidelight.estimate.public_model import Prior
from sidelight.estimate.reweighting import Reweighting, evenness, lowered
from sidelight.measure.measurement import Measurement
from sidelight.privacy.budget import Cost
from sidelight.queries.query import Marginal
from sidelight.select.judgement import LeastError

_JUDGE_BY = 150
"""Most marginals by which blends are judged: of a larger workload, an even part."""
_PARTS = (0.0, 0.25, 0.5, 0.75, 1.0)


def chosen_blend(
    curator: Curator,
    model: GraphicalModel,
    prior: Prior,
    measurements: Sequence[Measurement],
    weights: Mapping[Attrs, float],
    *,
    cost: Cost,
    least_doubt: float,
    limit_mb: float,
) -> Blend:
    """The blend of model and grain, after the same answers, that is closest to the data."""
    assert prior.grain is not None
    # No tree stands between these records and the data, so there is no share of sampling error that it takes.
    beliefs = Beliefs(replace(prior, stray=1.0), model.total, least_doubt=least_doubt)
    records = Reweighting(prior.grain, model.total).follow(measurements, beliefs)
    most = lowered(prior.grain_share, evenness(records) / evenness(prior.grain))
    shares = [part * most for part in _PARTS]
    asked = judged(model.domain, weights, limit_mb=limit_mb)
    odds = math.log(most / (1 - most)) if 0 < most < 1 else 0.0
    error = LeastError(
        model, records, shares, weights={c: weights[c] for c in asked}, total=model.total,
        log_odds=[part * odds for part in _PARTS],
    )  # fmt: skip
    chosen = curator.choose([Marginal(c) for c in asked], error, cost)
    return Blend(model, records, shares[chosen])


def judged(domain: Domain, weights: Mapping[Attrs, float], *, limit_mb: float) -> list[Attrs]:
    """The marginals that the workload asks for, without their parts, and none larger than the model."""
    most = limit_mb * 2**20 / BYTES_PER_CELL
    parts = {part for attrs in weights for part in combinations(attrs, len(attrs) - 1)}
    whole = [attrs for attrs in weights if attrs not in parts and domain.size(attrs) <= most]
    return whole[:: max(1, len(whole) // _JUDGE_BY)] or [attrs for attrs in weights if len(attrs) == 1]
