"""Does a classifier learn as much from the synthetic table as from the private one?

A random forest predicts one column from all others. It is trained on synthetic records and tested on
private ones, and compared with the same forest trained on private records, and with always guessing the
commonest class. All training tables have equally many records, and all is repeated with several seeds.

Without a held-out table the private one is split. The release was made from the test records, too, so the
accuracy of the synthetic records is then a little too good; that of the private records is not. A table
that the release never saw (``held_out``) gives a clean test.

PRIVACY: accuracies on private records are as private as the records.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight import _check
from sidelight._extras import need
from sidelight.data.columns.column import CategoricalColumn, Column, IntegerColumn
from sidelight.data.schema import Schema
from sidelight.data.table import Table
from sidelight.errors import DataError, SettingError
from sidelight.models.model import Model

Codes = NDArray[np.integer]

FEWEST_RECORDS = 30
"""Fewest records to learn from: of fewer, the test would have a handful."""
MOST_CLASSES = 100
_MOST_RECORDS = 20_000
"""Most records that a forest is trained on: more take minutes and change little."""
_TREES, _LEAF = 40, 5


@dataclass(frozen=True, kw_only=True)
class Learned:
    """Accuracies on private records, means over the repeats. PRIVATE: they saw exact records."""

    accuracy: float
    """Trained on synthetic records."""
    accuracy_private: float
    """Trained on private records."""
    accuracy_majority: float
    """Always the class that is commonest among the private training records."""


def check_target(schema: Schema, target: str) -> None:
    """Refuse a column that a classifier cannot predict, and a missing extra, before any table is read."""
    names = [column.name for column in schema.columns]
    classes = [column.name for column in schema.columns if _is_class(column)]
    advice = f"choose one of {', '.join(map(repr, classes))}" if classes else "it has none"
    if target not in names:
        raise SettingError(f"the target must be a column of the schema; got {target!r}: {advice}.")
    if target not in classes:
        raise SettingError(
            f"column {target!r} cannot be the target: it holds bins of numbers, or more than {MOST_CLASSES} "
            f"values, or only one; a classifier needs a few labels. Among the schema's columns, {advice}."
        )
    if len(names) < 2:
        raise SettingError(f"column {target!r} is the only one; there is nothing to predict it from.")
    _forest()


def learn(
    model: Model,
    private: Table,
    target: str,
    *,
    held_out: Table | None = None,
    seed: int = 0,
    repeats: int = 3,
) -> Learned:
    """Train on synthetic and on private records; test both on private ones, or on those held out."""
    _check.positive_integer(repeats=repeats)
    _check.natural(seed=seed)
    place = private.domain.index((target,))[0]
    if min(private.records, FEWEST_RECORDS if held_out is None else held_out.records) < FEWEST_RECORDS:
        raise DataError(f"learning a column needs at least {FEWEST_RECORDS} records to train and to test.")
    records = private.codes()
    if np.unique(records[:, place]).size < 2:
        raise DataError(f"column {target!r} cannot be learned: all records have the same value in it.")
    found = []
    for repeat in range(seed, seed + repeats):
        order = np.random.default_rng(repeat).permutation(len(records))
        if held_out is None:
            tested, order = records[order[: len(order) // 3]], order[len(order) // 3 :]
        else:
            tested = held_out.codes()
        trained = records[order[:_MOST_RECORDS]]
        synthetic = model.sample(len(trained), seed=repeat).codes()
        commonest = np.bincount(trained[:, place]).argmax()
        found.append(
            [
                _accuracy(synthetic, tested, place, seed=repeat),
                _accuracy(trained, tested, place, seed=repeat),
                float((tested[:, place] == commonest).mean()),
            ]
        )
    synthetic_mean, private_mean, majority = np.mean(found, axis=0).tolist()
    return Learned(accuracy=synthetic_mean, accuracy_private=private_mean, accuracy_majority=majority)


def _accuracy(trained: Codes, tested: Codes, place: int, *, seed: int) -> float:
    # One thread: the same forest, whatever else the machine does.
    forest = _forest()(n_estimators=_TREES, min_samples_leaf=_LEAF, random_state=seed, n_jobs=1)
    forest.fit(np.delete(trained, place, axis=1), trained[:, place])
    predicted = forest.predict(np.delete(tested, place, axis=1))
    return float((predicted == tested[:, place]).mean())


def _forest() -> Any:
    return need("sklearn.ensemble", "to learn a column from synthetic records").RandomForestClassifier


def _is_class(column: Column) -> bool:
    """Whether a column holds classes: labels, or single whole numbers as in coded tables, but not bins."""
    is_labelled = isinstance(column, CategoricalColumn) or (
        isinstance(column, IntegerColumn) and column.is_unit
    )
    return is_labelled and 2 <= column.size <= MOST_CLASSES
