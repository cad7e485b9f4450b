"""Audits of everything that spends: lower bounds on ε beside the claims, as a table and a picture.

    python benchmarks/audit.py            all; an hour of processor time, cell by cell; `make audit`
    python benchmarks/audit.py --show     only the table and the picture, from what is kept

Each cell of benchmarks/results/audit.csv is one attack (`sidelight audit`): a subject, a unit, with or
without the planted bug. Cells that are there are not run again. Runs on each table: as the subject says (300
to 2000), at 99.9% confidence. Noise is seeded, so that a cell can be made again. Canaries and the attack on
floating point stand at the end. The exit code is 1 if a claim was refuted or a planted bug was not found.
"""

import argparse
import json
import sys
from html import escape
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from experiment import FIGURES, RESULTS
from resumable import read, run_cells
from sidelight.audit.canaries import PLANTED_RECORDS, audit_release
from sidelight.audit.floating import attack_naive_noise, attack_our_noise
from sidelight.audit.neighbours import UNITS
from sidelight.audit.row import audited
from sidelight.audit.subjects import SUBJECTS
from sidelight.testing import SeededNoise

CELLS = RESULTS / "audit.csv"
OTHERS = RESULTS / "audit_others.json"
PICTURE = FIGURES / "audit.svg"
TITLE = "How much of its claim an attack can see"
LEGEND = "bars: correct code; marks: with a planted bug, half the noise that is due"
WITH_CANARIES = ("hdmm", "mwem", "aim", "mst", "aperture")


def cells() -> list[dict[str, Any]]:
    """All attacks, unit by unit; first those of subjects that are quick, which have the most runs."""
    return [
        {"subject": name, "unit": unit, "planted": planted}
        for unit in UNITS
        for name, subject in sorted(SUBJECTS.items(), key=lambda one: -one[1].runs)
        if unit in subject.units
        for planted in (0, 1)
    ]


def cell(*, subject: str, unit: str, planted: int) -> dict[str, float]:
    row = audited(subject, SUBJECTS[subject], unit, is_planted=bool(planted))
    return {
        "epsilon": row.epsilon,
        "delta": row.delta,
        "found": row.found,
        "share": row.share,
        "runs": row.runs,
    }


def others() -> dict[str, Any]:
    """Canaries in whole releases, and the attack on floating point."""
    canaries = {}
    for name in WITH_CANARIES:
        for records in (1, PLANTED_RECORDS):
            found = audit_release(name, records=records, noise=SeededNoise(1), seed=1)
            canaries[f"{name}{'' if records == 1 else ', planted'}"] = {
                "epsilon": 2.0,
                "found": round(found.epsilon, 3),
                "right": found.right,
                "guesses": found.guesses,
            }
    floating = {
        name: {"epsilon": 1.0, "found": round(attacked(epsilon=1.0, runs=4000).epsilon, 3)}
        for name, attacked in (("textbook", attack_naive_noise), ("ours", attack_our_noise))
    }
    return {"canaries": canaries, "floating": floating}


def table(lines: list[dict[str, str]]) -> str:
    """Shares of the claim, by subject and unit; in brackets with the planted bug."""
    share = {(line["subject"], line["unit"], line["planted"]): float(line["share"]) for line in lines}
    claim = {line["subject"]: (float(line["epsilon"]), float(line["delta"])) for line in lines}
    out = ["| subject | claim | " + " | ".join(UNITS) + " |", "|---|---|" + "---|" * len(UNITS)]
    for name in SUBJECTS:
        if name not in claim:
            continue
        epsilon, delta = claim[name]
        told = [f"ε = {epsilon:g}" + (f", δ = {delta:g}" if delta else "")]
        for unit in UNITS:
            honest, planted = (share.get((name, unit, kind)) for kind in "01")
            told.append("" if honest is None or planted is None else f"{honest:.2f} ({planted:.2f})")
        out.append(f"| {name} | " + " | ".join(told) + " |")
    return "\n".join(out)


