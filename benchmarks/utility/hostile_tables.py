"""Public tables that lie: each is made from a private table, a good public one, and a seed.

    hostile("labels permuted in all", private, public, other=another, seed=0)

A lie is whatever a mechanism may be given as public data: one table, or a list of them. Several lies look at
the private table, since their author is taken to know it: what they spoil is utility, not privacy.
The worst of them have the right single attributes, so that no answer to one ever speaks against them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sidelight.data.domain import Domain
from sidelight.data.table import Table

Codes = NDArray[np.integer]
Lie = Table | list[Table]

MOST_RECORDS = 40_000
"""Most records of a lie that is made from the private table."""
SWEEPS = 20
"""How often each attribute's values are exchanged between records to reverse the pairs."""
HOSTILE_SHARE = 0.2
"""Share of hostile records among good ones."""


@dataclass(frozen=True)
class Truth:
    """What a lie is made from."""

    private: Table
    public: Table
    """A good public table, with all attributes of the private one."""
    other: Table
    """A table about something else."""

    @property
    def domain(self) -> Domain:
        return self.private.domain


def hostile(lie: str, private: Table, public: Table, *, other: Table, seed: int) -> Lie:
    """The lie of this name; the same for the same seed."""
    rng = np.random.default_rng([seed, list(LIES).index(lie)])
    return LIES[lie](Truth(private, public, other), rng)


def as_one_table(public: Lie) -> Table:
    """All records of a lie in one table, for mechanisms that take one."""
    if isinstance(public, Table):
        return public
    return Table.of_codes(public[0].domain, np.concatenate([table.codes() for table in public]))


# ---- labels and order: a code book of another year --------------------------------------------------


def permuted(table: Table, attrs: Sequence[str], rng: np.random.Generator) -> Table:
    """The codes of these attributes relabelled at random, along one cycle: no value keeps its label."""
    codes = table.codes().copy()
    for attr in attrs:
        place, size = table.domain.attrs.index(attr), table.domain.sizes[attr]
        cycle, labels = rng.permutation(size), np.empty(size, dtype=codes.dtype)
        labels[cycle] = np.roll(cycle, 1)
        codes[:, place] = labels[codes[:, place]]
    return Table.of_codes(table.domain, codes)


def _permuted_in_one(truth: Truth, rng: np.random.Generator) -> Table:
    return permuted(truth.public, _some(truth.domain, 1, rng), rng)


