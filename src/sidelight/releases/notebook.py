"""A release as a notebook shows it: a few lines of HTML, made from the release alone."""

from typing import TYPE_CHECKING

from sidelight._check import listed
from sidelight._html import table
from sidelight.releases.card import NO_LEDGER

if TYPE_CHECKING:
    from sidelight.releases.release import Release

_NAMES = 8
"""Most attributes, and most queries, that are named."""


def release_html(release: "Release") -> str:
    """A small table: what was promised and spent, the attributes, and what was measured."""
    card, attrs = release.card, release.model.domain.attrs
    facts = [] if card.quality is None else [("how good", card.quality.sentence)]
    facts += [] if card.acceptance is None else [("accepted", card.acceptance.sentence)]
    facts += [
        ("mechanism", card.mechanism),
        *([("why", card.why)] if card.why else []),
        ("privacy spent", f"ε = {card.epsilon_spent:.4g} of {card.epsilon:g}, at δ = {card.delta:g}"),
        ("records", f"{release.total:,.0f}"),
        (f"{len(attrs)} attributes", listed(attrs, _NAMES)),
    ]
    if card.public is not None:
        records = card.public.records
        facts.append(("public data", "used" if records is None else f"{records:,.0f} records"))
    if card.ledger.name == NO_LEDGER:
        facts.append(("ledger", "none: nobody adds this release to others from the same table"))
    if card.unmeasured is not None and card.unmeasured.attributes:
        facts.append(("never measured", listed(card.unmeasured.attributes, _NAMES)))
    measured = dict.fromkeys(measurement.query.describe() for measurement in release.measurements)
    facts.append(("measured", listed(measured, _NAMES) or "nothing"))
    return table(
        "A differentially private release",
        facts,
        share=card.epsilon_spent / card.epsilon,
        alarm=None if card.noise_is_private else "NOT PRIVATE: the noise was seeded.",
    )
