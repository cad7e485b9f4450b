"""The studio in Chromium: the whole way, every page, by keyboard, without JavaScript, and when things break.

Screenshots of every page are kept in the folder that SIDELIGHT_SCREENSHOTS names, or in pytest's own.
"""

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

pytest.importorskip("starlette")
playwright = pytest.importorskip("playwright.sync_api")
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "studio"))
import stage as staging  # noqa: E402  # it needs the extra

from sidelight.privacy.sql_ledger import SqlLedger  # noqa: E402
from sidelight.studio.jobs import Jobs  # noqa: E402
from sidelight.studio.people import People  # noqa: E402
from sidelight.studio.places import Place  # noqa: E402

QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # whatever anybody asks for, nothing leaves
]
NAMES = {"curator": "Ada Lovelace", "approver": "Grace Hopper", "reader": "Rosalind Franklin"}
STEPS = ("sources", "schema", "schema?edit=age", "promise", "plan", "approve", "release", "explore",
         "explore/release-1?by=age&by=sex&compare=yes", "ledger")  # fmt: skip
SLOWLY = """
import time
import sidelight.curator.journal as journal
write = journal.Journal.append
def slow(self, event, output, ticket):
    write(self, event, output, ticket)
    time.sleep({seconds})
journal.Journal.append = slow
"""


@pytest.fixture(scope="module")
def chromium():
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next((path for path in map(shutil.which, names) if path), None)
    if found is None:
        pytest.skip("no Chromium here: install Debian's chromium package to see the studio in a browser")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=QUIET)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def shots(tmp_path_factory):
    named = os.environ.get("SIDELIGHT_SCREENSHOTS")
    folder = Path(named) if named else tmp_path_factory.mktemp("screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


class Served:
    """A studio in a process of its own, which can be stopped and started again at the same address."""

    def __init__(self, root: Path, *, slowly: float = 0.0) -> None:
        self.root, self.port = root, 0
        self.environment = dict(os.environ)
        if slowly:
            patch = root.parent / f"slowly-{root.name}"
            patch.mkdir()
            (patch / "sitecustomize.py").write_text(SLOWLY.format(seconds=slowly))
            self.environment["PYTHONPATH"] = str(patch)
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "sidelight", "studio", str(self.root), "--name", "Ada Lovelace",
             "--no-browser", "--port", str(self.port), "--json"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.environment,
        )  # fmt: skip
        text = ""
        while "]" not in text:
            line = self.process.stdout.readline()
            assert line, self.process.stderr.read()
            text += line
        self.address = json.loads(text)[0]["link"].partition("/enter")[0]
        self.port = int(self.address.rpartition(":")[2])

    def stop(self) -> str:
        """End it, as Ctrl-C does; what it said on stderr."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        return self.process.communicate(timeout=30)[1]

    def link(self, role: str) -> str:
        """A link of somebody's own: each lets one browser in."""
        return f"{self.address}/enter?link={People(self.root / '.studio').invite(role, NAMES[role])}"

    @property
    def place(self) -> Place:
        return Place(self.root / "people")

    def runs(self):
        return SqlLedger.open(self.place.path / "people.ledger").runs()


