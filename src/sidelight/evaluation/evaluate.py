"""The errors of a release against the table that it was made from. PRIVATE: computed from exact answers."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from typing import Any

from sidelight.data.schema import Schema
from sidelight.errors import DataError, SettingError
from sidelight.evaluation.downstream import Downstream
from sidelight.evaluation.learning import check_target
from sidelight.evaluation.metric import METRICS, Metric
from sidelight.evaluation.workload_errors import Errors
from sidelight.queries.workload import Workload
from sidelight.releases.compared import Compared, compared
from sidelight.releases.release import Release


@dataclass(frozen=True, kw_only=True)
class Evaluation(Errors):
    """Errors of a release against exact answers. PRIVATE: do not publish them."""

    downstream: Downstream | None = None
    """How useful the synthetic table is, if that was asked for."""
    remark: str = ""
    """Which records are compared, or why their number is clearly not the release's; empty if all is plain."""

    def __str__(self) -> str:
        lines = [f"  {self.remark}"] if self.remark else []
        lines += [
            f"  {known.name}: {value:.5g} ({known.range}, {known.goal} is good)"
            for known, value in self.items()
        ]
        return "\n".join(["PRIVATE: computed from exact answers; do not publish.", *lines])

    def __repr__(self) -> str:
        return str(self)  # a notebook shows it, and the mark must be there, too

    def items(self) -> Iterator[tuple[Metric, float]]:
        """Each metric with its value."""
        return ((METRICS[name], value) for name, value in self.as_json().items())

    def as_json(self) -> dict[str, float]:
        """Plain values by name."""
        errors = {field.name: float(getattr(self, field.name)) for field in fields(Errors)}
        return errors | (self.downstream.known() if self.downstream is not None else {})


def evaluate(
    release: Release,
    private: Any,
    *,
    workload: Any = "3-way",
    downstream: str | bool = False,
    held_out: Any = None,
    seed: int = 0,
    repeats: int = 3,
) -> Evaluation:
    """Compare a release with the private table on a workload. The result is PRIVATE.

    Args:
        release: the release to judge.
        private: the table that it was made from, of any kind that ``sl.release`` takes. If the release
            used k records of each person, it is compared with k of each.
        workload: the queries to compare on.
        downstream: whether to compare a synthetic table with the private one, too: associations between
            attributes, and distances to the nearest records. If it is the name of a column, a classifier
            is also trained to predict that column from synthetic records (extra ``learn``).
        held_out: records of the same population that the release never saw, to test on instead.
        seed: seed for drawing the synthetic table, for splitting the private one, and for choosing records
            of people.
        repeats: how often a classifier is trained; the accuracies are means.
    """
    if not isinstance(release, Release):
        raise SettingError(
            "evaluate compares a Release with the private table; got "
            f"{type(release).__name__} as the release. Release.load reads a saved one."
        )
    domain = release.model.domain
    schema = release.schema if release.schema is not None else Schema.from_domain(domain)
    target = downstream if isinstance(downstream, str) else None
    if target is not None:
        check_target(schema, target)
    asked = Workload.of(workload, domain)
    beside = _read(private, release, seed)
    table = beside.table
    errors = Errors.of(table, release.model, asked, total=table.records)
    found = None
    if downstream is not False:
        apart = None if held_out is None else _read(held_out, release, seed).table
        found = Downstream.of(release.model, table, target=target, held_out=apart, seed=seed, repeats=repeats)
    return Evaluation(**asdict(errors), downstream=found, remark=beside.remark)


def _read(source: Any, release: Release, seed: int) -> Compared:
    found = compared(source, release, seed=seed)
    if found.table.domain != release.model.domain:
        raise DataError("the table's attributes are not those of the release.")
    return found
