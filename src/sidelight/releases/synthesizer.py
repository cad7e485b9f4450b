"""``sl.release`` for people who know scikit-learn: ``Synthesizer(…).fit(private).sample(records)``.

The constructor stores its parameters without looking at them, so ``sklearn.base.clone`` and
``set_params`` work; scikit-learn itself is not needed.
"""

import inspect
import secrets
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from sidelight.data.schema import Schema
from sidelight.errors import NotFittedError, PrivacyWarning, SettingError
from sidelight.mechanisms.base import Mechanism
from sidelight.mechanisms.registry import AUTO
from sidelight.privacy.chained_ledger import Ledger
from sidelight.privacy.noise import NoiseSource
from sidelight.privacy.unit import Unit
from sidelight.progress import Progress, progress_of
from sidelight.releases.acceptance import Criteria
from sidelight.releases.quality import SHARE
from sidelight.releases.release import Release
from sidelight.releases.run import release
from sidelight.releases.where import Where

_DELTA = 1e-9
"""δ if neither the caller nor a ledger gives one."""


class Synthesizer:
    """Fit a private table once, draw synthetic tables from it for ever.

    **Each ``fit`` spends ε again**, also on the same table, in a loop or in a search over settings.
    With a ``ledger`` all fits of a table are counted together, and refused once the promise is
    used up. Without a ledger nothing counts them, and a second fit warns. Sampling costs nothing.

    Args:
        epsilon: the ε that each fit spends.
        delta: δ; by default the ledger's, or 1e-9 without a ledger.
        schema: columns, bins and labels, declared beforehand; or the path of a schema file. It is
            required, because a schema learned from the private table would leak.
        mechanism: a name, or a mechanism with its settings; ``auto`` chooses one from public facts alone.
        workload: the queries to answer well; by default ``3-way``.
        unit: what one person can change; by default that of schema and ledger.
        ledger: the file or database that records this table's spending for ever.
        checkpoint: a folder for the journal of paid answers; after an interruption the same fit resumes.
        noise: noise from the operating system by default; ``sl.testing.SeededNoise`` for experiments.
        progress: whether to show progress bars on standard error, if that is a terminal.
        quality_share: the share of the budget that measures how far off ``release_`` is.
        accept: criteria that each fit must keep, as in ``sl.release``; ``release_.card.acceptance`` has the
            verdict.
        bins: whether neighbouring values may be modelled in groups, as in ``sl.release``.
        project: what each fit is for, as in ``sl.release``.
        approved_by: who approved it, as in ``sl.release``.

    >>> import numpy as np, sidelight as sl
    >>> schema = sl.Schema.from_domain({"age": 4, "sex": 2})
    >>> table = sl.Table.of_codes(schema.domain, np.zeros((500, 2), dtype=np.uint8), kind="pandas")
    >>> synthesizer = sl.Synthesizer(schema=schema, workload="2-way").fit(table)
    >>> synthesizer.sample(3, seed=1).shape
    (3, 2)
    """

    release_: Release
    """The release of the last fit: counts, answers, card."""
    seed_: int
    """The seed of the last sample."""

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        schema: Schema | str | Path | None = None,
        mechanism: Mechanism | str = AUTO,
        workload: Any = None,
        unit: Unit | str | None = None,
        ledger: Ledger | str | Path | None = None,
        checkpoint: str | Path | None = None,
        noise: NoiseSource | None = None,
        progress: bool | Progress = True,
        quality_share: float = SHARE,
        accept: Criteria | Mapping[str, Any] | str | Path | None = None,
        bins: str = AUTO,
        project: str | None = None,
        approved_by: str | Sequence[str] | None = None,
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
        self.accept = accept
        self.bins = bins
        self.project = project
        self.approved_by = approved_by

    def fit(self, private: Any, y: None = None, *, public: Any = None) -> Self:
        """Spend ε on the private table, and keep the result as ``release_``.

        Args:
            private: a table of any kind that ``sl.release`` takes, with the label column in it.
            y: always None; scikit-learn's pipelines pass it.
            public: a public table of the same schema. It must be given by name, so that private labels
                passed as ``y`` are never taken for public data.
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
                f"this Synthesizer is fitted again without a ledger: it spends another ε = {self.epsilon:g}, "
                "and nothing adds that to what the last fit spent. Give a ledger, which counts both.",
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
            accept=self.accept,
            bins=self.bins,
            project=self.project,
            approved_by=self.approved_by,
        )
        return self

    def sample(
        self, records: int | None = None, *, where: Where | None = None, seed: int | None = None
    ) -> Any:
        """A synthetic table of the same kind as the fitted one, by default with as many records.

        It costs no privacy. ``where={"sex": "F"}`` draws only records like these; see ``Release.sample``.
        Without a seed each call draws other records; the attribute ``seed_`` then holds the seed that draws
        the same records again.
        """
        if not hasattr(self, "release_"):
            raise NotFittedError(
                "this Synthesizer is not fitted yet: call fit(private, public=…) first, then sample."
            )
        drawn_with = secrets.randbelow(2**32) if seed is None else seed
        with progress_of(self.progress).phase("sample"):
            drawn = self.release_.sample(records, where=where, seed=drawn_with)
        self.seed_ = drawn_with
        return drawn

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: FBT001, FBT002  # scikit-learn's signature
        """The constructor's parameters by name; ``deep`` makes no difference."""
        return {name: getattr(self, name) for name in _parameters()}

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the constructor; they apply from the next fit on."""
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
