"""What `sidelight demo` shows, over several runs, and the picture that the README shows of it.

    OMP_NUM_THREADS=1 python benchmarks/utility/demo.py          a minute or two; writes results/demo.json
    OMP_NUM_THREADS=1 python benchmarks/utility/demo.py --draw   only docs/images/demo.svg, from that file

Each release is made with five seeds at ε = 1. Beside the demo's two mechanisms stands APERTURE without
public data, which is why the demo takes AIM there. Exact answers go into every error; they may be published
because the survey is public already.
"""

import json
import statistics
import sys
import time
from html import escape
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from experiment import BENCHMARKS, RESULTS, machine
from plot import COLOURS
from sidelight.cli.demo import ALONE, RECIPES, WITH, WITHOUT, errors_of, released_survey, survey
from sidelight.privacy.budget import Budget
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.progress import Silent
from sidelight.releases.run import release
from sidelight.testing import SeededNoise

SEEDS = 5
EPSILON = 1.0
OTHER = "without public data, by aperture"
PICTURE = BENCHMARKS.parent / "docs" / "images" / "demo.svg"


def measured() -> dict[str, Any]:
    private, public, schema = survey()
    runs: dict[str, list[dict[str, float]]] = {}
    seconds: dict[str, list[float]] = {}
    for seed in range(SEEDS):
        made = {}
        for name in (WITHOUT, WITH, OTHER):
            began, noise = time.process_time(), SeededNoise(seed)
            if name == OTHER:
                made[name] = release(
                    private, schema=schema, epsilon=EPSILON, delta=1e-9, mechanism="aperture",
                    noise=noise, progress=False, **RECIPES[WITH]["settings"],
                )  # fmt: skip
            else:
                book = MemoryLedger(Promise(Budget(epsilon=EPSILON, delta=1e-9), schema.unit, "survey"))
                made[name] = released_survey(
                    name, private, public, schema,
                    epsilon=EPSILON, ledger=book, progress=Silent(), noise=noise,
                )  # fmt: skip
            seconds.setdefault(name, []).append(time.process_time() - began)
        for name, errors in errors_of(made, private, public, schema).items():
            runs.setdefault(name, []).append(errors)
    return {
        "machine": machine(),
        "epsilon": EPSILON,
        "records": len(private),
        "public_records": len(public),
        "seeds": SEEDS,
        "workload_error": {
            name: {ways: round(statistics.mean(run[ways] for run in found), 5) for ways in found[0]}
            for name, found in runs.items()
        },
        "stddev": {
            name: {ways: round(statistics.stdev(run[ways] for run in found), 5) for ways in found[0]}
            for name, found in runs.items()
        },
        "processor_seconds": {name: round(statistics.median(took), 1) for name, took in seconds.items()},
    }


def picture(facts: dict[str, Any]) -> str:
    """Three groups of bars, the demo's three columns each; one standard deviation as a line."""
    shown = {ALONE: "#9a9a9a", WITHOUT: COLOURS[1], WITH: COLOURS[0]}
    errors, spread = facts["workload_error"], facts["stddev"]
    width, height, left, top, bottom = 720, 330, 56, 74, 276
    most = 1.08 * max(errors[name][ways] + spread[name][ways] for name in shown for ways in errors[name])
    said = "; ".join(
        f"{name}: " + ", ".join(f"{ways} {errors[name][ways]:.3f}" for ways in errors[name]) for name in shown
    )
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        'font-family="Helvetica, Arial, sans-serif" font-size="13" fill="#222">',
        f"<title>Workload error of the demo's releases. {escape(said)}</title>",
        f'<rect width="{width}" height="{height}" rx="6" fill="white"/>',
        f'<text x="{left}" y="28" font-size="16" font-weight="bold">{facts["records"]:,} people, '
        f"ε = {facts['epsilon']:g}: public data make the same budget go further</text>",
    ]
    x = left
    for name, colour in shown.items():
        told = f"{name} ({RECIPES[name]['mechanism']})" if name in RECIPES else name
        out.append(f'<rect x="{x}" y="43" width="12" height="12" fill="{colour}"/>')
        out.append(f'<text x="{x + 18}" y="54">{escape(told)}</text>')
        x += 40 + 7 * len(told)
    for tick in (0.0, 0.1, 0.2, 0.3):
        if tick <= most:
            y = bottom - tick / most * (bottom - top)
            out.append(f'<path d="M{left} {y:.1f}H{width - 20}" stroke="#ddd"/>')
            out.append(f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
    words = {"1-way": "one-way", "2-way": "two-way", "3-way": "three-way"}
    for group, ways in enumerate(words):
        start = left + 26 + group * 214
        for place, (name, colour) in enumerate(shown.items()):
            error, doubt = errors[name][ways], spread[name][ways]
            x, tall = start + place * 56, error / most * (bottom - top)
            out.append(
                f'<rect x="{x}" y="{bottom - tall:.1f}" width="48" height="{tall:.1f}" fill="{colour}"/>'
            )
            if doubt:
                reach = doubt / most * (bottom - top)
                line = f"M{x + 24} {bottom - tall - reach:.1f}v{2 * reach:.1f}"
                out.append(f'<path d="{line}" stroke="#222"/>')
            above = bottom - tall - doubt / most * (bottom - top) - 5
            out.append(f'<text x="{x + 24}" y="{above:.1f}" text-anchor="middle">{error:.3f}</text>')
        out.append(f'<text x="{start + 80}" y="{bottom + 20}" text-anchor="middle">{words[ways]}</text>')
    out.append(
        f'<text x="{left}" y="{height - 12}" font-size="12" fill="#555">workload error of all marginals '
        f"(0 exact, 2 all wrong): mean and standard deviation of {facts['seeds']} runs</text>"
    )
    return "\n".join([*out, "</svg>"]) + "\n"


def main() -> None:
    path = RESULTS / "demo.json"
    if "--draw" not in sys.argv:
        path.write_text(json.dumps(measured(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    facts = json.loads(path.read_text(encoding="utf-8"))
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    PICTURE.write_text(picture(facts), encoding="utf-8")
    for name, errors in facts["workload_error"].items():
        seconds = facts["processor_seconds"].get(name)
        print(name, errors, "" if seconds is None else f"{seconds} processor seconds")


if __name__ == "__main__":
    main()
