"""``reuse=``: noisy answers of earlier releases, used again for nothing.

An earlier answer y₁ = x + noise and a new one are about the same numbers x if the records, the schema and the
unit are the same, and a fit to both is closer than to either. Nothing is charged for it.

PRIVACY: let M₁ be the earlier run on the table D, and M₂(D, y₁) the new one. Neighbours of D are those of the
unit. If M₁ loses ρ₁ and M₂(·, y₁) loses ρ₂ for every fixed y₁, then the pair of both outputs loses ρ₁ + ρ₂
(Bun and Steinke 2016, lemma 2.3; for pure ε alike), and so does everything that is computed from the pair.
The ledger holds ρ₁ since then and takes ρ₂ now, so its promise covers the pair, and y₁ is free. Each
condition below is a step of this proof, or of the claim that both answers are about x:

- *this ledger paid for M₁*: otherwise ρ₁ is in no sum that the new release shows. Somebody who is in both
  tables would lose ρ₁ + ρ₂ under a promise of ρ₂ alone;
- *the unit is the same*: ρ₁ under one record a person bounds no loss of somebody who has three, and where the
  unit keeps k records of a person, the ledger's key keeps the same ones for every run;
- *the schema is the same*: otherwise a cell of y₁ counts other records than the cell of its name does now;
- *the records are the same*, by the ledger's keyed digests of its table (``privacy/marks.py``), as for a run
  that is resumed: otherwise y₁ is about another x. Such a release may still serve as public data.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sidelight.data.schema import Schema
from sidelight.errors import LedgerError, SettingError
from sidelight.measurement import Measurement
from sidelight.privacy.chained_ledger import Ledger
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.unit import Unit
from sidelight.releases.card import ReusedRelease
from sidelight.releases.release import Release


@dataclass(frozen=True)
class Reused:
    """Earlier noisy answers, each noise once, and where they come from."""

    lent: tuple[tuple[Measurement, ...], ...]
    """The measurements of each release."""
    releases: tuple[ReusedRelease, ...]
    """Where they come from, before a run has used any of them."""

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """The measurements of all releases together."""
        return tuple(made for one in self.lent for made in one)

    def after(self, used: Iterable[Measurement]) -> tuple[ReusedRelease, ...]:
        """The releases as a card tells of them, once a run has used some of these very measurements."""
        places = set(map(id, used))
        return tuple(
            replace(told, answers=_numbers(made for made in one if id(made) in places))
            for told, one in zip(self.releases, self.lent, strict=True)
        )

    @property
    def digest(self) -> str:
        """The hash by which a checkpoint recognises these answers."""
        parts = hashlib.sha256()
        for made in self.measurements:
            parts.update(_identity(made))
        return parts.hexdigest()[:16]

    @property
    def sentence(self) -> str:
        """The number of answers that are used again, in a sentence."""
        number = _numbers(self.measurements)
        of = "one earlier release" if len(self.releases) == 1 else f"{len(self.releases)} earlier releases"
        return f"Up to {number:,} noisy answers of {of} of the same records are used again, free of charge."


def refuse_unless_same(one: ReusedRelease, is_same: bool | None) -> None:  # noqa: FBT001  # the ledger's answer
    """Refuse answers about a table that has changed since, as the ledger tells by its marks."""
    if is_same:
        return
    why = (
        "the ledger cannot tell whether its table is still the same: one without a file or a name is not "
        "recognised"
        if is_same is None
        else "the table has changed since, so its answers are about other records. As public data "
        "(--public) it may still help"
    )
    raise LedgerError(
        f"the release of {one.created:%Y-%m-%d} (run {one.run}) cannot be reused: {why}. Nothing was charged."
    )


def read_reused(given: Any, *, schema: Schema, unit: Unit, ledger: Ledger | None) -> Reused | None:
    """The answers of one release, or of several; each is a Release or its folder.

    Refused where schema or unit differ, or where the ledger does not know the release.
    """
    listed = list(given) if isinstance(given, list | tuple) else [] if given is None else [given]
    if not listed:
        return None
    if ledger is None or isinstance(ledger, MemoryLedger):
        raise SettingError(
            "reuse needs the ledger that paid for the earlier release: it alone can tell whether the table "
            "is still the same. Give ledger=…; nothing was charged."
        )
    releases = [one if isinstance(one, Release) else Release.load(Path(one)) for one in listed]
    for release in releases:
        _check(release, schema, unit, ledger)
    apart = _apart(releases)
    told = tuple(
        ReusedRelease(
            run=one.card.ledger.run,
            mechanism=one.card.mechanism,
            created=one.card.created,
            answers=0,
            of=_numbers(one.measurements),
            holds=tuple(sorted(_runs(one) - {one.card.ledger.run})),
        )
        for one in apart
    )
    return Reused(tuple(one.measurements for one in apart), told)


def _runs(release: Release) -> set[str]:
    """The runs whose answers a release holds: its own, and those that it reused."""
    return {release.card.ledger.run}.union(*({one.run, *one.holds} for one in release.card.reused))


def _apart(releases: Sequence[Release]) -> list[Release]:
    """The releases without those whose answers are in another: one noise must not be taken for two."""
    runs = {one.card.ledger.run: _runs(one) for one in releases}
    lent = set[str]().union(*(held - {run} for run, held in runs.items()))
    last = {one.card.ledger.run: one for one in releases if one.card.ledger.run not in lent}
    seen: set[str] = set()
    for run in last:
        if shared := seen & runs[run]:
            raise SettingError(
                f"two of these releases reused the same earlier one (run {min(shared)}), whose noise would "
                "count twice. Reuse one of them. Nothing was charged."
            )
        seen |= runs[run]
    return list(last.values())


def _check(release: Release, schema: Schema, unit: Unit, ledger: Ledger) -> None:
    card = release.card
    why = None
    if card.schema_fingerprint != schema.fingerprint:
        why = "it was made under another schema. As public data (--public) it may still help"
    elif card.unit != unit:
        why = f"it was made under {card.unit.spelled()}, and this release is under {unit.spelled()}"
    elif not card.noise_is_private:
        why = "its noise was seeded, so that it protects nobody"
    elif not ledger.knows(card.ledger.run):
        why = "this ledger did not pay for it, so nothing says that it is about the same records"
    if why is not None:
        raise SettingError(
            f"the release of {card.created:%Y-%m-%d} cannot be reused: {why}. Nothing was charged."
        )


def _identity(made: Measurement) -> bytes:
    """The hash by which one measurement is recognised."""
    text = repr((made.query.as_json(), made.stddev)).encode()
    return hashlib.sha256(text + made.answer.tobytes()).digest()


def _numbers(made: Iterable[Measurement]) -> int:
    return sum(one.answer.size for one in made)
