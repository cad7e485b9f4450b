"""Marginals as mechanisms measure them: their noise, their checks, the candidates a model has room for."""

from collections.abc import Container, Iterable, Sequence
from functools import lru_cache
from typing import Literal

from sidelight.curator.curator import Curator
from sidelight.data.domain import Attrs, Domain
from sidelight.errors import TooLargeError, WorkloadError
from sidelight.measurement import Measurement, noise_stddev, stddev_of
from sidelight.privacy.budget import Cost
from sidelight.privacy.unit import Unit
from sidelight.queries.query import Marginal
from sidelight.queries.residual import Residual
from sidelight.queries.workload import Workload
from sidelight.trees.triangulation import BYTES_PER_CELL, SizeOracle

Oversized = Literal["refuse", "skip"]

MOST_CANDIDATES = 25_000
"""Most marginals, with all that lie below them, among which rounds select: all pairs of 200 attributes are
20,100. Among these AIM by residuals takes three quarters of a minute (benchmarks/speed/wide.py)."""
MOST_PRICED = 2_000_000
"""Most candidates times attributes, where every round prices a tree for each candidate: all pairs of 158
attributes. APERTURE takes more than two minutes of processor time for 100 attributes (505,000); for 200
(4,020,000) five minutes brought it through eight of 36 rounds (benchmarks/speed/wide.py)."""
_MOST_NUMBERS = 2**32
"""Most cells of all candidates together, as declared: a round that compares so many takes a minute or more.
Values that are modelled in groups (bins.py) are fewer."""


def mib(cells: int) -> float:
    """Size of that many cells in MiB, as the papers count model size."""
    return cells * BYTES_PER_CELL / 2**20


def marginal_stddev(cost: Cost, unit: Unit) -> float:
    """σ of any marginal measured at this cost."""
    return stddev_of(Marginal(()), cost, unit)


def tractable(
    domain: Domain, measured: Iterable[Attrs], wanted: Sequence[Attrs], *, limit_mb: float
) -> list[Attrs]:
    """The wanted marginals that, added to the measured ones, keep the model within the size limit.

    A marginal inside a clique of the model adds nothing to it and always passes. If no marginal
    passes, the one-way marginals do (spec 6.4, 9.4 J22).
    """
    # PRIVACY: sizes follow from the domain and from past selections, both public.
    oracle = _oracle(domain, domain.impossible, frozenset(map(frozenset, measured)))
    fits = oracle.fits_each(wanted, most_cells=limit_mb * 2**20 / BYTES_PER_CELL)
    kept = [attrs for attrs, is_small in zip(wanted, fits, strict=True) if is_small or oracle.contains(attrs)]
    return kept or [attrs for attrs in wanted if len(attrs) == 1]


@lru_cache(maxsize=2)
def _oracle(domain: Domain, _key: object, measured: frozenset[frozenset[str]]) -> SizeOracle:
    """The sizes of models with these marginals; rounds ask again while the measured marginals stay the same.

    Impossible combinations are part of the key, since domains compare equal without them.
    """
    return SizeOracle(domain, measured)


def take_marginals(
    curator: Curator, closure: Container[Attrs], *, limit_mb: float, most: int | None = None
) -> list[Measurement]:
    """Marginals of earlier releases that a graphical model starts from: small ones first, within the limit.

    Each must be in the closure, and have at most ``most`` attributes. The answer to a marginal that has no
    room is left, and averaged with the new one if the run measures that marginal again.
    """
    domain = curator.domain

    def is_asked(made: Measurement) -> bool:
        attrs = made.query.attrs
        is_small = most is None or len(attrs) <= most
        return isinstance(made.query, Marginal) and is_small and domain.canonical(attrs) in closure

    taken: list[Measurement] = []
    asked = filter(is_asked, curator.earlier)
    for made in sorted(asked, key=lambda one: (len(one.query.attrs), one.stddev)):
        attrs = made.query.attrs
        if attrs in tractable(domain, [one.query.attrs for one in taken], [attrs], limit_mb=limit_mb):
            taken.append(made)
    curator.take_earlier(lambda made: any(made is one for one in taken))
    return taken


def take_residuals(curator: Curator, closure: Container[Attrs]) -> list[Measurement]:
    """Marginals and residuals of earlier releases, however many: reconstruction by residuals has no tree."""
    domain = curator.domain
    return curator.take_earlier(
        lambda made: (
            isinstance(made.query, Marginal | Residual)
            and (not made.query.attrs or domain.canonical(made.query.attrs) in closure)
        )
    )


def is_known(measured: Sequence[Measurement], attrs: Attrs, domain: Domain, stddev: float) -> bool:
    """Whether a marginal is known at least as well as if it were measured with this noise."""
    known = noise_stddev(measured, attrs, domain)
    return known is not None and known <= stddev


def oversized_marginals(domain: Domain, workload: Workload, *, limit_mb: float) -> tuple[Attrs, ...]:
    """The marginals of the workload that no model within the limit could hold: they are never measured."""
    return tuple(attrs for attrs in workload.attribute_sets if mib(domain.size(attrs)) > limit_mb)


