"""A ledger's policy: what a run, a month and a project may spend, by which mechanisms, and who approves.

A promise says what all releases together keep. A policy divides it beforehand, so that the first project of a
year does not use up what others were to have. It is a TOML file that people read, and a line of the ledger
once it is set: every run is checked against it in the transaction that sets its allotment aside, and again by
whoever verifies the ledger. Each limit is an ε at the ledger's δ: all runs that it counts keep (ε, δ)
together.

    [most]
    release = 0.5         # one run: a release, a mean, a quantile, a screening or a discovery
    month = 1.0           # all runs that begin in one month (UTC)
    project = 2.0         # all runs of one project, for ever

    [projects]            # the projects that may spend; a number is a limit of their own
    flu = 1.5
    census = true

    [allow]
    mechanisms = ["aim", "aperture", "mean", "screen"]

    [approval]
    by = ["A. Ito", "B. Okafor", "C. Lund"]
    needed = 2            # so many of them, for every run that spends more than `above`
    above = 0.25
"""

import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from sidelight._check import brief, is_number, listed
from sidelight.errors import PolicyError, SettingError
from sidelight.privacy.approval import require_different, same_person
from sidelight.privacy.budget import Budget, Cost, Epsilon, Rho, added
from sidelight.privacy.chain import Line
from sidelight.privacy.promise import Promise, shown_epsilon
from sidelight.privacy.purpose import Purpose, is_name
from sidelight.privacy.standing import Held, Standing

OTHER_WAYS = ("mean", "quantile", "screen", "discover")
"""Runs that are no release by a mechanism, as ``[allow] mechanisms`` names them."""


