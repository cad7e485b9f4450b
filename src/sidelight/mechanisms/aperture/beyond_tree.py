"""APERTURE beyond its tree: many more marginals, followed by particles drawn from the tree.

    r ← particles of p                                                                          free
    three times:
        c₁ … c_b ~ exp(ε w_c EI_c(‖M_c(D) − M_c(r)‖₁) / 2Δ)    one after another, none twice    select
        y_c ← M_c(D) + 𝒩(0, σ²)  for each of them                                               measure
        r ← argmin  n KL(r ‖ q) + Σ_c (s_c/2σ_c²) ‖n r_c − y_c‖²   over the weights             estimate

A tree within a size limit holds some dozens of marginals, and the more budget there is the more that leaves
unsaid. Reweighted particles follow any number of them, inside a tree or not. They can only say what the
tree may say, so the tree comes first.

A batch is selected by one look at all candidates: the model is the same for all of it, and every single
selection is paid for.
"""

from collections.abc import Mapping

from sidelight.curator.curator import Curator
from sidelight.data.domain import Attrs
from sidelight.measurement import Measurement
from sidelight.mechanisms.aperture.evidence import Beliefs
from sidelight.mechanisms.aperture.reweighting import LAST_PASSES, PASSES, Reweighting
from sidelight.mechanisms.aperture.worth import heard_or_single
from sidelight.mechanisms.candidates import marginal_stddev
from sidelight.models.support import Support
from sidelight.queries.query import Marginal
from sidelight.select.improvement import ExpectedImprovement
from sidelight.trees.triangulation import BYTES_PER_CELL

_BATCHES = 3
"""In how many batches the marginals are measured."""


def measured_beyond(
    curator: Curator,
    drawn: Support,
    beliefs: Beliefs,
    weights: Mapping[Attrs, float],
    *,
    most: int,
    select_share: float,
    limit_mb: float,
) -> tuple[Support, list[Measurement]]:
    """Spend what is left on marginals that the particles err on; weights, one a candidate, are at most 1.

    All new ones together have at most twice the cells of the size limit: every answer is kept, and followed
    again and again.
    """
    particles, cells = Reweighting(drawn, beliefs.total), 2 * limit_mb * 2**20 / BYTES_PER_CELL
    made, size, left = list[Measurement](), curator.domain.size, min(most, len(weights))
    batch = -(-left // _BATCHES)
    particles.rest(beliefs)
    while curator.remaining:
        # One that was measured before is kept already, so a repeat is always allowed.
        fitting = [c for c in weights if c in beliefs.held or size(c) <= cells / batch]
        stddev = marginal_stddev((curator.remaining / left).split(select_share)[1], curator.unit)
        allowed = [Marginal(c) for c in heard_or_single(particles.support, fitting, stddev=stddev)]
        left = min(left, len(allowed))
        select_cost, measure_cost = (curator.remaining / left).split(select_share)
        # SELECT a batch of marginals.
        score = ExpectedImprovement(
            particles, lambda c, counts: beliefs.prospect(c, counts, weight=weights[c]),
            stddev=marginal_stddev(measure_cost, curator.unit), total=beliefs.total,
        )  # fmt: skip
        chosen = curator.select_many(allowed, score, select_cost, number=min(batch, left))
        # MEASURE them.
        answers = [curator.measure(marginal, measure_cost).against(particles) for marginal in chosen]
        # ESTIMATE.
        cells -= sum(size(marginal.attrs) for marginal in chosen if marginal.attrs not in beliefs.held)
        for answer in answers:
            beliefs.add(answer)
        made += answers
        left -= len(chosen)
        particles.settle(beliefs, passes=PASSES if curator.remaining else LAST_PASSES)
    return particles.support, made
