"""An office with one ledger, and an operator who may do anything to its checkpoint folders.

Processes die in here without being processes: from a chosen effect on disk on, nothing takes effect any
more, and whatever tries raises ``Killed``, so that no handler can tidy up after it. Every draw is noted where
the noise is made, whatever ledger, door and journal say of it.
"""

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar
from unittest import mock

import numpy as np

import sidelight.curator.curator
from sidelight.curator.curator import Curator
from sidelight.curator.journal import Journal
from sidelight.data.domain import Domain
from sidelight.data.schema import Schema
from sidelight.data.table import Table
from sidelight.errors import BudgetExhausted, CheckpointError, LedgerError
from sidelight.mechanisms.base import Mechanism, Outcome, Outlook
from sidelight.models.histogram import Histogram
from sidelight.privacy.budget import Budget
from sidelight.privacy.chained_ledger import Ledger
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.sql_ledger import SqlLedger
from sidelight.privacy.unit import Unit
from sidelight.progress import Silent
from sidelight.queries.query import Marginal
from sidelight.releases.plan import Plan
from sidelight.releases.run import run as carry_out
from sidelight.testing import SeededNoise

SIZES = {"a": 2, "b": 3}
ANSWERS = 4
BUDGET = Budget(epsilon=1.0, delta=1e-6)
REFUSALS = (BudgetExhausted, CheckpointError, LedgerError)


class Killed(BaseException):
    """The process is gone."""


@dataclass(frozen=True, kw_only=True)
class Wanderer(Mechanism):
    """Measures one attribute or the other, dear or cheap, as the last answer was odd or even."""

    name: ClassVar[str] = "wanderer"
    public_data: ClassVar[Any] = "unused"

    def run(self, curator: Curator, workload: Any, *, public: Any = None) -> Outcome:
        measurements: list[Any] = []
        for nth in range(ANSWERS):
            odd = bool(measurements) and int(measurements[-1].answer[0]) % 2 == 1
            cost = curator.remaining
            if nth < ANSWERS - 1:
                cost, _ = cost.split(Fraction(1, 2) if odd else Fraction(1, ANSWERS - nth))
            measurements.append(curator.measure(Marginal(("a",) if odd else ("b",)), cost))
        domain = Domain.of(SIZES)
        return Outcome(
            model=Histogram.uniform(domain, total=curator.total(curator.allotment)),
            measurements=tuple(measurements),
            events=curator.events,
        )

    def outlook(self, domain: Any, workload: Any, *, allotment: Any, unit: Any) -> Outlook:
        return Outlook(measurements=ANSWERS, stddev=1.0, model_bytes=0, counting_bytes=0)

    def noisiest(self, domain: Any, workload: Any, *, allotment: Any, unit: Any) -> tuple[()]:
        return ()


class Interrupting(Silent):
    """Ctrl-C after so many steps that were paid for; of counting, only the share is told."""

    def __init__(self, after: int | None) -> None:
        self.left = after

    def step(self, what: str, *, share: float) -> None:
        if what and self.left is not None:
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt


@dataclass
class Disk:
    """What counts effects, and lets none through from the fatal one on."""

    effects_left: int | None = None

    def effect(self) -> None:
        """Something is about to leave a trace."""
        if self.effects_left is not None:
            self.effects_left -= 1
        self.alive()

    def alive(self) -> None:
        """Nothing can be read or written after death."""
        if self.effects_left is not None and self.effects_left < 0:
            raise Killed


