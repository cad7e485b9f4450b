"""The graphical model of maximum likelihood for given marginals.

    minimise  ln Z(θ) − Σ_c ⟨θ_c, t_c⟩ + Σ_c ‖θ_c‖² / 2w      over the potentials θ

Its gradient is p_c − t_c + θ_c/w: where the targets t are marginals of one distribution, the model
reproduces them, to within θ/w. The ridge w keeps θ finite where a target is 0, and where targets
contradict each other. Minimised by L-BFGS, from the independent model; the tree is summed once a step.

The gradient of a cell is as small as its share, so rare values hardly move: a value that one public
record in 10,000 shows keeps whatever conditional distribution it started with. That is no loss until
private data give the value half of all records. So the fit ends with sweeps of iterative proportional
fitting, θ_c ← θ_c + ln(t_c/p_c), one marginal after the other, which corrects rare and common cells alike.

What the domain declares impossible gets no mass, and is taken out of the targets that would give it some.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.data.domain import Attrs, Domain
from sidelight.data.impossible import Mask, masks
from sidelight.estimate.arrays import arrays
from sidelight.estimate.graphical import GraphicalModel, Potentials, forbidding
from sidelight.estimate.inference import Calibrator, inner_order
from sidelight.estimate.junction_tree import JunctionTree

Array = NDArray[np.float64]

_CLOSE = 0.05
"""Proportional fitting stops when every cell is within this of its target, as a ratio."""


def most_likely(
    domain: Domain,
    targets: Mapping[Attrs, Array],
    *,
    start: Potentials | None = None,
    steps: int = 400,
    sweeps: int = 0,
    ridge: float = 1e7,
    tolerance: float = 1e-6,
) -> GraphicalModel:
    """The model with these marginals, each a table of shares that sums to 1; its total is 1.

    At most ``sweeps`` sweeps of proportional fitting follow the steps.

    >>> model = most_likely(Domain.of({"a": 2, "b": 2}), {("a",): np.array([0.75, 0.25])})
    >>> model.count(("b", "a")).round(3).tolist()
    [[0.375, 0.125], [0.375, 0.125]]
    """
    from scipy.optimize import minimize

    if not targets:
        return GraphicalModel.uniform(domain, total=1.0)
    sets = {attrs: inner_order(domain, attrs) for attrs in targets}
    forbidden = masks(domain)
    turned = {
        attrs: np.transpose(_possible(attrs, targets[attrs], forbidden), [attrs.index(a) for a in inner])
        for attrs, inner in sets.items()
    }
    tree, fixed = JunctionTree.of(domain, sets), forbidding(forbidden)
    calibrator = Calibrator(tree, list(sets.values()), library=arrays("numpy"), fixed=fixed)
    ends = np.cumsum([0, *(table.size for table in turned.values())])
    target = np.concatenate([table.reshape(-1) for table in turned.values()])

    def tables(theta: Array) -> list[Array]:
        return [
            theta[low:high].reshape(table.shape)
            for low, high, table in zip(ends[:-1], ends[1:], turned.values(), strict=True)
        ]

    def dual(theta: Array) -> tuple[float, Array]:
        log_partition = calibrator.run(tables(theta))
        shares = np.concatenate([np.reshape(table, -1) for table in calibrator.marginals()])
        value = log_partition - theta @ target + theta @ theta / (2 * ridge)
        return float(value), shares - target + theta / ridge

    first = np.concatenate(
        [_first(attrs, sets[attrs], table, start or {}).reshape(-1) for attrs, table in turned.items()]
    )
    options: Any = {"maxiter": steps, "maxcor": 10, "gtol": tolerance, "ftol": 1e-12, "maxls": 30}
    found = minimize(dual, first, jac=True, method="L-BFGS-B", options=options)
    fitted = _swept(calibrator, list(turned.values()), tables(np.array(found.x)), list(sets), sweeps)
    potentials = {}
    for (attrs, inner), table in zip(sets.items(), fitted, strict=True):
        canonical = domain.canonical(attrs)
        back = np.transpose(table, [inner.index(a) for a in canonical])
        potentials[canonical] = np.ascontiguousarray(back - back.max())
    return GraphicalModel(domain, 1.0, potentials)


def _swept(
    calibrator: Calibrator, targets: Sequence[Array], theta: list[Array], sets: Sequence[Attrs], sweeps: int
) -> list[Array]:
    """Potentials after sweeps of iterative proportional fitting, fewer once no cell is off by much."""
    # A marginal inside another is right when that one is.
    largest = [i for i, attrs in enumerate(sets) if not any(set(attrs) < set(other) for other in sets)]
    for _ in range(sweeps):
        furthest = 0.0
        for i in largest:
            calibrator.run(theta)
            share = np.reshape(calibrator.marginals()[i], targets[i].shape)
            is_on = (targets[i] > 0) & (share > 0)
            step = np.log(np.divide(targets[i], share, out=np.ones(share.shape), where=is_on))
            theta[i] = theta[i] + step
            furthest = max(furthest, float(np.abs(step).max()))
        if furthest < _CLOSE:
            break
    return theta


def _possible(attrs: Attrs, target: Array, forbidden: Sequence[Mask]) -> Array:
    """The target given that nothing impossible occurs; evenly spread where nothing else did."""
    is_out = np.zeros(target.shape, dtype=np.bool_)
    for names, mask in forbidden:
        if set(names) <= set(attrs):
            held = [attr for attr in attrs if attr in names]
            turned = np.transpose(mask, [names.index(attr) for attr in held])
            wide = [size if a in names else 1 for a, size in zip(attrs, target.shape, strict=True)]
            is_out |= turned.reshape(wide)
    if not is_out.any():
        return target
    kept = np.where(is_out, 0.0, target)
    kept = kept if kept.sum() > 0 else np.where(is_out, 0.0, 1.0)
    return np.asarray(kept / kept.sum())


def _first(attrs: Attrs, inner: Attrs, target: Array, start: Potentials) -> Array:
    """What a potential starts from: an earlier fit, else the logarithm of a one-way target, else 0."""
    if attrs in start:
        return np.transpose(start[attrs], [attrs.index(a) for a in inner])
    if len(attrs) == 1 and not start:
        return np.log(np.maximum(target, 1e-9))
    return np.zeros(target.shape)
