"""What stands beside APERTURE's tree: other trees of the same public records, and the grain.

    t ← the mean of other trees, after the same answers                                         free
    r ← the grain, reweighted to the same answers                                               free
    (κ, λ) ~ e^{3κ/κ₀ + 3λ/λ₀} exp(−ε Σ_c w_c ‖x_c − μ_c(κ, λ)‖₁ / 2Δ)                         select
    μ(κ, λ) = (1 − λ) ((1 − κ) p + κ t) + λ r,   κ ∈ {0, ½, 1} κ₀,   λ ∈ {0, ½, 1} λ₀

Trees of other halves of the public records hold other marginals and err in other places, so their mean errs
less: κ₀ is their part of all trees. They become draws, since no one junction tree can hold them all. λ₀ is
what public data alone would take of the grain (public/grain.py), less where its weights became
uneven. So all of both is likely beforehand. But public data cannot know how far the private table is from
them, and noisy answers know it only of the marginals that were selected for being far off; so the curator is
asked. One number moves by Δ₁ at most, and a small budget tells it well.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations, product

from sidelight.curator.curator import Curator
from sidelight.data.domain import Attrs, Domain
from sidelight.measurement import Measurement
from sidelight.mechanisms.aperture.evidence import Beliefs
from sidelight.mechanisms.aperture.refitting import refitted
from sidelight.mechanisms.aperture.reweighting import Reweighting, evenness, lowered
from sidelight.models.graphical import GraphicalModel
from sidelight.models.mixture import Blend
from sidelight.models.particles import drawn_from, room_for
from sidelight.models.support import Support
from sidelight.privacy.budget import Cost
from sidelight.public.prior import LEAST_GRAIN, Prior
from sidelight.queries.query import Marginal
from sidelight.select.judgement import LeastError
from sidelight.trees.triangulation import BYTES_PER_CELL

_JUDGE_BY = 150
"""Most marginals by which blends are judged: of a larger workload, an even part."""
_PARTS = (0.0, 0.5, 1.0)
_FAITH = 3.0
"""Log-odds of taking all against none, of others and of grain alike, where the budget tells nothing."""


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
    """The blend of the tree with other trees and with grain, after the same answers, closest to the data."""
    others = _others(model, prior, measurements, least_doubt=least_doubt, limit_mb=limit_mb)
    grain, most_grain = _grain(model, prior, measurements, least_doubt=least_doubt)
    most_others = len(prior.others) / (len(prior.others) + 1)
    beside = [part for part in (others, grain) if part is not None]
    mixtures, log_odds = list[list[float]](), list[float]()
    for of_others, of_grain in product(_PARTS if others else (0.0,), _PARTS if grain else (0.0,)):
        rest = 1 - of_grain * most_grain
        shares = [rest * of_others * most_others] * bool(others) + [of_grain * most_grain] * bool(grain)
        mixtures.append([1 - sum(shares), *shares])
        log_odds.append(_FAITH * (of_others + of_grain))
    asked = judged(model.domain, weights, limit_mb=limit_mb)
    error = LeastError(
        [model, *beside], mixtures, weights={c: weights[c] for c in asked}, total=model.total,
        log_odds=log_odds,
    )  # fmt: skip
    _, *shares = mixtures[curator.choose([Marginal(c) for c in asked], error, cost)]
    taken = [(part, share) for part, share in zip(beside, shares, strict=True) if share]
    if not taken:
        return Blend(model, beside[0], 0.0)
    return Blend(model, Support.mixed(taken, total=model.total), sum(shares))


def _grain(
    model: GraphicalModel, prior: Prior, measurements: Sequence[Measurement], *, least_doubt: float
) -> tuple[Support | None, float]:
    """The grain after the same answers, and the most of it that public data would take."""
    if prior.grain is None:
        return None, 0.0
    # No tree stands between these records and the data, so there is no share of sampling error that it takes.
    beliefs = Beliefs(replace(prior, stray=1.0), model.total, least_doubt=least_doubt)
    grain = Reweighting(prior.grain, model.total).follow(measurements, beliefs)
    return grain, lowered(prior.grain_share, evenness(grain) / evenness(prior.grain))


def _others(
    model: GraphicalModel,
    prior: Prior,
    measurements: Sequence[Measurement],
    *,
    least_doubt: float,
    limit_mb: float,
) -> Support | None:
    """What is drawn from the other trees after the same answers; none where there are no others."""
    if not prior.others:
        return None
    room = max(LEAST_GRAIN, room_for(model.domain, limit_mb / 2)) // len(prior.others)
    drawn = list[tuple[Support, float]]()
    for place, other in enumerate(prior.others):
        tree = refitted(
            replace(prior, model=other), measurements, model.domain, total=model.total,
            least_doubt=least_doubt, limit_mb=limit_mb,
        )  # fmt: skip
        drawn.append((drawn_from(tree, room=room, seed=place), 1.0))
    return Support.mixed(drawn, total=model.total)


def judged(domain: Domain, weights: Mapping[Attrs, float], *, limit_mb: float) -> list[Attrs]:
    """The marginals that the workload asks for, without their parts, and none larger than the model."""
    most = limit_mb * 2**20 / BYTES_PER_CELL
    parts = {part for attrs in weights for part in combinations(attrs, len(attrs) - 1)}
    whole = [attrs for attrs in weights if attrs not in parts and domain.size(attrs) <= most]
    return whole[:: max(1, len(whole) // _JUDGE_BY)] or [attrs for attrs in weights if len(attrs) == 1]
