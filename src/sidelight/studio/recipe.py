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
    asked, ask = plan.proposal, plan.proposal.ask
    parts = [
        f"sidelight release {_quoted(asked.private)}",
        f"--schema {_quoted(_relative(plan, plan.schema))}",
        f"--ledger {_quoted(asked.ledger)}",
        f"--epsilon {ask.epsilon!r}",
        *(f"--public {_quoted(public)}" for public in asked.public),
        f"--workload {_quoted(_workload(plan))}",
        f"--mechanism {_quoted(_mechanism(plan))}",
    ]
    parts += [f"--quality-share {ask.quality_share!r}"] if ask.quality_share != SHARE else []
    parts += [f"--accept {_quoted(_relative(plan, plan.accept))}"] if plan.accept else []
    parts += [f"--project {shlex.quote(ask.project)}"] if ask.project else []
    parts += ["--yes"] if ask.other_schema else []
    approval = plan.folder / "ledger.json"
    parts += [f"--approval {_quoted(_relative(plan, approval))}"] if approval.is_file() else []
    return _BREAK.join([*parts, f"--out {_quoted(_relative(plan, plan.out))}"])


def release_python(plan: FrozenPlan) -> str:
    """The Python lines that carry out a plan."""
    asked, ask = plan.proposal, plan.proposal.ask
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
    lines += [f"    workload={_workload(plan)!r},", f"    mechanism={_mechanism(plan)!r},"]
    lines += [f"    quality_share={ask.quality_share!r},"] if ask.quality_share != SHARE else []
    lines += [f"    accept={_relative(plan, plan.accept)!r},"] if plan.accept else []
    lines += [f"    project={ask.project!r},"] if ask.project else []
    return "\n".join([*lines, ")", f"release.save({_relative(plan, plan.out)!r})"])


def answer_command(folder: str, attrs: Sequence[str], where: Mapping[str, Sequence[str]]) -> str:
    """The command that prints the table of a page."""
    return " ".join([f"sidelight answer {_quoted(folder)}", *map(_quoted, attrs), *_conditions(where)])


def answer_python(folder: str, attrs: Sequence[str], where: Mapping[str, Sequence[str]]) -> str:
    """The Python lines that give the table of a page."""
    asked = json.dumps(list(attrs), ensure_ascii=False)
    said = (
        f", where={json.dumps({k: list(v) for k, v in where.items()}, ensure_ascii=False)}" if where else ""
    )
    return f'import sidelight as sl\n\nrelease = sl.Release.load("{folder}")\nrelease.answer({asked}{said})'


def sample_command(folder: str, where: Mapping[str, Sequence[str]]) -> str:
    """The command that draws a synthetic table."""
    parts = [f"sidelight sample {_quoted(folder)}", *_conditions(where)]
    return " ".join([*parts, "--seed 1 --to synthetic.csv"])


def _conditions(where: Mapping[str, Sequence[str]]) -> list[str]:
    return [f"--where {_quoted(f'{name}={value}')}" for name, values in where.items() for value in values]


def _workload(plan: FrozenPlan) -> str:
    found = plan.workload
    return _relative(plan, found) if isinstance(found, Path) else found


def _mechanism(plan: FrozenPlan) -> str:
    """The mechanism that the plan settled on; the one that was asked for where it is not made yet."""
    made = plan.made()
    return plan.proposal.ask.mechanism if made is None else made.mechanism


def _relative(plan: FrozenPlan, path: Path) -> str:
    return path.relative_to(plan.place.path).as_posix()


def _quoted(text: str) -> str:
    return shlex.quote(_shown(text))


def _shown(source: str) -> str:
    """A source for people to copy: the address of a database without its user and host."""
    if not is_postgres(source):
        return source
    return f"postgresql://…#{split_address(source)[1]}"
