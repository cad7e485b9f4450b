"""What may be published: a model, the measurements behind it, and what they cost."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np

from sidelight.data.schema import Schema
from sidelight.data.table import Table
from sidelight.estimate.model import Array, Model
from sidelight.measure.combine import noise_stddev
from sidelight.measure.measurement import Measurement
from sidelight.privacy.event import Event


@dataclass(frozen=True, eq=False)
class Release:
    """All that may be published. No field leads back to the private table.

    Counting, answering, sampling and saving cost no privacy, however often they are done.
    """

    model: Model
    measurements: tuple[Measurement, ...]
    events: tuple[Event, ...]
    schema: Schema | None = None
    """How codes become values again; None for a release of codes."""
    card: dict[str, Any] = field(default_factory=dict)
    """Mechanism, settings, unit, ε, δ, ρ spent, events, versions, noise source."""
    kind: str = "pyarrow"
    """The kind of frame that came in, and that goes out."""

    @property
    def total(self) -> float:
        """n, public or noisy."""
        return self.model.total

    def count(self, attrs: Iterable[str] | str) -> Array:
        """Released counts over these attributes, axes in the order asked, scaled to the total."""
        return np.asarray(self.model.count(_names(attrs)), dtype=np.float64)

    def answer(self, attrs: Iterable[str] | str, *, confidence: float = 0.95) -> Any:
        """A frame of one record a cell: values, estimate, standard error, interval and source.

        The standard error is that of the noise, for what was measured (alone, or as part of a
        larger marginal); elsewhere it is missing, and the source says ``model``. It does not
        cover what the model smooths over.
        """
        import pyarrow as pa

        from sidelight.data.frames import from_arrow

        names = _names(attrs)
        estimate = self.count(names)
        stddev = noise_stddev(self.measurements, names, self.model.domain)
        reach = NormalDist().inv_cdf(0.5 + confidence / 2)
        cells = np.indices(estimate.shape).reshape(len(names), -1)
        columns: dict[str, Any] = {
            name: self._values(name, codes) for name, codes in zip(names, cells, strict=True)
        }
        flat = estimate.reshape(-1)
        spread = None if stddev is None else np.full(flat.size, stddev)
        absent = pa.nulls(flat.size, pa.float64())
        columns |= {
            "estimate": flat,
            "standard_error": absent if spread is None else spread,
            "low": absent if spread is None else np.maximum(flat - reach * spread, 0.0),
            "high": absent if spread is None else flat + reach * spread,
            "source": ["model" if spread is None else "private"] * flat.size,
        }
        return from_arrow(pa.table(columns), self.kind)

    def sample(self, records: int | None = None, *, seed: int) -> Any:
        """A synthetic table of the kind that came in, with its labels and units; n records unless said."""
        number = max(1, round(self.total)) if records is None else records
        drawn = self.model.sample(number, seed=seed)
        table = Table.of_codes(drawn.domain, drawn.codes(), schema=self.schema, kind=self.kind)
        return table.to_frame(seed=seed)

    def save(self, folder: str | Path) -> Path:
        """Write a folder of plain JSON, TOML and Parquet files; nothing is pickled."""
        from sidelight.mechanisms.folder import save

        return save(self, Path(folder))

    @classmethod
    def load(cls, folder: str | Path) -> "Release":
        """Read what ``save`` wrote, or say what is wrong with it."""
        from sidelight.mechanisms.folder import load

        return load(Path(folder))

    def _repr_html_(self) -> str:
        from sidelight.mechanisms.notebook import release_html

        return release_html(self)

    def _values(self, attr: str, codes: Any) -> Any:
        if self.schema is None:
            return codes
        labels = self.schema.column(attr).code_labels()
        shown = [labels[code] for code in codes.tolist()]
        # A column of one type: numbers beside "missing" are told as text.
        return shown if len({type(label) for label in labels}) == 1 else [str(label) for label in shown]


def _names(attrs: Iterable[str] | str) -> tuple[str, ...]:
    return (attrs,) if isinstance(attrs, str) else tuple(attrs)