def picture(lines: list[dict[str, str]], path: Path) -> None:
    """A bar for each attack, up to the share of the claim that was seen; a mark where the planted bug was."""
    share = {(line["subject"], line["unit"], line["planted"]): float(line["share"]) for line in lines}
    names = [name for name in SUBJECTS if any(key[0] == name for key in share)]
    left, scale, bar, gap, top = 96, 260, 5, 10, 54
    height = top + sum(bar * len(SUBJECTS[name].units) + gap for name in names) + 30
    width = left + round(2.2 * scale) + 24
    colours = ("#2563a8", "#7aa6d8", "#2e8b57", "#8cc9a5", "#8a4fa8", "#c3a0d6")
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height + 62}" '
        'font-family="Helvetica, Arial, sans-serif" font-size="11">',
        f'<rect width="{width}" height="{height + 62}" fill="white"/>',
        f'<text x="{left}" y="20" font-size="14" font-weight="bold">{TITLE}</text>',
        f'<text x="{left}" y="38">{LEGEND}</text>',
    ]
    for tick in (0, 0.5, 1, 1.5, 2):
        x = left + tick * scale
        stroke = 'stroke="#c00" stroke-width="1.5"' if tick == 1 else 'stroke="#ddd"'
        out.append(f'<path d="M{x:.1f} {top - 6}V{height - 22}" {stroke}/>')
        label = "the claim" if tick == 1 else f"{tick:g}"
        out.append(f'<text x="{x:.1f}" y="{height - 8}" text-anchor="middle">{label}</text>')
    y = top
    for name in names:
        units = SUBJECTS[name].units
        middle = y + bar * len(units) / 2 + 4
        out.append(f'<text x="{left - 8}" y="{middle:.1f}" text-anchor="end">{escape(name)}</text>')
        for unit in units:
            colour = colours[list(UNITS).index(unit)]
            honest, planted = (share.get((name, unit, kind)) for kind in "01")
            if honest is not None:
                size = f'width="{honest * scale:.1f}" height="{bar - 1}"'
                out.append(f'<rect x="{left}" y="{y}" {size} fill="{colour}"/>')
            if planted is not None:
                x = left + min(planted, 2.2) * scale
                out.append(f'<path d="M{x:.1f} {y - 0.5}v{bar}" stroke="{colour}" stroke-width="2.5"/>')
            y += bar
        y += gap
    for place, unit in enumerate(UNITS):
        x, line = left + (place % 3) * 190, height + 14 + (place // 3) * 18
        out.append(f'<rect x="{x}" y="{line - 8}" width="12" height="8" fill="{colours[place]}"/>')
        out.append(f'<text x="{x + 18}" y="{line}">{escape(unit)}</text>')
    path.write_text("\n".join([*out, "</svg>"]) + "\n", encoding="utf-8")


def wrong(lines: list[dict[str, str]]) -> list[str]:
    """Claims of correct code that were refuted, and planted bugs that were not found."""
    told = {"0": "REFUTED, though nothing was planted", "1": "the planted bug was NOT FOUND"}
    return [
        f"{line['subject']}, {line['unit']}: {told[line['planted']]}, {float(line['share']):.2f} of the claim"
        for line in lines
        if (float(line["share"]) > 1) != (line["planted"] == "1")
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--show", action="store_true", help="run nothing")
    parser.add_argument("--only", action="append", help="these subjects alone; may be repeated")
    given = parser.parse_args()
    if not given.show:
        wanted = [one for one in cells() if not given.only or one["subject"] in given.only]
        run_cells(CELLS, wanted, cell)
        if not given.only:
            OTHERS.write_text(json.dumps(others(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    lines = read(CELLS)
    print(table(lines))
    picture(lines, PICTURE)
    if OTHERS.exists():
        print(OTHERS.read_text(encoding="utf-8"))
    seen = [
        float(one["share"]) for one in lines if one["planted"] == "0" and SUBJECTS[one["subject"]].is_one_shot
    ]
    print(f"{sum(share >= 0.5 for share in seen)} of {len(seen)} one-shot audits saw half of their claim")
    print("\n".join(wrong(lines)) or "every claim held, and every planted bug was found")
    sys.exit(1 if wrong(lines) else 0)


if __name__ == "__main__":
    main()
