"""What the site says about commands, papers and changes is written when it is built, from the code itself.

A page holds a marker, ``<!-- commands -->``, ``<!-- papers -->`` or ``<!-- changes -->``. It is replaced by
the commands of the ``sidelight`` program, by the papers of its mechanisms, or by the fragments of
``changelog.d/`` and then ``CHANGELOG.md``.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[2]
_FRAGMENTS = _ROOT / "changelog.d"
_KINDS = ("privacy", "added", "changed", "fixed", "removed")
_OWN = ("--help", "--install-completion", "--show-completion")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Fill a page's markers; MkDocs calls this for every page."""
    for write in (commands, papers, changes):
        marker = f"<!-- {write.__name__} -->"
        if marker in markdown:
            markdown = markdown.replace(marker, write())
    return markdown


def commands() -> str:
    """Every command with its arguments and options, in the order of ``sidelight --help``."""
    import typer

    from sidelight.cli.app import app

    return "\n".join(_sections(typer.main.get_command(app), "sidelight"))


def papers() -> str:
    """Every mechanism with the papers that it comes from."""
    from sidelight.mechanisms.registry import mechanism_of, names

    cited = {name: "; ".join(map(str, mechanism_of(name).papers)) for name in names()}
    return "\n".join(f"- `{name}`: {told}." for name, told in cited.items() if told)


def changes() -> str:
    """The fragments, a changed guarantee first; then the versions."""
    parts = []
    for kind in _KINDS:
        found = sorted(_FRAGMENTS.glob(f"*.{kind}.md"))
        if found:
            parts.append(f"## {kind.capitalize()}\n")
            parts += ["- " + " ".join(path.read_text(encoding="utf-8").split()) for path in found]
            parts.append("")
    _, heading, versions = (_ROOT / "CHANGELOG.md").read_text(encoding="utf-8").partition("\n## ")
    return "\n".join([*parts, heading + versions])


def _sections(command: Any, path: str) -> Iterator[str]:
    if hasattr(command, "commands"):
        for name, child in command.commands.items():
            yield from _sections(child, f"{path} {name}")
        return
    text, example = _help(command)
    yield f"## {path}\n\n{text}\n"
    if example:
        yield f"```console\n$ {example}\n```\n"
    yield "| | | default |\n|---|---|---|"
    for parameter in command.params:
        if not set(parameter.opts) & set(_OWN):
            yield _line(parameter)
    yield ""


def _help(command: Any) -> tuple[str, str]:
    """The help text without its example, and the example."""
    paragraphs = re.split(r"\n\s*\n", f"{command.help or ''}\n\n{command.epilog or ''}")
    joined = [" ".join(paragraph.split()) for paragraph in paragraphs]
    examples = [text.removeprefix("Example: ") for text in joined if text.startswith("Example: ")]
    words = [text for text in joined if text and not text.startswith("Example: ")]
    return "\n\n".join(words), examples[0] if examples else ""


def _line(parameter: Any) -> str:
    is_argument = parameter.param_type_name == "argument"
    name = parameter.name.upper() if is_argument else ", ".join(parameter.opts)
    if parameter.required:
        default = "required"
    elif parameter.default in (None, False, ()) or callable(parameter.default):
        default = ""
    else:
        default = f"`{parameter.default}`"
    told = (getattr(parameter, "help", None) or "").replace("|", r"\|")
    return f"| `{name}` | {told} | {default} |"
