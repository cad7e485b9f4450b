"""The commands and the Python lines that do what a page does."""

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from sidelight.releases.quality import SHARE
from sidelight.sources import is_postgres, split_address
from sidelight.studio.plans import FrozenPlan

_BREAK = " \\\n    "


def release_command(plan: FrozenPlan) -> str:
    """The command that carries out a plan, run in the project's folder."""
    asked, ask, made = plan.proposal, plan.proposal.ask, plan.made()
    workload = plan.workload
    parts = [
        f"sidelight release {_quoted(asked.private)}",
        f"--schema {_quoted(_relative(plan, plan.schema))}",
    ]
    parts += [f"--ledger {_quoted(asked.ledger)}", f"--epsilon {ask.epsilon!r}"]
    parts += [f"--public {_quoted(public)}" for public in asked.public]
    named = _relative(plan, workload) if isinstance(workload, Path) else workload
    parts += [f"--workload {_quoted(named)}"]
    parts += [f"--mechanism {_quoted(ask.mechanism if made is None else made.mechanism)}"]
    parts += [f"--quality-share {ask.quality_share!r}"] if ask.quality_share != SHARE else []
    parts += [f"--accept {_quoted(_relative(plan, plan.accept))}"] if plan.accept else []
    parts += [f"--project {shlex.quote(ask.project)}"] if ask.project else []
    parts += ["--yes"] if ask.other_schema else []
    approval = plan.folder / "ledger.json"
    parts += [f"--approval {_quoted(_relative(plan, approval))}"] if approval.is_file() else []
    return _BREAK.join([*parts, f"--out {_quoted(_relative(plan, plan.out))}"])


def release_python(plan: FrozenPlan) -> str:
    """The same in Python."""
    asked, ask, made = plan.proposal, plan.proposal.ask, plan.made()
    workload = plan.workload
    named = _relative(plan, workload) if isinstance(workload, Path) else workload
    lines = [
        "import sidelight as sl",
        "",
        "release = sl.release(",
        f"    {_shown(asked.private)!r},",
        f"    schema={_relative(plan, plan.schema)!r},",
        f"    ledger={_shown(asked.ledger)!r},",
        f"    epsilon={ask.epsilon!r},",
    ]
    lines += [f"    public={[_shown(public) for public in asked.public]!r},"] if asked.public else []
    lines += [
        f"    workload={named!r},",
        f"    mechanism={ask.mechanism if made is None else made.mechanism!r},",
    ]
    lines += [f"    quality_share={ask.quality_share!r},"] if ask.quality_share != SHARE else []
    lines += [f"    accept={_relative(plan, plan.accept)!r},"] if plan.accept else []
    lines += [f"    project={ask.project!r},"] if ask.project else []
    return "\n".join([*lines, ")", f"release.save({_relative(plan, plan.out)!r})"])


def answer_command(folder: str, attrs: Sequence[str], where: Mapping[str, Sequence[str]]) -> str:
    """The command that prints the table of a page."""
    parts = [f"sidelight answer {_quoted(folder)}", *(_quoted(attr) for attr in attrs)]
    parts += [f"--where {_quoted(f'{name}={value}')}" for name, values in where.items() for value in values]
    return " ".join(parts)


def answer_python(folder: str, attrs: Sequence[str], where: Mapping[str, Sequence[str]]) -> str:
    """The same in Python."""
    asked = json.dumps(list(attrs), ensure_ascii=False)
    said = (
        f", where={json.dumps({k: list(v) for k, v in where.items()}, ensure_ascii=False)}" if where else ""
    )
    return f'import sidelight as sl\n\nrelease = sl.Release.load("{folder}")\nrelease.answer({asked}{said})'


def sample_command(folder: str, where: Mapping[str, Sequence[str]]) -> str:
    """The command that draws a synthetic table."""
    said = "".join(f" --where {_quoted(f'{k}={v}')}" for k, values in where.items() for v in values)
    return f"sidelight sample {_quoted(folder)}{said} --seed 1 --to synthetic.csv"


def _relative(plan: FrozenPlan, path: Path) -> str:
    return path.relative_to(plan.place.path).as_posix()


def _quoted(text: str) -> str:
    return shlex.quote(_shown(text))


def _shown(source: str) -> str:
    """A source for people to copy: the address of a database without its user and host."""
    if not is_postgres(source):
        return source
    return f"postgresql://…#{split_address(source)[1]}"
