"""How a release was made, from its card alone: public data, citation, and the command to repeat it."""

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sidelight._check import listed
from sidelight.errors import SidelightError
from sidelight.mechanisms.registry import mechanism_of
from sidelight.releases.card import Card
from sidelight.releases.public_data import told_of
from sidelight.releases.quality import SHARE
from sidelight.releases.release import Release
from sidelight.reports.words import joined, number, percent, shortened, tiny

_LINE_BREAK = " \\\n    "
_NOTHING = object()
_REMARKS = 20
"""Most remarks about public values that a page has."""
_DIFFERENCE = (
    "Each difference is the root mean square over the measured numbers, in records, less the part "
    "that noise explains. These numbers were selected because the model was far off there; most "
    "others are closer."
)
_MOVED = (
    "Each number says how far noisy answers moved the release away from the model of the public data: the "
    "absolute differences of a marginal's cells, added up, as a share of all records (200% at most)."
)


@dataclass(frozen=True)
class Apart:
    """How far public and private data were apart on one marginal, by noisy measurement."""

    name: str
    error: str
    numbers: int | None = None
    """How many noisy numbers this is estimated from; None where the card does not say."""


@dataclass(frozen=True)
class PublicPart:
    """How public data contributed to this release."""

    records: int | None
    disagreements: tuple[Apart, ...]
    """Largest first."""
    measure: str
    """The meaning of a disagreement's number, in words."""
    taken: tuple[str, ...]
    """Marginals taken from the public table in place of a measurement, or held by the public model."""
    unmeasured: tuple[str, ...]
    """Attributes that no measurement is about; their counts rest on public data or assumptions."""
    told: tuple[str, ...] = ()
    """How many public records tell of which attributes, where they do not tell of all alike."""
    remarks: tuple[str, ...] = ()
    """Which public values do not fit the schema, and what became of them."""


@dataclass(frozen=True)
class Provenance:
    """How to cite a release, and how to make another like it."""

    citation: str
    ledger: str
    """The command that opens a ledger like this one, for another table."""
    command: str
    """The command that repeats the plan; FOLDER is the release, other capitals are the reader's own names."""
    unsaid: tuple[tuple[str, str], ...]
    """Settings that differ from the mechanism's defaults and cannot be given on a command line."""
    settings: tuple[tuple[str, str], ...]


def public_part(release: Release) -> PublicPart | None:
    """The card's facts about public data; None where none was used."""
    card = release.card
    if card.public is None:
        return None
    measured = {attr for measurement in release.measurements for attr in measurement.query.attrs}
    records, told = card.public.records, tuple(told_of(card.public.columns))
    return PublicPart(
        records=None if records is None else round(records),
        disagreements=tuple(_moved(card) if card.aperture else _different(card)),
        measure=_MOVED if card.aperture else _DIFFERENCE,
        taken=tuple(dict.fromkeys(_taken(card))),
        unmeasured=tuple(attr for attr in release.model.domain.attrs if attr not in measured),
        told=told if len(told) > 1 else (),
        remarks=tuple(shortened(one, 300) for one in card.public.remarks[:_REMARKS]),
    )


def left_out(card: Card) -> tuple[str, ...]:
    """The part of the public data that a release did without, in sentences."""
    told = card.aperture
    if told is None:
        return ()
    if told.cut and not told.public_records:
        return (
            "Public data were left out: the private table's answers alone were found to be closer to it.",
        )
    if told.is_bare:
        return ("Of the public data, single attributes alone were used: how they go together misled.",)
    if not told.cut:
        return ()
    named = listed([shortened(attr, 80) for attr in told.cut], most=20)
    about = f"{named} {'goes' if len(told.cut) == 1 else 'go'} together with other attributes"
    return (
        f"Cut off from the public data, because it was found to mislead: what they say about how {about}.",
    )


def provenance(release: Release, title: str) -> Provenance:
    """Citation, command and settings."""
    card = release.card
    told = [
        f"“{title}”, a differentially private release",
        f"made with sidelight {card.versions.get('sidelight', '')}".rstrip(),
        f"mechanism {card.mechanism}",
        f"({card.epsilon:g}, {tiny(card.delta)})-differential privacy",
        f"{card.created:%Y-%m-%d}",
        f"schema {card.schema_fingerprint[:16]}",
    ]
    changed = _changed(card)
    return Provenance(
        citation=", ".join(told) + ".",
        ledger=_ledger(card),
        command=_command(card, {name: value for name, value in changed.items() if not _is_nested(value)}),
        unsaid=_pairs({name: value for name, value in changed.items() if _is_nested(value)}),
        settings=_pairs(card.settings),
    )


