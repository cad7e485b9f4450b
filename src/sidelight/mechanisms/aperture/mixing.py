"""What is released of APERTURE's tree and of that beside it: the arbiter's last question.

    t ← other trees, and public records, after the same answers;  u ← no relations, likewise    free
    r ← particles of p mixed with t, or of u, as the arbiter says                               select

Trees of other halves of the public records hold other marginals and err in other places; public records say
what no tree has room for; and where public relations do harm, answers without them say it better.

PRIVACY: ``Arbiter.shares`` asks the curator, which pays; all else is a function of public data and of noisy
answers.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sidelight.measurement import Measurement
from sidelight.mechanisms.aperture.arbiter import Arbiter
from sidelight.mechanisms.aperture.evidence import Beliefs
from sidelight.mechanisms.aperture.refitting import Fitted, beside, refitted
from sidelight.models.graphical import GraphicalModel
from sidelight.models.particles import particles, room_for, thinned
from sidelight.models.support import Support
from sidelight.privacy.budget import Cost
from sidelight.public.prior import LEAST_SAMPLE


@dataclass(frozen=True, eq=False)
class Mixed:
    """A tree, records drawn from it and from what stands beside it, or a tree without public relations."""

    model: GraphicalModel | Support
    beliefs: Beliefs
    share_beside: float | None = None
    """The share of other trees and of public records; None where there were neither."""
    is_bare: bool = False
    """Whether the tree without public relations was found to be closer than all others."""


def mixed(
    arbiter: Arbiter,
    tree: Fitted,
    measurements: Sequence[Measurement],
    cost: Cost,
    *,
    limit_mb: float,
    seed: int,
) -> Mixed:
    """The tree with what the arbiter takes of that beside it, or without public relations."""
    model, beliefs = tree
    prior, n = beliefs.prior, arbiter.total
    others = beside(prior, measurements, n, limit_mb=limit_mb)
    bare, bare_beliefs = refitted(prior.without_relations(prior.related), measurements, n, limit_mb=limit_mb)
    taken = arbiter.shares(model, others, bare, cost)
    if taken is None:
        return Mixed(bare, bare_beliefs, 0.0, is_bare=True)
    if not any(taken):
        return Mixed(model, beliefs, 0.0 if others else None)
    most, left = _room(model, limit_mb), 1 - sum(taken)
    parts = [(particles(model, room=max(1, round(most * left)), seed=seed), left)]
    for (one, _), share in zip(others, taken, strict=True):
        if share:
            parts.append((thinned(one, most=max(1, round(most * share)), seed=seed), share))
    return Mixed(Support.mixed(parts, total=n), beliefs, sum(taken))


def drawn(model: GraphicalModel | Support, *, limit_mb: float, seed: int) -> Support:
    """Weighted records: those of a mixture, or particles of a tree."""
    if isinstance(model, Support):
        return model
    return particles(model, room=_room(model, limit_mb), seed=seed)


def _room(model: GraphicalModel, limit_mb: float) -> int:
    """As many particles as the size limit holds, and at least ``LEAST_SAMPLE``: fewer err by chance."""
    return max(LEAST_SAMPLE, room_for(model.domain, limit_mb))
