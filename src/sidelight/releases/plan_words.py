"""A plan in words: what ``sidelight plan`` prints."""

from typing import TYPE_CHECKING, Any

from sidelight._check import count_of, rounded
from sidelight.privacy.budget import Epsilon
from sidelight.releases.public_data import told_of

if TYPE_CHECKING:
    from sidelight.releases.plan import Plan


def describe(planned: "Plan", *, reading: str | None = None) -> str:
    """The plan for a person, a line for each fact; ``reading`` says how often the table is read."""
    unit, outlook = planned.unit, planned.outlook
    noise = f"σ = {rounded(outlook.stddev, 4)} on {outlook.noise_on}"
    lines = [
        f"mechanism  {planned.mechanism.name}",
        *([f"why        {planned.why}"] if planned.why else []),
        f"domain     {count_of(len(planned.domain), 'attribute')}, {float(planned.domain.size()):.3g} cells",
        f"workload   {count_of(len(planned.workload), 'query', 'queries')}",
        f"protects   {unit.describe()}",
        f"cost       {_cost(planned)}",
        f"means      {planned.meaning}",
        f"measures   up to {outlook.measurements:,} times, {noise}",
        f"memory     model {_size(outlook.model_bytes)}, exact counts {_size(outlook.counting_bytes)}",
    ]
    lines += [] if reading is None else [f"reads      {reading}"]
    lines += [f"public     {told}" for told in told_of(planned.public_records)]
    if planned.quality_stddev is not None:
        lines.append(
            f"quality    {planned.quality_share:.3g} of the budget measures the mean error of a table to "
            f"± {rounded(2 * planned.quality_stddev)} records (95%), ± 10% of a table of "
            f"{rounded(20 * planned.quality_stddev)}"
        )
    lines += [f"accept     {criterion}" for criterion in planned.tellable]
    lines += [] if planned.ledger_says is None else [f"ledger     {planned.ledger_says}"]
    lines += [f"note       {note}" for note in planned.notes]
    return "\n".join(lines)


def reading(planned: "Plan", size: int | None, *, is_recognised: bool) -> str:
    """How often a file that is not loaded is read, and how many bytes that is at most.

    ``is_recognised``: a ledger or a checkpoint recognises its file by a digest of all its bytes.
    """
    if planned.passes is None:
        return "a large file once to check it and once a round: not all counts fit in memory"
    passes = planned.passes + is_recognised
    why = ["to check it", *["to be recognised"] * is_recognised, "to count"]
    times = f"a large file at most {passes} times ({', '.join(why)})"
    return times if size is None else f"{times}: at most {passes} × {_size(size)} = {_size(passes * size)}"


def facts(planned: "Plan") -> dict[str, Any]:
    """The plan for a program."""
    told = planned.as_json() | {"meaning": planned.meaning, "tellable": planned.tellable}
    return told if planned.ledger_says is None else told | planned.ledger_says.facts


def _cost(planned: "Plan") -> str:
    """ε and δ, and what of the ledger's currency is set aside where that is another number."""
    budget, allotment = planned.budget, planned.allotment
    promised = f"ε = {budget.epsilon:g} at δ = {budget.delta:g}"
    if not isinstance(allotment, Epsilon):
        return f"{promised}, ρ = {float(allotment):.5g}"
    return promised if budget.is_pure else f"{promised}, paid as pure ε = {float(allotment):.5g}"


def _size(count: int) -> str:
    value = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.3g} {unit}"
        value /= 1024
    return f"{value:.3g} TiB"
