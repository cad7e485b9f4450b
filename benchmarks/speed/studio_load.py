"""Fifty readers at once on the Explore page of ADULT: how long they wait, how much memory the server takes.

    python benchmarks/speed/studio_load.py [--readers 50] [--questions 20] [--pause 1.0]

ADULT's training records are private, its test records public; all three-way marginals are released at ε = 1
by the default mechanism (once; kept in benchmarks/cache). A studio serves that release on this machine alone.
Each reader has a session of their own, and asks questions one after the other: one attribute, a pair, or one
of these under a filter, a quarter of them compared with public data. ``--pause``: seconds (on average) that a
reader looks at an answer before the next question; 0 asks without a pause.

One question is asked first, and waits until the release is loaded. Then two rounds are measured: one with an
empty cache, which meets most questions for the first time, and one after it. Results are added to
benchmarks/results/studio_load.json, by the pause.
"""

import argparse
import http.client
import json
import os
import platform
import random
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import numpy as np
import psutil
import pyarrow.compute as pc
import pyarrow.parquet as pq

import sidelight as sl
from sidelight.data.reading.frames import write_file
from sidelight.data.schema_toml import parse
from sidelight.releases.public_data import read_public, whole_records
from sidelight.studio.people import People
from sidelight.studio.places import Studio
from sidelight.studio.tasks import keep_public

HERE = Path(__file__).resolve().parents[1]
RESULT = HERE / "results" / "studio_load.json"
CACHE = HERE / "cache" / "studio"


def data_folder() -> Path:
    named = os.environ.get("SIDELIGHT_DATA")
    return Path(named) if named else HERE.parents[1] / "shared" / "data"


def prepared() -> Path:
    """The folder of a studio with ADULT's release; made once."""
    root = CACHE / "projects"
    if (root / "adult" / "releases" / "release-1" / "release.json").is_file():
        return root
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    table = pq.read_table(data_folder() / "adult.parquet")
    private = table.filter(pc.equal(table["split"], "train")).drop_columns(["split"])
    public = table.filter(pc.equal(table["split"], "test")).drop_columns(["split"])
    drafted = sl.Schema.draft(public).to_toml()
    # The private table may hold countries that the public one lacks.
    schema = parse(drafted.replace('kind = "categorical"', 'kind = "categorical"\noutside = "other"'))
    place = Studio(root=root).create("Adult")
    write_file(public, place.path / "public.parquet")
    made = sl.release(private, schema=schema, public=public, epsilon=1.0, delta=1e-9, workload="3-way")
    folder = place.release("release-1")
    folder.parent.mkdir(parents=True)
    keep_public(
        folder.with_name("release-1.public.parquet"),
        whole_records(read_public(public, schema), schema.domain),
    )
    made.save(folder)
    return root


def questions(attrs: list[str], number: int, seed: int) -> list[str]:
    """What one reader asks, as addresses."""
    draw = random.Random(seed)
    found = []
    for _ in range(number):
        kind = draw.random()
        by = draw.sample(attrs, 1 if kind < 0.45 else 2)
        asked = [("by", attr) for attr in by]
        if kind > 0.8:
            asked.append(("f.sex", draw.choice(["Female", "Male"])))
        if draw.random() < 0.25:
            asked.append(("compare", "yes"))
        found.append(f"/p/adult/explore/release-1?{urlencode(asked)}")
    return found


class Reader(threading.Thread):
    """Somebody who asks, looks, and asks again."""

    def __init__(self, address: str, token: str, asked: list[str], pause: float, seed: int) -> None:
        super().__init__()
        self.host, self.token, self.asked, self.pause = urlsplit(address).netloc, token, asked, pause
        self.draw, self.seconds, self.failed = random.Random(seed), [], 0

    def run(self) -> None:
        connection = http.client.HTTPConnection(self.host, timeout=120)
        form = urlencode({"link": self.token})
        headers = {"Origin": f"http://{self.host}", "Content-Type": "application/x-www-form-urlencoded"}
        connection.request("POST", "/enter", form, headers)
        answer = connection.getresponse()
        answer.read()
        cookie = answer.getheader("set-cookie", "").partition(";")[0]
        for path in self.asked:
            if self.pause:
                time.sleep(self.draw.expovariate(1 / self.pause))
            began = time.perf_counter()
            connection.request("GET", path, headers={"Cookie": cookie})
            answer = connection.getresponse()
            body = answer.read()
            self.seconds.append(time.perf_counter() - began)
            self.failed += answer.status != 200 or b"95% interval" not in body
        connection.close()