@dataclass(frozen=True, kw_only=True)
class Policy:
    """The rules of a ledger beside its promise. None means that there is no such rule."""

    release: float | None = None
    """Most ε of one run."""
    month: float | None = None
    """Most ε of all runs that begin in one month."""
    project: float | None = None
    """Most ε of all runs of one project that has no limit of its own."""
    projects: tuple[tuple[str, float | None], ...] | None = None
    """The projects that may spend, each with a limit of its own or None; an empty list allows none."""
    mechanisms: tuple[str, ...] | None = None
    """The mechanisms and other ways that may spend; an empty list allows none."""
    approvers: tuple[str, ...] = ()
    """The people whose approval counts, by name."""
    approvals: int = 0
    """How many of the approvers must have approved a run; 0 where nobody has to."""
    approval_above: float = 0.0
    """A run that spends at most this ε needs no approval."""

    @staticmethod
    def read(path: str | Path) -> "Policy":
        """The policy in a TOML file."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is no UTF-8 text"
            raise SettingError(f"the policy {path} cannot be read: {reason}.") from error
        try:
            return Policy.from_json(tomllib.loads(text))
        except tomllib.TOMLDecodeError as error:
            raise SettingError(f"the policy {path} is no TOML file: {error}.") from error

    @staticmethod
    def of(policy: "Policy | Mapping[str, Any] | str | Path") -> "Policy":
        """A policy, what its file holds, or the file's path."""
        if isinstance(policy, Policy):
            return policy
        return Policy.from_json(policy) if isinstance(policy, Mapping) else Policy.read(policy)

    @staticmethod
    def from_json(plain: Mapping[str, Any]) -> "Policy":
        """The policy that a file or a ledger's line holds; anything unknown in it is refused."""
        rules = {name: _table(plain, name) for name in ("most", "allow", "approval")}
        for section, known in (
            (plain, ("most", "projects", "allow", "approval")),
            (rules["most"], ("release", "month", "project")),
            (rules["allow"], ("mechanisms",)),
            (rules["approval"], ("by", "needed", "above")),
        ):
            if unknown := [name for name in section if name not in known]:
                raise SettingError(
                    f"a policy has no {listed(map(repr, unknown))}; what may stand there is {listed(known)}."
                )
        most = {name: _limit(f"most.{name}", value) for name, value in rules["most"].items()}
        by = _names("approval.by", rules["approval"].get("by", []))
        require_different(by, "approval.by")
        needed = rules["approval"].get("needed", 1 if by else 0)
        if type(needed) is not int or not bool(by) <= needed <= len(by):
            raise SettingError(
                f"approval.needed must be a whole number from 1 to the {len(by)} people in approval.by; got "
                f"{brief(needed)}."
            )
        return Policy(
            **most,
            projects=_projects(plain["projects"]) if "projects" in plain else None,
            mechanisms=_names("allow.mechanisms", rules["allow"]["mechanisms"]) if rules["allow"] else None,
            approvers=by,
            approvals=needed,
            approval_above=_limit("approval.above", rules["approval"].get("above", 0), or_zero=True),
        )

    def as_json(self) -> dict[str, Any]:
        """This policy in plain values; ``from_json`` gives back an equal one."""
        most = {"release": self.release, "month": self.month, "project": self.project}
        plain: dict[str, Any] = {}
        if any(value is not None for value in most.values()):
            plain["most"] = {name: value for name, value in most.items() if value is not None}
        if self.projects is not None:
            plain["projects"] = {name: True if limit is None else limit for name, limit in self.projects}
        if self.mechanisms is not None:
            plain["allow"] = {"mechanisms": list(self.mechanisms)}
        if self.approvals:
            plain["approval"] = {
                "by": list(self.approvers),
                "needed": self.approvals,
                "above": self.approval_above,
            }
        return plain

    def sentences(self) -> Iterator[str]:
        """The rules, for people."""
        for limit, what in (
            (self.release, "one release, mean, quantile, screening or discovery"),
            (self.month, "all runs that begin in one month"),
            (self.project, "all runs of one project"),
        ):
            if limit is not None:
                yield f"ε = {limit:g} at most for {what}"
        if self.projects is not None:
            named = (f"{name} (ε = {limit:g})" if limit else name for name, limit in self.projects)
            yield f"projects: {listed(named) or 'none'}"
        if self.mechanisms is not None:
            yield f"mechanisms: {listed(self.mechanisms) or 'none'}"
        if self.approvals:
            above = f", above ε = {self.approval_above:g}" if self.approval_above else ""
            yield f"approval by {self.approvals} of {listed(self.approvers)}{above}"

    def largest(self, promise: Promise, standing: Standing, *, now: str) -> float | None:
        """The largest ε of a run that begins now, by the limits of a release and a month; None without them.

        What a project has left, and what must be approved, depends on the run.
        """
        left = []
        for most, held in (
            (self.release, Held()),
            (self.month, standing.of_month(standing.month(now))),
        ):
            if most is not None:
                limit = _budget(most, promise.budget.delta)
                left.append(limit.largest(Epsilon if limit.is_pure else Rho, held.tally(limit)))
        return min(left, default=None)

    def refusal(
        self, promise: Promise, standing: Standing, cost: Cost, purpose: Purpose, *, now: str
    ) -> PolicyError | None:
        """Why a run may not begin; None if it may."""
        reasons = [
            *self._about_purpose(promise, cost, purpose),
            *self._about_amounts(
                promise, standing, cost, whole=cost, project=purpose.project, month=standing.month(now)
            ),
        ]
        return _refused(promise, "this run", reasons) if reasons else None

    def refusal_again(
        self, promise: Promise, standing: Standing, cost: Cost, *, run: str
    ) -> PolicyError | None:
        """Why a run may not pay once more, out of the promise, for answers that it lost; None if it may."""
        whole = added(standing.held(run), cost)
        reasons = [
            # A run that needed no approval for what it set aside may need it for what it then holds.
            *self._about_approval(promise, whole, standing.purpose_of(run)),
            *self._about_amounts(
                promise, standing, cost, whole=whole, project=standing.purpose_of(run).project,
                month=standing.month_of(run),
            ),
        ]  # fmt: skip
        said = f"run {run} to pay again for what its checkpoint lost"
        return _refused(promise, said, reasons) if reasons else None

    def _about_purpose(self, promise: Promise, cost: Cost, purpose: Purpose) -> Iterator[tuple[str, str]]:
        """The objections to the mechanism, the project and the approval of a run that begins."""
        if self.mechanisms is not None and purpose.mechanism not in self.mechanisms:
            asked = repr(purpose.mechanism) if purpose.mechanism else "a run that names no mechanism"
            yield (
                "mechanism",
                f"{asked} is not allowed; name one that is: {listed(self.mechanisms) or 'none'}",
            )
        if purpose.project is None:
            if self.project is not None or self.projects is not None:
                yield "project", f"none was named; name one with --project: {self._named_projects}"
        elif self.projects is not None and purpose.project not in dict(self.projects):
            yield "project", f"{purpose.project!r} is not one of {self._named_projects}"
        yield from self._about_approval(promise, cost, purpose)

    def _about_approval(self, promise: Promise, whole: Cost, purpose: Purpose) -> Iterator[tuple[str, str]]:
        """Who must approve a run that holds this much, where too few did."""
        if self.approvals and not _fits(self.approval_above, promise, Held.of(whole)):
            given = [name for name in purpose.approved_by if name in self.approvers]
            if len(given) < self.approvals:
                others = [name for name in purpose.approved_by if name not in self.approvers]
                yield (
                    "approval",
                    (
                        f"{self.approvals} of {listed(self.approvers)} must approve (--approved-by); "
                        f"{listed(given) or 'none of them'} did"
                        + (f", and {listed(others)} cannot" if others else "")
                        + self._meant(others)
                    ),
                )

    def _meant(self, others: Sequence[str]) -> str:
        """The approvers whose names were written with other capitals or blanks."""
        meant = [name for name in self.approvers if any(same_person(name, other) for other in others)]
        return f". Names are compared letter by letter: write {listed(map(repr, meant))}" if meant else ""

    def _about_amounts(
        self,
        promise: Promise,
        standing: Standing,
        cost: Cost,
        *,
        whole: Cost,
        project: str | None,
        month: str,
    ) -> Iterator[tuple[str, str]]:
        """Which limits this cost exceeds, and what would fit; ``whole`` is all that its run then holds."""
        before = Held.of(whole) - Held.of(cost)
        own = dict(self.projects or ()).get(project) if project is not None else None
        for name, most, held in (
            ("a release", self.release, before),
            ("a project", own or self.project, standing.of_project(project) if project else Held()),
            ("a month", self.month, standing.of_month(month)),
        ):
            if most is None or _fits(most, promise, held + Held.of(cost)):
                continue
            limit = _budget(most, promise.budget.delta)
            left = limit.largest(type(cost), held.tally(limit))
            wanted = shown_epsilon(limit.epsilon_of(Held.of(cost).tally(limit)))
            where = {"a release": "", "a project": f" {project}", "a month": f" {month}"}[name]
            yield (
                name,
                (
                    f"ε = {most:g} at most{where and ';'}{where}"
                    + (f" holds {shown_epsilon(limit.epsilon_of(held.tally(limit)))}" if held.runs else "")
                    + f"; this asks for {wanted}, and "
                    + (f"--epsilon {left:g} would fit" if left else "nothing more fits")
                ),
            )

    @property
    def _named_projects(self) -> str:
        return "any name" if self.projects is None else listed(dict(self.projects)) or "none"


