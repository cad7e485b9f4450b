"""Breaks what a run stands on, in every way we could think of, and looks at what is left afterwards.

    python tests/resume/fault_table.py                       all faults; prints a table (some minutes)
    python tests/resume/fault_table.py --json FILE FAULT …   these alone; their figures go into the file

Each fault is injected into a whole `sidelight release` again and again, each time at another place. Then it
is repaired, and the same command is repeated. It must end with the release of a run that nothing happened
to, to the last bit, and with a ledger that verifies, holds one run, and was charged for what was drawn: no
more and no less.

The disks that fill up or turn read-only are real ones: small tmpfs mounts in a namespace of their own
(`unshare`, which most Linux systems allow anybody). The networks to PostgreSQL and Spark are proxies that cut
(`tests/cut_proxy.py`).
"""

import argparse
import ctypes
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent))
import faults
import killer
from fault_networks import (
    postgres_gone,
    postgres_lost,
    server_and_network,
    spark_lost,
    spark_memory,
    spark_network,
    spark_workers,
    table_lost,
)
from fault_row import DONE, FoundError, Row, Scene

HERE = Path(__file__).resolve().parent
PAGE = 4096


# --- the disk
# -----------------------------------------------------------------------------------------


@contextmanager
def small_disk(folder: Path, size: int) -> Iterator[Path]:
    """A disk of so many bytes."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)
        folder.rmdir()


def fill(disk: Path, pages_left: int) -> Path:
    """Leave so many pages free."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(PAGE))
        except OSError:
            pass
    os.truncate(filler, max(0, filler.stat().st_size - pages_left * PAGE))
    return filler


def disk_full(folder: Path) -> Row:
    row = Row(
        "disk full",
        "no page left, one, two, … until the run succeeds; ledger, journal and release lie on one disk",
    )
    base = Scene(folder / "base")
    for pages in range(1000):
        with small_disk(folder / f"disk{pages}", 512 * 1024) as disk:
            stage = base.stage(disk)
            filler = fill(disk, pages)
            code = stage.attempt()
            after = stage.look() if code else None
            filler.unlink()
            row.judge({"pages": pages}, code, base.ended(stage, code), base.expected)
            row.wrong += [] if after is None else killer.amiss(after, base.expected)
        if code == DONE:
            break
    return row


def read_only(folder: Path) -> Row:
    row = Row("disk read-only", "the ledger's disk turns read-only between any two transactions of a run")
    base = Scene(folder / "base")
    for place, point in enumerate(base.points):
        with small_disk(folder / f"disk{place}", 1 << 20) as disk:
            stage = base.stage(ledger=str(disk / "l.ledger"))
            turned = stage.notes / "turned"

            def turn(disk: Path = disk, turned: Path = turned) -> None:
                if is_read_only(disk):
                    turned.touch()

            code = stage.attempt(spoil=lambda: faults.effects(place, turn))  # noqa: B023  # used at once
            subprocess.run(["mount", "-o", "remount,bind,rw", disk], check=True)
            if turned.exists():
                row.judge(point, code, base.ended(stage, code), base.expected)
    return row


def is_read_only(disk: Path) -> bool:
    """Make a disk read-only; not possible while a file on it is open for writing."""
    read_only_bind = 0x1000 | 0x20 | 0x1  # MS_BIND | MS_REMOUNT | MS_RDONLY
    return not ctypes.CDLL(None).mount(None, str(disk).encode(), None, read_only_bind, None)


# --- the ledger's file
# --------------------------------------------------------------------------------


