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

from sidelight._check import is_number
from sidelight._foreign import ForeignError
from sidelight.data.domain import Domain
from sidelight.data.schema import Schema
from sidelight.errors import ReleaseError, SchemaError
from sidelight.models.graphical import GraphicalModel
from sidelight.models.support import Support
from sidelight.public.prior import Prior
from sidelight.releases.plain_folder import Columns, PlainFolder, reading, write_model

_PRIOR = PlainFolder(
    noun="prior",
    about="prior.json",
    format=5,
    fields=frozenset({"model", "records", "records_by_attribute", "others", "sample", "sample_share"}),
    remedy="Fit the prior again.",
)


def is_prior(folder: Path) -> bool:
    """Whether this folder describes itself as a prior."""
    return (folder / _PRIOR.about).is_file()


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
    if not is_number(number) or not 0 <= number < math.inf:
        raise ForeignError("it holds a number that is negative or not finite, or no number")
    return float(number)


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
