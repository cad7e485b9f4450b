"""The rounds of GEM and of GEM-Pub, which train a generator network.

    G ← the start: random weights, or trained on public data
    for t = 1 … T:
        τ ~ exp(ε max|M_τ(D) − M_τ(G)| / 2)        over the workload's marginals not yet measured    select
        m_τ ← M_τ(D) + 𝒩(0, σ²)                                                                     measure
        e ← mean of e and the largest error of G on all that was measured
        up to 100 steps of Adam on the 100 largest errors among those of at least e/2               estimate
    release a moving average of the weights of the last T/2 rounds

PRIVACY: where training stops, and which network is released, is decided by noisy answers and by the settings.
The authors' code looks at true errors in both places (spec 9.5, G1 and G3).
"""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from sidelight import _check
from sidelight._memory import check_room
from sidelight.curator.curator import Curator
from sidelight.data.domain import Attrs, Domain
from sidelight.errors import SettingError, TooLargeError
from sidelight.fit.generator import (
    NOISE,
    Answers,
    Device,
    Generator,
    Loss,
    Target,
    Training,
    Weights,
    library,
    room_on,
)
from sidelight.measurement import Measurement, measuring
from sidelight.mechanisms.base import Mechanism, Outcome, Outlook, total_and_rest
from sidelight.mechanisms.candidates import check_asks_attributes, check_only_marginals, marginal_stddev
from sidelight.mechanisms.paper import Paper
from sidelight.models.product_mixture import Blocks
from sidelight.privacy.budget import Cost
from sidelight.privacy.event import Gaussian, Laplace
from sidelight.privacy.unit import Unit
from sidelight.queries.query import Marginal, expected_l1_noise
from sidelight.queries.workload import Workload
from sidelight.select.score import LargestError, Score, WeightedError

PAPERS = (
    Paper(
        authors=("Liu", "Vietri", "Wu"),
        title="Iterative methods for private synthetic data: unifying framework and new methods",
        year=2021,
        venue="NeurIPS",
        arxiv="2106.07153",
    ),
    Paper(
        authors=("Chen", "Gong", "Wang"),
        title="Beyond one-size-fits-all: neural networks for differentially private tabular data synthesis",
        year=2025,
        arxiv="2511.13893",
    ),
)
_GEM_SHARE = 0.67**2 / (0.67**2 + 0.33**2)
"""The share of ρ that the paper's α = 0.67 stands for (spec 9.5, G2)."""
_MARGNET_SHARE = 0.1
_FLOAT = 4
"""Bytes of a number in the network."""
_COPIES = 4
"""Tables of that size that a step holds at a time: the products, and their gradients."""