@dataclass
class Office:
    """One ledger, any number of checkpoint folders, and a note of every draw."""

    home: Path
    kind: str
    disk: Disk = field(default_factory=Disk)
    drawn: list[Any] = field(default_factory=list)
    """The event of every draw that was made."""
    outputs: dict[str, str] = field(default_factory=dict)
    """What was journalled under each ticket that was ever seen."""
    snapshots: list[dict[str, bytes]] = field(default_factory=list)
    """The files of folders, as they once were."""
    while_looking: Callable[[], None] | None = None
    is_running: bool = False
    noise: SeededNoise = field(default_factory=lambda: SeededNoise(1))
    """One source for all processes, so that none repeats another's noise, and a test repeats its own."""

    def __post_init__(self) -> None:
        promise = Promise(BUDGET, Unit("replace"), "office")
        self._memory = MemoryLedger(promise) if self.kind == "memory" else None
        if self._memory is None:
            SqlLedger.create(self.home / "l.ledger", promise)
        schema = Schema.from_domain(SIZES)
        self.table = Table.of_codes(schema.domain, np.array([[0, 0], [1, 2], [1, 1]] * 20, dtype=np.uint8))
        self.plan = Plan.of(
            schema=schema, epsilon=0.45, delta=1e-6, mechanism=Wanderer(), workload="1-way",
            unit=Unit("replace"),
        )  # fmt: skip

    def ledger(self) -> Ledger:
        """As a new process finds it."""
        return self._memory if self._memory is not None else SqlLedger.open(self.home / "l.ledger")

    def folders(self) -> list[Path]:
        return sorted(path for path in self.home.iterdir() if path.is_dir())

    def journal(self, folder: Path) -> Path:
        return folder / "journal.jsonl"

    # --- what the operator does -----------------------------------------------------------------------------

    def work(
        self,
        folder: Path,
        *,
        dies_at: int | None = None,
        stops_after: int | None = None,
        meanwhile: Callable[[], None] | None = None,
    ) -> bool:
        """Run or resume in this folder; whether a release came out. Others may work while this one counts."""
        ledger = self.ledger()
        is_alone = meanwhile is None and not self.is_running
        clean, repeats = is_alone and self.lacks_nothing(folder, ledger), self._repeats(folder, ledger)
        self.while_looking = meanwhile
        self.disk.effects_left = dies_at
        try:
            with self._mortal():
                carry_out(
                    self.plan, self.table, ledger=ledger, checkpoint=folder, noise=self.noise,
                    progress=Interrupting(stops_after),
                )  # fmt: skip
        except (Killed, KeyboardInterrupt):
            return False
        except REFUSALS:
            assert not clean, "a run that lacks nothing was not resumed"
            return False
        finally:
            self.disk.effects_left = None
        assert not clean or self._repeats(folder, self.ledger()) == repeats, "a clean resume paid twice"
        return True

    def copy(self, folder: Path, name: str) -> None:
        shutil.copytree(folder, self.home / name)

    def cut(self, folder: Path, *, lines: int = 0, bytes_: int = 0) -> None:
        kept = self.journal(folder).read_bytes().splitlines(keepends=True)
        content = b"".join(kept[: max(0, len(kept) - lines)])
        self.journal(folder).write_bytes(content[: max(0, len(content) - bytes_)])

    def keep(self, folder: Path) -> None:
        self.snapshots.append({path.name: path.read_bytes() for path in folder.iterdir()})

    def put_back(self, folder: Path, snapshot: dict[str, bytes]) -> None:
        for name, content in snapshot.items():
            (folder / name).write_bytes(content)

    def delete(self, folder: Path) -> None:
        shutil.rmtree(folder)

    # --- what must always be true ---------------------------------------------------------------------------

    def check(self) -> None:
        """Charged for all that was drawn, within the promise, and no ticket with two outputs."""
        ledger = self.ledger()
        ledger.verify()
        paid = Counter(event for event in ledger.events())
        assert Counter(self.drawn) <= paid, "something was drawn that was not charged"
        drawn = sum((event.cost.value for event in self.drawn), start=Fraction(0))
        charged = sum((run.spent.value for run in ledger.runs()), start=Fraction(0))
        assert drawn <= charged <= ledger.spent <= BUDGET.capacity
        for folder in self.folders():
            for entry in self.entries(folder):
                before = self.outputs.setdefault(entry["ticket"], entry["output"])
                assert before == entry["output"], "one ticket, two outputs"

    def entries(self, folder: Path) -> list[dict[str, Any]]:
        """The whole lines of a journal but the first."""
        path = self.journal(folder)
        lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
        return [json.loads(line) for line in lines[1:] if line.endswith(b"\n")]

    def run_of(self, folder: Path, ledger: Ledger) -> str | None:
        with suppress(CheckpointError):
            run = Journal.run_in(folder)
            return run if run is not None and ledger.knows(run) else None
        return None

    def lacks_nothing(self, folder: Path, ledger: Ledger) -> bool:
        """Whether a journal holds all that its run, which is still open, ever drew."""
        run = self.run_of(folder, ledger)
        if run is None or not ledger.is_open(run):
            return False
        drawn = {payment.ticket for payment in ledger.payments(run)} - {None}
        return drawn == {entry["ticket"] for entry in self.entries(folder)}

    def _repeats(self, folder: Path, ledger: Ledger) -> int | None:
        run = self.run_of(folder, ledger)
        return None if run is None else ledger.run(run).repeats

    # --- how things go wrong --------------------------------------------------------------------------------

    @contextmanager
    def _mortal(self) -> Iterator[None]:
        """Let the disk decide which effects still happen, and note draws; once for a process in another."""
        if self.is_running:
            yield
            return
        write, gaussian, exact = Journal._write, sidelight.curator.curator.gaussian, Curator._exact

        def written(journal: Any, entry: Any) -> None:
            self.disk.effect()
            try:
                self.disk.effect()
            except Killed:
                journal._put(json.dumps(entry).encode()[:40])
                raise
            write(journal, entry)
            self.disk.effect()

        def truncating(change: Callable[..., None]) -> Callable[..., None]:
            def changed(journal: Any, *settings: Any) -> None:
                self.disk.effect()
                change(journal, *settings)

            return changed

        def noted(noise: Any, values: Any, event: Any) -> Any:
            self.disk.effect()
            self.drawn.append(event)
            drawn = gaussian(noise, values, event)
            self.disk.effect()
            return drawn

        def looked(curator: Any, query: Any) -> Any:
            self.disk.effect()
            meanwhile, self.while_looking = self.while_looking, None
            if meanwhile is not None:
                meanwhile()
            return exact(curator, query)

        def transaction(begin: Callable[..., Any]) -> Callable[..., Any]:
            @contextmanager
            def begun(ledger: Any, *, to_write: bool) -> Iterator[Any]:
                self.disk.effect() if to_write else self.disk.alive()
                with begin(ledger, to_write=to_write) as pages:
                    yield pages
                if to_write:
                    self.disk.effect()

            return begun

        with ExitStack() as stack:
            for owner, name, change in [
                (Journal, "_write", written),
                (Journal, "discard", truncating(Journal.discard)),
                (sidelight.curator.curator, "gaussian", noted),
                (Curator, "_exact", looked),
                (MemoryLedger, "_transaction", transaction(MemoryLedger._transaction)),
                (SqlLedger, "_transaction", transaction(SqlLedger._transaction)),
            ]:
                stack.enter_context(mock.patch.object(owner, name, change))
            self.is_running = True
            try:
                yield
            finally:
                self.is_running = False
