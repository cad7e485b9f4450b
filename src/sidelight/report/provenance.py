"""How a release was made, from its card alone: public data, citation, and the command to repeat it."""

import importlib
import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sidelight.errors import SidelightError
from sidelight.mechanisms.registry import mechanism_of
from sidelight.releases.release import Release
from sidelight.report.words import joined, number, percent, tiny
from sidelight.sources import shown_name

_AUTHOR = r"[A-Z][\w'’-]+"
_PAPER = re.compile(
    rf'{_AUTHOR}(?:,? (?:and )?{_AUTHOR})*(?:,? "[^"]+")? \(\d{{4}}\)(?:,? arXiv:\d{{4}}\.\d{{4,5}})?'
)
"""Authors, perhaps a title, a year and perhaps an arXiv number, as every mechanism's docstring has them."""
_LINE, _LINE_BREAK = "\n", " \\\n    "
_NOTHING = object()


@dataclass(frozen=True)
class Disagreement:
    """How far public and private data were apart on one marginal, by noisy measurement."""

    name: str
    error: str
    numbers: int | None = None
    """How many noisy numbers this is estimated from; None where the card does not say."""


@dataclass(frozen=True)
class PublicPart:
    """How public data contributed to this release."""

    records: int | None
    disagreements: tuple[Disagreement, ...]
    """Largest first, where they can be compared."""
    measure: str
    """What a disagreement's number means, in words."""
    taken: tuple[str, ...]
    """Marginals taken from the public table in place of a measurement, or held by the public model."""
    unmeasured: tuple[str, ...]
    """Attributes that no measurement is about; their counts rest on public data or assumptions."""


@dataclass(frozen=True)
class Provenance:
    """How to cite a release, and how to make another like it."""

    citation: str
    papers: tuple[str, ...]
    command: str
    """The commands that repeat the plan; FOLDER is the release, other capitals are the reader's own files."""
    unsaid: tuple[tuple[str, str], ...]
    """Settings that differ from the mechanism's defaults and cannot be given on a command line."""
    settings: tuple[tuple[str, str], ...]
    versions: tuple[tuple[str, str], ...]
    schema: str | None
    ledger: tuple[tuple[str, str], ...]
    """Name, run and head."""


def public_part(release: Release) -> PublicPart | None:
    """What the card says about public data; None where none was used."""
    public = release.card.get("public")
    if not public:
        return None
    measured = {attr for measurement in release.measurements for attr in measurement.query.attrs}
    records = public.get("records") if isinstance(public, Mapping) else None
    return PublicPart(
        records=records if isinstance(records, int) else None,
        disagreements=tuple(_disagreements(release.card.get("public_error"), release.total)),
        measure=_measure(release.card.get("public_error")),
        taken=tuple(_taken(release.card)),
        unmeasured=tuple(attr for attr in release.model.domain.attrs if attr not in measured),
    )


def provenance(release: Release, title: str) -> Provenance:
    """Citation, command, versions and fingerprints, as far as the card has them."""
    card = release.card
    mechanism = str(card.get("mechanism", ""))
    versions = _pairs(card.get("versions"))
    made = dict(versions).get("sidelight")
    when = str(card.get("created", ""))[:10]
    promise = (
        f"({card['epsilon']:g}, {tiny(card['delta'])})-differential privacy"
        if {"epsilon", "delta"} <= card.keys()
        else ""
    )
    told = [
        f"“{title}”, a differentially private release",
        f"made with sidelight {made}" if made else "made with sidelight",
        f"mechanism {mechanism}" if mechanism else "",
        promise,
        when,
        f"schema {str(card['schema'])[:16]}" if card.get("schema") else "",
    ]
    return Provenance(
        citation=", ".join(part for part in told if part) + ".",
        papers=_papers(mechanism),
        command=_command(card),
        unsaid=tuple((name, _plain(value)) for name, value in _changed(card) if isinstance(value, Mapping)),
        settings=_pairs(card.get("settings")),
        versions=versions,
        schema=str(card["schema"]) if card.get("schema") else None,
        # PRIVACY: releases of older versions name their ledger after its address, with its password.
        ledger=tuple((name, shown_name(value)) for name, value in _pairs(card.get("ledger"))),
    )


def _command(card: Mapping[str, Any]) -> str:
    """The command that repeats the plan, with placeholders for the reader's files."""
    if "mechanism" not in card or "epsilon" not in card:
        return ""
    parts = ["sidelight release PRIVATE.csv", "--schema FOLDER/schema.toml", "--ledger LEDGER", "--out NEW"]
    parts += [f"--mechanism {shlex.quote(str(card['mechanism']))}", f"--epsilon {card['epsilon']!r}"]
    parts += [f"--workload {_workload(card)}"]
    parts += ["--public PUBLIC.csv"] if card.get("public") else []
    for name, value in _changed(card):
        if not isinstance(value, Mapping):
            parts.append(f"--set {shlex.quote(f'{name}={_as_setting(value)}')}")
    return _LINE.join([*_ledger_command(card), _LINE_BREAK.join(parts)])


