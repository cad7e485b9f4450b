"""Makes the pictures of the guide to the studio: ``python docs/_hooks/studio_screenshots.py``.

It starts a studio in an empty folder, walks through the example of made-up people in Chromium, and writes
docs/images/studio_*.png. It needs the development extras, and Debian's chromium.
"""

import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

IMAGES = Path(__file__).resolve().parents[1] / "images"
SIZE = {"width": 1180, "height": 780}
MOST_BYTES = 150_000
_PATIENCE = 900
"""Seconds that a rehearsal may take on a busy machine."""


class Studio:
    """A studio in a process of its own, and the links that it prints."""

    def __init__(self, root: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "sidelight", "studio", str(root), "--name", "Ada Lovelace",
             "--approver", "Grace Hopper", "--reader", "Rosalind Franklin", "--no-browser", "--port", "0",
             "--json"],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.process.stdout is not None
        text = ""
        while "]" not in text:
            text += self.process.stdout.readline()
        self.links = {one["role"]: one["link"] for one in json.loads(text)}

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()


def shoot(
    page: Page, name: str, *, above: str | None = None, below: str | None = None, high: float = 780
) -> None:
    """Keep what is seen from the element ``above`` to the element ``below``.

    Without them it is from the top of the page, and so many pixels ``high``.
    """
    page.evaluate("document.activeElement && document.activeElement.blur()")
    page.evaluate("scrollTo(0, 0)")
    top = 0.0
    if above is not None:
        box = page.locator(above).first.bounding_box()
        assert box is not None
        top = box["y"] - 26
    if below is not None:
        box = page.locator(below).first.bounding_box()
        assert box is not None
        high = box["y"] + box["height"] + 26 - top
    width = page.viewport_size["width"] if page.viewport_size else SIZE["width"]
    path = IMAGES / f"studio_{name}.png"
    page.screenshot(path=path, full_page=True, clip={"x": 0, "y": top, "width": width, "height": high})
    size = path.stat().st_size
    assert size < MOST_BYTES, f"{path.name} has {size:,} bytes"
    sys.stdout.write(f"{path.name}: {size:,} bytes\n")


def wait(page: Page) -> None:
    """Until nothing on the page is under way."""
    end, calm = time.monotonic() + _PATIENCE, 0
    while calm < 4:
        assert time.monotonic() < end, page.inner_text("main")
        page.wait_for_timeout(250)
        page.wait_for_load_state()
        calm = 0 if page.locator("[data-work]").count() else calm + 1


def entered(browser: Any, link: str, **about: Any) -> Page:
    """Somebody's browser, beyond the door."""
    context = browser.new_context(**{"viewport": SIZE} | about)
    page: Page = context.new_page()
    page.goto(link)
    page.get_by_role("button", name="Enter").click()
    page.wait_for_url("**/")
    return page


def walk(browser: Any, studio: Studio) -> None:
    """The whole way, with a picture on each step."""
    page = entered(browser, studio.links["curator"])
    page.get_by_role("button", name="Open the example").click()
    project = page.url.partition("/sources")[0]
    page.goto(f"{project}/sources")
    shoot(page, "project")
    page.goto(f"{project}/schema")
    page.get_by_role("button", name="Draft a schema").click()
    wait(page)
    page.goto(f"{project}/schema?edit=prestige")
    shoot(page, "schema", above="#columns-h", high=920)
    page.goto(f"{project}/promise")
    shoot(page, "promise", high=900)
    page.check("#confirm")
    page.locator("button[value=make]").click()
    page.goto(f"{project}/plan")
    page.fill("#epsilon", "0.8")
    page.check("#second_person")
    page.get_by_role("button", name="Rehearse on public data").click()
    wait(page)
    shoot(page, "plan", above="#ask-h", high=1010)
    page.get_by_role("button", name="Make the plan").click()
    wait(page)
    second = entered(browser, studio.links["approver"])
    second.goto(f"{project}/approve")
    second.check("#read")
    shoot(second, "approve", high=960)
    second.get_by_role("button", name="Approve", exact=True).click()
    page.goto(f"{project}/release")
    page.check("#confirm")
    page.get_by_role("button", name="Spend").click()
    page.locator(".phases .what", has_text="budget left").first.wait_for(timeout=_PATIENCE * 1000)
    shoot(page, "release", high=650)
    wait(page)
    page.goto(f"{project}/explore/release-1?by=workstat&by=happy&compare=yes")
    shoot(page, "explore", above="h3.reading", high=760)
    page.goto(f"{project}/explore/release-1?by=educ&compare=yes")
    shoot(page, "quality", below=".answer figure")
    page.goto(f"{project}/ledger")
    shoot(page, "ledger", below="table")
    phone = entered(
        browser, studio.links["reader"], viewport={"width": 390, "height": 844}, color_scheme="dark"
    )
    phone.goto(f"{project}/explore/release-1?by=happy")
    shoot(phone, "phone", high=844)


def main() -> None:
    """Make every picture."""
    chromium = next(path for path in map(shutil.which, ("chromium", "chromium-browser")) if path)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        studio = Studio(Path(folder) / "projects")
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        try:
            walk(browser, studio)
        finally:
            browser.close()
            studio.stop()


if __name__ == "__main__":
    main()
