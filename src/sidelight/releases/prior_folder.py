"""A fitted prior on disk: plain files, a version, and no pickle.

prior.json              format, records, attribute sets, shapes, and a checksum for each other file
schema.toml             the schema that the prior was fitted under
model.<name>.parquet    one column of numbers per potential of the public model q
other<k>.<name>.parquet the same for the other trees
sample.<name>.parquet   public records and their weights, if the prior keeps some
"""

import math
from pathlib import Path
from typing import Any

import numpy as np

from sidelight._foreign import ForeignError
from sidelight.data.domain import Domain
from sidelight.data.fingerprint import digest, marks_of
from sidelight.data.schema import Schema
from sidelight.data.table import Table
from sidelight.errors import ReleaseError, SchemaError
from sidelight.models.graphical import GraphicalModel
from sidelight.models.model import Model
from sidelight.models.support import Support
from sidelight.privacy.marks import Marks
from sidelight.public.prior import Prior
from sidelight.releases.plain_folder import Columns, PlainFolder, reading, write_model
from sidelight.releases.release import Release

_PRIOR = PlainFolder(
    noun="prior",
    about="prior.json",
    format=5,
    fields=frozenset({"model", "records", "records_by_attribute", "others", "sample", "sample_share"}),
    remedy="Fit the prior again.",
)


def read_public(source: Any, schema: Schema) -> Any:
    """Public data of any accepted kind: a prior's folder, a release's folder, a table, or a list of them.

    A fitted Prior and an encoded Table are returned as they are; of an earlier release, its model is.
    """
    if isinstance(source, list | tuple):
        return [read_public(one, schema) for one in source]
    if isinstance(source, str | Path) and (folder := Path(source)).is_dir():
        if (folder / _PRIOR.about).is_file():
            return load_prior(folder, schema)
        if (folder / "release.json").is_file():
            return _same_domain(Release.load(folder), folder, schema).model
    if isinstance(source, Table) and source.domain == schema.domain:
        return Table.read(source, schema)  # with this schema's impossible combinations
    if isinstance(source, Release):
        return source.model
    if isinstance(source, Prior | Table) or hasattr(source, "count_many"):
        return source
    return Table.read(source, schema)


def marks_of_public(public: Any, key: str) -> dict[str, Marks]:
    """The marks (keyed digests) of what ``read_public`` returned, one set for each public input."""
    listed = public if isinstance(public, list | tuple) else [] if public is None else [public]
    return {
        f"public {place}" if len(listed) > 1 else "public": _marks(one, key)
        for place, one in enumerate(listed, start=1)
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
    if (
        not models
    ):  # a table that is not in memory, or weighted: its one-way marginals identify it well enough
        arrays = [np.asarray(counts) for counts in public.count_many([(a,) for a in public.domain.attrs])]
    return {"counts": digest((np.ascontiguousarray(array).tobytes() for array in arrays), key)}


def save_prior(prior: Prior, schema: Schema, folder: Path) -> Path:
    """Write the folder whole or not at all."""
    return _PRIOR.write(folder, lambda building: _write(prior, schema, building))


def load_prior(folder: Path, schema: Schema | None = None) -> Prior:
    """Read what ``save_prior`` wrote; refuse it under another schema."""
    about = _PRIOR.read(folder)
    if "schema.toml" not in about["checksums"]:
        raise ReleaseError(f"{folder} holds no schema.toml, or no checksum of it. {_PRIOR.remedy}")
    fitted = Schema.read(folder / "schema.toml")
    if schema is not None and fitted.domain != schema.domain:
        differing = sorted(set(fitted.domain.sizes.items()) ^ set(schema.domain.sizes.items()))
        named = ", ".join(sorted({repr(attr) for attr, _ in differing})) or "the order of columns"
        raise SchemaError(
            f"the prior in {folder} was fitted under another schema; they differ in {named}. "
            "Fit it again with `sidelight prior fit` and this schema."
        )
    domain, columns = fitted.domain, Columns(folder, about["checksums"])
    with reading(folder / _PRIOR.about, _PRIOR.remedy):
        sample = about["sample"]
        return Prior(
            GraphicalModel.from_state(domain, columns.model(about["model"])),
            _by_attribute(about["records_by_attribute"], domain),
            _at_least_0(about["records"]),
            tuple(
                GraphicalModel.from_state(domain, columns.model(other, stem=f"other{place}"))
                for place, other in enumerate(about["others"])
            ),
            None if sample is None else Support.from_state(domain, columns.model(sample, stem="sample")),
            min(_at_least_0(about["sample_share"]), 1.0),
        )


def _by_attribute(said: dict[str, Any], domain: Domain) -> dict[str, float]:
    domain.require(said)
    return {attr: _at_least_0(number) for attr, number in said.items()}


def _at_least_0(number: Any) -> float:
    if not isinstance(number, int | float) or isinstance(number, bool) or not 0 <= number < math.inf:
        raise ForeignError("it holds a number that is negative, not finite, or none")
    return float(number)


def _same_domain(release: Release, folder: Path, schema: Schema) -> Release:
    if release.model.domain != schema.domain:
        raise SchemaError(
            f"the release in {folder} was made under another schema, so it cannot be public data here."
        )
    return release


def _write(prior: Prior, schema: Schema, folder: Path) -> dict[str, Any]:
    schema.write(folder / "schema.toml")
    return {
        "records": prior.records,
        "records_by_attribute": dict(prior.records_by_attribute),
        "others": [
            write_model(other.state(), folder, stem=f"other{place}")
            for place, other in enumerate(prior.others)
        ],
        "sample_share": prior.sample_share,
        "sample": None if prior.sample is None else write_model(prior.sample.state(), folder, stem="sample"),
        "model": write_model(prior.model.state(), folder),
    }
