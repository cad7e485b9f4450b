"""Real tables as codes, for the PMW-Pub scripts in ``speed`` and ``utility``.

All bins are fixed beforehand and public; no code depends on the records of any table.
"""

from functools import cache
from typing import Any

import numpy as np

from experiment import columns, described
from sidelight.data.domain import Domain
from sidelight.data.table import Table


@cache
def _columns(name: str) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    return columns(name), described(name)


def _codes(values: np.ndarray, spec: dict[str, Any]) -> tuple[np.ndarray, int]:
    if spec["kind"] == "integer":
        return values - spec["min"], spec["max"] - spec["min"] + 1
    return np.searchsorted(np.array(spec["values"]), values), len(spec["values"])


def employment(year: int) -> Table:
    """Massachusetts in one year: 17 attributes by the domain file, every value its own code."""
    values_of, specs = _columns("acs_employment_ma_2015_2018")
    coded = {attr: _codes(values_of[attr], spec) for attr, spec in specs.items()}
    domain = Domain.of({attr: size for attr, (_, size) in coded.items()})
    is_year = values_of["YEAR"] == year
    return Table.of_codes(domain, np.stack([codes[is_year] for codes, _ in coded.values()], axis=1))


OCCUPATIONS = (0, 500, 800, 1000, 1300, 1600, 2000, 2100, 2200, 2600, 3000, 3600, 3700, 4000, 4200, 4300,
               4700, 5000, 6000, 6200, 6800, 7000, 7700, 9000, 9800)  # fmt: skip
"""First codes of the Census's major occupation groups (2018)."""
BIRTHPLACES = (0, 60, 100, 200, 300, 400, 500)
"""First codes of: the states, US territories, Europe, Asia, the rest of the Americas, Africa, Oceania."""


def income(state: str) -> Table:
    """One state in 2018: 11 attributes; age by 5 years, hours by 10, occupation and birthplace by groups."""
    values_of, specs = _columns("acs_income_2018")
    coded: dict[str, tuple[np.ndarray, int]] = {}
    for attr, spec in specs.items():
        values = values_of[attr]
        if attr == "AGEP":
            coded[attr] = (values - 15) // 5, 17
        elif attr == "WKHP":
            coded[attr] = values // 10, 10
        elif attr == "OCCP":
            coded[attr] = np.searchsorted(OCCUPATIONS, values, side="right") - 1, len(OCCUPATIONS)
        elif attr == "POBP":
            coded[attr] = np.searchsorted(BIRTHPLACES, values, side="right") - 1, len(BIRTHPLACES)
        else:
            coded[attr] = _codes(values, spec)
    domain = Domain.of({attr: size for attr, (_, size) in coded.items()})
    is_state = values_of["STATE"] == state
    return Table.of_codes(domain, np.stack([codes[is_state] for codes, _ in coded.values()], axis=1))


def adult() -> tuple[Domain, np.ndarray]:
    """ADULT as the PMW-Pub authors code it, without raw age and the doubled education: 13 attributes."""
    values_of, sizes = _columns("adult_pmwpub_coded")
    kept = {attr: size for attr, size in sizes.items() if attr not in ("age", "education")}
    return Domain.of(kept), np.stack([values_of[attr] for attr in kept], axis=1)
