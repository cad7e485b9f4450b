"""Links lead somewhere, every public name and command is documented, and the site builds offline."""

import importlib.util
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import typer

import sidelight
from sidelight.mechanisms.registry import mechanism_of, names

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
LINK = re.compile(r"(?<!!)\[[^\]\n]+\]\((?!https?:)([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)


def prose(page):
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def anchors(page):
    """The anchors of a page's headings, as the site makes them."""
    slugify = pytest.importorskip("markdown.extensions.toc").slugify
    return {slugify(heading, "-") for heading in re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)}


def hook(name):
    spec = importlib.util.spec_from_file_location(name, DOCS / "_hooks" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def leaves(command, path):
    if hasattr(command, "commands"):
        for name, child in command.commands.items():
            yield from leaves(child, f"{path} {name}")
    else:
        yield path, command


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_every_relative_link_leads_somewhere(page):
    for link in LINK.findall(prose(page)):
        target, _, anchor = link.partition("#")
        found = (page.parent / target).resolve() if target else page
        assert found.is_file(), f"{page.name} links to {link}"
        assert not anchor or anchor in anchors(found), f"{page.name} links to {link}"


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]

    assert sorted(re.findall(r": (\S+\.md)$", navigation, re.MULTILINE)) == [
        str(page.relative_to(DOCS)) for page in PAGES
    ]


def test_every_public_name_is_in_the_reference():
    text = (DOCS / "reference" / "python.md").read_text(encoding="utf-8")

    assert sorted(re.findall(r"^::: sidelight\.(\w+)$", text, re.MULTILINE)) == sorted(sidelight.__all__)


def test_the_papers_of_every_mechanism_are_on_the_page_that_helps_to_choose():
    page = (DOCS / "guides" / "mechanism.md").read_text(encoding="utf-8")
    filled = hook("reference").on_page_markdown(page)

    assert "- `aim`: McKenna, Mullins, Sheldon, Miklau, " in filled
    assert "- `pmw-pub`: Liu, Vietri, Steinke, Ullman, Wu, " in filled
    assert "<!-- papers -->" not in filled


@pytest.mark.parametrize("name", names())
def test_the_page_of_a_mechanism_lists_its_settings(name):
    page = DOCS / "papers" / ("gem.md" if name == "gem-pub" else f"{name.replace('-', '_')}.md")
    first_cells = re.findall(r"^\| (`[^|]+) \|", page.read_text(encoding="utf-8"), re.MULTILINE)
    listed = {setting for cell in first_cells for setting in re.findall(r"`(\w+)`", cell)}

    assert mechanism_of(name).settings().keys() - listed == set()


def test_every_command_and_option_is_in_the_reference():
    from sidelight.cli.app import app

    page = (DOCS / "reference" / "cli.md").read_text(encoding="utf-8")
    filled = hook("reference").on_page_markdown(page)

    sections = dict(part.split("\n", 1) for part in filled.split("\n## ")[1:])
    found = dict(leaves(typer.main.get_command(app), "sidelight"))
    assert sections.keys() == found.keys()
    for path, command in found.items():
        assert "```console\n$ sidelight " in sections[path], f"{path} has no example"
        for parameter in command.params:
            assert all(option in sections[path] for option in parameter.opts if option.startswith("--"))


def test_every_fragment_and_every_version_is_in_the_changelog(tmp_path, monkeypatch):
    reference = hook("reference")
    (tmp_path / "new.added.md").write_text("Something\nnew.\n", encoding="utf-8")
    monkeypatch.setattr(reference, "_FRAGMENTS", tmp_path)

    told = reference.changes()

    assert told.startswith("## Added\n\n- Something new.\n")
    assert "## 0.1.0" in told
    assert "### Privacy" in told


def test_examples_in_docstrings_are_fenced():
    pytest.importorskip("griffe")
    fenced = hook("doctests").fenced

    assert fenced("Words.\n\n    >>> 1 + 1\n    2\n\nMore.") == (
        "Words.\n\n    ```pycon\n    >>> 1 + 1\n    2\n    ```\n\nMore.\n"
    )


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_asks_the_network_for_nothing(tmp_path):
    pytest.importorskip("mkdocs")

    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, env={"NO_MKDOCS_2_WARNING": "1", "PATH": "/usr/bin:/bin"},
        check=False,
    )  # fmt: skip

    assert built.returncode == 0, built.stdout + built.stderr
    pages = list(tmp_path.rglob("*.html"))
    assert len(pages) > len(PAGES)  # and the page of errors
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert not re.search(r"<(script|img|iframe)[^>]* src=\"(https?:)?//", text), page.name
        fetched = re.findall(r"<link[^>]* rel=\"(?:stylesheet|preconnect|icon)\"[^>]*>", text)
        assert not any("//" in link for link in fetched), page.name


def test_the_bounds_of_the_arbiter_are_what_their_script_prints(capsys, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])  # the script adds a folder of its own
    runpy.run_path(str(ROOT / "benchmarks" / "utility" / "arbiter_bound.py"), run_name="__main__")

    printed = capsys.readouterr().out
    assert len(printed.splitlines()) == 6
    assert printed in (DOCS / "papers" / "aperture.md").read_text(encoding="utf-8")
