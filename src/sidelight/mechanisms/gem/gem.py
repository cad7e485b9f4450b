"""GEM: generative networks with the exponential mechanism.

The rounds are in ``rounds.py``; GEM starts them from a network with random weights.

Liu, Vietri, Wu (2021), arXiv:2106.07153, algorithm 3; spec 7.3. Where we differ: whole marginals are
selected and measured, as in the authors' later library; ρ is split by an explicit share (spec 9.5, G2); one
moving average is released, and no network is chosen among several (G1, G3); T is at most the number of
marginals (G5); noise is the exact discrete Gaussian.

``form="margnet"``, the default, is that of Chen, Gong, Wang (2025), arXiv:2511.13893: the downward closure
may be selected from, by all errors of a marginal less the noise that it would be measured with, and every
measured marginal is fitted by least squares in each round. On the one table where we tried
both forms, its errors were far smaller.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sidelight.data.domain import Attrs, Domain
from sidelight.fit.generator import Generator
from sidelight.mechanisms.gem.rounds import NetworkRounds


@dataclass(frozen=True, kw_only=True)
class GEM(NetworkRounds):
    """Each round: select a marginal, measure it, train a generator network; no public data."""

    name = "gem"
    public_data = "unused"
    _trust = 0.0  # random weights deserve none

    def _start(self, domain: Domain, wanted: Sequence[Attrs], public: Any) -> Generator:
        return self._drawn(domain)
