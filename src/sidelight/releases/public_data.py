"""Public data as a plan takes them: a table, a prior, an earlier release's model, or several of these."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight._check import listed
from sidelight.data.domain import Domain
from sidelight.data.fingerprint import digest, marks_of
from sidelight.data.schema import Schema
from sidelight.data.table import Table
from sidelight.errors import SchemaError, SettingError
from sidelight.models.model import Model
from sidelight.models.support import Support
from sidelight.privacy.marks import Marks
from sidelight.public.prior import Prior
from sidelight.public.source import PublicSource, WeightedRecords, records_telling
from sidelight.releases.prior_folder import is_prior, load_prior
from sidelight.releases.public_table import read_public_table
from sidelight.releases.release import Release

_SEED = 0
"""Draws the records of a release under another schema, and points within its bins; it protects nobody."""


def read_public(source: Any, schema: Schema, remarks: list[str] | None = None) -> Any:
    """Public data of any accepted kind: a prior's folder, a release's folder, a table, or a list of them.

    A fitted Prior and records that this schema encoded are returned as they are; of an earlier release its
    model is returned. Records that another schema encoded are decoded, and read like any table. ``remarks``
    gets the card's sentences about values that do not fit.
    """
    if isinstance(source, list | tuple):
        return [read_public(one, schema, remarks) for one in source]
    if isinstance(source, str | Path) and (folder := Path(source)).is_dir():
        if is_prior(folder):
            return load_prior(folder, schema)
        if (folder / "release.json").is_file():
            source = Release.load(folder)
    if isinstance(source, Release):
        if _is_encoded_by(source.schema, schema):
            _require_same_sizes(source, schema)
            return source.model
        return read_public_table(replace(source, kind="pyarrow").sample(seed=_SEED), schema, remarks)
    if isinstance(source, Table):
        if source.domain == schema.domain and _is_encoded_by(source.schema, schema):
            return Table.read(source, schema)  # with this schema's impossible combinations
        if not _is_encoded_by(source.schema, schema):
            return read_public_table(source.decode(seed=_SEED), schema, remarks)
    if isinstance(source, Prior | Table | Model | PublicSource):
        return source
    return read_public_table(source, schema, remarks)


def each_given(public: Any) -> list[Any]:
    """Public data that were given as one source, as several, or as None: as a list."""
    return list(public) if isinstance(public, list | tuple) else [] if public is None else [public]


def told_table(public: Any, schema: Schema, use: str) -> Table:
    """The public records over the columns that they tell of, each once, for a use that needs records."""
    found = read_public(public, schema)
    if isinstance(found, Model) and set(found.domain.attrs) == set(schema.domain.attrs):
        # An earlier release, as its synthetic records.
        drawn = found.sample(max(1, round(found.total)), seed=_SEED)
        places = [drawn.domain.attrs.index(attr) for attr in schema.domain.attrs]
        found = Table.of_codes(schema.domain, drawn.codes()[:, places], schema=schema)
    if isinstance(found, WeightedRecords):
        told = [attr for attr in found.domain.attrs if found.records_of([attr])]
        found = found.only(told).whole if told else None
    if not isinstance(found, Table):
        raise SettingError(
            f"{use} needs one public table whose records tell of several columns at a time; a prior "
            "or a list of tables is none. Give one table."
        )
    return found


def records_by_attribute(public: Any, domain: Domain) -> dict[str, float]:
    """How many public records tell of each attribute, of what ``read_public`` returned."""
    if isinstance(public, Prior):
        return dict(public.records_by_attribute)
    if isinstance(public, list | tuple):
        parts = [records_by_attribute(one, domain) for one in public]
        return {attr: sum(part[attr] for part in parts) for attr in domain.attrs}
    if isinstance(public, Model):
        return {attr: public.total if attr in public.domain else 0.0 for attr in domain.attrs}
    return {attr: records_telling(public, [attr]) for attr in domain.attrs}


def one_way_counts(public: Any, domain: Domain) -> dict[str, NDArray[np.float64]]:
    """How many public records have each value of each attribute that they tell of."""
    found: dict[str, NDArray[np.float64]] = {}
    for one in each_given(public):
        source = one.model if isinstance(one, Prior) else one
        attrs = [attr for attr in domain.attrs if attr in source.domain]
        for attr in attrs:
            found[attr] = found.get(attr, 0.0) + np.asarray(source.count((attr,)), dtype=np.float64)
    return found


def whole_records(public: Any, domain: Domain) -> Model | None:
    """Public data as a model that can be asked like a release: the records that have every attribute.

    Of several sources, the first that has such records; None where none has.
    """
    for one in each_given(public):
        source = one.model if isinstance(one, Prior) else one
        if isinstance(source, WeightedRecords):
            source = source.support
        elif isinstance(source, Table):
            source = Support.of_table(source, total=source.records)
        if isinstance(source, Model) and source.domain.attrs == domain.attrs:
            return source
    return None


def told_of(records: Mapping[str, float]) -> Iterator[str]:
    """Which columns public data tell of, in phrases; at last those that they say nothing of.

    >>> list(told_of({"age": 500.0, "income": 0.0, "sex": 500.0}))
    ['500 records tell of age, sex', 'nothing is told of income']
    """
    by_number: dict[int, list[str]] = {}
    for attr, number in sorted(records.items(), key=lambda one: -one[1]):
        by_number.setdefault(round(number), []).append(attr)
    for number, attrs in by_number.items():
        names = listed(attrs, 12)
        yield f"{number:,} records tell of {names}" if number else f"nothing is told of {names}"


def marks_of_public(public: Any, key: str) -> dict[str, Marks]:
    """The marks (keyed digests) of what ``read_public`` returned, one set for each public input."""
    given = each_given(public)
    return {
        f"public {place}" if len(given) > 1 else "public": _marks(one, key)
        for place, one in enumerate(given, start=1)
    }


def _marks(public: Any, key: str) -> Marks:
    if isinstance(public, Table) and public.is_in_memory:
        return marks_of(public, None, key)
    models: list[Model] = []
    if isinstance(public, Prior):
        models = [public.model, *public.others, *([] if public.sample is None else [public.sample])]
    elif isinstance(public, Model):
        models = [public]
    arrays = [array for model in models for array in model.state().arrays.values()]
    if not models:
        # A table that is not in memory, or weighted: it is recognised by its one-way marginals.
        arrays = [np.asarray(counts) for counts in public.count_many([(a,) for a in public.domain.attrs])]
    return {"counts": digest((np.ascontiguousarray(array).tobytes() for array in arrays), key)}


def _require_same_sizes(release: Release, schema: Schema) -> None:
    """Refuse a release whose codes cannot mean what they mean in the schema."""
    sizes = schema.domain.sizes
    if any(sizes.get(attr) != size for attr, size in release.model.domain.sizes.items()):
        raise SchemaError("the release was made under another schema, so it cannot be public data here.")


def _is_encoded_by(own: Schema | None, schema: Schema) -> bool:
    """Whether codes made by ``own`` mean the same in ``schema``; codes without a schema are taken to."""
    return own is None or all(column in schema.columns for column in own.columns)
