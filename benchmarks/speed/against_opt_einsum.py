"""Contractions of junction trees, ours beside those of opt_einsum.

    python benchmarks/speed/against_opt_einsum.py            where opt_einsum is installed

Prints processor seconds of one thread, the least of three: a fit of 60 steps, with the contractions inside
cliques done by either; and all three-way marginals, by our answers or by an ``opt_einsum`` contraction of the
conditional clique tables for each (for every eighth of them, and scaled).
"""

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import graphical  # sets the number of threads
import numpy as np
import opt_einsum

from sidelight.data.domain import Attrs
from sidelight.fit.private_pgm import MirrorDescent
from sidelight.models.graphical import GraphicalModel, calibrated
from sidelight.trees import clique_layout
from sidelight.trees.arrays import Arrays
from sidelight.trees.contraction import Contraction
from sidelight.trees.nesting import inner_order

PROBLEMS = [("adult", 30, 5), ("adult", 30, 40), ("titanic", 15, 5)]
EVERY = 8


class WithEinsum(Contraction):
    """The same contraction, in the order and by the calls of opt_einsum."""

    def __init__(
        self, tables: Sequence[Attrs], keep: Attrs, sizes: Mapping[str, int], library: Arrays
    ) -> None:
        super().__init__(tables, keep, sizes, library)
        shapes = [tuple(sizes[attr] for attr in table) for table in tables]
        self._contract: Any = opt_einsum.contract_expression(_equation(tables, self.attrs), *shapes)

    def __call__(self, tables: Sequence[Any]) -> Any:
        return np.ascontiguousarray(self._contract(*tables))


def main() -> None:
    for name, count, megabytes in PROBLEMS:
        domain, measurements, total = graphical.measured(name, count, megabytes)
        settings = MirrorDescent(max_steps=60, polish_steps=0)

        def fit(d: Any = domain, m: Any = measurements, n: float = total, s: Any = settings) -> Any:
            return s.estimate(d, m, total=float(n))

        seconds = {}
        for kind in (Contraction, WithEinsum):
            clique_layout.Contraction = kind  # type: ignore[misc]
            seconds[kind.__name__], model = _least(fit)
        clique_layout.Contraction = Contraction  # type: ignore[misc]
        wanted = list(itertools.combinations(domain.attrs, 3))
        calibrated(model)
        ours, _ = _least(lambda m=model, w=wanted: list(m.count_each(w)))  # type: ignore[misc]
        theirs, _ = _least(lambda m=model, w=wanted: by_einsum(m, w[::EVERY]))  # type: ignore[misc]
        print(
            f"{name}, {model.tree.bytes / 2**20:.1f} MB: fit {seconds['Contraction']:.2f} s, opt_einsum "
            f"{seconds['WithEinsum']:.2f} s; answers {ours:.2f} s, opt_einsum {theirs * EVERY:.2f} s"
        )


def by_einsum(model: GraphicalModel, wanted: Sequence[Attrs]) -> list[Any]:
    """Marginals, each by one contraction of the cliques between the root and its attributes."""
    tree = model.tree
    attrs = [inner_order(tree.domain, clique) for clique in tree.cliques]
    given = []
    for names, table, parent, shared in zip(
        attrs, calibrated(model).cliques, tree.parents, tree.separators, strict=True
    ):
        below = table.sum(axis=tuple(k for k, attr in enumerate(names) if attr not in shared), keepdims=True)
        ratio = np.divide(table, below, out=np.zeros_like(table), where=below > 0)
        given.append(ratio if parent >= 0 else table)
    found = []
    for marginal in wanted:
        used = {tree.order[0]}
        for clique, names in enumerate(attrs):
            if (set(names) - set(tree.separators[clique])) & set(marginal):
                while clique not in used:
                    used.add(clique)
                    clique = tree.parents[clique]
        equation = _equation([attrs[clique] for clique in sorted(used)], marginal)
        found.append(model.total * opt_einsum.contract(equation, *(given[clique] for clique in sorted(used))))
    return found


def _equation(tables: Sequence[Attrs], keep: Attrs) -> str:
    names = {attr: opt_einsum.get_symbol(k) for k, attr in enumerate(dict.fromkeys(itertools.chain(*tables)))}
    spelt = ["".join(names[attr] for attr in table) for table in (*tables, keep)]
    return ",".join(spelt[:-1]) + "->" + spelt[-1]


def _least(work: Callable[[], Any]) -> tuple[float, Any]:
    times = []
    for _ in range(3):
        began = time.process_time()
        done = work()
        times.append(time.process_time() - began)
    return min(times), done


if __name__ == "__main__":
    main()
