"""Cards for releases that no run of the front door made."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from itertools import combinations
from typing import Any

from sidelight.data.schema import Schema
from sidelight.mechanisms.base import Outcome
from sidelight.models.model import Model
from sidelight.privacy.budget import Epsilon
from sidelight.privacy.event import Event
from sidelight.privacy.unit import Unit
from sidelight.releases.card import AskedWorkload, Card, LedgerEntry
from sidelight.releases.release import Release


def card_of(model: Model, events: Iterable[Event] = (), **facts: Any) -> Card:
    """A card that fits the model and the events; ``facts`` replace what is made up."""
    paid = tuple(events)
    spent = sum((event.cost.value for event in paid), start=Fraction(0))
    attrs = model.domain.attrs
    made_up = Card(
        mechanism="by hand", settings={}, papers=(), unit=Unit(), epsilon=1.0, delta=1e-9,
        accounting="pure" if any(isinstance(event.cost, Epsilon) for event in paid) else "zcdp",
        allotted=spent, spent=spent, events=paid, ledger=LedgerEntry(name="this release", run="1", head="0"),
        noise="none", noise_is_private=True,
        workload=asked([*((a,) for a in attrs), *combinations(attrs, 2)]),
        public=None, schema_fingerprint="0", total=model.total, versions={"sidelight": "0"},
        created=datetime(2026, 11, 17, tzinfo=UTC),
    )  # fmt: skip
    return replace(made_up, **facts)


def asked(attribute_sets: Iterable[tuple[str, ...]]) -> AskedWorkload:
    """A workload of these marginals."""
    listed = tuple(attribute_sets)
    return AskedWorkload(queries=len(listed), marginals=len(listed), attribute_sets=listed, asked=None)


def released(outcome: Outcome, *, schema: Schema | None = None, **facts: Any) -> Release:
    """The release of what a mechanism ended with."""
    card = card_of(
        outcome.model, outcome.events, model_error=outcome.model_error, notes=outcome.notes,
        rounds=outcome.rounds, aperture=outcome.aperture, **facts,
    )  # fmt: skip
    return Release(outcome.model, outcome.measurements, card, schema)