def policy_of(line: Line) -> Policy | None:
    """The policy of a policy line; None where it withdraws the policy."""
    plain = line.body["policy"]
    return None if plain is None else Policy.from_json(plain)


def _refused(promise: Promise, what: str, reasons: list[tuple[str, str]]) -> PolicyError:
    width = max(len(name) for name, _ in reasons)
    told = "\n".join(f"  {name:<{width}}   {why}" for name, why in reasons)
    return PolicyError(
        f"the policy of '{promise.shown}' does not allow {what}.\n\n{told}\n\n"
        "Nothing was read and nothing was charged. `sidelight ledger policy LEDGER` shows the whole policy; "
        "the ledger's\nowner may change it, which is a line of the ledger too."
    )


@cache
def _budget(epsilon: float, delta: float) -> Budget:
    return Budget(epsilon=epsilon, delta=delta)


def _fits(most: float, promise: Promise, held: Held) -> bool:
    """Whether these sums keep (most, δ) together."""
    if not most:
        return False
    limit = _budget(most, promise.budget.delta)
    return limit.admits(held.tally(limit))


def check_limits(policy: Policy, promise: Promise) -> None:
    """Refuse a limit that cannot be counted in, so that no run meets it."""
    limits = [policy.release, policy.month, policy.project, policy.approval_above or None]
    for most in (*limits, *(limit for _, limit in policy.projects or ())):
        if most is not None:
            _ = _budget(most, promise.budget.delta).capacity  # refuses what is too little


def _table(plain: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = plain.get(name, {})
    if not isinstance(found, Mapping):
        raise SettingError(f"[{name}] in a policy is a table of rules; got {brief(found)}.")
    return found


def _limit(name: str, value: object, *, or_zero: bool = False) -> float:
    if not is_number(value) or not (0 < value < math.inf or (or_zero and value == 0)):  # type: ignore[operator]
        raise SettingError(f"{name} must be an ε, a finite number above 0; got {brief(value)}.")
    return float(value)  # type: ignore[arg-type]  # a number by now


def _names(name: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(map(is_name, value)) or len(set(value)) < len(value):
        raise SettingError(f"{name} must be a list of different names; got {brief(value)}.")
    return tuple(value)


def _projects(value: object) -> tuple[tuple[str, float | None], ...]:
    if not isinstance(value, Mapping) or not all(map(is_name, value)):
        raise SettingError(f"[projects] in a policy holds names, each with an ε or true; got {brief(value)}.")
    return tuple(
        (name, None if limit is True else _limit(f"projects.{name}", limit))
        for name, limit in sorted(value.items())
    )
