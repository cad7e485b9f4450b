"""Public records to look at: those that a draft kept, counted by the schema as it is now.

They are few and were written by a worker, so they are counted here, while the page is made.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sidelight.data.reading.file_format import FileFormat
from sidelight.data.schema import Schema
from sidelight.errors import PublicDataWarning, SidelightError
from sidelight.releases.public_data import one_way_counts
from sidelight.releases.public_table import read_public_table
from sidelight.studio import store
from sidelight.studio.places import Place
from sidelight.studio.quiet import quietly
from sidelight.studio.shelf import Shelf


@dataclass(frozen=True, kw_only=True)
class Sampled:
    """Which public table the records are of, and how many it has."""

    of: str
    records: int


@dataclass(frozen=True)
class Looked:
    """Counts of public records by column."""

    counts: dict[str, NDArray[np.float64]]
    records: int
    """How many were counted."""
    about: Sampled

    def open_share(self, name: str) -> float:
        """The share of records whose value of this column has no place in the schema."""
        if name not in self.counts or not self.records:
            return 0.0
        return max(0.0, 1 - float(self.counts[name].sum()) / self.records)


_looked: Shelf[Looked | None] = Shelf(8)


def look(place: Place, schema: Schema) -> Looked | None:
    """The records that a draft kept, counted by this schema; None where there are none, or nothing fits."""
    kept = (place.own / "sample.csv", place.own / "sample.parquet")
    path = next((one for one in kept if one.is_file()), None)
    about = store.read(Sampled, place.own / "sample.json")
    if path is None or about is None:
        return None
    key = (str(path), schema.fingerprint, path.stat().st_mtime)
    return _looked.get(key, lambda: _counted(path, schema, about))


def _counted(path: Path, schema: Schema, about: Sampled) -> Looked | None:
    # The sample is written in UTF-8 with commas, whatever the table's own file looks like.
    own = Schema(schema.columns, file=FileFormat(decimal=schema.file.decimal), public=schema.public)
    try:
        with quietly(PublicDataWarning):
            read = read_public_table(str(path), own)
            counts = one_way_counts(read, own.domain)
    except SidelightError:
        return None
    records = max((float(column.sum()) for column in counts.values()), default=0.0)
    return Looked(counts, round(records), about)
