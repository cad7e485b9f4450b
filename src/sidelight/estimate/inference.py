"""Sum-product on a junction tree: calibrated clique marginals and the log-partition.

    p(x) = exp(Σ θ_c(x_c)) / Z

Messages are probabilities, and the scale of every table is kept as a logarithm. That is several
times faster than log-sum-exp, and exact as long as what underflows is small beside Z. It can be
checked: tables are scaled so that messages peak near 1, and what is lost is below 10⁻³⁰⁸ a cell.
Where a table or Z has moved by more than 10¹⁰⁰ from its scale, the same potentials are summed again
with log-sum-exp, which loses nothing.

A potential of −∞ marks a structural zero: that cell never gets mass.

Lauritzen, Spiegelhalter (1988), in the form that divides by the message sent (Hugin).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.data.domain import Attrs, Domain
from sidelight.errors import InputError
from sidelight.estimate.arrays import Arrays
from sidelight.estimate.junction_tree import JunctionTree
from sidelight.estimate.nesting import Node, nest

_MOST_LOG_SCALE = 230.0
"""ln 10¹⁰⁰: tables that peak above this, or a Z below its inverse, might make underflow matter."""

_SHORT = 24
"""Below this many entries in a row, a sum over a middle axis is faster as a matrix product."""


def inner_order(domain: Domain, attrs: Sequence[str]) -> Attrs:
    """The order of axes inside inference: small attributes first, so that inner loops are long."""
    return tuple(sorted(attrs, key=lambda attr: (domain.sizes[attr], domain.attrs.index(attr))))


class Projection:
    """The sum of a table over the axes that are not kept.

    Neighbouring axes with the same fate are one; sums over the last axis, and over a middle one
    with little behind it, are matrix products with zeros and ones.
    """

    def __init__(self, shape: tuple[int, ...], keep: Sequence[bool], library: Arrays) -> None:
        self.shape = tuple(size for size, kept in zip(shape, keep, strict=True) if kept)
        self.wide = tuple(size if kept else 1 for size, kept in zip(shape, keep, strict=True))
        """The kept table's shape, with 1 for each axis dropped: how it is spread out again."""
        self._dropped = tuple(axis for axis, kept in enumerate(keep) if not kept)
        self._library = library
        groups: list[tuple[int, bool]] = []
        for size, kept in zip(shape, keep, strict=True):
            if size == 1:
                continue
            if groups and groups[-1][1] == kept:
                groups[-1] = groups[-1][0] * size, kept
            else:
                groups.append((size, kept))
        self._steps: list[tuple[tuple[int, ...], Any]] = []
        while any(not kept for _, kept in groups):
            size, kept = groups.pop()
            if not kept:
                self._steps.append(((-1, size), library.full((size,), 1.0)))
                continue
            middle, _ = groups.pop()
            if size < _SHORT and middle * size <= 4096:
                chooser = np.tile(np.eye(size), (middle, 1))
                self._steps.append(((-1, middle * size), library.array(chooser)))
            else:
                self._steps.append(((-1, middle, size), None))
            if groups:
                before, _ = groups.pop()
                size *= before
            groups.append((size, True))

    def sum(self, table: Any) -> Any:
        for shape, chooser in self._steps:
            table = table.reshape(shape)
            table = self._library.sum(table, 1) if chooser is None else table @ chooser
        return table.reshape(self.shape)

    def log_sum(self, table: Any) -> Any:
        """Ln Σ exp, without overflow or underflow."""
        if not self._dropped:
            return table.reshape(self.shape)
        peak = self._library.finite(self._library.max(table, self._dropped))
        return self._library.log(self.sum(self._library.exp(table - peak))) + peak.reshape(self.shape)


@dataclass(frozen=True)
class _Edge:
    """One step from a clique to its parent."""

    child: int
    parent: int
    below: Projection
    above: Projection