class Visitor:
    """Somebody in a browser of their own, whose console stays silent, and which fetches nothing elsewhere."""

    def __init__(self, chromium, served: Served, role: str | None, **about) -> None:
        self.context = chromium.new_context(**{"viewport": {"width": 1280, "height": 900}} | about)
        self.context.set_default_timeout(60_000)
        self.served, self.said, self.asked = served, [], []
        self.page = self.tab()
        if role is not None:
            self.page.goto(served.link(role))
            self.page.get_by_role("button", name="Enter").click()
            self.page.wait_for_url(f"{served.address}/")

    def tab(self):
        page = self.context.new_page()
        page.on("console", lambda message: self.said.append(message.text))
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.on("request", lambda request: self.asked.append(request.url))
        return page

    def go(self, step: str, page=None):
        return (page or self.page).goto(f"{self.served.address}/p/people/{step}")

    def press(self, name: str, page=None) -> None:
        """Press a button, and wait for the page that it leads to; a click alone returns before that."""
        page = page or self.page
        with page.expect_navigation():
            page.get_by_role("button", name=name, exact=True).click()

    def follow(self, name: str) -> None:
        """Follow a link to its page."""
        with self.page.expect_navigation():
            self.page.get_by_role("link", name=name).click()

    def wait(self, seconds: float = 120) -> None:
        """Until nothing on the page is under way any more; a page that is just being loaded shows nothing."""
        end, calm = time.monotonic() + seconds, 0
        while calm < 3:
            assert time.monotonic() < end, self.page.inner_text("main")
            self.page.wait_for_timeout(200)
            self.page.wait_for_load_state()
            calm = 0 if self.page.locator("[data-work]").count() else calm + 1

    def close(self) -> None:
        self.context.close()
        # A page that is sent back with an error at a field has the status 422, which Chromium reports.
        noise = (
            "422",
            "404",
            "net::ERR_CONNECTION_REFUSED",
            "net::ERR_EMPTY_RESPONSE",
            "net::ERR_CONNECTION_RESET",
        )
        assert [text for text in self.said if not any(one in text for one in noise)] == []
        assert [url for url in self.asked if not url.startswith((self.served.address, "data:"))] == []


@pytest.fixture
def visits(chromium):
    """Makes visitors, and sees them off."""
    there = []

    def visit(served, role="curator", **about):
        there.append(Visitor(chromium, served, role, **about))
        return there[-1]

    yield visit
    for one in there:
        one.close()


@pytest.fixture(scope="module")
def prepared(chromium, tmp_path_factory):
    """The folder of a project with tables, schema and promise, in which nothing was released."""
    with pytest.MonkeyPatch.context() as patch:
        made = staging.Stage(tmp_path_factory.mktemp("prepared"))
        staging.hold_workers(patch, made)
        staging.prepared(made)
    return made.place().path


@pytest.fixture
def studio(prepared, tmp_path, request, monkeypatch):
    """A studio that serves such a project; its workers take their time where a test asks for that."""
    root = tmp_path / "studio"
    root.mkdir()
    shutil.copytree(prepared, root / "people")
    # Projects are copies of one, so their ledgers begin alike: each test remembers the heads of its own.
    monkeypatch.setenv("SIDELIGHT_STATE", str(tmp_path / "state"))
    served = Served(root, slowly=getattr(request, "param", 0.0))
    yield served
    said = served.stop()
    assert "Traceback" not in said


slow_worker = pytest.mark.parametrize("studio", [0.8], indirect=True)


def ready(visitor: Visitor) -> None:
    """Make a plan that is carried out in a moment, and open the page that spends."""
    visitor.go("plan")
    visitor.page.fill("#epsilon", "0.4")
    visitor.page.uncheck("#with_public")
    visitor.page.locator("summary", has_text="For those who know").click()
    visitor.page.select_option("#mechanism", "mst")
    visitor.press("Make the plan")
    visitor.wait()
    visitor.go("release")


def spend(visitor: Visitor, page=None) -> None:
    (page or visitor.page).check("#confirm")
    visitor.press("Spend ε = 0.4 and release", page)