def corrupted_page(folder: Path) -> Row:
    row = Row(
        "corrupted page",
        "in the middle of a run, each page of the ledger's file is overwritten, or becomes what it once was",
    )
    base = Scene(folder)
    stage = base.stage()
    older = [b""]
    while len(older) < base.expected["paid"]:  # each process goes on where the last one was stopped
        stage.attempt(spoil=after_one_answer)
        older.append(Path(stage.ledger).read_bytes())
    path, sound = Path(stage.ledger), older.pop()
    shutil.copytree(stage.folder, folder / "kept")
    shutil.copytree(stage.notes, folder / "kept notes")
    for page in range(len(sound) // PAGE):
        where = slice(page * PAGE, (page + 1) * PAGE)
        for content in {os.urandom(PAGE), *(file[where] for file in older)} - {sound[where], b""}:
            broken = sound[: where.start] + content + sound[where.stop :]
            path.write_bytes(broken)
            code = stage.attempt()
            if code != DONE and path.read_bytes() != broken:
                row.wrong.append({"page": page + 1, "wrong": "a ledger that was refused was written to"})
            if code != DONE:
                path.write_bytes(sound)
            row.judge({"page": page + 1}, code, base.ended(stage, code), base.expected)
            for put_back, kept in ((stage.folder, "kept"), (stage.notes, "kept notes")):
                shutil.rmtree(put_back)
                shutil.copytree(folder / kept, put_back)
    return row


def after_one_answer() -> None:
    """Ctrl-C once the journal holds one more answer."""
    from sidelight.curator.journal import Journal

    append = Journal.append

    def appended(journal: Any, *kept: Any) -> None:
        append(journal, *kept)
        raise KeyboardInterrupt

    Journal.append = appended  # type: ignore[method-assign]


def journal_full(folder: Path) -> Row:
    row = Row("no room for the journal", "its file may have 0 bytes, 61 more, … until the run succeeds")
    with server_and_network() as (server, _, _):  # a ledger that needs no room in a file
        base = Scene(folder, checkpoint="run")
        for most in range(0, 10**6, 61):

            def spoil(most: int = most) -> None:
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # so that writing fails, as on a full disk
                resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))

            stage = base.stage(ledger=f"{server.url}#journal_{most}")
            code = stage.attempt(spoil=spoil)
            row.judge({"bytes": most}, code, base.ended(stage, code), base.expected)
            if code == DONE:
                break
    return row


# --- clocks, processes, memory
# ------------------------------------------------------------------------


def clock_jumps(folder: Path) -> Row:
    row = Row("clock jumps", "the clock jumps by up to fifty years, forwards or backwards, at every line")
    base = Scene(folder)
    for seed in range(10):

        def spoil(seed: int = seed) -> None:
            import random
            from datetime import UTC, datetime, timedelta

            from sidelight.privacy import chain, pages

            chance = random.Random(seed)

            def clock() -> str:
                days = chance.randint(-18_000, 18_000)
                return chain.told_time(datetime.now(UTC) + timedelta(days=days))

            chain.clock = pages.clock = clock

        stage = base.stage()
        code = stage.attempt(spoil=spoil)
        row.judge(
            {"seed": seed}, code, {**stage.look(), "exit": code, "said": stage.said[-600:]}, base.expected
        )
    return row


def two_at_once(folder: Path) -> Row:
    row = Row(
        "two runs on one checkpoint", "2 to 8 processes start the same command in the same folder at once"
    )
    base = Scene(folder)
    for number in (2, 2, 2, 2, 4, 4, 8, 8):
        stage = base.stage()
        children = []
        for _ in range(number):
            child = os.fork()
            if child == 0:
                os._exit(stage.attempt())
            children.append(child)
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        found = (
            stage.finish() if DONE not in codes else {**stage.look(), "exit": 0, "said": stage.said[-600:]}
        )
        for code in codes[1:]:
            row.judge({"processes": number}, code, found, base.expected)
    return row


def out_of_memory(folder: Path) -> Row:
    row = Row(
        "out of memory", "the process may have no more memory than it has, then 2 MB more, 4 MB more, …"
    )
    base = Scene(folder)
    for megabytes in range(0, 400, 2):

        def spoil(megabytes: int = megabytes) -> None:
            has = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            most = has + megabytes * 2**20
            resource.setrlimit(resource.RLIMIT_AS, (most, most))

        stage = base.stage()
        code = stage.attempt(spoil=spoil)
        # A native library may end the process where it finds no memory; that is a crash like any other.
        stopped = 130 if code < 0 or code in (1, 127, 134, 139) else code
        found = base.ended(stage, code)
        row.judge({"megabytes": megabytes, "exit": code}, stopped, found, base.expected, costs=1)
        if code == DONE and megabytes > 64:
            break
        stage.close()
    return row


