"""A rehearsal: the release played on public data alone, to see error against ε before any ε is spent.

    one random half of the public records stands in for the private table, drawn to its n
    the other half is the public data that help, for mechanisms that use some
    release at each ε, with each mechanism; compare with the stand-in, exactly: it is public

It costs no privacy, however often it is played. What it cannot know is in ``CANNOT_KNOW``.
"""

import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from sidelight import _check
from sidelight.data.people import chosen_records
from sidelight.data.schema import Schema
from sidelight.data.table import Table
from sidelight.errors import DataError, PrivacyWarning, SettingError
from sidelight.evaluation.workload_errors import workload_error
from sidelight.mechanisms.base import Mechanism
from sidelight.mechanisms.registry import AUTO, mechanism_of
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit
from sidelight.progress import Progress, Silent, progress_of
from sidelight.queries.workload import Workload
from sidelight.releases.plan import Plan
from sidelight.releases.public_data import told_table
from sidelight.releases.quality import SHARE
from sidelight.releases.run import run
from sidelight.testing import SeededNoise

EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
LEAST_RECORDS = 200
"""Fewer public records have too few left in each half to tell anything."""
_MOST_RECORDS = 5_000_000
_LEAST = 1e-9
"""Errors below this are drawn as if they were this large: 0 has no logarithm."""
CANNOT_KNOW = (
    "The stand-in and the public data that help come from one table, so they differ by chance alone. Your "
    "private table will differ more, and a release with public data then errs by more than is shown here.",
    "Values and relations that only your private table has were not there to be missed.",
)


@dataclass(frozen=True, kw_only=True)
class Played:
    """One mechanism at one ε, played several times."""

    mechanism: str
    epsilon: float
    errors: tuple[float, ...]
    """Mean error of the workload's tables in each run: Σ|exact − released| over the cells, divided by n."""

    @property
    def error(self) -> float:
        """The mean over the runs."""
        return sum(self.errors) / len(self.errors)


@dataclass(frozen=True, kw_only=True)
class Rehearsal:
    """Error against ε, on public data alone."""

    played: tuple[Played, ...]
    records: int
    """n: how many records the stand-in has."""
    stand_in: int
    """How many public records it was drawn from."""
    helping: int
    """How many public records were left to help; 0 where the release was played without public data."""
    left_out: tuple[str, ...] = ()
    """Columns that the public table tells nothing of, and that could not be played."""

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """The mechanisms that were played."""
        return tuple(dict.fromkeys(one.mechanism for one in self.played))

    def of(self, mechanism: str) -> tuple[Played, ...]:
        """The plays of one mechanism, the smallest ε first."""
        found = [one for one in self.played if one.mechanism == mechanism]
        return tuple(sorted(found, key=lambda one: one.epsilon))

    def epsilon_for(self, accuracy: float, mechanism: str) -> float | None:
        """The ε at which the mean error falls to ``accuracy``; None where no ε that was played reaches it.

        Between two ε it is read off a straight line in logarithms. If the smallest ε that was played is
        good enough already, it is that one.

        >>> one = [Played(mechanism="aim", epsilon=e, errors=(x,)) for e, x in ((0.1, 0.4), (1.0, 0.1))]
        >>> trial = Rehearsal(played=tuple(one), records=10, stand_in=10, helping=0)
        >>> [trial.epsilon_for(accuracy, "aim") for accuracy in (0.5, 0.05)]
        [0.1, None]
        """
        _check.positive(accuracy=accuracy)
        before: tuple[float, float] | None = None
        for one in self.of(mechanism):
            if one.error <= accuracy:
                return one.epsilon if before is None else _between(before, (one.epsilon, one.error), accuracy)
            if before is None or one.error < before[1]:
                before = one.epsilon, one.error
        return None

    def error_at(self, epsilon: float, mechanism: str) -> float | None:
        """The mean error to expect at an ε between those that were played; None outside of them.

        Between two ε it is read off a straight line in logarithms, as ``epsilon_for`` does.

        >>> one = [Played(mechanism="aim", epsilon=e, errors=(x,)) for e, x in ((0.1, 0.4), (1.0, 0.1))]
        >>> trial = Rehearsal(played=tuple(one), records=10, stand_in=10, helping=0)
        >>> [trial.error_at(epsilon, "aim") for epsilon in (1.0, 2.0)]
        [0.1, None]
        """
        _check.positive(epsilon=epsilon)
        points = [(math.log(one.epsilon), math.log(max(one.error, _LEAST))) for one in self.of(mechanism)]
        at = math.log(epsilon)
        if not points or not points[0][0] <= at <= points[-1][0]:
            return None
        return float(np.exp(np.interp(at, *np.array(points).T)).round(12))

    def as_json(self) -> dict[str, Any]:
        """The rehearsal in plain values."""
        return {**asdict(self), "cannot_know": list(CANNOT_KNOW)}