def test_the_whole_way_from_a_public_file_to_a_downloaded_report(tmp_path, visits, shots):
    (tmp_path / "old.csv").write_text(staging.table(600, 2))
    served = Served(tmp_path / "studio")
    try:
        ada = visits(served)
        page = ada.page
        page.fill("#title", "People")
        ada.press("Start")
        (served.place.path / "private.csv").write_text(staging.table(400, 1))
        page.fill("#private", "private.csv")
        page.fill("#records", "400")
        ada.press("Save")
        page.set_input_files("#table", tmp_path / "old.csv")
        ada.press("Upload")
        ada.follow("On to the schema")
        ada.press("Draft a schema")
        ada.wait()
        ada.follow("Edit age")
        page.fill("#bins", "0")
        ada.press("Save the column")
        assert "at least 1" in page.inner_text("#bins-wrong")
        page.fill("#bins", "8")
        ada.press("Save the column")
        ada.press("Check the private table")
        ada.wait()
        assert "The private table fits" in page.inner_text("main")
        ada.follow("On to the promise")
        page.fill("#epsilon", "2")
        ada.press("What would that mean?")
        assert "Once all of ε = 2 is spent" in page.inner_text("main")
        page.check("#confirm")
        ada.press("Make the promise")
        ada.follow("On to the plan")
        page.fill("#epsilon", "1")
        page.check("#second_person")
        page.locator("summary", has_text="For those who know").click()
        page.select_option("#mechanism", "jam")
        ada.press("Rehearse on public data")
        ada.wait()
        before = page.inner_text("#reading")
        page.locator("#slide").focus()
        page.keyboard.press("ArrowLeft")
        assert page.inner_text("#reading") != before
        page.fill("#epsilon", "1")
        ada.press("Make the plan")
        ada.wait()
        ada.follow("On to approval")
        assert "Waiting for somebody else" in page.inner_text("main")

        grace = visits(served, "approver")
        grace.follow("People")
        grace.page.check("#read")
        grace.press("Approve")
        assert "Approved by Grace Hopper" in grace.page.inner_text("main")

        ada.go("release")
        page.check("#confirm")
        ada.press("Spend ε = 1 and release")
        ada.wait()
        ada.follow("Explore it")
        assert "How good is it, and for whom?" in page.inner_text("main")
        page.select_option("#by1", "age")
        page.check("#compare")
        ada.press("Show")
        assert page.locator("figure svg").count() == 2
        with page.expect_download() as report:
            page.get_by_role("link", name="download it").click()
        text = Path(report.value.path()).read_text(encoding="utf-8")
        assert "How good is it, and for whom?" in text
        ada.press("Draw a synthetic table")
        ada.wait()
        with page.expect_download() as synthetic:
            page.get_by_role("link", name=re.compile("Download 400 records")).click()
        assert Path(synthetic.value.path()).read_text().startswith('"sex","age","ward"')
        page.screenshot(path=shots / "explored.png", full_page=True)
        ada.go("ledger")
        told = page.inner_text("main")
        assert "Ada Lovelace" in told
        assert "Grace Hopper" in told

        rosalind = visits(served, "reader")
        rosalind.follow("People")
        assert "Release 1" in rosalind.page.inner_text("main")
        (run,) = served.runs()
        assert (run.approval.asked_by, run.approval.names) == ("Ada Lovelace", ("Grace Hopper",))
    finally:
        assert "Traceback" not in served.stop()


# Every page ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def released(prepared, tmp_path_factory):
    """A studio whose project has released something."""
    root = tmp_path_factory.mktemp("released")
    shutil.copytree(prepared, root / "people")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SIDELIGHT_STATE", "")
        made = staging.Stage(root)
        staging.hold_workers(patch, made)
        curator = made.browser()
        curator.post("/p/people/plan/rehearse", staging.ASK)
        assert made.work() == [0]
        staging.planned(
            curator,
            mechanism="jam",
            with_public="yes",
            tables_1="2-way",
            at_most_1="190",
            quality_percent="20",
        )
        curator.post("/p/people/release", staging.confirmed(curator))
        assert made.work() == [0]
    served = Served(root)
    yield served
    assert "Traceback" not in served.stop()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_every_page_fits_and_keeps_axes_rules(released, visits, shots, width, scheme):
    from axe_playwright_python.sync_playwright import Axe

    ada = visits(released, viewport={"width": width, "height": 844}, color_scheme=scheme)
    told: list[object] = []
    for step in ("", *(f"p/people/{one}" for one in STEPS), "nothing"):
        answer = ada.page.goto(f"{released.address}/{step}")
        assert answer.status == (404 if step == "nothing" else 200), step
        ada.page.screenshot(
            path=shots / f"{width}-{scheme}-{re.sub('[^a-z0-9]+', '-', step) or 'home'}.png", full_page=True
        )
        assert ada.page.evaluate("document.documentElement.scrollWidth") <= width, step
        # Details are opened, so that what they hold is looked at, too.
        ada.page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        assert ada.page.evaluate("document.documentElement.scrollWidth") <= width, step
        for one in Axe().run(ada.page).response["violations"]:
            told.append((step, one["id"], [node["target"] for node in one["nodes"]][:3]))
        assert ada.page.locator("h1").count() == 1
    assert told == []


