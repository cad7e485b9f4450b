"""One kind of fault, told: what was injected, how the command ended, and what its repetition left behind."""

import json
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
import killer

RUN = "mwem"
"""Two rounds: eleven payments with the quality that is measured at the end."""
WENT_ON, DONE = (2, 130), 0
PLANTED = os.environ.get("SIDELIGHT_PLANTED")
"""The fault of ours that a test plants (``faults.FOUND_BY``), and this script must find."""


@dataclass
class Row:
    """What became of one kind of fault."""

    fault: str
    how: str
    injected: int = 0
    stopped: int = 0
    """How often the command stopped, with a message and exit code 2 or 130; else it went on by itself."""
    again: int = 0
    """How many answers were paid for again in all."""
    wrong: list[Any] = field(default_factory=list)
    """What was lost, spent twice or not said; empty if everything was survived."""
    skipped: str | None = None

    def judge(
        self, at: Any, code: int, found: dict[str, Any], expected: dict[str, Any], *, costs: int = 0
    ) -> None:
        """One injection: how the command ended, and what its repetition left behind."""
        self.injected += 1
        self.stopped += code != DONE
        self.again += found.get("again") or 0
        if code not in (DONE, *WENT_ON):
            self.wrong.append({"at": at, "exit": code, "said": found.get("said")})
        for each in killer.differences(found, expected, kills=costs):
            self.wrong.append({"at": at, "first exit": code, **each})
        if PLANTED is not None and self.wrong:
            raise FoundError(self)  # one is enough


class FoundError(Exception):
    """The planted fault was found; holds the row."""


class Scene:
    """Stages of one command, beside what an undisturbed run leaves behind."""

    def __init__(self, folder: Path, run: str = RUN, **settings: Any) -> None:
        self.folder, self.run, self.settings, self.number = folder, run, settings, 0
        killer.warm_up(folder / "warm", run)
        calm = self.stage()
        self.expected = calm.undisturbed(points=True)
        self.points = json.loads((calm.notes / "points.json").read_text())

    def stage(self, folder: Path | None = None, **more: Any) -> killer.Stage:
        self.number += 1
        name = f"stage{self.number}"
        told = {"notes": self.folder / f"{name} notes", "planted": PLANTED, "checkpoint": None}
        own = {**told, **self.settings, **more}
        return killer.Stage((folder or self.folder) / name, self.run, **own)

    def ended(self, stage: killer.Stage, code: int) -> dict[str, Any]:
        """What is left once the fault is repaired, and the command was repeated if it had stopped."""
        return stage.finish() if code else {**stage.look(), "exit": 0, "said": stage.said[-600:]}
