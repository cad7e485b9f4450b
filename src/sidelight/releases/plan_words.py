"""A plan in words: what ``sidelight plan`` prints."""

from typing import TYPE_CHECKING

from sidelight.privacy.budget import Epsilon
from sidelight.releases.public_data import told_of

if TYPE_CHECKING:
    from sidelight.releases.plan import Plan


def describe(planned: "Plan", *, can_pay: bool | None = None) -> str:
    """The plan for a person, a line for each fact; ``can_pay`` is None where there is no ledger."""
    budget, unit, outlook = planned.budget, planned.unit, planned.outlook
    currency = "ε" if isinstance(planned.allotment, Epsilon) else "ρ"
    allotted = f"{currency} = {float(planned.allotment):.5g}"
    lines = [
        f"mechanism  {planned.mechanism.name}",
        *([f"why        {planned.why}"] if planned.why else []),
        f"domain     {len(planned.domain)} attributes, {float(planned.domain.size()):.3g} cells",
        f"workload   {len(planned.workload)} queries",
        f"protects   {unit.describe()}",
        f"cost       ε = {budget.epsilon:g} at δ = {budget.delta:g}, {allotted}",
        f"means      {planned.meaning}",
        f"measures   up to {outlook.measurements} times, σ = {outlook.stddev:.4g} on each number",
        f"memory     model {_size(outlook.model_bytes)}, exact counts {_size(outlook.counting_bytes)}",
    ]
    lines += [f"public     {told}" for told in told_of(planned.public_records)]
    if planned.quality_stddev is not None:
        lines.append(
            f"quality    {planned.quality_share:.3g} of the budget measures the mean error of a table to "
            f"± {2 * planned.quality_stddev:.3g} records (95%)"
        )
    lines += [f"accept     {criterion}" for criterion in planned.tellable]
    if can_pay is not None:
        lines.append(f"ledger     {'can pay for it' if can_pay else 'CANNOT pay for it'}")
    lines += [f"note       {note}" for note in planned.notes]
    return "\n".join(lines)


def _size(count: int) -> str:
    value = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.3g} {unit}"
        value /= 1024
    return f"{value:.3g} TiB"