def test_the_check_finds_what_it_should(released, visits):
    from axe_playwright_python.sync_playwright import Axe

    ada = visits(released)
    ada.page.evaluate(
        "document.querySelector('label').remove(); document.querySelector('h1').style.color = '#eee'"
    )

    found = {one["id"] for one in Axe().run(ada.page).response["violations"]}
    assert {"label", "color-contrast"} <= found


def test_everything_is_reached_by_the_keyboard_and_is_seen_to_be(released, visits):
    ada = visits(released)
    for step in STEPS:
        assert ada.go(step).status == 200
        ada.page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        wanted = ada.page.locator(
            "a[href]:visible, button:not([disabled]):visible, input:not([type=hidden]):visible, "
            "select:visible, textarea:visible, summary:visible"
        ).count()
        reached = set()
        radios = ada.page.evaluate(
            "[...document.querySelectorAll('input[type=radio]')].length - "
            "new Set([...document.querySelectorAll('input[type=radio]')].map((one) => one.name)).size"
        )
        for _ in range(wanted + 20):
            ada.page.keyboard.press("Tab")
            seen = ada.page.evaluate(
                "(() => { const one = document.activeElement; if (one === document.body) return null;"
                " one.dataset.seen ??= Math.random(); const style = getComputedStyle(one);"
                " return [one.dataset.seen, style.outlineStyle]; })()"
            )
            if seen is not None:
                reached.add(seen[0])
                assert seen[1] != "none", step
        # One of a group of radio buttons is reached by Tab, the others by arrows; the way past all is hidden.
        assert len(reached) >= wanted - radios - 1, step


def test_a_release_with_the_keyboard_alone(studio, visits):
    ada = visits(studio)
    ready(ada)
    page = ada.page
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "confirm":
            break
    page.keyboard.press("Space")
    page.keyboard.press("Tab")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    ada.wait()

    assert "Released" in page.inner_text("main")
    assert len(studio.runs()) == 1


def test_without_javascript_everything_works_and_pages_look_again_by_themselves(studio, visits):
    ada = visits(studio, java_script_enabled=False)
    page = ada.page
    ada.go("plan")
    page.fill("#epsilon", "0.4")
    page.uncheck("#with_public")
    page.get_by_text("For those who know").click()
    page.select_option("#mechanism", "mst")
    ada.press("Make the plan")
    page.get_by_text("Plan 1").first.wait_for()
    ada.go("release")
    page.check("#confirm")
    page.get_by_role("button", name="Spend ε = 0.4 and release").dblclick()
    page.get_by_role("heading", name="Released").wait_for()
    ada.follow("Explore it")
    page.select_option("#by1", "ward")
    ada.press("Show")
    assert page.get_by_role("columnheader", name="ward").count() == 1
    ada.press("Draw a synthetic table")
    page.get_by_text("Download 400 records").wait_for()
    ada.go("schema?edit=age")
    page.fill("#bins", "0")
    ada.press("Save the column")
    assert "at least 1" in page.inner_text("#bins-wrong")
    assert len(studio.runs()) == 1


# When things go wrong ----------------------------------------------------------------------------------


