"""Made-up wide tables: many correlated attributes, people of a few kinds, a public sample that is off.

There is no wide real table that may be shared, so this one is drawn. Each attribute is, for a record,

- its **kind's** habit (one of ten kinds of people; a quarter of the records),
- or a noisy function of **one attribute before it** (up to six places before; half of the records),
- or a draw from a skewed distribution of its own (Zipf; the rest).

Sizes are 2 to 12 values; every tenth attribute has 20 to 50. ``large`` gives the last attributes that many
values each. The public table has 5,000 records of the same law, with other shares of the ten kinds: its
relations hold roughly, its single attributes less.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sidelight.data.domain import Domain
from sidelight.data.table import Table

_KINDS = 10
_OWN, _PARENT = 0.25, 0.75
"""Below the first, a value is the habit of the record's kind; below the second, it follows a parent."""


class Wide(NamedTuple):
    """A private table, and a public one of the same domain."""

    private: Table
    public: Table


def wide(
    attributes: int,
    *,
    records: int = 150_000,
    public_records: int = 5_000,
    seed: int = 0,
    large: tuple[int, ...] = (),
) -> Wide:
    """A wide table of this many attributes, and public records of the same law."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 13, attributes)
    sizes[9::10] = rng.integers(20, 51, len(sizes[9::10]))
    if large:
        sizes[-len(large) :] = large
    law = _Law(sizes, rng)
    domain = Domain.of({f"x{place:03d}": int(size) for place, size in enumerate(sizes)})
    private = Table.of_codes(domain, law.draw(records, rng.dirichlet(np.ones(_KINDS) * 3), rng))
    public = Table.of_codes(domain, law.draw(public_records, rng.dirichlet(np.ones(_KINDS) * 3), rng))
    return Wide(private, public)


class _Law:
    """How the attributes of one record depend on each other."""

    def __init__(self, sizes: NDArray[np.int64], rng: np.random.Generator) -> None:
        self.sizes = sizes
        self.parents = [
            int(rng.integers(max(0, place - 6), place)) if place else -1 for place in range(len(sizes))
        ]
        self.maps = [
            rng.integers(0, size, sizes[parent] if parent >= 0 else 1)
            for size, parent in zip(sizes, self.parents, strict=True)
        ]
        self.habits = [rng.integers(0, size, _KINDS) for size in sizes]
        self.own = [rng.permutation(_zipf(int(size))) for size in sizes]

    def draw(self, records: int, kinds: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.int64]:
        kind = rng.choice(_KINDS, records, p=kinds)
        codes = np.empty((records, len(self.sizes)), dtype=np.int64)
        for place, size in enumerate(self.sizes):
            codes[:, place] = rng.choice(int(size), records, p=self.own[place])
            how = rng.random(records)
            of_kind, of_parent = how < _OWN, (how >= _OWN) & (how < _PARENT) & (place > 0)
            codes[of_kind, place] = self.habits[place][kind[of_kind]]
            codes[of_parent, place] = self.maps[place][codes[of_parent, self.parents[place]]]
        return codes


def _zipf(size: int) -> NDArray[np.float64]:
    chances = 1.0 / np.arange(1, size + 1)
    return np.asarray(chances / chances.sum())