def measured(
    server: psutil.Process,
    address: str,
    people: People,
    attrs: list[str],
    asked: argparse.Namespace,
    seed: int,
) -> dict:
    """One round of all readers."""
    readers = [
        Reader(
            address,
            people.invite("reader", f"Reader {number}"),
            questions(attrs, asked.questions, seed + number),
            asked.pause,
            number,
        )
        for number in range(asked.readers)
    ]
    began, used = time.perf_counter(), server.cpu_times()
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    took, spent = time.perf_counter() - began, server.cpu_times()
    seconds = spent.user + spent.system - used.user - used.system
    waited = 1000 * np.array([second for reader in readers for second in reader.seconds])
    return {
        "answers": len(waited),
        "failed": sum(reader.failed for reader in readers),
        "answers a second": round(len(waited) / took, 1),
        "milliseconds": {
            "median": round(float(np.median(waited)), 1),
            "95%": round(float(np.quantile(waited, 0.95)), 1),
            "99%": round(float(np.quantile(waited, 0.99)), 1),
            "largest": round(float(waited.max()), 1),
        },
        "within 200 ms": round(float((waited <= 200).mean()), 4),
        "server's processor ms an answer": round(1000 * seconds / len(waited), 2),
        "server's share of a processor": round(seconds / took, 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--readers", type=int, default=50)
    parser.add_argument("--questions", type=int, default=20)
    parser.add_argument("--pause", type=float, default=1.0)
    asked = parser.parse_args()
    root = prepared()
    release = sl.Release.load(root / "adult" / "releases" / "release-1")
    attrs, about = list(release.model.domain.attrs), repr(release)
    del release
    server = subprocess.Popen(
        [sys.executable, "-m", "sidelight", "studio", str(root), "--no-browser", "--port", "0", "--json"],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        text = ""
        while "]" not in text:
            text += server.stdout.readline()
        address = json.loads(text)[0]["link"].partition("/enter")[0]
        people, process = People(root / ".studio"), psutil.Process(server.pid)
        # A studio loads its latest release first; whoever asks sooner waits for that.
        first = Reader(address, people.invite("reader", "First"), questions(attrs, 1, -1), 0.0, 0)
        first.run()
        before = process.memory_info().rss
        load = os.getloadavg()[0]
        cold = measured(process, address, people, attrs, asked, 0)
        warm = measured(process, address, people, attrs, asked, 10_000)
        peak = peak_of(server.pid)
    finally:
        server.terminate()
        server.wait()
    told = {
        "machine": {  # waiting times are of the studio alone where nothing else ran: see the load
            "processors": os.cpu_count(),
            "python": platform.python_version(),
            "load before": round(load, 2),
        },
        "release": about,
        "readers": asked.readers,
        "questions each": asked.questions,
        "pause in seconds": asked.pause,
        "seconds until the first answer": round(first.seconds[0], 2),
        "empty cache": cold,
        "after it": warm,
        "server MB": {"at start": round(before / 1e6), "largest": round(peak / 1e6)},
    }
    kept = json.loads(RESULT.read_text()) if RESULT.is_file() else {}
    kept[f"pause {asked.pause:g} s"] = told
    RESULT.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
    print(json.dumps(told, indent=1, ensure_ascii=False))


def peak_of(pid: int) -> int:
    """The most memory that a process ever had resident, in bytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return 1024 * int(line.split()[1])
    return psutil.Process(pid).memory_info().rss


if __name__ == "__main__":
    main()