def _ledger_command(card: Mapping[str, Any]) -> list[str]:
    """The command that opens a suitable ledger: δ and the unit of a release are those of its ledger."""
    unit = card.get("unit")
    if not isinstance(unit, Mapping) or "delta" not in card:
        return []
    records = f" --records {unit.get('records', 1)}" if unit.get("records", 1) != 1 else ""
    return [
        f"sidelight ledger open LEDGER --epsilon {card['epsilon']!r} --delta {card['delta']!r} "
        f"--unit {shlex.quote(str(unit.get('relation', 'replace')))}{records}"
    ]


def _workload(card: Mapping[str, Any]) -> str:
    """The workload's name, or the file of the folder that holds it."""
    workload = card.get("workload")
    asked = workload.get("asked") if isinstance(workload, Mapping) else None
    if isinstance(asked, str):
        return shlex.quote(asked)
    return "FOLDER/workload.json" if isinstance(asked, list) else "WORKLOAD"


def _changed(card: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Settings that differ from the mechanism's defaults; every setting if the mechanism is unknown here."""
    settings = card.get("settings")
    if not isinstance(settings, Mapping):
        return []
    try:
        usual = mechanism_of(str(card.get("mechanism"))).settings()
    except (SidelightError, ImportError):
        usual = {}
    return [(str(name), value) for name, value in settings.items() if usual.get(name, _NOTHING) != value]


def _as_setting(value: Any) -> str:
    """A value as ``--set`` reads it: JSON, but text without quotes unless it would be read as JSON."""
    if isinstance(value, str):
        try:
            json.loads(value)
        except json.JSONDecodeError:
            return value
    return json.dumps(value, ensure_ascii=False)


def _papers(mechanism: str) -> tuple[str, ...]:
    """The papers that the mechanism's own module names."""
    try:
        module = importlib.import_module(type(mechanism_of(mechanism)).__module__)
    except (SidelightError, ImportError):
        # A mechanism of a newer version, or of another package: there is nothing to cite from here.
        return ()
    text = " ".join((module.__doc__ or "").split())
    return tuple(_PAPER.findall(text))


def _disagreements(public_error: Any, total: float) -> list[Disagreement]:
    """The card has one number, one number for each marginal, or a list of marginals with their errors."""
    if isinstance(public_error, bool | str) or public_error is None:
        return []
    if isinstance(public_error, int | float):
        return [Disagreement("all that was measured", f"{public_error:.4g}")]
    if isinstance(public_error, Mapping):
        return [Disagreement(str(name), _plain(error)) for name, error in public_error.items()]
    listed = public_error if isinstance(public_error, list) else []
    found = [item for item in listed if isinstance(item, Mapping) and isinstance(item.get("attrs"), list)]
    found.sort(key=lambda item: -_size(item))
    return [
        Disagreement(
            joined(item["attrs"]),
            number(total * _size(item)) if "difference" in item else percent(_size(item)),
            item["numbers"] if isinstance(item.get("numbers"), int) else None,
        )
        for item in found
    ]


def _size(item: Mapping[str, Any]) -> float:
    size = item.get("difference", item.get("error", 0.0))
    return float(size) if isinstance(size, int | float) else 0.0


def _measure(public_error: Any) -> str:
    """What the numbers of ``public_error`` mean; they are called ``difference`` or ``error`` on the card."""
    items = public_error if isinstance(public_error, list) else []
    if any(isinstance(item, Mapping) and "difference" in item for item in items):
        return (
            "Each difference is the root mean square over the measured numbers, in records, less the part "
            "that noise explains. These numbers were selected because the model was far off there; most "
            "others are closer."
        )
    return (
        "Each number says how far noisy answers moved the release away from the public data: the absolute "
        "differences of a marginal's cells, added up, as a share of all records (200% at most)."
    )


def _taken(card: Mapping[str, Any]) -> list[str]:
    """What the card says was taken from public data: JAM's public rounds, APERTURE's model and records."""
    rounds = card.get("rounds")
    if isinstance(rounds, list):
        public = [one for one in rounds if isinstance(one, Mapping) and one.get("source") == "public"]
        return list(dict.fromkeys(joined(one.get("marginal", ())) for one in public))
    aperture = card.get("aperture")
    if not isinstance(aperture, Mapping):
        return []
    held, share = aperture.get("public_marginals"), aperture.get("records_share")
    records = (
        [f"whole records (about {share:.0%} of the release)"] if isinstance(share, float) and share else []
    )
    return records + ([joined(attrs) for attrs in held] if isinstance(held, list) else [])


def _pairs(mapping: Any) -> tuple[tuple[str, str], ...]:
    if not isinstance(mapping, Mapping):
        return ()
    return tuple((str(name), _plain(value)) for name, value in mapping.items())


def _plain(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
