"""Candidates of the graphical-model mechanisms: the downward closure, kept within a model size."""

from collections.abc import Iterable, Sequence
from typing import Literal

from sidelight.data.domain import Attrs, Domain
from sidelight.errors import TooLargeError, WorkloadError
from sidelight.measurement import stddev_of
from sidelight.privacy.budget import Cost
from sidelight.privacy.unit import Unit
from sidelight.queries.query import Marginal
from sidelight.queries.workload import Workload
from sidelight.trees.triangulation import BYTES_PER_CELL, SizeOracle

Oversized = Literal["refuse", "skip"]


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
    oracle = SizeOracle(domain, measured)
    cells = oracle.cells_with_each(wanted)
    kept = [
        attrs
        for attrs, size in zip(wanted, cells, strict=True)
        if oracle.contains(attrs) or mib(size) <= limit_mb
    ]
    return kept or [attrs for attrs in wanted if len(attrs) == 1]


def oversized_marginals(domain: Domain, workload: Workload, *, limit_mb: float) -> tuple[Attrs, ...]:
    """The marginals of the workload that no model within the limit could hold: they are never measured."""
    return tuple(attrs for attrs in workload.attribute_sets if mib(domain.size(attrs)) > limit_mb)


def check_sizes(
    domain: Domain, workload: Workload, *, limit_mb: float, oversized: Oversized, name: str
) -> None:
    """Refuse a workload that the model could never answer, before anything is charged."""
    if not workload.only_marginals:
        raise WorkloadError(
            f"mechanism {name!r} takes whole marginals, but the workload holds other queries. "
            "Ask for the marginals that they are computed from, or use mechanism='mwem'."
        )
    if not any(workload.attribute_sets):
        raise WorkloadError("the workload asks for the total alone; name at least one attribute.")
    check_model_room(domain, limit_mb=limit_mb)
    if oversized == "skip":
        return
    for attrs in oversized_marginals(domain, workload, limit_mb=limit_mb):
        raise TooLargeError(
            f"the marginal {' × '.join(attrs)} of the workload needs {mib(domain.size(attrs)):.3g} MB, above "
            f"max_model_mb = {limit_mb:g}: it could never be measured. Raise max_model_mb, coarsen its "
            "attributes, take it out of the workload, or have it answered from smaller marginals "
            "(oversized='skip')."
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
