"""The report in headless Chromium: silent console, no request, fits a phone, prints."""

import html
import json
import re
import shutil
import subprocess
from contextlib import contextmanager

import numpy as np
import pytest

from sidelight.data.columns.column import CategoricalColumn, IntegerColumn
from sidelight.data.schema import Schema
from sidelight.data.table import Table
from sidelight.releases.run import release
from sidelight.reports.report import report
from sidelight.testing import SeededNoise

pytestmark = pytest.mark.slow

QUIET = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-default-apps",
    "--disable-extensions",
    "--hide-scrollbars",
    "--enable-logging=stderr",
    "--host-resolver-rules=MAP * ~NOTFOUND",  # whatever anybody asks for, nothing leaves
]


class Browser:
    """A Chromium with an empty profile for every page."""

    def __init__(self, path, folder):
        self.path, self.folder, self.pages = path, folder, 0

    def open(self, page, *options):
        """Standard output, console messages, and every address that the page asked for."""
        self.pages += 1
        profile = self.folder / f"profile{self.pages}"
        net = self.folder / f"net{self.pages}.json"
        done = subprocess.run(
            [self.path, *QUIET, f"--user-data-dir={profile}", f"--log-net-log={net}",
             *options, page.as_uri()],
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-2000:]
        console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
        return done.stdout, console, asked_by_page(json.loads(net.read_text(encoding="utf-8")))


def asked_by_page(log):
    """Addresses that the page asked for; Chromium's own calls (its clock, its updates) are no page's."""
    asked = [event["params"] for event in log["events"] if "url" in event.get("params", {})]
    return sorted(
        params["url"]
        for params in asked
        if params["url"].startswith(("http", "ws", "ftp"))
        and "file:" in params.get("network_isolation_key", "")
    )


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next((path for path in map(shutil.which, names) if path), None)
    if found is None:
        pytest.skip("no Chromium here: install Debian's chromium package to see the report in a browser")
    return Browser(found, tmp_path_factory.mktemp("browser"))


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A safe report and a PRIVATE one, about labels that try to be markup."""
    folder = tmp_path_factory.mktemp("pages")
    schema = Schema(
        (
            CategoricalColumn("sex", ("female", "male")),
            CategoricalColumn(
                "<img src=x onerror=alert(1)>", ("<script>alert(1)</script>", "красный", "أخضر")
            ),
            IntegerColumn("age", low=0, high=99),
            CategoricalColumn("a_name_without_any_space_" * 4, tuple(f"label_{i}_" * 9 for i in range(30))),
        )
    )
    rng = np.random.default_rng(4)
    codes = np.stack([rng.integers(0, size, 800) for size in schema.domain.shape], axis=1)
    table = Table.of_codes(schema.domain, codes)
    made = release(
        table, schema=schema, epsilon=1.0, delta=1e-6, workload="2-way", mechanism="mwem", rounds=5,
        noise=SeededNoise(5), progress=False,
    )  # fmt: skip
    safe = report(made, folder / "report.html")
    private = report(made, folder / "report.html", against=table)
    return {"safe": safe, "PRIVATE": private}


@contextmanager
def kept_on_failure(request, *screenshots):
    """Copy the screenshots beside the test cache if the test fails, and say where they are."""
    try:
        yield
    except BaseException as error:
        folder = request.config.cache.mkdir("screenshots")
        for screenshot in screenshots:
            if screenshot.is_file():
                shutil.copy(screenshot, folder / f"{request.node.name}-{screenshot.name}".replace("/", "_"))
        error.add_note(f"screenshots were kept in {folder}")
        raise


@pytest.mark.parametrize("kind", ["safe", "PRIVATE"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_opens_with_a_silent_console_and_without_a_request(
    browser, pages, request, tmp_path, kind, scheme
):
    shot = tmp_path / "page.png"

    _, console, asked = browser.open(
        pages[kind], f"--screenshot={shot}", "--window-size=1280,2400",
        f"--blink-settings=preferredColorScheme={0 if scheme == 'dark' else 1}",
    )  # fmt: skip

    with kept_on_failure(request, shot):
        assert console == []
        assert asked == []
        assert shot.stat().st_size > 50_000


def test_a_page_that_complains_and_calls_is_noticed(browser, tmp_path):
    planted = tmp_path / "planted.html"
    planted.write_text(
        '<!doctype html><script>console.error("boom")</script><img src="http://sidelight.invalid/x.png">'
    )

    _, console, asked = browser.open(planted, f"--screenshot={tmp_path / 'x.png'}")

    assert any("boom" in line for line in console)
    assert asked == ["http://sidelight.invalid/x.png"]


@pytest.mark.parametrize("width", [320, 390, 1280])
@pytest.mark.parametrize("kind", ["safe", "PRIVATE"])
def test_nothing_sticks_out_of_the_screen(browser, pages, request, tmp_path, kind, width):
    # Headless Chromium has a least window width, so the page is put into a frame as wide as a phone.
    inside = html.escape(pages[kind].read_text(encoding="utf-8"), quote=True)
    frame = tmp_path / "frame.html"
    frame.write_text(
        f'<!doctype html><iframe srcdoc="{inside}" style="width:{width}px;height:3000px;border:0"></iframe>'
        "<script>onload = () => { document.title = "
        "JSON.stringify([frames[0].innerWidth, frames[0].document.documentElement.scrollWidth]) }</script>",
        encoding="utf-8",
    )
    shot = tmp_path / "phone.png"

    dom, _, _ = browser.open(frame, "--dump-dom", "--window-size=1400,3000")
    browser.open(frame, f"--screenshot={shot}", f"--window-size={max(width, 500)},3000")

    with kept_on_failure(request, shot):
        inner, content = json.loads(re.search(r"<title>(\[.*?\])</title>", dom)[1])
        assert inner == width
        assert content <= width


def test_the_page_prints(browser, pages, tmp_path):
    printed = tmp_path / "report.pdf"

    browser.open(pages["safe"], f"--print-to-pdf={printed}", "--no-pdf-header-footer")

    assert printed.read_bytes().startswith(b"%PDF")
    assert (
        2 <= printed.read_bytes().count(b"/Type /Page\n") + printed.read_bytes().count(b"/Type /Page ") <= 20
    )
