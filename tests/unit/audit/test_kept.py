"""The audits that are kept: correct code holds, each planted bug is found, and the guide shows the same."""

import csv
from pathlib import Path

from sidelight.audit.neighbours import UNITS
from sidelight.audit.subjects import SUBJECTS

ROOT = Path(__file__).resolve().parents[3]
KEPT = ROOT / "benchmarks" / "results" / "audit.csv"
GUIDE = ROOT / "docs" / "guides" / "auditing.md"


def shares() -> dict[tuple[str, str, str], float]:
    """The share of its claim that each attack saw."""
    with KEPT.open(encoding="utf-8", newline="") as file:
        return {
            (line["subject"], line["unit"], line["planted"]): float(line["share"])
            for line in csv.DictReader(file)
        }


def test_kept_claims_hold_and_each_has_its_planted_bug_found():
    kept = shares()

    assert {key[:2] for key in kept if key[2] == "0"} == {key[:2] for key in kept if key[2] == "1"}
    assert [key for key, share in kept.items() if (share > 1) != (key[2] == "1")] == []


def test_the_guide_shows_the_audits_that_are_kept():
    kept, lines = shares(), GUIDE.read_text(encoding="utf-8").splitlines()
    top = next(place for place, line in enumerate(lines) if line.startswith("| subject | claim |"))
    assert lines[top].strip("| ").split(" | ")[2:] == list(UNITS)

    shown = {}
    for line in lines[top + 2 : top + 2 + len(SUBJECTS)]:
        name, _, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        shown |= {(name, unit): cell for unit, cell in zip(UNITS, cells, strict=True) if cell}

    assert shown == {key[:2]: f"{kept[*key[:2], '0']:.2f} ({kept[*key[:2], '1']:.2f})" for key in kept}
