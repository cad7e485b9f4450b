"""Plans that are frozen: what was made, what was approved and what runs are one and the same.

    plans/N/proposal.json               who asked for what, and when
    plans/N/schema.toml …               copies of schema, workload, criteria, as the command line reads them
    plans/N/plan.json                   digest and facts, written by the worker that made the plan
    plans/N/approval.json               who approved the digest, or sent the plan back, and when
    plans/N/ledger.json                 both names and the digest, as ``release --approval`` takes them
    plans/N/number                      the single-use number that a spend needs; absent while one is used
    plans/N/used/…                      numbers that were used, one a file
    plans/N/lock                        held while a number is looked at, made or used, or a run is given up

There is one number at a time: of two POSTs with it, in two tabs or two studios, one finds it gone. A new
number comes only once the job of the last one is over and the plan is not done. Whoever uses a number holds
the lock until its job has begun: meanwhile the plan looks as if it still waited, and others would make one.
"""

import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from sidelight._files import write_text
from sidelight.curator.journal import Journal
from sidelight.errors import InputError, SettingError
from sidelight.privacy.approval import Approval, same_person
from sidelight.privacy.sql_ledger import open_ledger
from sidelight.queries.workload import Workload
from sidelight.studio import store
from sidelight.studio.jobs import Job, Jobs
from sidelight.studio.people import Person
from sidelight.studio.places import Place
from sidelight.studio.project import Ask, Project, accept_toml

Stage = Literal["making", "wrong", "waiting", "sent back", "ready", "running", "resumable", "done", "closed"]
"""Where a plan stands. ``wrong``: it could not be made. ``waiting``: for a second person. ``resumable``: its
run was interrupted. ``closed``: its run was given up."""
STAGE_WORDS: dict[str, str] = {
    "making": "a plan is being made",
    "wrong": "the plan could not be made",
    "waiting": "a plan waits for approval",
    "sent back": "the plan was sent back",
    "ready": "ready to release",
    "running": "a release is under way",
    "resumable": "a release was interrupted",
    "done": "released",
    "closed": "a run was given up",
}
"""Where a plan stands, in words."""


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """The plan that was asked for, by whom, and of which tables."""

    asked_by: str
    when: str
    ask: Ask
    private: str
    public: tuple[str, ...]
    ledger: str
    records: int | None


@dataclass(frozen=True, kw_only=True)
class Made:
    """The plan as its worker made it."""

    digest: str
    facts: Mapping[str, Any]
    """What ``sidelight plan --json`` prints."""
    mechanism: str
    sources: Mapping[str, str] = field(default_factory=dict)
    """Public tables, each with the digest of its bytes."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The verdict of a second person on a plan."""

    by: str
    when: str
    digest: str
    is_approved: bool
    remark: str = ""