def check_only_marginals(workload: Workload, *, name: str) -> None:
    """Refuse other queries than whole marginals."""
    if not workload.only_marginals:
        raise WorkloadError(
            f"mechanism {name!r} takes whole marginals, but the workload holds other queries. "
            "Ask for the marginals that they are computed from, or use mechanism='mwem' ('hdmm' for ranges)."
        )


def check_asks_attributes(workload: Workload) -> None:
    """Refuse a workload that asks for the total alone."""
    if not workload.attrs:
        raise WorkloadError("the workload asks for the total alone; name at least one attribute.")


def check_sizes(
    domain: Domain, workload: Workload, *, limit_mb: float, oversized: Oversized, name: str
) -> None:
    """Refuse a workload that the model could never answer, before anything is charged."""
    check_only_marginals(workload, name=name)
    check_asks_attributes(workload)
    check_model_room(domain, limit_mb=limit_mb)
    check_candidates(domain, workload, limit_mb=limit_mb, name=name)
    if oversized == "skip":
        return
    for attrs in oversized_marginals(domain, workload, limit_mb=limit_mb):
        raise TooLargeError(
            f"the marginal {' × '.join(attrs)} of the workload needs {mib(domain.size(attrs)):.3g} MB, above "
            f"max_model_mb = {limit_mb:g}: it could never be measured. Raise max_model_mb, coarsen its "
            "attributes, take it out of the workload, or have it answered from smaller marginals "
            "(oversized='skip')."
        )


def check_candidates(domain: Domain, workload: Workload, *, limit_mb: float, name: str) -> None:
    """Refuse more candidates, or more of their cells, than rounds can look at in reasonable time."""
    # PRIVACY: the schema, the workload and the settings alone are asked.
    about = len(workload.attrs)
    instead = (
        "Ask for fewer or lower marginals, name those that matter in a file, or draw some "
        "(Workload.random_marginals); without public data mechanism='mst' takes any number of them, since "
        f"it measures {max(about - 1, 1):,} pairs along a tree of the {about:,} attributes."
    )
    if has_too_many(domain, workload):
        raise TooLargeError(
            f"mechanism {name!r} compares its model in every round with every marginal of the workload, and "
            f"with those below them: {len(workload):,} are asked for, and together they are more than the "
            f"{MOST_CANDIDATES:,} that it takes. {instead}"
        )
    closure = workload.closure(domain)
    cells = sum(size for attrs in closure if mib(size := domain.size(attrs)) <= limit_mb)
    if cells > _MOST_NUMBERS:
        raise TooLargeError(
            f"mechanism {name!r} compares its model in every round with {len(closure):,} marginals, which "
            f"have {cells:,} cells together ({cells * BYTES_PER_CELL / 2**30:,.0f} GB), more than the "
            f"{_MOST_NUMBERS:,} that it takes. Coarsen attributes, or lower max_model_mb with "
            f"oversized='skip', which leaves out the largest. {instead}"
        )


def has_too_many(domain: Domain, workload: Workload) -> bool:
    """Whether a workload, with what lies below it, has more marginals than rounds can select among."""
    # What lies below a large workload takes long to be listed.
    sets = workload.attribute_sets
    return len(sets) > MOST_CANDIDATES or len(workload.closure(domain)) > MOST_CANDIDATES


def has_too_many_trees(domain: Domain, workload: Workload) -> bool:
    """Whether pricing a tree for each marginal of a workload, and of what lies below it, takes too long."""
    if len(workload.attribute_sets) * len(domain) > MOST_PRICED:
        return True
    return len(workload.closure(domain)) * len(domain) > MOST_PRICED


def check_trees(domain: Domain, workload: Workload, *, name: str) -> None:
    """Refuse more trees, or larger ones, than rounds can price in reasonable time."""
    # PRIVACY: the schema and the workload alone are asked.
    if has_too_many_trees(domain, workload):
        many = len(workload.closure(domain))
        raise TooLargeError(
            f"mechanism {name!r} prices, in every round, a tree of {len(domain):,} attributes for each of "
            f"{many:,} marginals; {len(domain):,} × {many:,} is more than the {MOST_PRICED:,} that it takes. "
            "Ask for fewer marginals, or leave attributes out of the schema; without public data "
            "mechanism='aim' and mechanism='mst' take this many, since they price no such trees."
        )


def check_model_room(domain: Domain, *, limit_mb: float) -> None:
    """Refuse a limit within which no graphical model of the domain has room."""
    if domain.impossible and mib(SizeOracle(domain).cells) > limit_mb:
        cells = SizeOracle(domain).cells
        raise TooLargeError(
            f"max_model_mb = {limit_mb:g} cannot hold the schema's impossible combinations, whose attributes "
            f"must stand together in the model ({mib(cells):.3g} MB). Raise max_model_mb, or name fewer "
            "attributes in one combination."
        )
    if mib(max(domain.shape)) > limit_mb:
        widest = domain.attrs[domain.shape.index(max(domain.shape))]
        raise TooLargeError(
            f"max_model_mb = {limit_mb:g} cannot hold even the one-way marginal of {widest!r} "
            f"({mib(max(domain.shape)):.3g} MB). Raise max_model_mb, or give {widest!r} fewer values."
        )
