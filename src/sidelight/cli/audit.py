"""``sidelight audit``: attack a mechanism, and say how much of its claim could be seen."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sidelight.cli._shared import Json, Quiet, talk, tell, tell_json, tell_table

if TYPE_CHECKING:
    from sidelight.audit.row import Row


def audit(
    what: Annotated[
        str,
        typer.Argument(
            help="A mechanism, or mean, quantile, screen, labels or edges; people, for how their records are "
            "bounded; floating-point; canaries, for a whole release."
        ),
    ],
    unit: Annotated[
        list[str] | None,
        typer.Option(help="One of the units; repeat for several. Default: all that it takes."),
    ] = None,
    runs: Annotated[
        int | None, typer.Option(help="Runs on each of two tables. Default: 200 to 2000.")
    ] = None,
    confidence: Annotated[float, typer.Option(help="That a bound holds.")] = 0.999,
    epsilon: Annotated[float | None, typer.Option(help="ε that is claimed. Default: 8; pure ε: 2.")] = None,
    planted: Annotated[
        bool, typer.Option("--planted", help="Also with a planted bug, half the noise that is due.")
    ] = False,
    mechanism: Annotated[str, typer.Option(help="Of canaries: which mechanism makes the release.")] = "hdmm",
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Try to tell two neighbouring tables apart by what a mechanism releases.

    How well that succeeds bounds ε from below. A correct mechanism stays below its claim; one that draws too
    little noise is refuted, and the exit code is 4. No private data are needed: the tables are made up.

    Example: sidelight audit hdmm --unit replace --runs 500 --planted
    """
    from sidelight._check import hint, listed
    from sidelight.audit.subjects import SUBJECTS
    from sidelight.errors import SettingError

    if what == "floating-point":
        _tell_of_floating_point(runs, confidence, epsilon, as_json=as_json)
        return
    if what == "canaries":
        _tell_of_canaries(mechanism, confidence, epsilon, planted=planted, as_json=as_json)
        return
    known = (*SUBJECTS, "people", "floating-point", "canaries")
    if what not in known:
        raise SettingError(
            f"there is no audit of {what!r}; there are {listed(map(repr, known))}.{hint(what, known)}"
        )
    if what == "people" and (unit or epsilon is not None):
        raise SettingError("audit people takes both relations, at ε = 1: leave out --unit and --epsilon.")
    rows = []
    audited = (
        _audited_people(runs, confidence, planted=planted)
        if what == "people"
        else _audited(what, unit, runs, confidence, epsilon, planted=planted)
    )
    for row in audited:
        rows.append(row)
        if not quiet and not as_json:
            talk(f"{_told(row)}{', planted bug' if row.is_planted else ''}: {row.verdict}")
    if as_json:
        tell_json([row.as_json() for row in rows])
    else:
        told = [
            [_told(row), f"{row.epsilon:g}", f"{row.found:.3g}", row.bar, row.verdict, f"{row.runs:,}"]
            for row in rows
        ]
        title = f"{what}: lower bounds on ε at δ = {rows[0].delta:g}, with {confidence:.1%} confidence"
        tell_table(title, ["unit", "claimed", "found", "of the claim", "", "runs"], told)
    if any(row.is_refuted and not row.is_planted for row in rows):
        raise typer.Exit(4)


def _audited(
    what: str,
    units: list[str] | None,
    runs: int | None,
    confidence: float,
    epsilon: float | None,
    *,
    planted: bool,
) -> Iterator["Row"]:
    from sidelight.audit.row import audited
    from sidelight.audit.subjects import SUBJECTS, at_epsilon
    from sidelight.errors import SettingError

    subject = SUBJECTS[what] if epsilon is None else at_epsilon(SUBJECTS[what], epsilon)
    for unit in units or ():
        if unit not in subject.units:
            raise SettingError(
                f"--unit of {what} is one of {', '.join(map(repr, subject.units))}; got {unit!r}."
            )
    for unit in units or subject.units:
        for is_planted in (False, True) if planted else (False,):
            yield audited(what, subject, unit, is_planted=is_planted, runs=runs, confidence=confidence)


def _audited_people(runs: int | None, confidence: float, *, planted: bool) -> Iterator["Row"]:
    from sidelight.audit.people import AS_IT_IS, ENGINES, WAYS, audited_bounding, by, kept_counts

    for engine in ENGINES:
        for relation in ("replace", "add-or-remove"):
            for way in WAYS if planted else (AS_IT_IS,):
                kept = kept_counts(by(engine), relation, way)
                yield audited_bounding(engine, kept, relation, way, runs=runs or 2000, confidence=confidence)


def _told(row: "Row") -> str:
    """Which unit it is; of people, on which engine, too."""
    from sidelight.audit.people import ENGINES

    return f"{row.subject}, {row.unit}" if row.subject in ENGINES else row.unit


def _tell_of_floating_point(
    runs: int | None, confidence: float, epsilon: float | None, *, as_json: bool
) -> None:
    from sidelight.audit.floating import attack_naive_noise, attack_our_noise

    settings: dict[str, Any] = {"runs": runs or 2000, "confidence": confidence, "epsilon": epsilon or 1.0}
    naive, ours = attack_naive_noise(**settings), attack_our_noise(**settings)
    if as_json:
        tell_json({"claimed": settings["epsilon"], "textbook": naive.epsilon, "ours": ours.epsilon})
        return
    claim = f"claimed ε = {settings['epsilon']:g}"
    tell(f"the textbook's Laplace noise, in doubles: at least ε = {naive.epsilon:.3g}, {claim}")
    tell(f"sidelight's, in whole numbers:            at least ε = {ours.epsilon:.3g}, {claim}")
    if ours.epsilon > settings["epsilon"]:
        raise typer.Exit(4)


def _tell_of_canaries(
    mechanism: str, confidence: float, epsilon: float | None, *, planted: bool, as_json: bool
) -> None:
    from sidelight.audit.canaries import PLANTED_RECORDS, audit_release

    told = {}
    ways = {"as it is": 1} | ({"planted bug": PLANTED_RECORDS} if planted else {})
    for name, records in ways.items():
        told[name] = audit_release(mechanism, epsilon=epsilon or 2.0, confidence=confidence, records=records)
    if as_json:
        tell_json({name: asdict(found) for name, found in told.items()})
    for name, found in {} if as_json else told.items():
        tell(
            f"{mechanism}, {name}: at least ε = {found.epsilon:.3g}, claimed {epsilon or 2.0:g}; "
            f"{found.right} of {found.guesses} guesses about {found.canaries:,} canaries were right"
        )
    if told["as it is"].epsilon > (epsilon or 2.0):
        raise typer.Exit(4)
