"""Audits of everything that spends: lower bounds on ε beside the claims, as a table and a picture.

    python benchmarks/audit.py            all; hours of processor time, cell by cell; `make audit`
    python benchmarks/audit.py --show     only the table and the picture, from what is kept

Each cell of benchmarks/results/audit.csv is one attack (`sidelight audit`): a subject, a unit, with or
without the planted bug. Cells that are there are not run again. Runs on each table: as the subject says (300
to 2000). Bounds hold with 99.9% confidence. Noise is seeded, so that a cell can be made again. Canaries in
whole releases and the attack on floating point stand at the end; `audit_people.py` attacks how people's
records are bounded. The exit code is 1 if a claim was refuted or a planted bug was not found.
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
SEEDS = range(3)
"""Of canaries."""
WITH_CANARIES: dict[str, dict[str, Any]] = {
    "hdmm": {},
    "mwem": {},
    "aim": {},
    "mst": {},
    "aperture": {},
    "jam": {"rounds": 2, "last_round": "private"},
    "gem": {"canaries": 1000, "guesses": 200, "rounds": 1, "steps": 60, "select_share": 0.02},
}
"""Mechanisms whose whole releases hold canaries, with settings. Without these JAM would answer by its public
data, in which every canary is once, and GEM's network would take long over an attribute of 20,000 values."""


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
        "chosen_on": row.chosen_on,
    }


def others(names: list[str]) -> dict[str, Any]:
    """Canaries in releases of these mechanisms, beside those kept; with all of them, floating point too."""
    told: dict[str, Any] = json.loads(OTHERS.read_text(encoding="utf-8")) if OTHERS.exists() else {}
    told["canaries"] = told.get("canaries", {}) | {name: canaries(name) for name in names}
    if set(names) == set(WITH_CANARIES):
        told["floating"] = {
            name: {"epsilon": 1.0, "found": round(attacked(epsilon=1.0, runs=4000).epsilon, 3)}
            for name, attacked in (("textbook", attack_naive_noise), ("ours", attack_our_noise))
        }
    return told


def canaries(name: str) -> dict[str, Any]:
    """What canaries of several seeds tell, as it is and with the planted bug."""
    told: dict[str, Any] = {"epsilon": 2.0}
    for way, records in (("as it is", 1), ("planted", PLANTED_RECORDS)):
        found = [
            audit_release(name, records=records, noise=SeededNoise(seed), seed=seed, **WITH_CANARIES[name])
            for seed in SEEDS
        ]
        told |= {"canaries": found[0].canaries, "guesses": found[0].guesses}
        told[way] = {
            "right": [one.right for one in found],
            "found": [round(one.epsilon, 3) for one in found],
        }
    return told


def table_of_canaries(found: dict[str, Any]) -> str:
    """Right guesses and the bounds that follow, from the least of all seeds to the most."""

    def span(numbers: list[float]) -> str:
        return (
            f"{min(numbers):g}" if min(numbers) == max(numbers) else f"{min(numbers):g} to {max(numbers):g}"
        )

    out = [
        "| mechanism | canaries | right guesses | ε, claimed 2 | planted bug: right | ε |",
        "|---|---|---|---|---|---|",
    ]
    for name, told in found.items():
        ways = (span(told[way][what]) for way in ("as it is", "planted") for what in ("right", "found"))
        honest, bound, right, planted = ways
        of = f"of {told['guesses']}"
        out.append(f"| {name} | {told['canaries']:,} | {honest} {of} | {bound} | {right} {of} | {planted} |")
    return "\n".join(out)


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


def missing(lines: list[dict[str, str]]) -> dict[str, list[str]]:
    """The subjects that have not been attacked under a unit, or only one of both ways."""
    kept = {(line["subject"], line["unit"], line["planted"]) for line in lines}
    out = {
        unit: [
            name
            for name, subject in SUBJECTS.items()
            if unit in subject.units and not {(name, unit, "0"), (name, unit, "1")} <= kept
        ]
        for unit in UNITS
    }
    return {unit: names for unit, names in out.items() if names}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--show", action="store_true", help="run nothing")
    parser.add_argument("--others", action="store_true", help="run canaries and floating point alone")
    parser.add_argument("--only", action="append", help="these subjects alone; may be repeated")
    given = parser.parse_args()
    if not given.show:
        wanted = [one for one in cells() if not given.only or one["subject"] in given.only]
        run_cells(CELLS, [] if given.others else wanted, cell)
        names = [name for name in WITH_CANARIES if not given.only or name in given.only]
        if given.others or not given.only:
            OTHERS.write_text(
                json.dumps(others(names), indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
            )
    lines = read(CELLS)
    print(table(lines))
    picture(lines, PICTURE)
    if OTHERS.exists():
        told = json.loads(OTHERS.read_text(encoding="utf-8"))
        print(table_of_canaries(told["canaries"]))
        for name, one in told.get("floating", {}).items():
            print(f"floating point, {name}: at least ε = {one['found']}, claimed {one['epsilon']:g}")
    seen = [
        float(one["share"]) for one in lines if one["planted"] == "0" and SUBJECTS[one["subject"]].is_one_shot
    ]
    print(f"{sum(share >= 0.5 for share in seen)} of {len(seen)} one-shot audits saw half of their claim")
    for unit, names in missing(lines).items():
        print(f"not run, {unit}: {'; '.join(names)}")
    print("\n".join(wrong(lines)) or "of what was run, every claim held and every planted bug was found")
    sys.exit(1 if wrong(lines) else 0)


if __name__ == "__main__":
    main()