class Calibrator:
    """Turns potentials on some attribute sets into clique marginals, again and again.

    All that depends on the structure alone is worked out once. ``fixed`` potentials are added to
    those of every call; ``sets`` names the attributes of the potentials that a call brings, with
    axes in ``inner_order``.
    """

    def __init__(
        self,
        tree: JunctionTree,
        sets: Sequence[Attrs],
        *,
        library: Arrays,
        fixed: Iterable[tuple[Attrs, NDArray[np.float64]]] = (),
    ) -> None:
        self._tree = tree
        self._library = library
        self._count = len(sets)
        domain = tree.domain
        self._attrs = [inner_order(domain, clique) for clique in tree.cliques]
        self._shapes = [domain.project(clique).shape for clique in self._attrs]
        self._fixed: list[Any] = [None] * len(self._attrs)
        for attrs, potential in fixed:
            self._fix(attrs, potential)
        self._nodes = self._nested(sets)
        self._edges = [
            _Edge(
                child,
                tree.parents[child],
                self._onto(self._attrs[child], tree.separators[child]),
                self._onto(self._attrs[tree.parents[child]], tree.separators[child]),
            )
            for child in tree.order[1:]
        ]
        self._scales: list[float] | None = None
        """Of each clique: the logarithm that is taken off its potentials before they are exponentiated."""
        self.beliefs = [library.empty(shape) for shape in self._shapes]
        """After ``run``: p on each clique, axes in ``inner_order``."""

    def run(self, potentials: Sequence[Any]) -> float:
        """Calibrate: ``beliefs`` then holds p on every clique. Returns ln Z."""
        if self._scales is None:
            self._fill(potentials, None)
            self._scales = [self._library.greatest(belief) for belief in self.beliefs]
        if all(map(math.isfinite, self._scales)):
            with self._library.quiet():
                self._fill(potentials, self._scales)
                log_partition = self._sum_scaled(self._scales)
            if math.isfinite(log_partition):
                return log_partition
        self._fill(potentials, None)
        return self._sum_logarithms()

    def marginals(self) -> list[Any]:
        """P on each of the sets, after ``run``."""
        found: list[Any] = [None] * self._count
        for belief, nodes in zip(self.beliefs, self._nodes, strict=True):
            tables: list[Any] = []
            for node, projection in nodes:
                table = projection.sum(belief if node.carrier is None else tables[node.carrier])
                tables.append(table)
                if node.number is not None:
                    found[node.number] = table
        return found

    def _home(self, attrs: Sequence[str]) -> int:
        home = self._tree.home(attrs)
        if home is None:
            raise InputError(f"no clique of the model holds {' × '.join(attrs)}.")
        return home

    def _onto(self, attrs: Sequence[str], kept: Iterable[str]) -> Projection:
        wanted = frozenset(kept)
        return Projection(self._tree.domain.project(attrs).shape, [a in wanted for a in attrs], self._library)

    def _nested(self, sets: Sequence[Attrs]) -> list[list[tuple[Node, Projection]]]:
        domain = self._tree.domain
        homes: list[dict[int, Attrs]] = [{} for _ in self._attrs]
        for number, attrs in enumerate(sets):
            homes[self._home(attrs)][number] = attrs
        planned = []
        for clique, held in zip(self._attrs, homes, strict=True):
            nodes = nest(held, clique, domain.sizes)
            sources = [
                clique if n.carrier is None else inner_order(domain, tuple(nodes[n.carrier].attrs))
                for n in nodes
            ]
            planned.append([(n, self._onto(s, n.attrs)) for n, s in zip(nodes, sources, strict=True)])
        return planned

    def _fix(self, attrs: Attrs, potential: NDArray[np.float64]) -> None:
        home = self._home(attrs)
        turned = np.transpose(potential, [attrs.index(a) for a in inner_order(self._tree.domain, attrs)])
        self._add_fixed(home, self._library.array(turned).reshape(self._onto(self._attrs[home], attrs).wide))

    def _add_fixed(self, clique: int, part: Any) -> None:
        if self._fixed[clique] is None:
            self._fixed[clique] = self._library.full(self._shapes[clique], 0.0)
        self._library.add(self._fixed[clique], part, self._fixed[clique])

    def _fill(self, potentials: Sequence[Any], scales: list[float] | None) -> None:
        """Beliefs become exp(θ − scale) where scales are given, and θ itself where not."""
        library = self._library
        for clique, (belief, nodes) in enumerate(zip(self.beliefs, self._nodes, strict=True)):
            # From the smallest tables outward: each is added to the one that carries it.
            sums: list[Any] = [None if n.number is None else potentials[n.number] for n, _ in nodes]
            free: list[Any] = []
            for index in range(len(nodes) - 1, -1, -1):
                node, projection = nodes[index]
                held = sums[index]
                if held is None:  # a union whose parts all found a smaller carrier
                    continue
                if tuple(held.shape) != projection.shape:
                    # A union that carries parts of it only: what they lack is spread out first.
                    held = held + library.full(projection.shape, 0.0)
                part = held.reshape(projection.wide)
                if node.carrier is None:
                    free.append(part)
                else:
                    carried = sums[node.carrier]
                    sums[node.carrier] = part if carried is None else carried + part
            shift = 0.0 if scales is None else -scales[clique]
            if self._fixed[clique] is not None:
                free.append(self._fixed[clique])
            if not free:
                belief[...] = shift
            elif len(free) == 1:
                library.add(free[0], shift, belief)
            else:
                library.add(free[0] + shift, free[1], belief)
            for part in free[2:]:
                library.add(belief, part, belief)
            if scales is not None:
                library.exp(belief, belief)

    def _sum_scaled(self, scales: list[float]) -> float:
        """Collect and distribute in probabilities; ln Z, or −∞ where scaling did not serve."""
        library, beliefs = self._library, self.beliefs
        if max(map(library.greatest, beliefs)) > math.exp(_MOST_LOG_SCALE):
            return -math.inf
        moved = 0.0
        sent: dict[int, Any] = {}
        for edge in reversed(self._edges):
            message = edge.below.sum(beliefs[edge.child])
            peak = library.greatest(message)
            if peak <= 0.0:
                return -math.inf
            moved += math.log(peak)
            sent[edge.child] = message
            above = beliefs[edge.parent]
            library.multiply(above, (message / peak).reshape(edge.above.wide), above)
            scales[edge.child] += math.log(peak)
        root = self._tree.order[0]
        total = library.total(beliefs[root])
        if total <= 0.0 or moved + math.log(total) < -_MOST_LOG_SCALE:
            return -math.inf
        library.multiply(beliefs[root], 1.0 / total, beliefs[root])
        for edge in self._edges:
            ratio = library.ratio(edge.above.sum(beliefs[edge.parent]), sent[edge.child])
            below = beliefs[edge.child]
            library.multiply(below, ratio.reshape(edge.below.wide), below)
        scales[root] += math.log(total)
        return math.fsum(scales)

    def _sum_logarithms(self) -> float:
        """The same in log-sum-exp, for potentials too peaked for scaled probabilities."""
        library, beliefs = self._library, self.beliefs
        sent: dict[int, Any] = {}
        for edge in reversed(self._edges):
            message = edge.below.log_sum(beliefs[edge.child])
            sent[edge.child] = message
            above = beliefs[edge.parent]
            library.add(above, message.reshape(edge.above.wide), above)
        root = self._tree.order[0]
        peak = library.greatest(beliefs[root])
        if not math.isfinite(peak):
            raise InputError(
                "the declared constraints exclude every record: no cell keeps any mass. "
                "Check the impossible combinations against each other, and drop one that is wrong."
            )
        log_partition = peak + math.log(library.total(library.exp(beliefs[root] - peak)))
        library.add(beliefs[root], -log_partition, beliefs[root])
        for edge in self._edges:
            # Where the message sent was −∞ the child holds −∞ already, and nothing is to be taken off.
            down = edge.above.log_sum(beliefs[edge.parent]) - library.finite(sent[edge.child])
            below = beliefs[edge.child]
            library.add(below, down.reshape(edge.below.wide), below)
        for belief in beliefs:
            library.exp(belief, belief)
        self._regauge(sent, log_partition)
        return log_partition

    def _regauge(self, sent: Mapping[int, Any], log_partition: float) -> None:
        """Move every message into the fixed potentials, so that the next scaled pass loses nothing.

        θ_child − m and θ_parent + m describe the same p, and with them the child is a conditional
        distribution given its separator: its next message is 1 everywhere.
        """
        for edge in self._edges:
            message = self._library.finite(sent[edge.child])
            self._add_fixed(edge.child, -message.reshape(edge.below.wide))
            self._add_fixed(edge.parent, message.reshape(edge.above.wide))
        self._scales = [0.0] * len(self._attrs)
        self._scales[self._tree.order[0]] = log_partition
