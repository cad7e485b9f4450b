"""How a release came about: public data, citation, and how to do it again. From the card alone."""

import importlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sidelight.errors import SidelightError
from sidelight.mechanisms.registry import mechanism_of
from sidelight.mechanisms.release import Release
from sidelight.report.words import joined, tiny

_AUTHOR = r"[A-Z][\w'’-]+"
_PAPER = re.compile(
    rf'{_AUTHOR}(?:,? (?:and )?{_AUTHOR})*(?:,? "[^"]+")? \(\d{{4}}\)(?:,? arXiv:\d{{4}}\.\d{{4,5}})?'
)
"""Authors, perhaps a title, a year and perhaps an arXiv number, as every mechanism's docstring has them."""


@dataclass(frozen=True)
class Disagreement:
    """How far public and private data were apart on one marginal, by noisy measurement."""

    name: str
    error: str


@dataclass(frozen=True)
class PublicPart:
    """What public data did for this release."""

    records: int | None
    disagreements: tuple[Disagreement, ...]
    unmeasured: tuple[str, ...]
    """Attributes that no measurement is about: all the release says of them is public or assumed."""


@dataclass(frozen=True)
class Provenance:
    """How to cite a release, and how to make another like it."""

    citation: str
    papers: tuple[str, ...]
    command: str
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
        disagreements=tuple(_disagreements(release.card.get("public_error"))),
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
        f"({card['epsilon']:g}, {tiny(card['delta'])})-differential privacy" if "epsilon" in card else ""
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
        settings=_pairs(card.get("settings")),
        versions=versions,
        schema=str(card["schema"]) if card.get("schema") else None,
        ledger=_pairs(card.get("ledger")),
    )


def _command(card: Mapping[str, Any]) -> str:
    """The command that asks for the same again; names of files are the reader's own."""
    if "mechanism" not in card or "epsilon" not in card:
        return ""
    parts = ["sidelight release PRIVATE.csv", "--schema schema.toml", "--ledger LEDGER", "--out FOLDER"]
    parts += [f"--mechanism {card['mechanism']}", f"--epsilon {card['epsilon']:g}", "--workload WORKLOAD"]
    parts += ["--public PUBLIC.csv"] if card.get("public") else []
    return " \\\n    ".join(parts)


def _papers(mechanism: str) -> tuple[str, ...]:
    """The papers that the mechanism's own module names."""
    try:
        module = importlib.import_module(type(mechanism_of(mechanism)).__module__)
    except (SidelightError, ImportError):
        # A mechanism of a newer version, or of another package: there is nothing to cite from here.
        return ()
    text = " ".join((module.__doc__ or "").split())
    return tuple(_PAPER.findall(text))


def _disagreements(public_error: Any) -> list[Disagreement]:
    """One number, a number a marginal, or a list of marginals with their errors."""
    if isinstance(public_error, bool | str) or public_error is None:
        return []
    if isinstance(public_error, int | float):
        return [Disagreement("all that was measured", f"{public_error:.4g}")]
    if isinstance(public_error, Mapping):
        return [Disagreement(str(name), _plain(error)) for name, error in public_error.items()]
    found = []
    for item in public_error:
        if isinstance(item, Mapping) and "attrs" in item:
            rest = {name: value for name, value in item.items() if name != "attrs"}
            found.append(
                Disagreement(joined(item["attrs"]), ", ".join(_plain(value) for value in rest.values()))
            )
    return found


def _pairs(mapping: Any) -> tuple[tuple[str, str], ...]:
    if not isinstance(mapping, Mapping):
        return ()
    return tuple((str(name), _plain(value)) for name, value in mapping.items())


def _plain(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
