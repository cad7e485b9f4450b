"""Charge a ledger for releases that it lacks, because it was restored from an older backup."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from sidelight.errors import BudgetExhausted, LedgerError
from sidelight.privacy import moving
from sidelight.privacy.budget import Cost, Epsilon, Rho
from sidelight.privacy.chained_ledger import Ledger
from sidelight.privacy.event import Event, Gaussian, Laplace
from sidelight.privacy.moving import Gap, gap
from sidelight.privacy.purpose import Purpose
from sidelight.releases.card import Card
from sidelight.releases.release import Release


@dataclass(frozen=True)
class Restored:
    """A ledger that was made out of a backup."""

    ledger: Ledger
    gap: Gap
    """The lines that the backup lacked, as far as this machine knows."""
    entered: tuple[str, ...]
    """The runs that it did not know, or knew in part, and was charged for."""


def restore(
    backup: str | Path,
    target: str | Path,
    *,
    releases: Iterable[str | Path] = (),
    is_confirmed: bool = False,
) -> Restored:
    """Make a new ledger out of a backup, and charge it for the releases that it lacks.

    Args:
        backup: a file that ``sidelight ledger backup`` wrote.
        target: the new ledger, a file that is not there yet or a database URL.
        releases: the folders of all releases that were made since the backup.
        is_confirmed: this machine saw lines that the backup lacks, and they are lost for good.
    """
    cards = [Release.load(Path(folder)).card for folder in releases]
    lost, entered = gap(backup), list[str]()
    ledger = moving.restore(
        backup, target, is_confirmed=is_confirmed, then=lambda book: entered.extend(charge(book, cards))
    )
    return Restored(ledger, lost, tuple(entered))


def charge(ledger: Ledger, cards: Iterable[Card]) -> list[str]:
    """Enter what the ledger lacks of the runs of these releases, each with its own events; gives their ids.

    A run that was open when the backup was made is completed: the ledger knows it, but not all that it paid.
    The ledger's policy, which these runs met when they were made, is withdrawn meanwhile, and set again:
    both are lines.
    """
    unfinished, unknown = {}, {}
    for card in cards:
        run = card.ledger.run
        _require_same_promise(ledger, card)
        if not ledger.knows(run):
            unknown[run] = card
        elif ledger.is_open(run):
            unfinished[run] = card
        elif ledger.run(run).spent.value < card.spent:
            raise LedgerError(
                f"run {run} is closed, and its release says that it spent more. Nothing was written."
            )
    if unfinished or unknown:
        with _without_policy(ledger):
            for run, card in unfinished.items():  # first: what they did not spend goes back
                _complete(ledger, run, card)
            for run, card in unknown.items():
                _enter(ledger, run, card)
    return [*unfinished, *unknown]


def _complete(ledger: Ledger, run: str, card: Card) -> None:
    """Let a run that the ledger knows as open pay for the rest of its release, and end."""
    allotment, paid = ledger.allotment(run), {payment.nth for payment in ledger.payments(run)}
    # Answers that were drawn again may not fit into the allotment any more: they are part of the rest.
    with suppress(BudgetExhausted):
        for event in card.events[len(paid) :]:
            ledger.append(event, run=run)
    for event in _rest(card.spent - ledger.run(run).spent.value, type(allotment)):
        ledger.append(event, run=run, nth=0)  # apart, out of the promise itself
    ledger.close(run)


def _enter(ledger: Ledger, run: str, card: Card) -> None:
    cost: type[Cost] = Epsilon if card.accounting == "pure" else Rho
    purpose = Purpose.of(
        card.mechanism, project=card.ledger.project, approved_by=list(card.ledger.approved_by)
    )
    label = f"{card.mechanism}, entered again from its release of {card.created:%Y-%m-%d}"
    ledger.begin(cost(card.spent), label=label, run=run, purpose=purpose)
    known = sum((event.cost.value for event in card.events), start=Fraction(0))
    for event in (*card.events, *_rest(card.spent - known, cost)):
        ledger.append(event, run=run)
    ledger.close(run)


def _rest(lost: Fraction, cost: type[Cost]) -> Iterator[Event]:
    """Draws that are not in the release, as one event of their cost."""
    if lost > 0:
        what = "answers that were paid for again"
        if cost is Rho:
            yield Gaussian.at(Rho(lost), what=what, l2_squared=Fraction(1))
        else:
            yield Laplace.at(Epsilon(lost), what=what, l1=Fraction(1))


def _require_same_promise(ledger: Ledger, card: Card) -> None:
    if card.ledger.name != ledger.promise.shown or card.unit.promised != ledger.promise.unit.promised:
        raise LedgerError(
            f"a release that was paid from the ledger of {card.ledger.name!r} cannot be charged to that of "
            f"{ledger.promise.shown!r}: another name, or another unit. Nothing was written."
        )


@contextmanager
def _without_policy(ledger: Ledger) -> Iterator[None]:
    policy = ledger.policy
    if policy is not None:
        ledger.set_policy(None)
    try:
        yield
    finally:
        if policy is not None:
            ledger.set_policy(policy)
