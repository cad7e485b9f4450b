"""Runs a command again and again in forked processes, and kills them: at a moment, or before an effect.

    python killer.py FOLDER RUN moments NUMBER             kills at so many random moments
    python killer.py FOLDER RUN effects EVERY [PLANTED]    kills before every effect, or every second, …

A process of its own, so that nothing but the command has ever run in it: it imports once, and every run
is a fork. Noise is a function of how many outputs were paid for before, so a run that was killed and
resumed must give, to the last bit, the release of one that was not. Every draw is noted apart, and must be
in the ledger. A kill may cost one event, paid again, or the run, where the ledger cannot pay for it.
Prints one JSON object.
"""

import contextlib
import hashlib
import importlib
import json
import os
import random
import shutil
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
import faults
import scene

KEPT = {
    "private.csv",
    "public.csv",
    "schema.toml",
    "l.ledger",
    "look.json",
    "said.txt",
    "points.json",
    "drawn.jsonl",
}
KILLED = -signal.SIGKILL
OUT_OF_BUDGET = 3


def fork(work: Callable[[], int], *, die_after: float | None = None) -> int:
    """The exit code of ``work`` in a process of its own; it is killed after so many seconds."""
    child = os.fork()
    if child == 0:
        code = 70
        try:
            code = work()
        except BaseException:  # noqa: BLE001  # nothing may climb out of a fork
            traceback.print_exc()
        finally:
            os._exit(code)
    if die_after is not None:
        time.sleep(die_after)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


