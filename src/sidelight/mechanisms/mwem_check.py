"""MWEM before a run: whether its settings and its workload fit, and the noise and memory to expect."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from sidelight import _check
from sidelight.data.domain import Attrs, Domain
from sidelight.errors import SettingError, TooLargeError
from sidelight.measurement import measuring, stddev_of
from sidelight.mechanisms.base import Outlook, total_and_rest
from sidelight.mechanisms.candidates import check_asks_attributes, marginal_stddev
from sidelight.models.components import Components, joined_by_impossible
from sidelight.privacy.budget import Cost, Rho
from sidelight.privacy.event import Gaussian, Laplace
from sidelight.privacy.unit import Unit
from sidelight.queries import workload as workloads
from sidelight.queries.query import Cell, Marginal, Query, expected_l1_noise

if TYPE_CHECKING:
    from sidelight.mechanisms.mwem import MWEM


def settings(mwem: "MWEM") -> None:
    """Refuse settings outside their range, or that contradict one another."""
    _check.positive_integer(rounds=mwem.rounds, max_component_cells=mwem.max_component_cells)
    _check.share(total_share=mwem.total_share, select_share=mwem.select_share)
    _check.one_of(("cuboids", "queries"), candidates=mwem.candidates)
    _check.one_of(("zcdp", "pure"), accounting=mwem.accounting)
    _check.one_of(("exponential", "permute-and-flip"), selection=mwem.selection)
    _check.one_of(("noise", "cell", "none"), penalty=mwem.penalty)
    _check.one_of(("last", "average"), output=mwem.output)
    _check.one_of(("auto", "histogram", "components"), model=mwem.model)
    _check.natural(passes=mwem.passes)
    _check.positive(step=mwem.step, histogram_floor=mwem.histogram_floor)
    if mwem.histogram_share != 0:
        _check.share(histogram_share=mwem.histogram_share)
    if mwem.model == "components" and (mwem.output == "average" or mwem.histogram_share):
        raise SettingError(
            "model='components' is a product: it can neither be averaged (output='average') nor start from "
            "a noisy histogram (histogram_share). Take output='last' and histogram_share=0, or "
            "model='histogram'."
        )


def workload(mwem: "MWEM", domain: Domain, asked: workloads.Workload) -> None:
    """Refuse queries that the domain cannot answer, and a workload that leaves nothing to select."""
    for query in asked:
        query.check(domain)
    check_asks_attributes(asked)
    if mwem.takes_components(domain):
        apart = joined_by_impossible(domain)
        largest = max(apart, key=domain.size)
        if domain.size(largest) > mwem.max_component_cells:
            raise TooLargeError(
                f"the schema's impossible combinations join {' × '.join(largest)}, {domain.size(largest):,} "
                f"cells, more than max_component_cells={mwem.max_component_cells}. Raise it, name fewer "
                "attributes in one combination, or, where δ is above 0, use mechanism='aim'."
            )
        start = Components.uniform(domain, total=1.0)
        smallest = min(start.cells_if_joined(attrs) for attrs in asked.attribute_sets if attrs)
        if smallest > mwem.max_component_cells:
            raise TooLargeError(
                f"the smallest query of the workload is about {smallest} cells, more than "
                f"max_component_cells={mwem.max_component_cells}. Raise it, or ask for smaller marginals."
            )


def noisiest(
    mwem: "MWEM", domain: Domain, asked: workloads.Workload, *, allotment: Cost, unit: Unit
) -> Iterator[Gaussian | Laplace]:
    """The measurements that a run may make: the total, the first histogram, every query at a round's cost."""
    total_cost, rest = total_and_rest(allotment, mwem.total_share, unit)
    if total_cost:
        yield measuring(Marginal(()), total_cost, unit)
    if mwem.histogram_share:
        yield measuring(Marginal(domain.attrs), rest.split(mwem.histogram_share)[0], unit)
    for query in asked:
        yield measuring(query, _measure_cost(mwem, rest), unit)


def noise(mwem: "MWEM", total: float, *, allotment: Cost, unit: Unit) -> None:
    """Refuse a budget so small that each answer's noise would exceed the number of records.

    Only where n is public: under add-or-remove n is paid for before it is known, so the run goes on.
    """
    sigma = stddev_of(_measured(mwem), _measure_cost(mwem, allotment), unit)
    if sigma <= total:
        return
    ratio = total / sigma
    sensible = math.floor(mwem.rounds * (ratio**2 if isinstance(allotment, Rho) else ratio))
    fewer = (
        f"Ask for rounds={sensible} at most, or" if sensible else "Even one round would have too much noise:"
    )
    raise SettingError(
        f"rounds={mwem.rounds} leaves so little budget for each round that its noise has a standard "
        f"deviation of {sigma:.3g}, more than the {total:.3g} records. {fewer} give the release a larger "
        "epsilon."
    )


def penalty(kind: str, cost: Cost, unit: Unit) -> float:
    """The number that is subtracted from a marginal's score for each of its cells."""
    if kind == "noise":
        sigma = marginal_stddev(cost, unit)
        # E|noise|: √(2/π) σ for Gaussian noise, b = σ/√2 for Laplace noise.
        return expected_l1_noise(1, sigma) if isinstance(cost, Rho) else sigma / math.sqrt(2)
    return 1.0 if kind == "cell" else 0.0


def outlook(
    mwem: "MWEM", domain: Domain, asked: workloads.Workload, *, allotment: Cost, unit: Unit
) -> Outlook:
    """Noise and memory, from public information alone."""
    sigma = round_stddev(mwem, allotment, unit)
    sizes = [domain.size(attrs) for attrs in asked.attribute_sets]
    notes = [f"Each measured number has noise of σ ≈ {sigma:.3g}; with fewer rounds it has less."]
    oversized: tuple[Attrs, ...] = ()
    if mwem.takes_components(domain):
        limit = mwem.max_component_cells
        oversized = tuple(attrs for attrs in asked.attribute_sets if domain.size(attrs) > limit)
        sizes = [size for size in sizes if size <= limit]
        # Each round makes or changes one component of two attributes or more.
        most = min(mwem.rounds, len(domain))
        model_bytes = 8 * (min(domain.size(), most * limit) + sum(domain.shape))
        notes.append(f"The model is a product of components of at most {limit} cells each.")
    else:
        model_bytes = 8 * domain.size() * (2 if mwem.output == "average" else 1)
    if len(set(asked.weights)) > 1:
        notes.append("MWEM measures the queries that it answers worst; the workload's weights are not used.")
    return Outlook(
        measurements=mwem.rounds + (mwem.histogram_share > 0),
        stddev=sigma,
        model_bytes=model_bytes,
        counting_bytes=8 * sum(sizes),
        oversized=oversized,
        notes=tuple(notes),
    )


def round_stddev(mwem: "MWEM", allotment: Cost, unit: Unit) -> float:
    """σ of each number that a round measures."""
    _, rest = total_and_rest(allotment, mwem.total_share, unit)
    return stddev_of(_measured(mwem), _measure_cost(mwem, rest), unit)


def _measure_cost(mwem: "MWEM", rest: Cost) -> Cost:
    _, for_rounds = rest.split(mwem.histogram_share)
    return (for_rounds / mwem.rounds).split(mwem.select_share)[1]


def _measured(mwem: "MWEM") -> Query:
    """A query with the sensitivity of those that are measured."""
    return Marginal(()) if mwem.candidates == "cuboids" else Cell((), ())
