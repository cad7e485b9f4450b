"""Public data as a plan takes them: a table, a prior, an earlier release's model, or several of these."""

from pathlib import Path
from typing import Any

import numpy as np

from sidelight.data.fingerprint import digest, marks_of
from sidelight.data.schema import Schema
from sidelight.data.table import Table
from sidelight.errors import SchemaError
from sidelight.models.model import Model
from sidelight.privacy.marks import Marks
from sidelight.public.prior import Prior
from sidelight.public.source import PublicSource
from sidelight.releases.prior_folder import is_prior, load_prior
from sidelight.releases.release import Release


def read_public(source: Any, schema: Schema) -> Any:
    """Public data of any accepted kind: a prior's folder, a release's folder, a table, or a list of them.

    A fitted Prior and an encoded Table are returned as they are; of an earlier release, its model is.
    """
    if isinstance(source, list | tuple):
        return [read_public(one, schema) for one in source]
    if isinstance(source, str | Path) and (folder := Path(source)).is_dir():
        if is_prior(folder):
            return load_prior(folder, schema)
        if (folder / "release.json").is_file():
            return _same_domain(Release.load(folder), folder, schema).model
    if isinstance(source, Table) and source.domain == schema.domain:
        return Table.read(source, schema)  # with this schema's impossible combinations
    if isinstance(source, Release):
        return source.model
    if isinstance(source, Prior | Table | Model | PublicSource):
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
    if not models:
        # A table that is not in memory, or weighted: it is recognised by its one-way marginals.
        arrays = [np.asarray(counts) for counts in public.count_many([(a,) for a in public.domain.attrs])]
    return {"counts": digest((np.ascontiguousarray(array).tobytes() for array in arrays), key)}


def _same_domain(release: Release, folder: Path, schema: Schema) -> Release:
    if release.model.domain != schema.domain:
        raise SchemaError(
            f"the release in {folder} was made under another schema, so it cannot be public data here."
        )
    return release
