"""A distribution that is a product of small tables: p(x) = exp(Σ θ_c(x_c)) / Z.

McKenna, Sheldon, Miklau (2019), "Graphical-model based estimation and inference for
differential privacy", arXiv:1901.09136. Attributes that no potential touches are uniform and
independent of the rest; combinations declared impossible have no mass.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sidelight import _check
from sidelight._foreign import check_size
from sidelight.data.domain import Attrs, Domain
from sidelight.data.impossible import Mask, masks
from sidelight.data.table import Table
from sidelight.errors import InputError, SchemaError, WorkloadError
from sidelight.models.evidence import Evidence
from sidelight.models.model import ModelState
from sidelight.models.sampling import codes_along_tree
from sidelight.trees.arrays import arrays
from sidelight.trees.junction_tree import JunctionTree
from sidelight.trees.marginals import Answers, marginals_of
from sidelight.trees.sum_product import Calibrator

Array = NDArray[np.float64]
Potentials = Mapping[Attrs, Array]
"""Attribute set to log-potential, axes in the order of the attributes named."""
Impossible = Mask
"""Attributes, and true at each combination of their values that cannot be."""

_BYTES_PER_CELL = 16
"""Least memory for summing a tree, for each cell."""
_NOTHING = 1e-100
"""A probability below this counts as 0."""


@dataclass(frozen=True)
class Fit:
    """How the fit of a model went."""

    objective: float
    """How far the model is from the measurements, in units of their noise."""
    steps: int
    """How often the tree was summed."""
    converged: bool
    """Whether it stopped by itself, and not at the most steps allowed."""


@dataclass(frozen=True, eq=False)
class GraphicalModel:
    """A Markov random field over a domain, scaled to a total.

    >>> model = GraphicalModel.uniform(Domain.of({"a": 2, "b": 3}), total=12.0)
    >>> model.count(("b",)), model.tree.cells
    (array([4., 4., 4.]), 5)
    """

    domain: Domain
    total: float
    potentials: Potentials = field(repr=False)
    impossible: tuple[Impossible, ...] = field(default=(), repr=False)
    """Combinations without mass, besides those that the domain declares impossible."""
    fit: Fit | None = None
    arrays: str = "numpy"
    """The array library that sums the tree; see ``sidelight.trees.arrays``."""

    def __post_init__(self) -> None:
        _check.positive(total=self.total)
        for attrs, potential in self.potentials.items():
            check_table(self.domain, attrs, potential.shape, "potential")
            if not np.isfinite(potential).all():
                raise WorkloadError(
                    f"the potential on {' × '.join(attrs)} must be finite; use impossible for zeros."
                )
        for attrs, mask in self.impossible:
            check_table(self.domain, attrs, mask.shape, "constraint")

    @classmethod
    def uniform(cls, domain: Domain, *, total: float) -> "GraphicalModel":
        """The uniform model, before anything was measured."""
        return cls(domain, total, {})

    @cached_property
    def forbidden(self) -> tuple[Impossible, ...]:
        """All combinations without mass: the domain's and the model's own."""
        return (*masks(self.domain), *self.impossible)

    @cached_property
    def tree(self) -> JunctionTree:
        """The junction tree of the potentials and the constraints."""
        return JunctionTree.of(self.domain, [*self.potentials, *(attrs for attrs, _ in self.impossible)])

    @property
    def log_partition(self) -> float:
        """ln Z, the logarithm of the sum of exp(Σ θ) over all possible cells."""
        return calibrated(self).log_partition

    def count(self, attrs: Attrs) -> Array:
        """The marginal on these attributes, axes in the order asked, summing to the total."""
        ((_, counts),) = self.count_each([attrs])
        return counts

    def count_each(self, wanted: Sequence[Attrs]) -> Iterator[tuple[int, Array]]:
        """Many marginals, in the order of least work, each with its index in ``wanted``."""
        asked = [tuple(attrs) for attrs in wanted]
        for attrs in asked:
            self.domain.require(attrs)
            if len(set(attrs)) < len(attrs):
                raise WorkloadError(f"a marginal names an attribute twice: {', '.join(attrs)}.")
        return marginals_of(Answers(self.tree, calibrated(self).cliques), asked, total=self.total)

    def given(self, evidence: Evidence) -> "GraphicalModel | None":
        """The same field with the evidence as potentials; the records left are n Z′/Z."""
        potentials, impossible = dict(self.potentials), list(self.impossible)
        for attr, likelihood in evidence.items():
            is_out = ~(likelihood > 0)
            if is_out.any():
                impossible.append(((attr,), is_out))
            told = np.log(np.where(is_out, 1.0, likelihood))
            potentials[attr,] = potentials.get((attr,), np.zeros(told.shape)) + told
        before = self.log_partition
        conditioned = replace(self, potentials=potentials, impossible=tuple(impossible), fit=None)
        try:
            share = math.exp(conditioned.log_partition - before)
        except InputError:  # no cell keeps any mass
            return None
        return replace(conditioned, total=self.total * share) if share > 0 else None

    def sample(self, records: int, *, seed: int) -> Table:
        """Synthetic records, drawn clique by clique with little more than rounding error."""
        _check.natural(records=records)
        marginal = Answers(self.tree, calibrated(self).cliques).marginal
        codes = codes_along_tree(self.tree, marginal, records, np.random.default_rng(seed))
        return Table.of_codes(self.domain, codes)

    def state(self) -> ModelState:
        """Potentials and constraints: all that is needed to load the model again."""
        kept: dict[str, NDArray[Any]] = {f"potential_{i}": p for i, p in enumerate(self.potentials.values())}
        kept |= {f"impossible_{i}": mask for i, (_, mask) in enumerate(self.forbidden)}
        meta = {
            "total": self.total,
            "potentials": [list(attrs) for attrs in self.potentials],
            "impossible": [list(attrs) for attrs, _ in self.forbidden],
        }
        if self.fit is not None:
            meta["fit"] = {
                "objective": self.fit.objective,
                "steps": self.fit.steps,
                "converged": self.fit.converged,
            }
        return ModelState("graphical", meta, kept)

    @classmethod
    def from_state(cls, domain: Domain, state: ModelState) -> "GraphicalModel":
        """The model that ``state`` wrote down."""
        meta, kept = state.meta, state.arrays

        def shaped(kind: str, index: int, attrs: Attrs) -> NDArray[Any]:
            return kept[f"{kind}_{index}"].reshape(domain.project(attrs).shape)

        potentials = [tuple(attrs) for attrs in meta["potentials"]]
        impossible = [tuple(attrs) for attrs in meta["impossible"]]
        # Small tables can make a tree of any size: every pair of a hundred attributes is one huge clique.
        cells = JunctionTree.of(domain, [*potentials, *impossible]).cells
        check_size(_BYTES_PER_CELL * cells, "the tree of this model")
        return cls(
            domain,
            state.total,
            {a: shaped("potential", i, a).astype(np.float64) for i, a in enumerate(potentials)},
            tuple((a, shaped("impossible", i, a).astype(np.bool_)) for i, a in enumerate(impossible)),
            fit=_fit(meta["fit"]) if "fit" in meta else None,
        )


def _fit(meta: Mapping[str, Any]) -> Fit:
    return Fit(float(meta["objective"]), int(meta["steps"]), bool(meta["converged"]))


class Calibrated(NamedTuple):
    """p on each clique of a model's tree, and ln Z."""

    cliques: tuple[Array, ...]
    log_partition: float


