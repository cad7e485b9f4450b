"""Private tables with public ones beside them: JAM's eight, and others to see what holds beyond them.

The others are neighbouring states (ACS income), the same state three years before (ACS employment), a
community against the nation or against another community (NIST's excerpts), and three of JAM's whose
public table lacks what the private one has: the upper 40% of an attribute, or its rarer values.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiment import data_folder, described
from sidelight.data.domain import Domain
from sidelight.data.table import Table

JAM = (*(f"adult{share}" for share in ("025", "050", "075", "100")), "titanic", "salary", "fire", "taxi")
OTHERS = (
    "income-pa-oh", "income-ga-ca", "employment-2018-2015", "nist-ma-national", "nist-tx-national",
    "nist-ma-tx", "adult025-lower-age", "salary-lower-annual-salary", "fire-common-Station Area",
)  # fmt: skip
PAIRS = JAM + OTHERS

_STATES = {"pa": "PA", "oh": "OH", "ga": "GA", "ca": "CA"}
_TOO_LARGE = ("OCCP", "POBP")
"""Occupations and places of birth, of hundreds of values each: left out."""


@cache
def load(name: str) -> tuple[Table, Table]:
    """Private and public table of a pair."""
    family, *rest = name.split("-", 2)
    if family == "income":
        return _split("acs_income_2018", "STATE", [_STATES[part] for part in rest])
    if family == "employment":
        return _split("acs_employment_ma_2015_2018", "YEAR", [int(part) for part in rest])
    if family == "nist":
        domain = Domain.of(_sizes("nist_acs_coded"))
        private, public = (_table(domain, _columns(f"nist_acs_{part}2019_coded")) for part in rest)
        return private, public
    stem, part = ("jam_adult", f"pub{family[5:]}") if family.startswith("adult") else (f"jam_{family}", "pub")
    domain = Domain.of(_sizes(stem))
    private, public = (_table(domain, _columns(f"{stem}.{one}")) for one in ("priv", part))
    return private, (_lacking(public, *rest) if rest else public)


def private_name(name: str) -> str:
    """What the private table alone is called: several pairs may share it."""
    family, *rest = name.split("-", 2)
    if family.startswith("adult"):
        return "adult"
    return family if family in JAM else f"{family}-{rest[0]}"


def with_private(name: str) -> str:
    """A pair whose private table has this name, or which has it itself."""
    return next(pair for pair in PAIRS if name in (pair, private_name(pair)))


def _lacking(table: Table, what: str, attr: str) -> Table:
    """Without the records whose attribute is among the upper 40%, or rarer than most."""
    codes = table.codes()
    values = codes[:, table.domain.attrs.index(attr)]
    if what == "lower":
        kept = values <= np.quantile(values, 0.6)
    else:
        counts = np.bincount(values)
        kept = counts[values] >= np.median(counts[counts > 0])
    return Table.of_codes(table.domain, codes[kept])


def _split(stem: str, by: str, wanted: list[Any]) -> tuple[Table, Table]:
    """Two sub-populations of one file of raw codes."""
    values = {attr: _values(one) for attr, one in described(stem).items() if attr not in _TOO_LARGE}
    domain = Domain.of({attr: len(found) for attr, found in values.items()})
    columns = _columns(stem)
    coded = {attr: np.searchsorted(found, columns[attr]) for attr, found in values.items()}
    private, public = (
        _table(domain, {attr: codes[columns[by] == part] for attr, codes in coded.items()}) for part in wanted
    )
    return private, public


def _values(attr: Mapping[str, Any]) -> NDArray[Any]:
    if "values" in attr:
        return np.sort(np.asarray(attr["values"]))
    return np.arange(attr["min"], attr["max"] + 1)


def _sizes(stem: str) -> dict[str, int]:
    return {attr: one if isinstance(one, int) else one["size"] for attr, one in described(stem).items()}


def _columns(name: str) -> dict[str, NDArray[Any]]:
    import pyarrow.parquet as pq

    table = pq.read_table(data_folder() / f"{name}.parquet")
    return {column: table[column].to_numpy() for column in table.column_names}


def _table(domain: Domain, columns: Mapping[str, NDArray[Any]]) -> Table:
    return Table.of_codes(domain, np.stack([columns[attr] for attr in domain.attrs], axis=1))