def killed(folder: Path) -> Row:
    row = Row("killed", "kill -9 before every effect on disk of four mechanisms")
    for run in ("mwem", "aim", "jam", "hdmm"):
        base = Scene(folder / run.replace(" ", "-"), run)
        for place, point in enumerate(base.points):
            stage = base.stage()
            code = stage.attempt(die_at=place)
            after, found = stage.look(), stage.finish()
            row.wrong += killer.amiss(after, base.expected)
            is_costly = point == "half of a journal's line"
            row.judge(
                {run: point},
                130 if code == killer.KILLED else code,
                found,
                base.expected,
                costs=int(is_costly),
            )
            stage.close()
    return row


FAULTS: dict[str, Callable[[Path], Row]] = {
    "disk-full": disk_full,
    "journal-full": journal_full,
    "read-only": read_only,
    "page": corrupted_page,
    "clock": clock_jumps,
    "two": two_at_once,
    "memory": out_of_memory,
    "killed": killed,
    "postgres": postgres_lost,
    "postgres-gone": postgres_gone,
    "table": table_lost,
    "spark": spark_lost,
    "spark-workers": spark_workers,
    "spark-network": spark_network,
    "spark-memory": spark_memory,
}
ON_DISKS = {"disk-full", "read-only"}
"""Which mount disks of their own."""


def inject(name: str) -> Row:
    """One fault, in a process of its own; those of disks in a namespace of their own."""
    command = [sys.executable, str(HERE / "fault_table.py"), "--alone", name]
    if name in ON_DISKS:
        allowed = (
            subprocess.run(["unshare", "-rm", "true"], check=False).returncode
            if shutil.which("unshare")
            else 1
        )
        if allowed:
            return Row(name, "", skipped="needs unshare(1), and the right to use it")
        command = ["unshare", "-rm", *command]
    env = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "SIDELIGHT_STATE": ""}
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    if done.returncode:
        return Row(name, "", wrong=[done.stderr[-3000:]])
    return Row(**json.loads(done.stdout.splitlines()[-1]))


def alone(name: str) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    memory = Path("/dev/shm")
    where = memory if os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=where) as folder:
        try:
            row = FAULTS[name](Path(folder))
        except FoundError as found:
            row = found.args[0]
    os.write(1, json.dumps(row.__dict__, default=str).encode() + b"\n")
    os._exit(0)  # engines that never ran complain when they are taken down


def table(rows: list[Row]) -> str:
    """What the guide shows."""
    lines = ["| fault | how | times | stopped | paid again | wrong |", "|---|---|---|---|---|---|"]
    for row in rows:
        counts = f"{row.injected} | {row.stopped} | {row.again} | {len(row.wrong)}"
        lines.append(f"| {row.fault} | {row.how if row.skipped is None else row.skipped} | {counts} |")
    return "\n".join(lines)


def keep(rows: list[Row], path: Path) -> None:
    """Write these figures, beside those of other faults that the file holds."""
    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    told = {one["fault"]: one for one in kept} | {row.fault: row.__dict__ for row in rows}
    text = json.dumps(list(told.values()), indent=1, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "faults", nargs="*", choices=[[], *FAULTS], help="which faults; all of them if none is named"
    )
    parser.add_argument("--json", type=Path, help="write the figures into this file")
    parser.add_argument("--show", type=Path, help="inject nothing; print the table of such a file")
    parser.add_argument("--alone", choices=list(FAULTS), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.alone:
        alone(given.alone)
    if given.show:
        sys.stdout.write(table([Row(**one) for one in json.loads(given.show.read_text())]) + "\n")
        return
    rows = []
    for name in given.faults or FAULTS:
        began = time.perf_counter()
        rows.append(inject(name))
        took = time.perf_counter() - began
        sys.stderr.write(f"{name}: {rows[-1].injected} times, {len(rows[-1].wrong)} wrong, {took:.0f} s\n")
        for each in rows[-1].wrong[:3]:
            sys.stderr.write(f"  {each}\n")
        if given.json is not None:
            keep(rows, given.json)
    sys.stdout.write(table(rows) + "\n")
    sys.exit(1 if any(row.wrong for row in rows) else 0)


if __name__ == "__main__":
    main()
