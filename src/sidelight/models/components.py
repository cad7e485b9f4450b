"""The factored histogram: a product of component tables that merge when a query joins them.

Multiplicative weights from the uniform start give A(x) ∝ exp(Σ_j l_j q_j(x)): attributes that no
measured query joins, directly or through others, are independent. So one table for each connected
component of attributes says all that the histogram says:

    A = n · Π_c p_c,      q(A) = n · Π_c Σ_{x_c} q_c(x_c) p_c(x_c)        for a query that factorises

Memory is the sum of the tables' sizes. Hardt, Ligett, McSherry (2012), section 3.2. Where we differ: n
stands once, not in every factor (spec 9.3, M20).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, reduce

import numpy as np

from sidelight.data.domain import Attrs, Domain, joined
from sidelight.data.impossible import possible_cells
from sidelight.data.table import Table
from sidelight.errors import ReleaseError
from sidelight.models.evidence import Evidence, along
from sidelight.models.fold import Fold
from sidelight.models.model import Array, ModelState
from sidelight.models.rounding import round_to


class _Component(Fold):
    """The distribution of one component; its marginals are kept, since they serve many rounds."""

    def __init__(self, attrs: Attrs, weights: Array) -> None:
        super().__init__(attrs, weights)
        self._kept: dict[Attrs, Array] = {}

    def count(self, attrs: Attrs) -> Array:
        known = self._kept.get(attrs)
        if known is None:
            known = self._kept[attrs] = super().count(attrs)
        return known


@dataclass(frozen=True, eq=False)
class Components:
    """A product of distributions over disjoint attributes, scaled to ``total`` once.

    >>> model = Components.uniform(Domain.of({"a": 2, "b": 2, "c": 3}), total=12.0)
    >>> model.count(("c", "a"))
    array([[2., 2.],
           [2., 2.],
           [2., 2.]])
    """

    domain: Domain
    components: tuple[_Component, ...] = field(repr=False)
    """Each sums to 1; together they hold every attribute once."""
    total: float

    @classmethod
    def uniform(cls, domain: Domain, *, total: float) -> "Components":
        """n · uniform, the start: each attribute is a component, joined only by impossible combinations."""
        parts = []
        for attrs in joined_by_impossible(domain):
            possible = possible_cells(domain, attrs)
            parts.append(_Component(attrs, possible / possible.sum()))
        return cls(domain, tuple(parts), total)

    @cached_property
    def _of(self) -> dict[str, _Component]:
        """Attribute to the component that holds it."""
        return {attr: component for component in self.components for attr in component.attrs}

    def _touched(self, attrs: Attrs) -> list[_Component]:
        try:
            return list(
                {id(component): component for component in [self._of[attr] for attr in attrs]}.values()
            )
        except KeyError:
            self.domain.require(attrs)
            raise

    def cells_if_joined(self, attrs: Attrs) -> int:
        """Cells of the component that a query on these attributes would merge."""
        touched = self._touched(attrs)
        return touched[0].size if len(touched) == 1 else math.prod(component.size for component in touched)

    def count(self, attrs: Attrs) -> Array:
        touched = self._touched(attrs)
        if len(touched) == 1:
            return touched[0].count(attrs) * self.total
        apart = [tuple(attr for attr in attrs if self._of[attr] is component) for component in touched]
        parts = [component.count(part) for component, part in zip(touched, apart, strict=True)]
        joint = reduce(np.multiply.outer, parts, np.array(self.total))
        together = sum(apart, ())
        if together == attrs:
            return joint
        return np.ascontiguousarray(joint.transpose([together.index(attr) for attr in attrs]))

    def refitted(self, attrs: Attrs, refit: Callable[[Fold], None]) -> "Components":
        """The model after ``refit`` has changed the joint distribution of these attributes.

        Their components are merged into one; ``refit`` changes it in place, scaled to the total.
        """
        touched = self._touched(attrs)
        together: Attrs = sum((component.attrs for component in touched), ())
        joint = reduce(np.multiply.outer, (component.weights for component in touched), np.array(self.total))
        merged = Fold(together, joint)
        refit(merged)
        fitted = _Component(together, merged.weights / merged.weights.sum())
        apart = tuple(component for component in self.components if component not in touched)
        return Components(self.domain, (*apart, fitted), self.total)

    def given(self, evidence: Evidence) -> "Components | None":
        """Each component under its part of a condition."""
        parts, left = [], self.total
        for component in self.components:
            weights = component.weights * along(component.attrs, evidence)
            share = float(weights.sum())
            if not share > 0:
                return None
            parts.append(_Component(component.attrs, weights / share))
            left *= share
        return Components(self.domain, tuple(parts), left)

    def sample(self, records: int, *, seed: int) -> Table:
        rng = np.random.default_rng(seed)
        codes = np.empty((records, len(self.domain)), dtype=np.int64)
        column = {attr: index for index, attr in enumerate(self.domain.attrs)}
        for component in sorted(self.components, key=lambda component: column[component.attrs[0]]):
            counts = round_to(component.weights.reshape(-1), records, rng)
            cells = rng.permutation(np.repeat(np.arange(counts.size), counts))
            values = np.unravel_index(cells, component.weights.shape)
            for attr, drawn in zip(component.attrs, values, strict=True):
                codes[:, column[attr]] = drawn
        return Table.of_codes(self.domain, codes)

    def state(self) -> ModelState:
        flat = np.concatenate([component.weights.reshape(-1) for component in self.components])
        attrs = [list(component.attrs) for component in self.components]
        return ModelState("components", {"total": self.total, "attrs": attrs}, {"weights": flat})

    @classmethod
    def from_state(cls, domain: Domain, state: ModelState) -> "Components":
        """The model that ``state`` wrote down."""
        components, start = [], 0
        weights = state.weights()
        held = [attr for names in state.meta["attrs"] for attr in names]
        if sorted(held) != sorted(domain.attrs):
            raise ReleaseError("a saved model's components must hold every attribute once; it was edited.")
        for names in state.meta["attrs"]:
            shape = domain.project(names).shape
            end = start + math.prod(shape)
            part = weights[start:end]
            if not np.isclose(part.sum(), 1.0, rtol=1e-6):
                raise ReleaseError("each component of a saved model must add up to 1; it was edited.")
            components.append(_Component(tuple(names), part.reshape(shape)))
            start = end
        if start != len(weights):
            raise ReleaseError("a saved model has weights that belong to no component; it was edited.")
        return cls(domain, tuple(components), state.total)


def joined_by_impossible(domain: Domain) -> list[Attrs]:
    """Groups of attributes that impossible combinations join, directly or through others.

    >>> from sidelight.data.domain import Combination
    >>> domain = Domain(("a", "b", "c"), (2, 2, 2), (Combination(("c", "a"), ((0,), (1,))),))
    >>> joined_by_impossible(domain)
    [('a', 'c'), ('b',)]
    """
    alone = [(attr,) for attr in domain.attrs]
    groups = joined([*alone, *(combination.attrs for combination in domain.impossible)])
    return sorted((domain.canonical(attrs) for attrs, _ in groups), key=domain.index)
