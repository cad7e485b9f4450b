"""Every snippet of the tutorial and the guides runs, and prints what the page shows.

A page is run from top to bottom in an empty folder:

    ```python                   runs; all blocks of a page share their names
    ```text                     right below a Python block: what that block prints
    ```console                  lines after `$ ` are commands, the others what they print
    ```toml title="a.toml"      any block with a title is a file, and is written; test_databases.py runs SQL

In what is shown, … stands for any text. `<!-- numbers vary -->` above a block: its numbers are noisy.
`<!-- not run: reason -->` above a block: it is not run, and counted in NOT_RUN.
"""

import contextlib
import io
import re
import runpy
import shlex
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = ["index.md", "tutorial.md", *(f"guides/{page.name}" for page in sorted(DOCS.glob("guides/*.md")))]
NOT_RUN = {
    "guides/databases.md": 2,
    "tutorial.md": 1,
    "guides/large-data.md": 4,
    "guides/resuming.md": 1,
    "guides/discovering.md": 1,
    "guides/studio.md": 3,
}
"""Blocks that need what a test has not; say why on the page, and count them here."""

FENCE = re.compile(
    r"(?P<remarks>(?:^<!--[^\n]*-->\n+)*)"
    r'^```(?P<language>\w+)(?: title="(?P<title>[^"]+)")?\n(?P<text>.*?)^```$',
    re.DOTALL | re.MULTILINE,
)
REMARK = re.compile(r"<!-- (.*?) -->")
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    place: str
    language: str
    text: str
    title: str | None
    remarks: tuple[str, ...]
    follows: bool
    """Whether nothing but remarks stands between it and the block before."""

    @property
    def varies(self) -> bool:
        return "numbers vary" in self.remarks

    @property
    def is_run(self) -> bool:
        return not any(remark.startswith("not run: ") for remark in self.remarks)


def blocks(page: str, text: str) -> Iterator[Block]:
    end = -1
    for found in FENCE.finditer(text):
        yield Block(
            f"{page}:{text.count(chr(10), 0, found.start('language')) + 1}",
            found["language"],
            found["text"],
            found["title"],
            tuple(REMARK.findall(found["remarks"])),
            end >= 0 and not text[end : found.start()].strip(),
        )
        end = found.end()


def run_page(page: str, text: str) -> None:
    """Run all blocks of a page in the current folder; fail at the first that does not do as it says."""
    names: dict[str, object] = {"__name__": "snippet"}
    printed: str | None = None
    for block in blocks(page, text):
        if not block.is_run:
            printed = None
        elif block.title is not None:
            Path(block.title).write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            printed = _run_python(block, names)
        elif block.language == "console":
            _run_console(block)
        elif block.language == "text" and block.follows and printed is not None:
            check(block.place, block.text, printed, varies=block.varies)
            printed = None


def check(place: str, shown: str, printed: str, *, varies: bool) -> None:
    """Whether a page shows what was printed."""
    pattern = ".*".join(re.escape(part) for part in _plain(shown, varies=varies).split("…"))
    if not re.fullmatch(pattern, _plain(printed, varies=varies), re.DOTALL):
        pytest.fail(f"{place} shows\n\n{shown}\nbut this was printed:\n\n{printed}", pytrace=False)


def _plain(text: str, *, varies: bool) -> str:
    if varies:
        text = re.sub(r"[─━]+", "─", NUMBER.sub("#", text))
        text = text.replace(" ", "")  # columns are as wide as their numbers
    return "\n".join(line.rstrip() for line in text.splitlines() if line.strip())


def _run_python(block: Block, names: dict[str, object]) -> str:
    stream = io.StringIO()
    try:
        with contextlib.redirect_stdout(stream):
            exec(compile(block.text, block.place, "exec"), names)
    except Exception as error:  # noqa: BLE001  # any error is the page's
        pytest.fail(f"{block.place} raised {type(error).__name__}: {error}", pytrace=False)
    return stream.getvalue()


def _run_console(block: Block) -> None:
    parts = re.split(r"^\$ ", block.text.replace("\\\n", " "), flags=re.MULTILINE)
    assert not parts[0].strip(), f"{block.place}: a console block begins with a command"
    for part in parts[1:]:
        command, _, shown = part.partition("\n")
        code, printed = _run_command(block.place, shlex.split(command, comments=True))
        if (code != 0) != shown.startswith("error:"):
            pytest.fail(f"{block.place}: `{command}` ended with {code}:\n\n{printed}", pytrace=False)
        if shown.strip():
            check(block.place, shown, printed, varies=block.varies)


def _run_command(place: str, words: list[str]) -> tuple[object, str]:
    from sidelight.cli.app import main

    stream = io.StringIO()
    code: object = 0
    with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream), warnings.catch_warnings():
        if words[0] == "python":
            runpy.run_path(words[1], run_name="__main__")
        elif words[0] == "sidelight":
            before, sys.argv = sys.argv, words
            try:
                main()
            except SystemExit as stop:
                code = stop.code
            finally:
                sys.argv = before
        else:
            pytest.fail(f"{place}: {words[0]!r} is not run here; mark the block as not run", pytrace=False)
    return code, stream.getvalue()


@pytest.mark.parametrize("page", PAGES)
def test_every_snippet_of_a_page_runs_and_prints_what_is_shown(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    run_page(page, (DOCS / page).read_text(encoding="utf-8"))


def test_blocks_that_are_not_run_are_counted():
    found = {page: list(blocks(page, (DOCS / page).read_text(encoding="utf-8"))) for page in PAGES}

    not_run = {page: sum(not block.is_run for block in known) for page, known in found.items()}
    assert {page: number for page, number in not_run.items() if number} == NOT_RUN


@pytest.mark.parametrize("page", PAGES)
def test_every_fence_of_a_page_is_seen(page):
    text = (DOCS / page).read_text(encoding="utf-8")

    assert text.count("```") == 2 * len(list(blocks(page, text)))
    allowed = {"python", "console", "text", "toml", "sql"}
    assert {block.language for block in blocks(page, text)} <= allowed


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("```python\n1 / 0\n```", "page.md:1 raised ZeroDivisionError"),
        ("```python\nprint(2)\n```\n\n```text\n3\n```", "page.md:5 shows"),
        ("```console\n$ sidelight nonsense\n```", "ended with 2"),
        ("```console\n$ sidelight --version\n9.9\n```", "page.md:1 shows"),
        ("```console\n$ rm -rf everything\n```", "'rm' is not run here"),
    ],
    ids=["raises", "prints", "fails", "says", "unknown"],
)
def test_a_wrong_page_is_caught(wrong, told):
    with pytest.raises(pytest.fail.Exception, match=re.escape(told)):
        run_page("page.md", wrong + "\n")


def test_noise_is_allowed_only_where_a_page_says_so():
    noisy = "```python\nprint('mean 3.1')\n```\n\n{}```text\nmean 2.9\n```\n"

    run_page("page.md", noisy.format("<!-- numbers vary -->\n"))
    with pytest.raises(pytest.fail.Exception):
        run_page("page.md", noisy.format(""))
