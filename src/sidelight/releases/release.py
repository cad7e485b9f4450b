"""What may be published: a model, the measurements behind it, and what they cost."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from sidelight import _check
from sidelight._memory import check_room
from sidelight.data.schema import Schema
from sidelight.data.table import Table
from sidelight.measurement import Measurement
from sidelight.models.model import Array, Model
from sidelight.privacy.event import Event
from sidelight.releases.card import Card
from sidelight.releases.quality import Quality
from sidelight.uncertainty.error_bars import CountErrors, ErrorBars


@dataclass(frozen=True, eq=False, repr=False)
class Release:
    """All that may be published. No field leads back to the private table.

    Counting, answering, sampling and saving cost no privacy, however often they are done.
    """

    model: Model
    measurements: tuple[Measurement, ...]
    card: Card
    """How the release came about: mechanism, settings, unit, ε, δ, spending, versions, noise source."""
    schema: Schema | None = None
    """The schema, by which codes become values again; None for a release of codes."""
    kind: str = "pyarrow"
    """The kind of the private table, such as pandas; answers and samples have the same kind."""

    @property
    def events(self) -> tuple[Event, ...]:
        """Every spending in its order."""
        return self.card.events

    @property
    def total(self) -> float:
        """The number of records n: exact where it is public, otherwise noisy."""
        return self.model.total

    @property
    def quality(self) -> Quality | None:
        """How far off the release's tables are, as it was measured under ε; None where it was not."""
        return self.card.quality

    def count(self, attrs: Iterable[str] | str) -> Array:
        """Released counts over these attributes; the axes are in the order asked, the sum is the total."""
        return np.asarray(self.model.count(_names(attrs)), dtype=np.float64)

    def error_bars(self, attrs: Iterable[str] | str) -> ErrorBars:
        """The counts and their errors, due to noise and to the model, as arrays; also for sums of cells."""
        return self._errors.bars(_names(attrs))

    def answer(self, attrs: Iterable[str] | str, *, confidence: float = 0.95) -> Any:
        """A frame with one record for each cell: values, estimate, errors, interval and source.

        ``noise_error`` is the standard error due to noise; it is missing where no noise is known to be in the
        counts. ``model_error`` is the standard error due to the model and the public data; it is missing in
        releases of versions that did not estimate it. ``standard_error`` and the interval include both.
        The source is ``private`` (noisy answers), ``both`` (noisy answers and public data), ``model``, or
        ``unmeasured`` if one of the attributes was never measured. See docs/guides/error_bars.md.
        """
        import pyarrow as pa

        from sidelight.data.frames import from_arrow

        names = _names(attrs)
        bars = self.error_bars(names)
        cells = np.indices(bars.estimate.shape).reshape(len(names), -1)
        columns: dict[str, Any] = {
            name: self._values(name, codes) for name, codes in zip(names, cells, strict=True)
        }
        size = bars.estimate.size

        def column(part: Array | None) -> Any:
            return pa.nulls(size, pa.float64()) if part is None else part.reshape(-1)

        low, high = bars.interval(confidence) or (None, None)
        columns |= {
            "estimate": column(bars.estimate),
            "noise_error": column(bars.noise_error),
            "model_error": column(bars.model_error),
            "standard_error": column(bars.standard_error),
            "low": column(low),
            "high": column(high),
            "source": [bars.source] * size,
        }
        return from_arrow(pa.table(columns), self.kind)

    def sample(self, records: int | None = None, *, seed: int) -> Any:
        """A synthetic table of the private table's kind, with its labels and units; n records by default."""
        number = max(1, round(self.total)) if records is None else records
        _check.natural(records=number, seed=seed)
        # Three copies: codes as drawn, codes as shuffled, and values.
        check_room(24 * number * max(1, len(self.model.domain)), "so many records")
        drawn = self.model.sample(number, seed=seed)
        table = Table.of_codes(drawn.domain, drawn.codes(), schema=self.schema, kind=self.kind)
        return table.to_frame(seed=seed)

    def save(self, folder: str | Path) -> Path:
        """Write a folder of plain JSON, TOML and Parquet files; nothing is pickled."""
        from sidelight.releases.folder import save

        return save(self, Path(folder))

    @classmethod
    def load(cls, folder: str | Path) -> "Release":
        """Read what ``save`` wrote, or say what is wrong with it."""
        from sidelight.releases.folder import load

        return load(Path(folder))

    def __repr__(self) -> str:
        names = ", ".join(self.model.domain.attrs)
        return (
            f"Release({self.card.mechanism}, {len(self.measurements)} measurements, "
            f"{self.total:,.0f} records of {names})"
        )

    def _repr_html_(self) -> str:
        from sidelight.releases.notebook import release_html

        return release_html(self)

    @cached_property
    def _errors(self) -> CountErrors:
        return CountErrors(self.model, self.measurements, self.card.model_error)

    def _values(self, attr: str, codes: Any) -> Any:
        if self.schema is None:
            return codes
        labels = self.schema.column(attr).code_labels()
        shown = [labels[code] for code in codes.tolist()]
        # A column has one type, so numbers become text where "missing" is among them.
        return shown if len({type(label) for label in labels}) == 1 else [str(label) for label in shown]


def _names(attrs: Iterable[str] | str) -> tuple[str, ...]:
    return (attrs,) if isinstance(attrs, str) else tuple(attrs)
