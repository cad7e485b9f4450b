"""Figures 1 and 2 of "Combining public and private data", from the results of the two scripts beside.

python benchmarks/utility/mixed_figures.py
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from experiment import FIGURES, RESULTS
from plot import line_plot

_THRESHOLDS = ("0.01", "0.25", "1.76", "10")
"""The paper's."""


def means() -> None:
    rows = json.loads((RESULTS / "mixed_mean.json").read_text(encoding="utf-8"))["rows"]
    for form in ("published", "strict"):
        series: dict[str, list[tuple[float, float, float]]] = {}
        for row in rows:
            if row["form"] == form:
                # The files hold 95% intervals; the plot draws one standard error.
                error = (row["high"] - row["low"]) / (2 * 1.96)
                point = (row["n"], row["variance"], error)
                name, optimised, _ = row["estimator"].partition(" (optimised)")
                if optimised:
                    series.setdefault("Sample, t optimised", []).append(point)
                if name.removeprefix("Sample, t = ") in ("mixed", "mixed, merged", *_THRESHOLDS):
                    series.setdefault(name, []).append(point)
        path = FIGURES / f"mixed_mean_{form}.svg"
        line_plot(path, series, f"Mean, {form} form", "n", "variance", log_x=True, log_y=True)
        print(path.name)


def medians() -> None:
    rows = json.loads((RESULTS / "mixed_quantile.json").read_text(encoding="utf-8"))["rows"]
    settings = sorted({(row["epsilon_high_privacy"], row["epsilon_low_privacy"]) for row in rows})
    for number, (high, low) in enumerate(settings, start=1):
        chosen = [r for r in rows if (r["epsilon_high_privacy"], r["epsilon_low_privacy"]) == (high, low)]
        series = {
            name: [(r["share"], r[name], r[f"{name}, stderr"]) for r in chosen]
            for name in ("PE", "mean weights", "rank weights")
        }
        path = FIGURES / f"mixed_quantile_{number}.svg"
        title = f"RMSE of the median, ε = {high:g} and {low:g}"
        line_plot(path, series, title, "share of people with the smaller ε", "RMSE")
        print(path.name)


if __name__ == "__main__":
    means()
    medians()
