"""How far a release is from the table it was made from. PRIVATE: exact answers go into it."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from sidelight.data.schema import Schema
from sidelight.data.table import Table
from sidelight.errors import DataError
from sidelight.evaluation import metric
from sidelight.evaluation.marginals import Errors
from sidelight.evaluation.metric import Metric
from sidelight.mechanisms.release import Release
from sidelight.queries.workload import Workload

_METRICS = {
    "workload_error": metric.WORKLOAD_ERROR,
    "max_error": metric.MAX_ERROR,
    "mean_error": metric.MEAN_ERROR,
    "mean_squared_error": metric.MEAN_SQUARED_ERROR,
    "squared_error_per_query": metric.SQUARED_ERROR_PER_QUERY,
    "cuboid_mean": metric.CUBOID_MEAN,
    "cuboid_max": metric.CUBOID_MAX,
}


@dataclass(frozen=True, kw_only=True)
class Evaluation(Errors):
    """Errors of a release against exact answers. PRIVATE: do not publish them."""

    def __str__(self) -> str:
        lines = [
            f"  {known.name}: {value:.5g} ({known.range}, {known.goal} is good)"
            for known, value in self.items()
        ]
        return "\n".join(["PRIVATE: computed from exact answers; do not publish.", *lines])

    def items(self) -> Iterator[tuple[Metric, float]]:
        """Each metric with its value."""
        return ((_METRICS[name], value) for name, value in asdict(self).items())

    def as_json(self) -> dict[str, float]:
        """Plain values by name."""
        return asdict(self)


def evaluate(release: Release, private: Any, *, workload: Any = "3-way") -> Evaluation:
    """Compare a release with the private table on a workload. The result is PRIVATE."""
    domain = release.model.domain
    schema = release.schema if release.schema is not None else Schema.from_domain(domain)
    table = Table.read(private, schema)
    if table.domain != domain:
        raise DataError("the table's attributes are not those of the release.")
    asked = Workload.of(workload, domain)
    errors = Errors.of(table, release.model, asked, total=table.records)
    return Evaluation(**asdict(errors))