@lru_cache(maxsize=1)
def calibrated(model: GraphicalModel) -> Calibrated:
    """The model's clique marginals. Only those of the model used last are kept.

    A run has half a dozen models, each as large as its limit allows, and uses one of them at a time.
    """
    library = arrays(model.arrays)
    fixed = [*model.potentials.items(), *forbidding(model.forbidden)]
    calibrator = Calibrator(model.tree, (), library=library, fixed=fixed)
    log_partition = calibrator.run(())
    cliques = [library.numpy(table) for table in calibrator.clique_marginals()]
    for table in cliques:
        # Products of such numbers leave the normal range, where processors are many times slower.
        table[table < _NOTHING] = 0.0
    return Calibrated(tuple(cliques), log_partition)


def forbidding(impossible: Iterable[Impossible]) -> list[tuple[Attrs, Array]]:
    """Constraints as potentials: −∞ at impossible combinations, and 0 elsewhere."""
    return [(attrs, np.where(mask, -np.inf, 0.0)) for attrs, mask in impossible]


def check_table(domain: Domain, attrs: Attrs, shape: tuple[int, ...], what: str) -> None:
    """Refuse a table that does not fit the attributes it is named after."""
    expected = domain.project(attrs).shape
    if shape != expected:
        raise SchemaError(f"the {what} on {' × '.join(attrs)} must have shape {expected}; got {shape}.")
