"""The runs of a ledger, one after the other, with how much of the budget was used by then."""

from datetime import datetime

from sidelight.privacy.chained_ledger import Ledger
from sidelight.privacy.statement import Statement
from sidelight.releases.card import PastRun


def history_of(ledger: Ledger) -> tuple[PastRun, ...]:
    """Every run of a ledger, and the share of the budget that was used after it."""
    return tuple(
        PastRun(when=datetime.fromisoformat(run.when), what=run.purpose.mechanism or "a run", used=share)
        for run, share, _ in Statement.of(ledger).after_each
    )