@slow_worker
def test_double_clicks_back_reload_and_two_tabs_spend_once(studio, visits):
    ada = visits(studio)
    ready(ada)
    other = ada.tab()
    ada.go("release", other)
    other.check("#confirm")
    ada.page.check("#confirm")
    with ada.page.expect_navigation():
        ada.page.get_by_role("button", name="Spend ε = 0.4 and release").dblclick()
    ada.press("Spend ε = 0.4 and release", other)
    assert "already confirmed" in other.inner_text("main")
    ada.page.go_back()
    ada.page.reload()
    assert ada.page.get_by_role("button", name="Spend").count() == 0
    ada.go("release")
    ada.page.reload()
    ada.wait()

    assert len(studio.runs()) == 1
    assert len(list(Jobs(studio.place).all("release"))) == 1


@slow_worker
def test_a_restarted_studio_finds_the_run_and_the_page_goes_on(studio, visits):
    ada = visits(studio)
    ready(ada)
    spend(ada)
    ada.page.locator(".phases .name", has_text="mst").wait_for()
    studio.stop()
    ada.page.wait_for_timeout(1500)
    studio.start()

    ada.wait()
    assert "Released" in ada.page.inner_text("main")
    (run,) = studio.runs()
    assert (run.is_open, run.repeats) == (False, 0)


@slow_worker
def test_a_killed_worker_is_told_and_resumed(studio, visits, shots):
    ada = visits(studio)
    ready(ada)
    spend(ada)
    ada.page.locator(".phases .what", has_text="budget left").wait_for()
    job = next(Jobs(studio.place).all("release"))
    os.kill(job.state().process.pid, signal.SIGKILL)
    ada.wait()

    told = ada.page.inner_text("main")
    assert "The worker was killed" in told
    assert "So far it has paid for" in told
    ada.page.screenshot(path=shots / "killed.png", full_page=True)
    ada.page.check("#confirm")
    ada.press("Resume the release")
    ada.wait()
    assert "Released" in ada.page.inner_text("main")
    assert len(studio.runs()) == 1


@slow_worker
def test_a_run_is_stopped_says_what_it_spent_and_resumes(studio, visits, shots):
    ada = visits(studio)
    ready(ada)
    spend(ada)
    ada.page.locator(".phases .what", has_text="budget left").wait_for()
    ada.page.screenshot(path=shots / "running.png", full_page=True)
    ada.press("Stop the run")
    ada.wait()
    assert "You stopped the run" in ada.page.inner_text("main")
    ada.page.screenshot(path=shots / "stopped.png", full_page=True)
    ada.page.check("#confirm")
    ada.press("Resume the release")
    ada.wait()

    (run,) = studio.runs()
    assert (run.is_open, run.repeats) == (False, 0)


@slow_worker
def test_a_full_disk_stops_a_run_and_nothing_is_lost(studio, visits):
    """No file may grow beyond what the ledger is now: writing fails as it does on a full disk."""
    ada = visits(studio)
    ready(ada)
    limit = (studio.place.path / "people.ledger").stat().st_size + 8192
    resource.prlimit(studio.process.pid, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    spend(ada)
    ada.wait()
    told = ada.page.inner_text("main")
    assert "Released" not in told
    assert "Resume the release" in told or "nothing was spent" in told

    resource.prlimit(studio.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    ada.go("release")
    ada.page.check("#confirm")
    with ada.page.expect_navigation():
        ada.page.locator("button.spend").click()
    ada.wait()
    assert "Released" in ada.page.inner_text("main")
    assert sum(run.events for run in studio.runs()) > 0
    assert len(studio.runs()) == 1


def test_a_ledger_that_was_emptied_meanwhile_says_no(studio, visits):
    ada = visits(studio)
    ready(ada)
    done = subprocess.run(
        [sys.executable, "-m", "sidelight", "release", "private.csv", "--schema", "schema.toml", "--ledger",
         "people.ledger", "--epsilon", "0.97", "--workload", "1-way", "--mechanism", "mst", "--out", "other"],
        cwd=studio.place.path, capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    spend(ada)
    ada.wait()

    told = ada.page.inner_text("main")
    assert "Nothing was released, and nothing was spent" in told
    assert "Ask for less" in told
    assert len(studio.runs()) == 1
