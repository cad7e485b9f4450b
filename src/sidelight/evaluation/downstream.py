"""How useful a release's synthetic table is. PRIVATE: it is compared with exact records.

A synthetic table as large as the private one is drawn and compared with it in three ways: are pairs of
attributes associated as in the private table (``association``), are its records nearer to the private ones
than fresh records would be (``nearest``), and does a classifier learn as much from it as from the private
table (``learning``)?
"""

from dataclasses import asdict, dataclass, replace

from sidelight.data.table import Table
from sidelight.evaluation.association import association_gap
from sidelight.evaluation.learning import learn
from sidelight.evaluation.nearest import nearer_share
from sidelight.models.model import Model


@dataclass(frozen=True, kw_only=True)
class Downstream:
    """The three comparisons; ``metric.py`` has each number's goal and range. PRIVATE: do not publish them."""

    association_mean: float
    association_max: float
    nearer_share: float
    accuracy: float | None = None
    """None where no target was named."""
    accuracy_private: float | None = None
    accuracy_majority: float | None = None

    @classmethod
    def of(
        cls,
        model: Model,
        private: Table,
        *,
        target: str | None = None,
        held_out: Table | None = None,
        seed: int = 0,
        repeats: int = 3,
    ) -> "Downstream":
        """Draw a synthetic table and compare it with the private one."""
        synthetic = model.sample(private.records, seed=seed)
        gap = association_gap(private, synthetic)
        share = nearer_share(private, synthetic, held_out=held_out, seed=seed)
        found = cls(association_mean=gap.mean, association_max=gap.largest, nearer_share=share)
        if target is None:
            return found
        learned = learn(model, private, target, held_out=held_out, seed=seed, repeats=repeats)
        return replace(found, **asdict(learned))

    def known(self) -> dict[str, float]:
        """Plain values by name, without those that were not computed."""
        return {name: value for name, value in asdict(self).items() if value is not None}