def _permuted_in_a_third(truth: Truth, rng: np.random.Generator) -> Table:
    return permuted(truth.public, _some(truth.domain, -(-len(truth.domain.attrs) // 3), rng), rng)


def _permuted_in_all(truth: Truth, rng: np.random.Generator) -> Table:
    return permuted(truth.public, truth.domain.attrs, rng)


def _order_reversed(truth: Truth, rng: np.random.Generator) -> Table:
    """Code c becomes size − 1 − c, in every attribute."""
    return Table.of_codes(truth.domain, np.array(truth.domain.shape) - 1 - truth.public.codes())


# ---- records that tell nothing, or tell of something else -------------------------------------------


def _independent(truth: Truth, rng: np.random.Generator) -> Table:
    """Every column shuffled by itself."""
    return Table.of_codes(truth.domain, rng.permuted(truth.public.codes(), axis=0))


def _one_record(truth: Truth, rng: np.random.Generator) -> Table:
    """One record of the public table, as often as it has records."""
    codes = truth.public.codes()
    return Table.of_codes(truth.domain, np.repeat(codes[[rng.integers(len(codes))]], len(codes), axis=0))


def _uniform_noise(truth: Truth, rng: np.random.Generator) -> Table:
    shape = (truth.public.records, len(truth.domain.attrs))
    return Table.of_codes(truth.domain, rng.integers(0, truth.domain.shape, size=shape))


def _another_table(truth: Truth, rng: np.random.Generator) -> Table:
    """Another table forced into the domain: its columns in turn, their codes stretched to the sizes here."""
    codes, sizes = truth.other.codes().astype(np.int64), truth.other.domain.shape
    drawn = rng.integers(len(codes), size=truth.public.records)
    columns = [
        codes[drawn, place % len(sizes)] * size // sizes[place % len(sizes)]
        for place, size in enumerate(truth.domain.shape)
    ]
    return Table.of_codes(truth.domain, np.stack(columns, axis=1))


# ---- right single attributes, wrong relations -------------------------------------------------------


def _pairs_reversed(truth: Truth, rng: np.random.Generator) -> Table:
    """Single attributes right; values that go together in the private table avoid each other."""
    codes = _drawn(truth.private, rng)
    return Table.of_codes(truth.domain, against_pairs(codes, truth.domain, rng))


def _locked(truth: Truth, rng: np.random.Generator) -> Table:
    """Single attributes right; every attribute follows from a record's rank, in an order drawn at random.

    Worse than reversed pairs for whoever believes relations: they are as strong as any can be, most cells
    are empty, and no answer to a single attribute contradicts them.
    """
    codes = _drawn(truth.private, rng)
    columns = []
    for column, size in zip(codes.T, truth.domain.shape, strict=True):
        columns.append(column[np.argsort(_reordered(column, size, rng), kind="stable")])
    return Table.of_codes(truth.domain, np.stack(columns, axis=1))


def _bait(truth: Truth, rng: np.random.Generator) -> Table:
    """The good table, but for a third of the attributes: they follow from the others, falsely.

    Meant to win a contest of mean errors by what is true, and to mislead by the rest: single attributes are
    the good table's, and records ordered by what is true get the false values in an order drawn at random.
    """
    codes, attrs = truth.public.codes().copy(), truth.domain.attrs
    false = truth.domain.index(_some(truth.domain, -(-len(attrs) // 3), rng))
    ranks = [_reordered(column, size, rng) for column, size in zip(codes.T, truth.domain.shape, strict=True)]
    by_truth = np.lexsort([rank for place, rank in enumerate(ranks) if place not in false])
    for place in false:
        codes[by_truth, place] = codes[np.argsort(ranks[place], kind="stable"), place]
    return Table.of_codes(truth.domain, codes)


def _reordered(column: Codes, size: int, rng: np.random.Generator) -> Codes:
    """Where each value stands in an order drawn at random."""
    return rng.permutation(size)[column]


def against_pairs(codes: Codes, domain: Domain, rng: np.random.Generator) -> Codes:
    """Records with the same single attributes, and with the pairs reversed.

    Draws from Π_{a<b} lift_ab(x_a, x_b)⁻¹, given every single attribute's counts: the values of one attribute
    are exchanged between pairs of records by Metropolis' rule. lift_ab = p_ab / (p_a p_b), of ``codes``.
    """
    against = _reversed_log_lifts(codes, domain)
    found, records = rng.permuted(codes, axis=0), len(codes)
    for _ in range(SWEEPS):
        for place in range(codes.shape[1]):
            order = rng.permutation(records)
            one, two = order[: records // 2], order[records // 2 : 2 * (records // 2)]
            mine, yours = found[one, place], found[two, place]
            gain = np.zeros(len(one))
            for other in (k for k in range(codes.shape[1]) if k != place):
                table = against[place, other]
                here, there = found[one, other], found[two, other]
                gain += table[yours, here] + table[mine, there] - table[mine, here] - table[yours, there]
            exchanged = np.log(rng.random(len(one))) < gain
            found[one, place] = np.where(exchanged, yours, mine)
            found[two, place] = np.where(exchanged, mine, yours)
    return found


def _reversed_log_lifts(codes: Codes, domain: Domain) -> dict[tuple[int, int], NDArray[np.float64]]:
    """−log lift of every ordered pair of attributes; one record is added to both of its sides."""
    table, n = Table.of_codes(domain, codes), len(codes)
    ones = [table.count((attr,)) for attr in domain.attrs]
    found = {}
    for a, first in enumerate(domain.attrs):
        for b, second in enumerate(domain.attrs[:a]):
            together = table.count((first, second))
            log_lift = np.log((together + 1) / (np.multiply.outer(ones[a], ones[b]) / n + 1))
            found[a, b], found[b, a] = -log_lift, -log_lift.T
    return found


# ---- good records beside hostile ones ---------------------------------------------------------------


def _mixture(truth: Truth, rng: np.random.Generator) -> Table:
    """Four good records to every hostile one, whose relations are locked."""
    good, bad = truth.public.codes().copy(), _locked(truth, rng).codes()
    is_hostile = rng.random(len(good)) < HOSTILE_SHARE
    good[is_hostile] = bad[rng.integers(len(bad), size=int(is_hostile.sum()))]
    return Table.of_codes(truth.domain, good)


def _good_and_hostile(truth: Truth, rng: np.random.Generator) -> list[Table]:
    """Two public tables: the good one, and one whose relations are locked."""
    return [truth.public, _locked(truth, rng)]


LIES: dict[str, Callable[[Truth, np.random.Generator], Lie]] = {
    "labels permuted in one": _permuted_in_one,
    "labels permuted in a third": _permuted_in_a_third,
    "labels permuted in all": _permuted_in_all,
    "order reversed": _order_reversed,
    "independent": _independent,
    "one record": _one_record,
    "uniform noise": _uniform_noise,
    "another table": _another_table,
    "pairs reversed": _pairs_reversed,
    "locked": _locked,
    "bait": _bait,
    "mixture": _mixture,
    "good and hostile": _good_and_hostile,
}  # fmt: skip


def _some(domain: Domain, number: int, rng: np.random.Generator) -> list[str]:
    return [domain.attrs[place] for place in np.sort(rng.choice(len(domain.attrs), number, replace=False))]


def _drawn(table: Table, rng: np.random.Generator) -> Codes:
    """Its records; a random part of them where there are many."""
    codes = table.codes()
    if len(codes) <= MOST_RECORDS:
        return codes
    return codes[np.sort(rng.choice(len(codes), MOST_RECORDS, replace=False))]