def rehearse(
    public: Any,
    *,
    schema: Schema | str | Path,
    epsilon: float | Iterable[float] = EPSILONS,
    delta: float = 1e-9,
    mechanism: Mechanism | str | Sequence[Mechanism | str] = AUTO,
    workload: Any = "3-way",
    unit: Unit | str | None = None,
    records: int | None = None,
    alone: bool = False,
    runs: int = 2,
    quality_share: float = SHARE,
    seed: int = 0,
    progress: bool | Progress = True,
) -> Rehearsal:
    """Play a release on public data alone, and see its error against ε. It costs no privacy.

    Args:
        public: a public table of any kind that ``sl.release`` takes. One half of it, drawn at random, stands
            in for the private table; the other half helps, where the mechanism uses public data. Columns that
            it tells nothing of cannot be played, and are left out.
        schema: columns, bins and labels; or the path of a schema file.
        epsilon: one ε or several.
        delta: δ of the release.
        mechanism: one or several; ``auto`` takes the one that ``sl.release`` would.
        workload: the queries to answer well.
        unit: what one person can change; by default that of the schema.
        records: how many records the private table has, where that may be known; by default as many as
            the public table.
        alone: whether to play the release without public data; the whole public table then stands in.
        runs: how often to play each; the halves and the noise differ from run to run.
        quality_share: the share of the budget that a release sets aside to measure its quality.
        seed: of the halves and of the noise.
        progress: whether to show a progress bar on standard error, if that is a terminal.
    """
    _check.positive_integer(runs=runs)
    _check.natural(seed=seed)
    known = _with_known_unit(Schema.of(schema), public)
    epsilons = _epsilons(epsilon)
    recipes = [mechanism] if isinstance(mechanism, str | Mechanism) else list(mechanism)
    if not recipes:
        raise SettingError("mechanism must name at least one mechanism to play.")
    table = told_table(public, known, "a rehearsal")
    left_out = tuple(attr for attr in known.domain.attrs if attr not in table.domain)
    asked = _told(Workload.of(workload, known.domain), table, left_out)
    plan_of = partial(
        Plan.of, schema=known.only(table.domain.attrs), delta=delta, unit=unit, workload=asked,
        quality_share=quality_share,
    )  # fmt: skip
    n = _records(records, table.records)
    bars, turns = progress_of(progress), range(seed, seed + runs)
    with bars.phase("rehearse"), warnings.catch_warnings():
        # Nobody is protected here, so nobody is warned that a large ε protects little.
        warnings.simplefilter("ignore", PrivacyWarning)
        halves = ((turn, *_halves(table, n, seed=turn, alone=alone)) for turn in turns)
        played = _played(plan_of, list(product(recipes, epsilons)), halves, bars, runs=runs)
    half = table.records - (0 if alone else table.records // 2)
    return Rehearsal(
        played=played,
        records=n,
        stand_in=half,
        helping=table.records - half,
        left_out=left_out,
    )


def _played(
    plan_of: Callable[..., Plan],
    asked: Sequence[tuple[Mechanism | str, float]],
    halves: Iterable[tuple[int, Table, Table | None]],
    progress: Progress,
    *,
    runs: int,
) -> tuple[Played, ...]:
    """Each mechanism at each ε, on every pair of halves: a seed, the stand-in, and the records that help."""
    errors: dict[tuple[str, float], list[float]] = {}
    for seed, private, helping in halves:
        for recipe, epsilon in asked:
            is_helped = recipe == AUTO or mechanism_of(recipe).public_data != "unused"
            plan = plan_of(mechanism=recipe, epsilon=epsilon, public=helping if is_helped else None)
            name = plan.mechanism.name if recipe != AUTO else f"{AUTO} ({plan.mechanism.name})"
            error = _error(plan, private, seed=seed)
            errors.setdefault((name, epsilon), []).append(error)
            share = sum(map(len, errors.values())) / (len(asked) * runs)
            progress.step(f"{name}, ε = {epsilon:g}: {error:.1%}", share=min(share, 1.0))
    return tuple(
        Played(mechanism=name, epsilon=epsilon, errors=tuple(found))
        for (name, epsilon), found in errors.items()
    )


def _told(workload: Workload, table: Table, left_out: Sequence[str]) -> Workload:
    """The queries about columns that the table has."""
    told = workload.within(table.domain.attrs)
    if told is None:
        raise SettingError(
            f"the public table tells nothing of {_check.listed(left_out)}, and the workload has no query "
            "without them. Ask for other queries, such as '1-way', or give another public table."
        )
    return told


def _with_known_unit(schema: Schema, public: Any) -> Schema:
    """The schema, in which public data have said how many records of each person are used."""
    return (
        replace(schema, unit=chosen_records(schema.unit, public, schema)) if schema.unit.is_auto else schema
    )


def _error(plan: Plan, private: Table, *, seed: int) -> float:
    """The error of one release of the stand-in."""
    book = MemoryLedger(Promise(plan.budget, plan.unit, "rehearsal"))
    played = private if plan.unit.person is None else private.standing_in(plan.unit)
    made = run(plan, played, ledger=book, noise=SeededNoise(seed), progress=Silent())
    # The stand-in is public, so an exact comparison with it is public, too.
    return workload_error(private, made.model, plan.workload, total=private.records)


def _halves(table: Table, n: int, *, seed: int, alone: bool) -> tuple[Table, Table | None]:
    """The stand-in with n records, and the records that help."""
    draw = np.random.default_rng(seed)
    codes = np.asarray(table.codes())
    order = draw.permutation(len(codes))
    half = 0 if alone else len(codes) // 2
    kept = order[half:]
    chosen = draw.choice(kept, n, replace=n > len(kept))
    stand_in = Table.of_codes(table.domain, codes[chosen])
    return stand_in, None if alone else Table.of_codes(table.domain, codes[order[:half]])


def _records(asked: int | None, found: int) -> int:
    if found < LEAST_RECORDS:
        raise DataError(
            f"the public table has {found:,} records, too few to rehearse on: at least {LEAST_RECORDS} are "
            "needed, since one half stands in for the private table. Give a larger one."
        )
    if asked is None:
        return min(found, _MOST_RECORDS)
    _check.positive_integer(records=asked)
    if asked > _MOST_RECORDS:
        raise SettingError(
            f"records must be at most {_MOST_RECORDS:,} for a rehearsal; got {asked:,}. Errors at a larger n "
            "are below those shown for this one."
        )
    return asked


def _epsilons(asked: float | Iterable[float]) -> list[float]:
    listed = [asked] if isinstance(asked, int | float) else list(asked)
    if not listed:
        raise SettingError("epsilon must be one number or several, such as 0.1 0.3 1 3.")
    for one in listed:
        _check.positive(epsilon=one)
    return sorted({float(one) for one in listed})


def _between(left: tuple[float, float], right: tuple[float, float], error: float) -> float:
    """The ε between two points at which the error is reached, on a straight line in logarithms."""
    if right[1] <= 0:
        return right[0]
    part = math.log(left[1] / error) / math.log(left[1] / right[1])
    return math.exp(math.log(left[0]) + part * math.log(right[0] / left[0]))