@dataclass(frozen=True, kw_only=True)
class NetworkRounds(Mechanism):
    """Each round: select a marginal, measure it, train the network on all that was measured."""

    papers = PAPERS

    rounds: int = 50
    """Most marginals to measure (T); fewer where the workload has fewer."""
    select_share: float | None = None
    """Share of each round that selects; the rest measures. By default 0.8 in GEM's form, 0.1 in MargNet's."""
    total_share: float = 0.02
    """Share of the budget that measures n, where n is not public."""
    form: Literal["gem", "margnet"] = "margnet"
    """Which paper's rounds: GEM's, or MargNet's, which selects smaller marginals too and fits all of them."""
    steps: int = 100
    """Most steps of training in a round."""
    rate: float = 5e-4
    """Learning rate at the start of a round."""
    at_once: int = 8
    """Most marginals in one step of training."""
    average: float = 0.9
    """The share of the moving average of weights that a round keeps, in the last half of the rounds."""
    batch: int = 1000
    """Rows of noise (B): the release is a mixture of so many product distributions."""
    latent: int = 128
    """Numbers of noise in a row."""
    width: int = 256
    """Outputs of a hidden layer; the paper has 1024."""
    layers: int = 2
    """Hidden layers."""
    seed: int = 0
    """Draws the first weights and the rows of noise; no noise that protects people depends on it."""
    device: Device = "cpu"
    """Where the network is trained."""

    def __post_init__(self) -> None:
        _check.positive_integer(
            rounds=self.rounds, steps=self.steps, at_once=self.at_once, batch=self.batch,
            latent=self.latent, width=self.width, layers=self.layers,
        )  # fmt: skip
        _check.share(select_share=self._share, total_share=self.total_share)
        _check.positive(rate=self.rate)
        _check.natural(seed=self.seed)
        if self.average != 0:
            _check.share(average=self.average)
        _check.one_of(("gem", "margnet"), form=self.form)
        if self.batch < 2:
            raise SettingError(
                f"batch must be at least 2, for the network to tell its rows apart; got {self.batch}."
            )
        _check.one_of(("cpu", "cuda"), device=self.device)

    _trust: ClassVar[float]
    """Errors, in σ of the noise, that MargNet's form lets the start have before it trains them away."""

    @abstractmethod
    def _start(self, domain: Domain, wanted: Sequence[Attrs], public: Any) -> Generator:
        """The network before anything was measured."""

    def _drawn(self, domain: Domain) -> Generator:
        """A network of this size with random weights."""
        return Generator.drawn(
            domain, batch=self.batch, latent=self.latent, hidden=[self.width] * self.layers,
            seed=self.seed, device=self.device,
        )  # fmt: skip

    def run(self, curator: Curator, workload: Workload, *, public: Any = None) -> Outcome:
        domain, wanted = curator.domain, self._candidates(curator.domain, workload)
        total_cost, _ = curator.allotment.split(self.total_share)
        n = curator.total(total_cost)
        rounds = min(self.rounds, len(wanted))
        select_cost, measure_cost = (curator.remaining / rounds).split(self._share)
        stddev = marginal_stddev(measure_cost, curator.unit)

        generator = self._start(domain, list(wanted), public)
        rng = np.random.default_rng([self.seed, 1])
        measurements: list[Measurement] = []
        targets: list[Target] = []
        level: float | None = None
        averaged: Weights | None = None
        for t in range(1, rounds + 1):
            answers = generator.answers(n)
            # SELECT a marginal that the network has wrong.
            # PRIVACY: which are left to select from follows from past selections alone.
            known = {target.attrs for target in targets}
            left = [Marginal(attrs) for attrs in wanted if attrs not in known]
            chosen = curator.select(left, self._score(answers, wanted, stddev), select_cost)
            # MEASURE it.
            measurements.append(curator.measure(chosen, measure_cost).against(answers))
            targets.append(self._target(measurements[-1], n))
            # ESTIMATE: train on all that was measured.
            if self.form == "gem":
                largest = generator.largest_error(targets)
                level = largest if level is None else (level + largest) / 2
            floor = self._trust * stddev / n if level is None else level / 2
            generator.train(targets, self._training(), floor=floor, rng=rng)
            if t > rounds // 2:
                averaged = _moved(averaged, generator.weights, self.average)

        assert averaged is not None  # the last round is in the last half
        return Outcome(
            generator.with_weights(averaged).mixture(n),
            tuple(measurements),
            curator.events,
            public_attrs=() if public is None else domain.attrs,
        )

    @property
    def _share(self) -> float:
        """The share of a round that selects."""
        if self.select_share is not None:
            return self.select_share
        return _GEM_SHARE if self.form == "gem" else _MARGNET_SHARE

    def _candidates(self, domain: Domain, workload: Workload) -> dict[Attrs, float]:
        """The marginals that may be measured, each with its weight in MargNet's score."""
        if self.form == "gem":
            return dict.fromkeys(_wanted(workload), 1.0)
        return workload.closure(domain)

    def _score(self, answers: Answers, wanted: Mapping[Attrs, float], stddev: float) -> Score:
        if self.form == "gem":
            return LargestError(answers)
        return WeightedError(answers, weights=wanted, cell_penalty=expected_l1_noise(1, stddev))

    def _training(self) -> Training:
        loss: Loss = "largest" if self.form == "gem" else "all"
        return Training(steps=self.steps, rate=self.rate, loss=loss, at_once=self.at_once)

    def _target(self, made: Measurement, n: float) -> Target:
        # Only shares can be reached (paper); squares of numbers far beyond would drown all others.
        low, high = (0.0, 1.0) if self.form == "gem" else (-1.0, 2.0)
        return Target(made.query.attrs, np.clip(made.answer / n, low, high))

    def check(self, domain: Domain, workload: Workload, public: Any) -> None:
        library(self.device)
        super().check(domain, workload, public)
        check_only_marginals(workload, name=self.name)
        check_asks_attributes(workload)
        self._check_room(domain, workload)

    def _check_room(self, domain: Domain, workload: Workload) -> None:
        """Refuse marginals that a step of training could not hold, before anything is charged."""
        blocks = Blocks.of(domain)
        sizes = {
            attrs: _COPIES * _FLOAT * (self.batch * sum(blocks.sides(attrs)) + domain.size(attrs))
            for attrs in _wanted(workload)
        }
        widest = max(sizes, key=sizes.__getitem__)
        most = sum(sorted(sizes.values())[-self.at_once :])
        what = f"training on {self.at_once} marginals such as {' × '.join(widest)}"
        try:
            check_room(most, what, room=room_on(self.device))
        except TooLargeError as error:
            raise TooLargeError(
                f"{error} Ask for smaller marginals, coarsen these attributes, or lower at_once "
                f"(now {self.at_once}) or batch (now {self.batch})."
            ) from error

    def noisiest(
        self, domain: Domain, workload: Workload, *, allotment: Cost, unit: Unit
    ) -> Iterable[Gaussian | Laplace]:
        total, rest = total_and_rest(allotment, self.total_share, unit)
        costs = [total, (rest / self._most(domain, workload)).split(self._share)[1]]
        return [measuring(Marginal(()), cost, unit) for cost in costs if cost]

    def outlook(self, domain: Domain, workload: Workload, *, allotment: Cost, unit: Unit) -> Outlook:
        rounds = self._most(domain, workload)
        _, rest = total_and_rest(allotment, self.total_share, unit)
        width = Blocks.of(domain).width
        inputs = [self.latent + self.width * layer for layer in range(self.layers + 1)]
        network = sum(inputs[:-1]) * self.width + inputs[-1] * width
        return Outlook(
            measurements=rounds,
            stddev=marginal_stddev((rest / rounds).split(self._share)[1], unit),
            model_bytes=8 * self.batch * width + _FLOAT * network,
            counting_bytes=8 * sum(map(domain.size, self._candidates(domain, workload))),
            notes=(
                f"the network is trained for up to {self.steps} steps in each of {rounds} rounds; with many "
                "rounds a GPU is worth while (device='cuda')",
            ),
        )

    def _most(self, domain: Domain, workload: Workload) -> int:
        return min(self.rounds, len(self._candidates(domain, workload)))


def _wanted(workload: Workload) -> list[Attrs]:
    """The workload's marginals, each once."""
    return [attrs for attrs in workload.attribute_sets if attrs]


def _moved(averaged: Weights | None, weights: Weights, kept: float) -> Weights:
    """The moving average of weights after one more round; it starts at the first."""
    if averaged is None:
        return weights
    return {
        name: array if name == NOISE else kept * averaged[name] + (1 - kept) * array
        for name, array in weights.items()
    }
