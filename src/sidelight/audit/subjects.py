"""The subjects of audits: every mechanism and every other way to spend, each where its loss is largest.

A subject runs with settings, and on tables, that leave nearly all of its budget to what the two neighbours
differ in: with other settings, less of it can be seen.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sidelight.audit import numbers
from sidelight.audit.neighbours import DOMAIN, OTHERS, UNITS, Asked, Case
from sidelight.audit.transcript import likelihood_ratios
from sidelight.data.table import Table
from sidelight.fit.private_pgm import MirrorDescent
from sidelight.mechanisms.registry import mechanism_of
from sidelight.privacy.budget import Budget
from sidelight.queries.query import Cell
from sidelight.queries.workload import Workload

WORKLOAD = Workload.marginals(DOMAIN, degree=1)
CELL = Workload([Cell(("a",), (0,))])
"""For mechanisms that measure one cell a round: the one that the neighbours differ in, whatever the unit."""
PUBLIC = Table.of_codes(DOMAIN, np.array([[0], [1]] * 10))
ZCDP = Budget(epsilon=8.0, delta=1e-6)
PURE = Budget(epsilon=2.0, delta=0.0)
_PUBLIC_TOTAL = tuple(name for name, unit in UNITS.items() if unit.total_is_public)


@dataclass(frozen=True, kw_only=True)
class Subject:
    """Something that spends, and how it is attacked."""

    case: Callable[[Asked], Case]
    budget: Budget = ZCDP
    is_one_shot: bool = False
    """Whether all is drawn at once; an attack then sees a large part of what is claimed."""
    runs: int = 2000
    """On each of the two tables, unless somebody says otherwise."""
    units: tuple[str, ...] = tuple(UNITS)
    """The units that it takes."""
    times: int = 2
    """How many times its records the planted bug gives a person."""


@dataclass(frozen=True)
class _Mechanism:
    """A mechanism with settings; attacked by all that it draws."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    public: Table | None = None
    workload: Workload = WORKLOAD

    def __call__(self, asked: Asked) -> Case:
        mechanism, tables = mechanism_of(self.name, dict(self.settings)), asked.tables
        public: Any = self.public
        if self.name == "aperture":  # fitted once, and not in every run
            public = mechanism.prior(PUBLIC, DOMAIN, self.workload.closure(DOMAIN))  # type: ignore[attr-defined]

        def statistic(table: Table, seed: int) -> Sequence[float]:
            return likelihood_ratios(
                mechanism,
                table,
                tables,
                self.workload,
                budget=asked.budget,
                unit=asked.unit,
                public=public,
                seed=seed,
            )

        return Case(tables, statistic, mechanism.allotment(asked.budget))


def _barak(**settings: Any) -> Callable[[Asked], Case]:
    """Half of the budget measures the total where that is private, so the person's records are to move it."""
    mechanism = _Mechanism("barak", {"passes": 1} | settings)
    return lambda asked: mechanism(replace(asked, leaves=True))


def _dualquery(asked: Asked) -> Case:
    """One round that sees the data, with as large a step as the budget pays for: ρ = s (2ηk/n)²/8.

    The other records are all as the first synthetic one, which no data decide on: where that already answers
    everything, a person decides what is drawn; with larger errors, chance would play no part.
    """
    asked = replace(asked, own=1, others=(0,) * 2 * OTHERS)
    draws, n = 12, 2 * OTHERS + asked.records
    share = 1.0 if asked.unit.total_is_public else 0.9
    step = 0.9 * math.sqrt(2 * share * float(asked.budget.rho()) / draws) * n / asked.unit.records
    settings = {"step": step, "queries_per_round": draws, "max_rounds": 2, "total_share": 0.1}
    return _Mechanism("dualquery", settings)(asked)


_ALL_TO_NOISE = {"rounds": 1, "select_share": 0.02}
_SHORT_FITS = {name: MirrorDescent(max_steps=10, polish_steps=1) for name in ("estimator", "final_estimator")}
"""How well a model fits what was drawn is nobody's secret."""
_TINY_NETWORK = {"steps": 1, "batch": 4, "latent": 2, "width": 2}
_APERTURE = {"max_rounds": 1, "one_way_share": 0.8, "max_asked_again": 1, "max_particle_rounds": 1}
"""One attribute has no relations, and the arbiter is not asked: tests/statistical/test_audit_aperture.py asks
it."""
SUBJECTS: dict[str, Subject] = {
    "hdmm": Subject(case=_Mechanism("hdmm"), is_one_shot=True),
    "ladder": Subject(case=_Mechanism("ladder"), is_one_shot=True),
    "ladder, pure": Subject(case=_Mechanism("ladder", {"accounting": "pure"}), budget=PURE, is_one_shot=True),
    "barak": Subject(case=_barak(), is_one_shot=True),
    "barak, pure": Subject(case=_barak(accounting="pure"), budget=PURE, is_one_shot=True),
    "mwem": Subject(case=_Mechanism("mwem", _ALL_TO_NOISE | {"passes": 1}), is_one_shot=True),
    "mwem, pure": Subject(
        case=_Mechanism("mwem", _ALL_TO_NOISE | {"passes": 1, "accounting": "pure"}),
        budget=PURE,
        is_one_shot=True,
    ),
    "mwem-pub": Subject(case=_Mechanism("mwem-pub", {"rounds": 1}, PUBLIC, CELL), times=4),
    "pmw-pub": Subject(case=_Mechanism("pmw-pub", _ALL_TO_NOISE, PUBLIC, CELL)),
    "aim": Subject(
        case=_Mechanism("aim", _SHORT_FITS | {"rounds_per_attribute": 2, "select_share": 0.02}), runs=400
    ),
    "mst": Subject(case=_Mechanism("mst", {"estimator": _SHORT_FITS["estimator"]}), runs=400),
    "jam": Subject(
        case=_Mechanism(
            "jam", _ALL_TO_NOISE | _SHORT_FITS | {"total_share": 0.02, "last_round": "private"}, PUBLIC
        ),
        runs=400,
    ),
    "aperture": Subject(case=_Mechanism("aperture", _APERTURE), runs=600),
    "dualquery": Subject(case=_dualquery, runs=300, times=4),
    "gem": Subject(case=_Mechanism("gem", _ALL_TO_NOISE | _TINY_NETWORK), runs=600),
    "gem-pub": Subject(
        case=_Mechanism("gem-pub", _ALL_TO_NOISE | _TINY_NETWORK | {"public_steps": 1}, PUBLIC), runs=600
    ),
    "mean": Subject(case=numbers.mean, budget=PURE, is_one_shot=True),
    "quantile": Subject(case=numbers.median, budget=PURE, is_one_shot=True),
    "screen": Subject(case=numbers.screen, budget=PURE, is_one_shot=True, units=_PUBLIC_TOTAL),
    "labels": Subject(case=numbers.labels, is_one_shot=True),
    "edges": Subject(case=numbers.edge, runs=1000),
}


def at_epsilon(subject: Subject, epsilon: float) -> Subject:
    """The same subject with another ε."""
    return replace(subject, budget=replace(subject.budget, epsilon=epsilon))