def _ledger(card: Card) -> str:
    """The command that opens a ledger under which the plan can be repeated for another table.

    δ and the unit of a release are those of its ledger. A table has one ledger: a second one would not know
    what the first has spent.
    """
    ledger = f"sidelight ledger open LEDGER --epsilon {card.epsilon!r} --delta {card.delta!r}"
    ledger += f" --unit {card.unit.relation}"
    if card.unit.person is not None:
        ledger += f" --person {shlex.quote(card.unit.person)}"
    elif card.unit.records != 1:
        ledger += f" --records {card.unit.records}"
    return ledger


def _command(card: Card, settings: Mapping[str, Any]) -> str:
    """The command that repeats the plan, with placeholders for the reader's files and approvers."""
    parts = ["sidelight release PRIVATE.csv", "--schema FOLDER/schema.toml", "--ledger LEDGER", "--out NEW"]
    parts += [f"--mechanism {shlex.quote(card.mechanism)}", f"--epsilon {card.epsilon!r}"]
    parts += [f"--workload {_workload(card)}"]
    parts += ["--public PUBLIC.csv"] if card.public else []
    share = card.quality_share
    parts += [] if share in (None, SHARE) else [f"--quality-share {share!r}"]
    parts += ["--accept CRITERIA.toml"] if card.acceptance else []
    parts += ["--bins 'as declared'"] if card.bins == "as declared" else []
    parts += [f"--set {shlex.quote(f'{name}={_as_setting(value)}')}" for name, value in settings.items()]
    parts += [f"--reuse {name}" for name in _numbered("EARLIER", len(card.reused))]
    parts += [f"--project {shlex.quote(card.ledger.project)}"] if card.ledger.project is not None else []
    # Whoever approved this run did not approve the next one.
    parts += [f"--approved-by {name}" for name in _numbered("APPROVER", len(card.ledger.approved_by))]
    return _LINE_BREAK.join(parts)


def _numbered(name: str, number: int) -> list[str]:
    """A placeholder for each of so many names."""
    return [name] if number == 1 else [f"{name}_{place}" for place in range(1, number + 1)]


def _workload(card: Card) -> str:
    """The workload's name, or the file of the folder that holds it."""
    asked = card.workload.asked
    if asked is None:
        return "WORKLOAD"
    return shlex.quote(asked) if isinstance(asked, str) else "FOLDER/workload.json"


def _changed(card: Card) -> dict[str, Any]:
    """Settings that differ from the mechanism's defaults; every setting if the mechanism is unknown here."""
    try:
        usual = mechanism_of(card.mechanism).settings()
    except (SidelightError, ImportError):
        usual = {}
    return {name: value for name, value in card.settings.items() if usual.get(name, _NOTHING) != value}


def _is_nested(value: Any) -> bool:
    """Whether a setting has settings of its own, which no command line can say."""
    return isinstance(value, Mapping)


def _as_setting(value: Any) -> str:
    """A value as ``--set`` reads it: JSON, but text without quotes unless it would be read as JSON."""
    if isinstance(value, str):
        try:
            json.loads(value)
        except json.JSONDecodeError:
            return value
    return json.dumps(value, ensure_ascii=False)


def _different(card: Card) -> Iterator[Apart]:
    for one in sorted(card.public.disagreements if card.public else (), key=lambda one: -one.difference):
        yield Apart(joined(one.attrs), number(card.total * one.difference), one.numbers)


def _moved(card: Card) -> Iterator[Apart]:
    """How far APERTURE moved away from public records, also from those that it left out in the end.

    Marginals that the public data do not tell of are left out: there, it moved away from a mere guess.
    """
    opened = card.aperture.marginals if card.aperture else ()
    records = card.public.columns if card.public else {}
    for one in sorted(opened, key=lambda one: -one.moved):
        is_told = one.told_by_public
        if is_told is None:  # an older card
            is_told = not records or all(records.get(attr) for attr in one.attrs)
        if not is_told:
            continue
        yield Apart(joined(one.attrs), percent(one.moved))


def _taken(card: Card) -> Iterator[str]:
    """Marginals and records that were taken from public data: JAM's public rounds, APERTURE's model."""
    yield from (joined(one.marginal) for one in card.rounds if one.source == "public")
    if card.aperture:
        if card.aperture.records_share:
            yield (
                "further models of public records, or such records themselves "
                f"(about {card.aperture.records_share:.0%} of the release)"
            )
        yield from map(joined, card.aperture.public_marginals)


def _pairs(settings: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (name, f"{value:.6g}" if isinstance(value, float) else str(value)) for name, value in settings.items()
    )
