"""Sum-product on a junction tree: calibrated clique marginals and the log-partition.

    p(x) = exp(Σ θ_c(x_c)) / Z

A clique is a large table, but its factors are small: potentials, and messages on separators. These are first
added up, as logarithms, on a few small tables (``nesting.py``). The clique is the product of these tables, in
probabilities, each scaled by its largest entry; marginals and messages are summed through the same small
tables. Where it pays, the product itself is never written down (``contraction.py``).

The scale of every table is kept as a logarithm. The result is exact as long as what underflows is small
beside Z, which can be checked: no entry exceeds its table's scale, each cell loses less than 10⁻³⁰⁸ of it,
and a loss grows on its way to the root by no more than the messages there fall below their scales. Where they
fall by more than 10¹⁹⁵ on one way to the root, the same potentials are summed again with log-sum-exp,
which loses nothing.

A potential of −∞ marks a structural zero: that cell never gets mass.

Lauritzen, Spiegelhalter (1988), in the form that divides by the message sent (Hugin).
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.data.domain import Attrs
from sidelight.errors import InputError
from sidelight.trees.arrays import Arrays
from sidelight.trees.clique_layout import CliqueLayout
from sidelight.trees.junction_tree import JunctionTree
from sidelight.trees.nesting import inner_order
from sidelight.trees.summing import Projection

_MOST_FALL = 450.0
"""ln 10¹⁹⁵, from any clique to the root: what 10⁷ cells lost at 10⁻³⁰⁸ each is then below 10⁻¹⁰⁰ of Z."""
_MOST_LIFT = 200.0
"""Three lifts stay finite."""
_CONFLICT = 125.0
"""A clique whose product peaks so far below its scale has tables that conflict; less with each failure."""

_FEW_FAILURES = 2
"""Failed passes (the first steps of a fit may be long) before conflicting tables are added in logarithms."""


class Calibrator:
    """Turns potentials on some attribute sets into clique marginals, again and again.

    What depends on the structure alone is worked out once. ``fixed`` potentials are added to those of every
    call; ``sets`` lists the attribute sets of the potentials passed to ``run``, with axes in ``inner_order``.
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
        self._fixed = [self._turned(attrs, potential) for attrs, potential in fixed]
        self._attrs = [inner_order(tree.domain, clique) for clique in tree.cliques]
        homes: list[dict[int, Attrs]] = [{} for _ in self._attrs]
        for number, attrs in enumerate([*sets, *(attrs for attrs, _ in self._fixed)]):
            homes[self._home(attrs)][number] = attrs
        self._layouts = [CliqueLayout.of(tree, clique, held, library) for clique, held in enumerate(homes)]
        self._products: list[Any] = [None] * len(self._attrs)
        """The product of each clique, where it is written down."""
        self._factors: list[list[Any]] = [[] for _ in self._attrs]
        """The free tables of each clique whose product is not written down."""
        self._tables: list[list[Any]] = [[] for _ in self._attrs]
        """p on the small tables of each clique, after a pass."""
        self._lifts = [0.0] * len(self._attrs)
        """For each clique, a logarithm added to its product, so that its message peaks near 1."""
        self._edges: dict[int, tuple[Projection, Projection]] = {}
        self._gauges: list[list[Any]] = [[None] * len(layout.free) for layout in self._layouts]
        """The constants that ``_regauge`` adds to each clique's free tables; together they cancel."""
        self._fallen = [0.0] * len(self._attrs)
        """For each clique, ln of its product's peak over its scale last time, lifts left out; at most 0."""
        self._failures = 0
        self._together: set[int] = set()
        """Cliques whose free tables conflict: these are added in logarithms, on the whole clique."""

    def clique_marginals(self) -> Iterator[Any]:
        """p on each clique, after ``run``, axes in ``inner_order``. Each table is handed over, not kept."""
        for clique, factors in enumerate(self._factors):
            if factors:
                self._products[clique] = self._library.empty(self._shape(clique))
                self._write_down(clique, factors)
                self._factors[clique] = []
            product, self._products[clique] = self._products[clique], None
            yield product

    def run(self, potentials: Sequence[Any]) -> float:
        """Calibrate, so that ``clique_marginals`` and ``marginals`` give p. Returns ln Z."""
        known = self._known(potentials)
        with self._library.quiet():
            log_partition = self._sum_scaled(known)
        return log_partition if math.isfinite(log_partition) else self._sum_logarithms(potentials)

    def marginals(self) -> list[Any]:
        """p on each of the sets, after ``run``."""
        found: list[Any] = [None] * self._count
        for layout, tables in zip(self._layouts, self._tables, strict=True):
            for number, index in layout.sets.items():
                if number < self._count:
                    found[number] = tables[index]
        return found

    def _home(self, attrs: Sequence[str]) -> int:
        home = self._tree.home(attrs)
        if home is None:
            raise InputError(f"no clique of the model holds {' × '.join(attrs)}.")
        return home

    def _onto(self, attrs: Sequence[str], kept: Iterable[str]) -> Projection:
        return Projection.onto(attrs, kept, self._tree.domain.sizes, self._library)

    def _turned(self, attrs: Attrs, potential: NDArray[np.float64]) -> tuple[Attrs, Any]:
        inner = inner_order(self._tree.domain, attrs)
        return inner, self._library.array(np.transpose(potential, [attrs.index(a) for a in inner]))

    def _known(self, potentials: Sequence[Any]) -> list[dict[int, Any]]:
        """For each clique, the sum of potentials on each of its small tables."""
        given = [*potentials, *(table for _, table in self._fixed)]
        known: list[dict[int, Any]] = []
        for layout in self._layouts:
            logarithms: dict[int, Any] = {}
            for number, index in layout.sets.items():
                before = logarithms.get(index)
                logarithms[index] = given[number] if before is None else before + given[number]
            known.append(logarithms)
        return known

    def _carried(self, clique: int, given: Mapping[int, Any], combine: Any, neutral: float) -> list[Any]:
        """Combine what is given on small tables into the free tables; None where nothing was given."""
        library, layout = self._library, self._layouts[clique]
        if not given:
            return [None] * len(layout.free)
        sums: list[Any] = [given.get(index) for index in range(len(layout.carriers))]
        mine: set[int] = set()
        # From the smallest tables outward: each is combined with the one that carries it.
        for index in range(len(sums) - 1, -1, -1):
            held, carrier, projection = sums[index], layout.carriers[index], layout.projections[index]
            if held is None:
                continue
            if held.shape != projection.shape:
                # A union of which only parts were given: broadcast to its whole shape first.
                held = sums[index] = combine(held, library.full(projection.shape, neutral))
            if carrier is None:
                continue
            part = held.reshape(projection.wide)
            if sums[carrier] is None:
                sums[carrier] = part
            elif carrier in mine and sums[carrier].shape == layout.projections[carrier].shape:
                combine(sums[carrier], part, sums[carrier])
            else:
                sums[carrier] = combine(sums[carrier], part)
                mine.add(carrier)
        return [sums[index] for index in layout.free]

    def _product(self, clique: int) -> Any:
        if self._products[clique] is None:
            self._products[clique] = self._library.empty(self._shape(clique))
        return self._products[clique]

    def _shape(self, clique: int) -> tuple[int, ...]:
        return self._tree.domain.project(self._attrs[clique]).shape

    def _wide(self, clique: int, tables: Sequence[Any]) -> list[Any]:
        """The free tables that are given, each in the shape that broadcasts over the clique."""
        layout = self._layouts[clique]
        return [
            table.reshape(layout.projections[index].wide)
            for index, table in zip(layout.free, tables, strict=True)
            if table is not None
        ]

    def _write_down(self, clique: int, factors: Sequence[Any]) -> None:
        """Write a clique down as the product of these tables."""
        library, product = self._library, self._product(clique)
        parts = self._wide(clique, factors)
        covered = len(parts) > 1 and np.broadcast_shapes(*(tuple(p.shape) for p in parts[:2]))
        if covered == tuple(product.shape):
            library.multiply(parts[0], parts[1], product)
            parts = parts[2:]
        else:
            product[...] = parts[0] if parts else 1.0
            parts = parts[1:]
        for part in parts:
            library.multiply(product, part, product)

    def _multiply_out(self, clique: int, known: Mapping[int, Any], heard: Mapping[int, Any]) -> float:
        """Make the clique's product, written down or as factors. Returns the logarithm of its scale."""
        library, lift, layout = self._library, self._lifts[clique], self._layouts[clique]
        carried = self._carried(clique, known, library.add, 0.0)
        potentials = [_plus(*pair) for pair in zip(carried, self._gauges[clique], strict=True)]
        # Messages may have underflowed. They are multiplied in, so that a fall they cause is noticed.
        messages = self._carried(clique, heard, library.multiply, 1.0)
        self._factors[clique] = []
        if clique in self._together:
            return self._add_together(clique, potentials, messages)
        factors: list[Any] = []
        scale = 0.0
        for index, logarithms, message in zip(layout.free, potentials, messages, strict=True):
            peak = -lift if not factors else 0.0
            if logarithms is None:
                table = library.full(layout.projections[index].shape, math.exp(-peak))
            else:
                peak += library.greatest(logarithms)
                if not math.isfinite(peak):
                    return -math.inf
                table = logarithms - peak
                table = library.exp(table, table if table.ndim else None)
            factors.append(table if message is None else table * message)
            scale += peak
        if layout.across is None:
            self._write_down(clique, factors)
        else:
            self._factors[clique] = factors
            self._products[clique] = None  # of a pass in logarithms; whole cliques are not kept for nothing
        return scale

    def _add_together(self, clique: int, potentials: Sequence[Any], messages: Sequence[Any]) -> float:
        """Fill a clique whose free tables conflict: logarithms are added first; nothing underflows."""
        library, product = self._library, self._product(clique)
        product[...] = 0.0
        for part in self._wide(clique, potentials):
            library.add(product, part, product)
        peak = library.greatest(product) - self._lifts[clique]
        library.add(product, -peak, product)
        library.exp(product, product)
        for part in self._wide(clique, messages):
            library.multiply(product, part, product)
        return peak

    def _send(self, clique: int) -> Any:
        """The message to the parent: the clique's product, summed onto the separator."""
        layout = self._layouts[clique]
        if self._factors[clique]:
            assert layout.up is not None
            return layout.up(self._factors[clique])
        message = self._products[clique]
        for index in layout.path:
            message = layout.projections[index].sum(message)
        return message

    def _hear(self, clique: int, ratio: Any) -> None:
        """Multiply the clique by the parent's separator marginal over the message sent (Hugin)."""
        layout, factors = self._layouts[clique], self._factors[clique]
        if factors:
            first = layout.free.index(layout.path[0])
            factors[first] = factors[first] * ratio.reshape(layout.path_wide)
        else:
            product = self._products[clique]
            self._library.multiply(product, ratio.reshape(self._edge(clique)[0].wide), product)

    def _read(self, clique: int) -> list[Any]:
        """Every small table of a clique, summed from its product."""
        layout, factors = self._layouts[clique], self._factors[clique]
        ready: dict[int, Any] = {}
        for place, index in enumerate(layout.free if factors else ()):
            ready[index] = factors[place]
            if len(factors) > 1:
                assert layout.across is not None
                contraction, wide = layout.across[place]
                others = contraction([f for other, f in enumerate(factors) if other != place])
                ready[index] = factors[place] * others.reshape(wide)
        tables: list[Any] = []
        for index, (carrier, projection) in enumerate(zip(layout.carriers, layout.projections, strict=True)):
            if index in ready:
                tables.append(ready[index])
            else:
                tables.append(projection.sum(self._products[clique] if carrier is None else tables[carrier]))
        return tables

    def _sum_scaled(self, known: list[dict[int, Any]]) -> float:
        """Collect and distribute in scaled probabilities. Returns ln Z, or −∞ where too much underflowed."""
        library, tree, root = self._library, self._tree, self._tree.order[0]
        sent: dict[int, Any] = {}
        heard: list[dict[int, Any]] = [{} for _ in self._attrs]
        self._fallen, falls = [0.0] * len(self._attrs), [0.0] * len(self._attrs)
        scale = 0.0
        for clique in reversed(tree.order):
            scale += self._multiply_out(clique, known[clique], heard[clique])
            if not math.isfinite(scale):
                return -math.inf
            if clique == root:
                break
            message = sent[clique] = self._send(clique)
            peak, parent = library.greatest(message), tree.parents[clique]
            falls[parent] = min(falls[parent], falls[clique] + self._settle(clique, peak))
            if falls[parent] < -_MOST_FALL:
                return -math.inf
            scale += math.log(peak)
            above, at = heard[parent], self._layouts[parent].separators[clique]
            above[at] = above[at] * (message / peak) if at in above else message / peak
        tables = self._read(root)
        total = library.total(tables[-1] if tables else self._products[root])
        if falls[root] + self._settle(root, total) < -_MOST_FALL:
            return -math.inf
        self._tables[root] = [table * (1.0 / total) for table in tables]
        if self._factors[root]:
            self._factors[root][0] = self._factors[root][0] * (1.0 / total)
        else:
            library.multiply(self._products[root], 1.0 / total, self._products[root])
        for clique in tree.order[1:]:
            parent = tree.parents[clique]
            above = self._tables[parent][self._layouts[parent].separators[clique]]
            self._hear(clique, library.ratio(above, sent[clique]))
            self._tables[clique] = tables = self._read(clique)
            # A message near the smallest double can make the ratio overflow.
            if not math.isfinite(library.total(tables[-1] if tables else self._product(clique))):
                return -math.inf
        return scale + math.log(total)

    def _settle(self, clique: int, peak: float) -> float:
        """Lift the clique's next product by what this one fell. Returns the fall: at most 0."""
        moved = math.log(peak) if 0.0 < peak < math.inf else -math.inf
        fall = self._fallen[clique] = min(moved - self._lifts[clique], 0.0)
        if math.isfinite(moved) and self._layouts[clique].free:
            self._lifts[clique] = min(max(self._lifts[clique] - moved, -_MOST_LIFT), _MOST_LIFT)
        return fall

    def _edge(self, clique: int) -> tuple[Projection, Projection]:
        """The sums of a clique, and of its parent, onto their separator."""
        if clique not in self._edges:
            shared = self._tree.separators[clique]
            parent = self._tree.parents[clique]
            self._edges[clique] = (
                self._onto(self._attrs[clique], shared),
                self._onto(self._attrs[parent], shared),
            )
        return self._edges[clique]

    def _sum_logarithms(self, potentials: Sequence[Any]) -> float:
        """The sweep in log-sum-exp, for potentials too peaked for scaled probabilities."""
        library, tree = self._library, self._tree
        products = [self._product(clique) for clique in range(len(self._attrs))]
        free = [
            self._carried(clique, known, library.add, 0.0)
            for clique, known in enumerate(self._known(potentials))
        ]
        for clique, product in enumerate(products):
            self._factors[clique] = []
            product[...] = 0.0
            for part in self._wide(clique, free[clique]):
                library.add(product, part, product)
        sent: dict[int, Any] = {}
        for clique in reversed(tree.order[1:]):
            below, above = self._edge(clique)
            sent[clique] = message = below.log_sum(products[clique])
            parent = products[tree.parents[clique]]
            library.add(parent, message.reshape(above.wide), parent)
        root = products[tree.order[0]]
        peak = library.greatest(root)
        if not math.isfinite(peak):
            raise InputError(
                "the declared constraints exclude every record: no cell keeps any mass. "
                "Check the impossible combinations against each other, and drop one that is wrong."
            )
        log_partition = peak + math.log(library.total(library.exp(root - peak)))
        library.add(root, -log_partition, root)
        for clique in tree.order[1:]:
            below, above = self._edge(clique)
            # Where the message sent was −∞ the child is −∞ already: nothing is subtracted there.
            down = above.log_sum(products[tree.parents[clique]]) - library.finite(sent[clique])
            library.add(products[clique], down.reshape(below.wide), products[clique])
        for product in products:
            library.exp(product, product)
        self._tables = [self._read(clique) for clique in range(len(products))]
        self._failures += 1
        if self._failures > _FEW_FAILURES:
            most = _CONFLICT / (self._failures - _FEW_FAILURES)
            self._together.update(clique for clique, fall in enumerate(self._fallen) if fall < -most)
        self._regauge(free, sent)
        return log_partition

    def _regauge(self, free: list[list[Any]], sent: Mapping[int, Any]) -> None:
        """Shift logarithms between tables that conflict, so that the next scaled passes do not underflow.

        θ_child − m and θ_parent + m describe the same p, and make the child's next message 1 everywhere. From
        one free table of a clique to the next, the maximum over the axes they do not share is shifted: then
        each table peaks where the others allow it.
        """
        library = self._library
        for clique, layout in enumerate(self._layouts):
            moved: dict[int, Any] = {}
            for other, index in layout.separators.items():
                is_child = self._tree.parents[other] == clique
                message = library.finite(sent[other]) if is_child else -library.finite(sent[clique])
                moved[index] = _plus(moved.get(index), message)
            gauges = self._carried(clique, moved, library.add, 0.0)
            for one, other, axes, wide, onto in layout.moves:
                table = _plus(free[clique][one], gauges[one])
                if table is not None:
                    most = library.finite(library.max(table, axes))
                    gauges[one] = _plus(gauges[one], -most.reshape(wide))
                    gauges[other] = _plus(gauges[other], most.reshape(onto))
            self._gauges[clique] = [
                None if gauge is None else gauge + library.full(layout.projections[index].shape, 0.0)
                for index, gauge in zip(layout.free, gauges, strict=True)
            ]
        self._lifts = [0.0] * len(self._attrs)


def _plus(left: Any, right: Any) -> Any:
    """The sum of two tables, either of which may be absent."""
    if left is None or right is None:
        return left if right is None else right
    return left + right
