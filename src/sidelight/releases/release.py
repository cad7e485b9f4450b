"""A release, all of which may be published: a model, the measurements behind it, and their cost."""

import json
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from sidelight import _check
from sidelight._check import brief, listed
from sidelight._memory import check_room
from sidelight.data.dtypes import with_dtypes
from sidelight.data.reading.frames import from_arrow, kind_of
from sidelight.data.schema import Schema
from sidelight.data.table import Table
from sidelight.errors import SettingError, WorkloadError
from sidelight.measurement import Measurement
from sidelight.models.evidence import Evidence, of_records
from sidelight.models.model import Array, Model
from sidelight.privacy.event import Event
from sidelight.releases.answer import Asked
from sidelight.releases.card import Card
from sidelight.releases.quality import Quality
from sidelight.releases.where import Where, codes_where, said
from sidelight.uncertainty.count_errors import CountErrors
from sidelight.uncertainty.error_bars import ErrorBars

_MOST_TRIES = 50
"""How often records are drawn anew where constraints move them away from a condition."""


@dataclass(frozen=True, kw_only=True)
class Draw:
    """A sample that was drawn: all that is needed to draw it again."""

    records: int
    seed: int
    where: Mapping[str, Any]

    def noted_in(self, frame: Any) -> Any:
        """The frame with this written in it, where its kind has room for that."""
        plain = {"records": self.records, "seed": self.seed, "where": dict(self.where)}
        if kind_of(frame) == "pandas":
            frame.attrs["sidelight"] = plain
        elif kind_of(frame) == "pyarrow":
            text = json.dumps(plain, default=str)
            frame = frame.replace_schema_metadata(
                {**(frame.schema.metadata or {}), b"sidelight": text.encode()}
            )
        return frame


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
    draws: list[Draw] = field(default_factory=list, init=False)
    """The samples drawn so far, in order: with these seeds the same records are drawn again."""

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
        # A copy: a model gives the same counts out again and again, and whoever asked may change them.
        return np.array(self.model.count(_names(attrs)), dtype=np.float64)

    def error_bars(self, attrs: Iterable[str] | str) -> ErrorBars:
        """The counts and their errors, due to noise and to the model, as arrays; also for sums of cells."""
        bars, left = self._errors.bars(_names(attrs)), self.card.unmeasured
        # A mechanism that learns by selecting alone has no measurements to tell it from.
        is_left = left is not None and not set(left.attributes).isdisjoint(_names(attrs))
        return replace(bars, source="unmeasured") if is_left else bars

    def answer(
        self,
        attrs: Iterable[str] | str = (),
        *,
        by: Iterable[str] | str = (),
        where: Where | None = None,
        confidence: float = 0.95,
    ) -> Any:
        """A frame with one record for each cell: values, estimate, errors, interval and source.

        ``noise_error`` is the standard error due to noise; it is missing where no noise is known to be in the
        counts. ``model_error`` is the standard error due to the model and the public data; it is missing in
        releases of versions that did not estimate it. ``standard_error`` and the interval include both.
        The source is ``private`` (noisy answers), ``both`` (noisy answers and public data), ``model``,
        ``unmeasured`` if one of the attributes was never measured, or ``public`` for a number of records that
        the unit makes public. See docs/guides/error_bars.md.

        Args:
            attrs: the columns to count by; none asks for one number.
            by: columns that make groups: each cell then also has its share of its group, with an interval.
            where: which records to count, such as ``{"sex": "F", "age": "18-64"}``; see ``sample``.
            confidence: the confidence level of the intervals.
        """
        import pyarrow as pa

        asked = Asked(_names(by), _names(attrs), {} if where is None else self.evidence(where))
        columns: dict[str, Any] = {
            name: self._values(name, codes)
            for name, codes in zip(asked.shown, asked.cells(self.model.domain), strict=True)
        }
        found = asked.columns(self._errors, self.model.domain, confidence)
        size = len(found["source"])
        for name, part in found.items():
            columns[name] = pa.nulls(size, pa.float64()) if part is None else part
        return from_arrow(pa.table(columns), self.kind)

    def sample(
        self, records: int | None = None, *, where: Where | None = None, seed: int | None = None
    ) -> Any:
        """A synthetic table of the private table's kind, with its labels and units.

        Args:
            records: how many; by default as many as the release counts (that meet ``where``).
            where: draw only records like these: a column and its label, several labels (``["N", "S"]``), or
                for numbers and dates a range of whole bins (``"18-64"``, ``"65+"``, ``"2020-01..2020-06"``).
                They are drawn from the model given that condition, not picked from a larger sample.
            seed: the same seed draws the same records again. Without one, a fresh seed is drawn;
                ``release.draws`` holds it, and so does the frame (``attrs`` in pandas, metadata in pyarrow).
        """
        model = self.model if where is None else self._given(where)
        number = max(1, round(model.total)) if records is None else records
        used = secrets.randbelow(2**32) if seed is None else seed
        _check.natural(records=number, seed=used)
        # Three copies: codes as drawn, codes as shuffled, and values.
        check_room(24 * number * max(1, len(self.model.domain)), "so many records")
        draw = Draw(records=number, seed=used, where=dict(where or {}))
        made = self._decoded(model, number, seed=used) if where is None else self._meeting(model, draw)
        self.draws.append(draw)
        frame = from_arrow(made, self.kind)
        return draw.noted_in(frame if self.schema is None else with_dtypes(frame, self.kind, self.schema))

    def _decoded(self, model: Model, number: int, *, seed: int) -> Any:
        """Records of a model as a pyarrow table of values."""
        drawn = model.sample(number, seed=seed)
        return Table.of_codes(drawn.domain, drawn.codes(), schema=self.schema).decode(seed=seed)

    def _meeting(self, model: Model, draw: Draw) -> Any:
        """Records that meet the condition as values, too: the schema's constraints may have moved some."""
        import pyarrow as pa

        made = self._decoded(model, draw.records, seed=draw.seed)
        if self.schema is None or not self.schema.constraints:
            return made
        evidence, parts, found = self.evidence(draw.where), list[Any](), 0
        for again in range(_MOST_TRIES):
            codes = Table.read(made, self.schema, may_be_empty=True).codes()
            parts.append(made.filter(pa.array(of_records(self.schema.domain, codes, evidence) > 0)))
            found += parts[-1].num_rows
            if found >= draw.records:
                return pa.concat_tables(parts).slice(0, draw.records)
            made = self._decoded(model, draw.records, seed=(draw.seed + 1) * _MOST_TRIES + again)
        raise SettingError(
            f"hardly any record can have {said(draw.where)} and keep the schema's constraints: {found:,} of "
            f"{draw.records:,} were found. Ask for fewer, or for something else."
        )

    def _given(self, where: Where) -> Model:
        """The model of the records that meet a condition."""
        found = self.model.given(self.evidence(where))
        if found is None:
            raise SettingError(
                f"no record of this release can have {said(where)}: its model gives such records no mass. "
                f"Ask for something else; the labels are in release.schema."
            )
        return found

    def evidence(self, where: Where) -> Evidence:
        """A condition as ``sample`` takes it, as the likelihood of each code of each column that it names."""
        schema = Schema.from_domain(self.model.domain) if self.schema is None else self.schema
        return codes_where(where, schema)

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
        card, names = self.card, listed(self.model.domain.attrs, 6)
        protects = "" if card.noise_is_private else "NOT PRIVATE, "
        return (
            f"Release({protects}{card.mechanism}, ε = {card.epsilon:g} at δ = {card.delta:g}, "
            f"{self.total:,.0f} records of {names})"
        )

    def _repr_html_(self) -> str:
        from sidelight.releases.notebook import release_html

        return release_html(self)

    @cached_property
    def _errors(self) -> CountErrors:
        card = self.card
        return CountErrors(
            self.model, self.measurements, card.model_error, card.calibration,
            total_is_public=card.unit.total_is_public,
        )  # fmt: skip

    def _values(self, attr: str, codes: Any) -> Any:
        if self.schema is None:
            return codes
        labels = self.schema.column(attr).code_labels()
        shown = [labels[code] for code in codes.tolist()]
        # A column has one type, so numbers become text where "missing" is among them.
        return shown if len({type(label) for label in labels}) == 1 else [str(label) for label in shown]


def _names(attrs: Iterable[str] | str) -> tuple[str, ...]:
    if not isinstance(attrs, Iterable):
        raise WorkloadError(f"name one column, or several in a list; got {brief(attrs)}.")
    return (attrs,) if isinstance(attrs, str) else tuple(attrs)