class Stage:
    """One folder, one command; as many processes as it takes."""

    def __init__(
        self,
        folder: Path,
        run: str,
        *,
        checkpoint: str | None,
        planted: str | None = None,
        ledger: str | None = None,
        notes: Path | None = None,
    ) -> None:
        scene.prepare(folder, ledger)
        self.folder, self.checkpoint, self.planted = folder, checkpoint, planted
        self.notes = folder if notes is None else notes
        """Where we write down what happened: elsewhere, if the folder's disk is to fail."""
        self.notes.mkdir(exist_ok=True)
        (self.notes / "drawn.jsonl").touch()
        self.ledger = str(folder / "l.ledger") if ledger is None else ledger
        self.argv = [
            "sidelight",
            *scene.command(run, checkpoint=checkpoint, ledger="l.ledger" if ledger is None else ledger),
        ]

    def attempt(
        self,
        *,
        die_after: float | None = None,
        die_at: int | None = None,
        points: bool = False,
        spoil: Callable[[], None] | None = None,
    ) -> int:
        """The command's exit code; ``spoil`` breaks something in its process before it begins."""

        def work() -> int:
            os.chdir(self.folder)
            said = os.open(self.notes / "said.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
            os.dup2(said, 1)
            os.dup2(said, 2)
            faults.steady_noise(str(self.notes / "drawn.jsonl"))
            if self.planted is not None:
                (faults.PLANTED | faults.FOUND_BY)[self.planted]()
            sys.argv = self.argv
            from sidelight.cli.app import main

            seen = faults.effects(die_at) if points or die_at is not None else []
            if spoil is not None:
                spoil()
            try:
                main()
            except SystemExit as stop:
                told = json.dumps(seen)  # writing it would be one more
                if points:
                    (self.notes / "points.json").write_text(told)
                return int(stop.code or 0)
            return 71

        return fork(work, die_after=die_after)

    def finish(self) -> dict[str, Any]:
        """Repeat the command and let it end, then look at what it left behind."""
        code = self.attempt()
        found = self.look()
        found["exit"] = code
        found["said"] = self.said[-600:]
        return found

    @property
    def said(self) -> str:
        """All that its processes printed."""
        return (self.notes / "said.txt").read_text(encoding="utf-8")

    def undisturbed(self, *, points: bool = False) -> dict[str, Any]:
        """What a run leaves behind that nobody kills; it must end well by itself."""
        if (code := self.attempt(points=points)) != 0:
            raise RuntimeError(f"the undisturbed run ended with {code}: {self.said[-2000:]}")
        return self.look()

    def look(self) -> dict[str, Any]:
        def work() -> int:
            told = looked(self.folder, self.checkpoint, self.ledger, self.notes)
            (self.notes / "look.json").write_text(json.dumps(told))
            return 0

        if fork(work) != 0:
            return {"broken": "what was left behind cannot be read"}
        found: dict[str, Any] = json.loads((self.notes / "look.json").read_text())
        return found

    def close(self) -> None:
        shutil.rmtree(self.folder)


def looked(folder: Path, checkpoint: str | None, where: str, notes: Path) -> dict[str, Any]:
    """What ledger, journal and release say, in a form that two runs can be compared by."""
    from sidelight.privacy.sql_ledger import SqlLedger
    from sidelight.releases.release import Release

    ledger = SqlLedger.open(where)
    ledger.verify()
    runs = ledger.runs()
    payments = [payment for run in runs for payment in ledger.payments(run.id)]
    paid = list({payment.nth: payment.event.as_json() for payment in payments}.values())
    tickets = {payment.ticket: payment.event.as_json() for payment in payments}
    drawn = Counter((notes / "drawn.jsonl").read_text(encoding="utf-8").splitlines())
    found: dict[str, Any] = {
        "charged for all that was drawn": drawn <= Counter(json.dumps(p.event.as_json()) for p in payments),
        "again": sum(run.repeats for run in runs),
        "spent": [str(run.spent.value) for run in runs],
        "spent but for repeats": str(sum(Fraction(next(iter(event["cost"].values()))) for event in paid)),
        "runs": len(runs),
        "open": sum(run.is_open for run in runs),
        "paid": len(paid),
        "left behind": sorted({path.name for path in folder.iterdir()} - KEPT),
    }
    journal = folder / (checkpoint or "out.checkpoint") / "journal.jsonl"
    lines = journal.read_text(encoding="utf-8").splitlines(keepends=True) if journal.exists() else []
    whole = [json.loads(line) for line in lines if line.endswith("\n")]
    if whole:
        kept = [line["event"] for line in whole[1:]]
        found["kept"] = len(kept)
        found["journal is of this run"] = {run.id for run in runs} <= {whole[0]["run"]}
        found["journal is what was paid"] = kept == [tickets.get(line["ticket"]) for line in whole[1:]]
    if (folder / "out").exists():
        release = Release.load(folder / "out")
        found["release is what was paid"] = [event.as_json() for event in release.events] == paid
        sha = hashlib.sha256()
        for measurement in release.measurements:
            sha.update(repr((measurement.query.as_json(), measurement.stddev)).encode())
            sha.update(measurement.answer.tobytes())
        for attrs in release.model.domain.attrs:
            sha.update(release.count(attrs).tobytes())
        sha.update(release.count(release.model.domain.attrs).tobytes())
        found["digest"] = sha.hexdigest()
    return found


def at_moments(folder: Path, run: str, kills: int, planted: str | None) -> dict[str, Any]:
    """Kill at random moments of an undisturbed run's length, five times before each run may end."""
    calm = Stage(folder / "calm", run, checkpoint="kept", planted=planted)
    expected = calm.undisturbed()
    timed = Stage(folder / "timed", run, checkpoint="kept", planted=planted)
    began = time.perf_counter()
    timed.attempt()
    length = time.perf_counter() - began
    chance = random.Random(run)
    killed, ended, wrong, again = 0, 0, [], []
    while killed < kills:
        stage = Stage(folder / f"disturbed{ended}", run, checkpoint="kept", planted=planted)
        for _ in range(5):
            if stage.attempt(die_after=chance.uniform(0, length)) != KILLED:
                break
            killed += 1
            wrong += amiss(stage.look(), expected)
        found = stage.look() if (stage.folder / "out").exists() else stage.finish()
        ended += 1
        wrong += differences(found, expected, kills=5)
        again.append(found["again"])
        stage.close()
    return {"length": length, "kills": killed, "again": again, "expected": expected, "wrong": wrong}


def amiss(found: dict[str, Any], expected: dict[str, Any]) -> list[dict[str, Any]]:
    """What no process may leave behind, however it ended: an unpaid draw, or two paid outputs lost."""
    kept, paid = found.get("kept", 0), found.get("paid", 0)
    is_fine = (
        "broken" not in found
        and found["charged for all that was drawn"]
        and found["runs"] <= 1
        and found.get("journal is of this run", found["runs"] == 0 or "digest" in found)
        and paid <= expected["paid"]
        and (kept <= paid <= kept + 1 or "digest" in found)
    )
    return [] if is_fine else [{"right after the kill": found}]


def at_effects(folder: Path, run: str, every: int, planted: str | None) -> dict[str, Any]:
    """Kill before each thing that leaves a trace on disk: between two of them, nothing can be told apart."""
    calm = Stage(folder / "calm", run, checkpoint=None, planted=planted)
    expected = calm.undisturbed(points=True)
    points = json.loads((calm.notes / "points.json").read_text())
    killed, costly, wrong = 0, [], []
    for index in range(0, len(points), every):
        stage = Stage(folder / f"effect{index}", run, checkpoint=None, planted=planted)
        killed += stage.attempt(die_at=index) == KILLED
        wrong += [{"killed at": points[index], **each} for each in amiss(stage.look(), expected)]
        found = stage.finish()
        wrong += [{"killed at": points[index], **each} for each in differences(found, expected, kills=1)]
        costly += [points[index]] if found.get("again") or found["exit"] == OUT_OF_BUDGET else []
        stage.close()
        if planted is not None and wrong:
            break  # one is enough
    return {"points": points, "kills": killed, "expected": expected, "wrong": wrong, "costly": costly}


def differences(found: dict[str, Any], expected: dict[str, Any], *, kills: int) -> list[dict[str, Any]]:
    """How a run that was killed so often differs from one that was not, but for what kills may cost."""
    if found.get("exit", 0) == OUT_OF_BUDGET:
        is_refusal = "pay again for 1 answer" in found["said"] and found["charged for all that was drawn"]
        return [] if is_refusal else [found]
    same = {**expected, "again": found.get("again"), "spent": found.get("spent")}
    is_same = {name: value for name, value in found.items() if name not in ("exit", "said")} == same
    is_dearer = found.get("spent") != expected["spent"]
    is_fine = is_same and found.get("exit", 0) == 0 and is_dearer == (found["again"] > 0)
    return [] if is_fine and found["again"] <= kills else [found]


def warm_up(folder: Path, run: str) -> None:
    """Import here whatever a run imports. A first run is a fork too: threads would not survive the next."""

    def work() -> int:
        os.chdir(folder)
        sys.argv = stage.argv
        from sidelight.cli.app import main

        try:
            main()
        except SystemExit:
            looked(folder, None, stage.ledger, stage.notes)
        Path("modules.json").write_text(json.dumps(sorted(sys.modules)))
        return 0

    stage = Stage(folder, run, checkpoint=None, planted=None)
    fork(work)
    for name in json.loads((folder / "modules.json").read_text()):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def main() -> None:
    folder, run, how, number, *planted = sys.argv[1:]
    warm_up(Path(folder) / "warm", run)
    kill = {"moments": at_moments, "effects": at_effects}[how]
    found = kill(Path(folder), run, int(number), planted[0] if planted else None)
    os.write(1, json.dumps(found).encode())
    os._exit(0)  # engines that never ran complain when they are taken down


if __name__ == "__main__":
    main()
