"""A studio for tests: its folder, browsers that have entered, and workers that run when they are told to."""

import atexit
import contextlib
import os
import re
import shutil
import signal
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path

import numpy as np
from starlette.testclient import TestClient

from sidelight.studio import jobs, worker
from sidelight.studio.people import People, Role
from sidelight.studio.places import Place, Studio
from sidelight.studio.server import application

ORIGIN = "http://testserver"
SECRETS = ("ZEBRAFISH-7731", "quokka ward", "8675309", "axolotl@example.org", "314159.26")
"""Values that only the private table holds: texts, a number, an identifier."""
COLUMNS = "sex,age,ward"


def table(records: int, seed: int, *, extra: tuple[str, ...] = ()) -> str:
    """A CSV file of people; the lines in ``extra`` come first."""
    draw = np.random.default_rng(seed)
    sex = draw.integers(0, 2, records)
    age = draw.integers(0, 80, records)
    ward = (age // 30 + draw.integers(0, 2, records)) % 3
    lines = [f"{'FM'[s]},{a},{('north', 'south', 'west')[w]}" for s, a, w in zip(sex, age, ward, strict=True)]
    return "\n".join([COLUMNS, *extra, *lines]) + "\n"


class Browser:
    """Somebody's browser: it keeps its cookie, and sends forms as pages of the studio do."""

    def __init__(self, stage: "Stage", client: TestClient) -> None:
        self.stage, self.client = stage, client

    def get(self, path: str, **about):
        answer = self.client.get(path, follow_redirects=False, **about)
        self.stage.seen.append(answer)
        return answer

    def post(self, path: str, data: dict | None = None, *, token: str | None = None, **about):
        """A form, with the token of this session unless another is given."""
        fields = {"token": self.token() if token is None else token, **(data or {})}
        headers = {"origin": self.stage.origin, **about.pop("headers", {})}
        answer = self.client.post(path, data=fields, headers=headers, follow_redirects=False, **about)
        self.stage.seen.append(answer)
        return answer

    def token(self) -> str:
        return self.field(self.client.get("/").text, "token")

    @staticmethod
    def field(page: str, name: str) -> str:
        """The value of a hidden field on a page."""
        found = re.search(rf'name="{name}" value="([^"]*)"', page)
        assert found, f"no field {name}"
        return unescape(found[1])


@dataclass
class Stage:
    """A folder that one studio serves, or several."""

    root: Path
    origin: str = ORIGIN
    settings: dict = field(default_factory=dict)
    pending: list[tuple[Path, Path]] = field(default_factory=list)
    """Jobs whose worker has not been run yet, each with the folder that it runs in."""
    seen: list = field(default_factory=list)
    """Every response so far."""

    def __post_init__(self) -> None:
        self.studio = Studio(root=self.root, origins=(self.origin,), **self.settings)
        self.app = application(self.studio)
        self.people = People(self.studio.own)

    def browser(self, role: Role | None = "curator", name: str = "Ada Lovelace") -> Browser:
        """A new browser; with a role, one that has entered."""
        client = TestClient(self.app, base_url=self.origin, raise_server_exceptions=False)
        if role is not None:
            link = self.people.invite(role, name)
            entered = client.post("/enter", data={"link": link}, headers={"origin": self.origin})
            assert entered.status_code == 200, entered.text
        return Browser(self, client)

    def again(self) -> "Stage":
        """A second studio on the same folder, or the same one after a restart."""
        other = Stage(self.root, self.origin, self.settings)
        other.pending, other.seen = self.pending, self.seen
        return other

    def place(self, slug: str = "people") -> Place:
        found = self.studio.place(slug)
        assert found is not None
        return found

    def work(self) -> list[int]:
        """Run the workers that were started, one after the other, in this process; their exit codes."""
        codes = []
        while self.pending:
            folder, home = self.pending.pop(0)
            with contextlib.chdir(home), _signals():
                codes.append(worker.main(folder))
        return codes


@contextlib.contextmanager
def _signals() -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before[0])
        signal.signal(signal.SIGTERM, before[1])


_kept: dict[tuple[str, ...], Path] = {}
"""Projects that were prepared before, by what was planted in them: a copy is made sooner than a draft."""


def prepared(stage: Stage, *, extra: tuple[str, ...] = ()) -> Browser:
    """A curator's browser, and a project with its tables, schema and promise."""
    curator = stage.browser()
    if extra in _kept:
        shutil.copytree(_kept[extra], stage.root / "people")
        return curator
    assert curator.post("/projects", {"title": "People"}).status_code == 303
    place = stage.place()
    (place.path / "private.csv").write_text(table(400, 1, extra=extra))
    (place.path / "public").mkdir()
    (place.path / "public" / "old.csv").write_text(table(600, 2))
    assert curator.post("/p/people/sources", {"private": "private.csv"}).status_code == 303
    assert curator.post("/p/people/sources/add", {"source": "public/old.csv"}).status_code == 303
    curator.post("/p/people/schema/draft", {"draft_public": "public/old.csv", "draft_bins": "8"})
    assert stage.work() == [0]
    promised(curator)
    if not extra:
        _kept[extra] = Path(tempfile.mkdtemp(prefix="sidelight-studio-")) / "people"
        shutil.copytree(place.path, _kept[extra])
        atexit.register(shutil.rmtree, _kept[extra].parent, ignore_errors=True)
    return curator


def promised(curator: Browser, epsilon: str = "1", delta: str = "1e-9", relation: str = "replace") -> None:
    """Make the promise, as somebody does who reads the sentence before ticking the box."""
    said = {"epsilon": epsilon, "delta": delta, "relation": relation, "name": "people"}
    said |= {f"said_{key}": said[key] for key in ("epsilon", "delta", "relation")}
    made = curator.post("/p/people/promise", {**said, "confirm": "yes", "do": "make"})
    assert made.status_code == 303, made.text


ASK = {"workload": "2-way", "epsilon": "0.4", "mechanism": "mst", "quality_percent": "2"}
"""A plan that is carried out in a moment: no public data help."""


def planned(curator: Browser, **ask: str) -> None:
    """Have a plan made."""
    made = curator.post("/p/people/plan", {**ASK, **ask})
    assert made.status_code == 303, made.text
    assert curator.stage.work() == [0]


def confirmed(curator: Browser) -> dict[str, str]:
    """What the release page asks somebody to send, with the box ticked."""
    page = curator.get("/p/people/release").text
    names = ("plan", "digest", "number")
    return {name: Browser.field(page, name) for name in names} | {"confirm": "yes"}


def spent(stage: Stage) -> int:
    """How many runs the ledger knows."""
    from sidelight.privacy.sql_ledger import SqlLedger

    return len(SqlLedger.open(stage.place().path / "people.ledger").runs())


def all_files(folder: Path) -> Iterator[Path]:
    """Every file below a folder."""
    for base, _, names in os.walk(folder):
        for name in names:
            yield Path(base) / name


def hold_workers(monkeypatch, stage: Stage) -> None:
    """Workers are started when the test says so: see ``Stage.work``."""
    monkeypatch.setattr(jobs, "spawn", lambda folder, home: stage.pending.append((folder, home)))
