"""GEM-Pub: GEM that starts from a network trained on public data.

    G ← random weights, trained on the public table's marginals; or the network of an earlier release
    then the rounds of GEM, with the same rows of noise

Training on public data costs nothing. Liu, Vietri, Wu (2021), arXiv:2106.07153, section 5; spec 7.3. Where we
differ: the training on public data takes random marginals in each step, with a squared error, for a fixed
number of steps; in MargNet's form, a marginal that noise alone may have put as far off is not followed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sidelight import _check
from sidelight.data.compact import count_compactly
from sidelight.data.domain import Attrs, Domain
from sidelight.fit.generator import Generator, Target, Training
from sidelight.mechanisms.gem.rounds import NetworkRounds
from sidelight.models.product_mixture import ProductMixture


@dataclass(frozen=True, kw_only=True)
class GEMPub(NetworkRounds):
    """GEM from a network that public data have trained, or from that of an earlier release."""

    name = "gem-pub"
    public_data = "needed"
    _trust = 1.0  # what noise alone can explain does not contradict public data

    public_steps: int = 2000
    """Steps of training on the public table, before the first round."""
    public_rate: float = 2e-3
    """Learning rate at the start of that training."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _check.positive_integer(public_steps=self.public_steps)
        _check.positive(public_rate=self.public_rate)

    def _start(self, domain: Domain, wanted: Sequence[Attrs], public: Any) -> Generator:
        if isinstance(public, ProductMixture):
            return Generator.of(public, domain, device=self.device)
        generator = self._drawn(domain)
        counts = count_compactly(public, wanted)
        targets = [Target(attrs, counts[attrs].wide().reshape(-1) / public.records) for attrs in wanted]
        how = Training(steps=self.public_steps, rate=self.public_rate, loss="all", at_once=self.at_once)
        generator.train(targets, how, rng=np.random.default_rng([self.seed, 0]))
        return generator

    def check_public(self, domain: Domain, public: Any) -> None:
        if isinstance(public, ProductMixture):
            Generator.of(public, domain, device=self.device)
        else:
            super().check_public(domain, public)
