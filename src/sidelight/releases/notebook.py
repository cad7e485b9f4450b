"""A release as a notebook shows it: a few lines of HTML, made from the release alone."""

from typing import TYPE_CHECKING

from sidelight._html import listed, table

if TYPE_CHECKING:
    from sidelight.releases.release import Release


def release_html(release: "Release") -> str:
    """What was promised and spent, and what there is to ask."""
    card, attrs = release.card, release.model.domain.attrs
    facts = [("records", f"{release.total:,.0f}"), (f"{len(attrs)} attributes", listed(attrs))]
    share = None
    if "epsilon" in card:
        spent = f"ε = {card['epsilon_spent']:.4g} of {card['epsilon']:g}, at δ = {card['delta']:g}"
        facts = [("mechanism", str(card.get("mechanism", ""))), ("privacy spent", spent), *facts]
        share = card["epsilon_spent"] / card["epsilon"]
    if release.quality is not None:
        facts = [("how good", release.quality.sentence), *facts]
    public = card.get("public")
    if public is not None:
        records = public.get("records")
        facts.append(("public data", "used" if records is None else f"{records:,} records"))
    measured = dict.fromkeys(measurement.query.describe() for measurement in release.measurements)
    facts.append(("measured", listed(measured)))
    seeded = card.get("private") is False
    return table(
        "A differentially private release",
        facts,
        share=share,
        alarm="NOT PRIVATE: the noise was seeded." if seeded else None,
    )