class FrozenPlan:
    """One plan, by its folder."""

    def __init__(self, place: Place, number: str, proposal: Proposal) -> None:
        self.place, self.number, self.proposal = place, number, proposal

    @property
    def folder(self) -> Path:
        """Where it is kept."""
        return self.place.own / "plans" / self.number

    @property
    def release(self) -> str:
        """The name of the release that it makes."""
        return f"release-{self.number}"

    @property
    def out(self) -> Path:
        """The folder of that release."""
        return self.place.release(self.release)

    @property
    def checkpoint(self) -> Path:
        """The folder of the run's journal."""
        return self.out.with_name(f"{self.release}.checkpoint")

    @property
    def schema(self) -> Path:
        """The schema, as it was when the plan was asked for."""
        return self.folder / "schema.toml"

    @property
    def workload(self) -> str | Path:
        """The workload's name, or its file."""
        path = self.folder / "workload.json"
        return path if self.proposal.ask.workload == "picked" else self.proposal.ask.workload

    @property
    def accept(self) -> Path | None:
        """The file of criteria; None where there are none."""
        path = self.folder / "accept.toml"
        return path if path.is_file() else None

    def made(self) -> Made | None:
        """The plan, once its worker has made it."""
        return store.read(Made, self.folder / "plan.json")

    def verdict(self) -> Verdict | None:
        """The verdict of a second person; None before there is one."""
        return store.read(Verdict, self.folder / "approval.json")

    def jobs(self, kind: Literal["plan", "release"] = "release") -> list[Job]:
        """The jobs that carried it out, or tried to, or made it; the latest first."""
        return [job for job in Jobs(self.place).all(kind) if job.request.args.get("plan") == self.number]

    def stage(self) -> Stage:
        """Where it stands."""
        if (self.out / "release.json").is_file():
            return "done"
        if (self.folder / "closed").is_file():
            return "closed"
        if self.made() is None:
            return "making" if any(not job.is_over for job in self.jobs("plan")) else "wrong"
        carried = self.jobs()
        if carried and not carried[0].is_over:
            return "running"
        if self.has_begun:
            return "resumable"
        if self.proposal.ask.second_person:
            verdict = self.verdict()
            if verdict is None:
                return "waiting"
            if not verdict.is_approved:
                return "sent back"
        return "ready"

    @property
    def has_begun(self) -> bool:
        """Whether its run has begun, and was neither finished nor given up."""
        journal = self.checkpoint / "journal.jsonl"
        return journal.is_file() and journal.stat().st_size > 0

    def judge(self, person: Person, digest: str, *, is_approved: bool, remark: str = "") -> bool:
        """Approve the plan or send it back; whether this was the first word on it."""
        made = self.made()
        if made is None or made.digest != digest:
            raise InputError("this is not the plan that you looked at: it was made anew. Look at it again.")
        if same_person(person.name, self.proposal.asked_by):
            raise SettingError(
                f"{person.name} asked for this plan, so somebody else must approve it: that is the point of "
                "a second person."
            )
        said = Verdict(
            by=person.name, when=_now(), digest=digest, is_approved=is_approved, remark=remark[:500]
        )
        is_first = store.claim(self.folder / "approval.json", store.text_of(said))
        if is_first and is_approved:
            self.keep_approval()
        return is_first

    def keep_approval(self) -> None:
        """Write who asked and who approved as the file that ``sidelight release --approval`` takes."""
        store.write(self.folder / "ledger.json", self.approval().as_json())

    def approval(self) -> Approval:
        """Who asked and who approved, as the ledger's line says it."""
        made, verdict = self.made(), self.verdict()
        if made is None:
            raise InputError("the plan is not made yet.")
        names: tuple[str, ...] = ()
        if self.proposal.ask.second_person:
            if verdict is None or not verdict.is_approved or verdict.digest != made.digest:
                raise InputError("nobody has approved this plan. Nothing was read and nothing was charged.")
            names = (verdict.by,)
        return Approval(digest=made.digest, asked_by=self.proposal.asked_by, names=names)

    def spending_number(self) -> str | None:
        """The number that a spend needs now; None where the plan cannot be carried out now."""
        with self._alone():
            return self._number()

    def _number(self) -> str | None:
        if self.stage() not in ("ready", "resumable"):
            return None
        path = self.folder / "number"
        store.claim(path, secrets.token_urlsafe(24))
        return path.read_text(encoding="utf-8") or None

    def _alone(self) -> AbstractContextManager[None]:
        """PRIVACY: between looking at the number and the start of its run, nobody gets another one."""
        return store.alone(self.folder / "lock")

    def lacks_second(self, *, two_people: bool) -> bool:
        """Whether the studio demands two people, and this plan was asked for before it did."""
        return two_people and not self.proposal.ask.second_person

    def spend(self, number: str, digest: str, person: Person, *, two_people: bool = False) -> Job | None:
        """Carry the plan out: one job for one number; None where the number was used, or is another.

        Where the studio demands ``two_people``, a plan that nobody had to approve is refused.
        """
        if self.lacks_second(two_people=two_people):
            raise InputError(
                f"plan {self.number} was made when nobody else had to approve it; now somebody must. Make "
                "the plan again. Nothing was read and nothing was charged."
            )
        made = self.made()
        if made is None or made.digest != digest:
            return None
        with self._alone():
            needed = self._number()
            if needed is None or not secrets.compare_digest(needed.encode(), number.encode()):
                return None
            used = store.private_folder(self.folder / "used")
            if not store.take(self.folder / "number", used / secrets.token_hex(8)):
                return None
            return Jobs(self.place).start("release", person.name, plan=self.number)

    def close(self) -> bool:
        """Give up a run that was interrupted, for good: what it did not spend goes back.

        Whether there was such a run: one that was resumed meanwhile goes on.
        """
        with self._alone():
            if self.stage() != "resumable":
                return False
            book = open_ledger(self.place.resolved(self.proposal.ledger))
            run = Journal.run_in(self.checkpoint)
            if run is not None and book.knows(run):
                book.close(run)
            store.claim(self.folder / "closed")
            return True


