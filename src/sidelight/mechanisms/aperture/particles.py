"""APERTURE beyond its tree: many more marginals, followed by particles drawn from the tree.

    r ← particles of p                                                                          free
    until the budget is spent:
        K ← the number of marginals that promises most;  each gets a K-th of what is left       free
        c₁ … c_b ~ exp(ε w_c EI_c(‖M_c(D) − M_c(r)‖₁) / 2Δ)    one after another, none twice    select
        y_c ← M_c(D) + 𝒩(0, σ²)  for each of them                                               measure
        r ← argmin  n KL(r ‖ q) + Σ_c (s_c/2σ_c²) ‖n r_c − y_c‖²   over the weights             estimate

A tree within a size limit holds some dozens of marginals, and the more budget there is the more that leaves
unsaid. Reweighted particles follow any number of them, inside a tree or not. They can only say what the
tree may say, so the tree comes first.

A batch is selected by one look at all candidates: the model is the same for all of it, and every single
selection is paid for.
"""

from collections.abc import Mapping, Sequence
from functools import partial

from sidelight.curator.curator import Curator
from sidelight.data.domain import Attrs
from sidelight.measurement import Measurement
from sidelight.mechanisms.aperture.evidence import Beliefs
from sidelight.mechanisms.aperture.reweighting import Reweighting
from sidelight.mechanisms.aperture.worth import heard
from sidelight.mechanisms.candidates import marginal_stddev
from sidelight.queries.query import Marginal
from sidelight.select.improvement import ExpectedImprovement

_BATCHES = 3
"""In how many batches the marginals are measured that were planned at first."""
_PASSES, _LAST_PASSES = 2, 30
"""Most passes over all answers after a batch, and at the end."""


def measured_beyond(
    curator: Curator,
    particles: Reweighting,
    beliefs: Beliefs,
    weights: Mapping[Attrs, float],
    *,
    candidates: Sequence[Attrs],
    cells: float,
    most: int,
    select_share: float,
) -> list[Measurement]:
    """Spend what is left on marginals that the particles err on; weights are at most 1.

    All new ones together have at most so many ``cells``: every answer is kept, and followed again and again.
    """
    n, unit, made = beliefs.total, curator.unit, list[Measurement]()
    size = curator.domain.size
    particles.rest(beliefs)
    particles.settle(beliefs, passes=_PASSES)
    left, batch = min(most, len(candidates)), 0
    while curator.remaining:
        # One that was measured before is kept already, so a repeat is always allowed.
        most_cells = cells / (batch or -(-left // _BATCHES))
        allowed = [c for c in candidates if c in beliefs.held or size(c) <= most_cells]
        stddev = marginal_stddev((curator.remaining / left).split(select_share)[1], unit)
        allowed = heard(particles.support, allowed, stddev=stddev)
        left = min(left, len(allowed))
        batch = min(batch or -(-left // _BATCHES), left)
        select_cost, measure_cost = (curator.remaining / left).split(select_share)
        # SELECT a batch of marginals.
        score = ExpectedImprovement(
            particles, partial(beliefs.prospect, weights=weights),
            stddev=marginal_stddev(measure_cost, unit), total=n,
        )  # fmt: skip
        chosen = curator.select_many([Marginal(c) for c in allowed], score, select_cost, number=batch)
        # MEASURE them.
        answers = [curator.measure(marginal, measure_cost).against(particles) for marginal in chosen]
        # ESTIMATE.
        cells -= sum(size(marginal.attrs) for marginal in chosen if marginal.attrs not in beliefs.held)
        for answer in answers:
            beliefs.add(answer)
        made += answers
        left -= batch
        particles.settle(beliefs, passes=_PASSES if curator.remaining else _LAST_PASSES)
    return made
