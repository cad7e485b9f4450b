"""Examples in docstrings are shown as code: Markdown would read ``>>>`` as a quotation."""

from typing import Any

from griffe import Extension


class Doctests(Extension):
    """Put a fence around every run of lines from ``>>>`` to the next empty line."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Griffe calls this for every object it has read."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """The docstring with its examples fenced, at the indentation they have."""
    lines: list[str] = []
    margin: str | None = None
    for line in [*text.splitlines(), ""]:
        if margin is None and line.lstrip().startswith(">>>"):
            margin = line[: len(line) - len(line.lstrip())]
            lines.append(f"{margin}```pycon")
        elif margin is not None and not line.strip():
            lines.append(f"{margin}```")
            margin = None
        lines.append(line)
    return "\n".join(lines)