class Plans:
    """The plans of a project."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._folder = store.private_folder(place.own / "plans")

    def propose(self, project: Project, person: Person) -> FrozenPlan:
        """Freeze what is asked for, and have a worker make the plan."""
        if project.private is None or project.ledger is None or not self._place.schema.is_file():
            raise InputError("a plan needs a private table, a schema and a promise.")
        if project.ask.epsilon is None:
            raise SettingError("epsilon must be given: how much of the budget this release may spend.")
        number = self._next()
        folder = self._folder / number
        shutil.copyfile(self._place.schema, folder / "schema.toml")
        if project.ask.workload == "picked":
            picked = project.ask.picked
            Workload([one.attrs for one in picked], weights=[one.weight for one in picked]).write(
                folder / "workload.json"
            )
        criteria = accept_toml(project.ask)
        if criteria is not None:
            write_text(folder / "accept.toml", criteria, "the criteria")
        proposal = Proposal(
            asked_by=person.name,
            when=_now(),
            ask=project.ask,
            private=project.private,
            public=project.public if project.ask.with_public else (),
            ledger=project.ledger,
            records=project.records,
        )
        store.write(folder / "proposal.json", proposal)
        Jobs(self._place).start("plan", person.name, plan=number)
        return FrozenPlan(self._place, number, proposal)

    def get(self, number: str) -> FrozenPlan | None:
        """The plan of this number; None where there is none."""
        if not number.isascii() or not number.isdecimal() or len(number) > 6:
            return None
        proposal = store.read(Proposal, self._folder / number / "proposal.json")
        return None if proposal is None else FrozenPlan(self._place, number, proposal)

    def all(self) -> Iterator[FrozenPlan]:
        """Every plan, the latest first."""
        numbers = (path.name for path in self._folder.iterdir() if path.name.isdecimal())
        for number in sorted(numbers, key=int, reverse=True):
            found = self.get(number)
            if found is not None:
                yield found

    def latest(self) -> FrozenPlan | None:
        """The plan that was asked for last; None where there is none."""
        return next(self.all(), None)

    def at_work(self, number: str | None = None) -> FrozenPlan | None:
        """The plan of this number; without one, a plan whose run has begun and not ended, or the latest."""
        if number:
            return self.get(number)
        begun = (plan for plan in self.all() if plan.stage() in ("running", "resumable"))
        return next(begun, None) or self.latest()

    def _next(self) -> str:
        """The number of a new plan, whose folder this makes; nobody else has it."""
        taken = [int(path.name) for path in self._folder.iterdir() if path.name.isdecimal()]
        number = max(taken, default=0) + 1
        while True:
            try:
                (self._folder / str(number)).mkdir(mode=0o700)
            except FileExistsError:
                number += 1
            else:
                return str(number)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
