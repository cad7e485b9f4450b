"""The front door for people who know scikit-learn: ``Synthesizer(…).fit(private).sample(n)``.

Nothing here that ``sl.release`` could not do. The constructor stores its parameters and looks at
none of them, so ``sklearn.base.clone`` and ``set_params`` work; scikit-learn itself is not needed.
"""

import inspect
import secrets
import warnings
from pathlib import Path
from typing import Any, Self

from sidelight.data.schema import Schema
from sidelight.errors import NotFittedError, PrivacyWarning, SettingError
from sidelight.mechanisms.base import Mechanism
from sidelight.privacy.ledger import Ledger
from sidelight.privacy.noise import NoiseSource
from sidelight.privacy.unit import Unit
from sidelight.progress import Progress, progress_of
from sidelight.releases.quality import SHARE
from sidelight.releases.release import Release
from sidelight.releases.run import release

_DELTA = 1e-9
"""δ where neither the caller nor a ledger says one."""


class Synthesizer:
    """Fit a private table once, draw synthetic tables from it for ever.

    **Each ``fit`` spends ε anew**, also on the same table, in a loop or in a search over settings.
    With a ``ledger`` all fits of a table are counted together, and refused once the promise is
    used up. Without one nobody counts, and a second fit warns. Sampling costs nothing.

    Args:
        epsilon: what each fit spends of ε.
        delta: δ; unless said the ledger's, or 1e-9 without a ledger.
        schema: columns, bins and labels, declared beforehand; or the file that holds them. It is
            needed: learned from the private table it would leak.
        mechanism: a name, or a mechanism with its settings.
        workload: the queries to answer well: ``3-way`` unless said.
        unit: what one person can change; that of schema and ledger unless said.
        ledger: a file or database that keeps this table's spending for ever.
        checkpoint: a folder in which every paid output is journalled; the same fit resumes.
        noise: operating-system noise unless said; ``sl.testing.SeededNoise`` for experiments.
        progress: bars on standard error, where that is a terminal.
        quality_share: share of the budget that measures how far off the release is (``release_.quality``).

    >>> import numpy as np, sidelight as sl
    >>> schema = sl.Schema.from_domain({"age": 4, "sex": 2})
    >>> table = sl.Table.of_codes(schema.domain, np.zeros((500, 2), dtype=np.uint8), kind="pandas")
    >>> synthesizer = sl.Synthesizer(schema=schema, workload="2-way").fit(table)
    >>> synthesizer.sample(3, seed=1).shape
    (3, 2)
    """

    release_: Release
    """What the last fit released: counts, answers, card."""
    seed_: int
    """The seed of the last sample."""

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        schema: Schema | str | Path | None = None,
        mechanism: Mechanism | str | None = None,
        workload: Any = None,
        unit: Unit | str | None = None,
        ledger: Ledger | str | Path | None = None,
        checkpoint: str | Path | None = None,
        noise: NoiseSource | None = None,
        progress: bool | Progress = True,
        quality_share: float = SHARE,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.mechanism = mechanism
        self.workload = workload
        self.unit = unit
        self.ledger = ledger
        self.checkpoint = checkpoint
        self.noise = noise
        self.progress = progress
        self.quality_share = quality_share

    def fit(self, private: Any, y: None = None, *, public: Any = None) -> Self:
        """Spend ε on the private table; ``release_`` is what came of it.

        Args:
            private: a table of any kind that ``sl.release`` takes, labels and all in one.
            y: always None; scikit-learn's pipelines give it.
            public: a public table of the same schema. By name only, so that nobody's labels are
                taken for public data.
        """
        if y is not None:
            raise SettingError(
                "fit takes one table: put the column that y holds into it, and into the schema. Public "
                "data are given by name, as fit(private, public=…). Nothing was read."
            )
        if self.schema is None:
            raise SettingError(
                "a schema is needed, and is never learned from private data: that would leak. Draft one from "
                "PUBLIC data with sl.Schema.draft(public), check it, edit it, and give it as "
                "Synthesizer(schema=…). Nothing was read."
            )
        if self.ledger is None and hasattr(self, "release_"):
            warnings.warn(
                f"this Synthesizer is fitted again without a ledger: it spends ε = {self.epsilon:g} once "
                "more, and nobody adds it to what the last fit spent. Give a ledger that counts both.",
                PrivacyWarning,
                stacklevel=2,
            )
        self.release_ = release(
            private,
            schema=self.schema,
            epsilon=self.epsilon,
            delta=_DELTA if self.delta is None and self.ledger is None else self.delta,
            public=public,
            unit=self.unit,
            mechanism=self.mechanism,
            workload="3-way" if self.workload is None else self.workload,
            ledger=self.ledger,
            checkpoint=self.checkpoint,
            noise=self.noise,
            progress=self.progress,
            quality_share=self.quality_share,
        )
        return self

    def sample(self, n: int | None = None, *, seed: int | None = None) -> Any:
        """A synthetic table of the kind that was fitted; as many records as it had unless said.

        Costs no privacy. Without a seed each call draws other records; ``seed_`` draws them again.
        """
        if not hasattr(self, "release_"):
            raise NotFittedError(
                "this Synthesizer is not fitted yet: call fit(private, public=…) first, then sample."
            )
        drawn_with = secrets.randbelow(2**32) if seed is None else seed
        with progress_of(self.progress).phase("sample"):
            drawn = self.release_.sample(n, seed=drawn_with)
        self.seed_ = drawn_with
        return drawn

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: FBT001, FBT002  # scikit-learn's signature
        """The constructor's parameters by name; ``deep`` makes no difference."""
        return {name: getattr(self, name) for name in _parameters()}

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the constructor; they hold from the next fit on."""
        unknown = [name for name in params if name not in _parameters()]
        if unknown:
            raise SettingError(
                f"Synthesizer has no parameter {unknown[0]!r}; it has {', '.join(_parameters())}."
            )
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __sklearn_clone__(self) -> Self:
        # PRIVACY: a clone spends from the same ledger, and draws from the same noise, not from copies.
        return type(self)(**self.get_params())

    def __repr__(self) -> str:
        # A ledger's address may hold a password, and a schema fills a page: neither is shown.
        shown = [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if name in ("epsilon", "delta", "mechanism", "workload", "unit") and value is not None
        ]
        return f"Synthesizer({', '.join(shown)})"


def _parameters() -> tuple[str, ...]:
    return tuple(name for name in inspect.signature(Synthesizer.__init__).parameters if name != "self")
