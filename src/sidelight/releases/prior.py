"""``sl.prior``: a model of public data, fitted once for many releases."""

from pathlib import Path
from typing import Any

from sidelight.data.schema import Schema
from sidelight.mechanisms.aperture.aperture import Aperture
from sidelight.public.prior import Prior
from sidelight.queries.workload import Workload
from sidelight.releases.prior_folder import save_prior
from sidelight.releases.public_data import read_public


def prior(
    public: Any,
    *,
    schema: Schema | str | Path,
    workload: Any = "3-way",
    max_model_mb: float = 80.0,
    out: str | Path | None = None,
) -> Prior:
    """Fit a model of PUBLIC data, for use as ``public`` in many releases. It costs no privacy.

    Args:
        public: public tables or earlier releases, one or a list.
        schema: columns, bins and labels; or the path of a schema file.
        workload: the queries that the releases will be asked.
        max_model_mb: size limit of the model, the same as in those releases.
        out: a folder to keep the model in; ``sl.release(…, public="that folder")`` reads it.
    """
    known = Schema.of(schema)
    closure = Workload.of(workload, known.domain).closure(known.domain)
    fitted = Aperture(max_model_mb=max_model_mb).prior(read_public(public, known), known.domain, closure)
    if out is not None:
        save_prior(fitted, known, Path(out))
    return fitted
