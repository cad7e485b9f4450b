"""Figure 2 of the mixed-quantile paper: the median's RMSE against the share of people with the smaller ε.

1,001 values from 𝒩(0, 1) in [−5, 5]; a share of people has ε_H and the rest ε_L, for (ε_H, ε_L) = (0.1, 1)
and (0.01, 10); 500 trials. PE draws one median of all people; ``mean`` weights are the paper's mix, ``rank``
weights ours. Draws go through the library's own samplers, with seeded noise on artificial data.

    python benchmarks/utility/mixed_quantile.py    minutes; writes benchmarks/results/mixed_quantile.json
"""

import argparse
import json
import math
import os
import platform
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from personalised import personalised_quantile
from sidelight.statistics.group import Group
from sidelight.statistics.mixed_quantile import mixed_quantile
from sidelight.testing import SeededNoise

RESULTS = Path(__file__).resolve().parents[1] / "results" / "mixed_quantile.json"
PAIRS = ((0.1, 1.0), (0.01, 10.0))
SHARES = (0.1, 0.3, 0.5, 0.7, 0.9, 0.98)
PEOPLE = 1001
BOUNDS = (-5.0, 5.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=500)
    trials = parser.parse_args().trials
    rng, noise = np.random.default_rng(6), SeededNoise(6)
    rows = []
    start = time.perf_counter()
    for high, low in PAIRS:
        for share in SHARES:
            count = round(share * PEOPLE)
            errors: dict[str, list[float]] = {"PE": [], "mean weights": [], "rank weights": []}
            for _ in range(trials):
                values = rng.normal(0, 1, PEOPLE)
                groups = [Group(values[:count], epsilon=high), Group(values[count:], epsilon=low)]
                errors["PE"].append(personalised_quantile(groups, 0.5, bounds=BOUNDS, noise=noise).estimate)
                for weights in ("mean", "rank"):
                    answer = mixed_quantile(
                        groups, 0.5, bounds=BOUNDS, weights=weights, variance=1.0, density=0.4, noise=noise  # type: ignore[arg-type]
                    )  # fmt: skip
                    errors[f"{weights} weights"].append(answer.estimate)
            row: dict[str, float] = {"epsilon_high_privacy": high, "epsilon_low_privacy": low, "share": share}
            for name, off in errors.items():
                squares = np.square(off)
                row[name] = math.sqrt(squares.mean())
                row[f"{name}, stderr"] = float(squares.std() / math.sqrt(trials) / (2 * row[name]))
            rows.append(row)
            print(
                f"ε = {high:g}, {low:g}; share {share:.2f}:  "
                + "  ".join(f"{name} {row[name]:.4f} ± {row[f'{name}, stderr']:.4f}" for name in errors)
            )
    machine = {"cpus": os.cpu_count(), "python": platform.python_version(), "numpy": np.__version__}
    seconds = round(time.perf_counter() - start, 1)
    RESULTS.write_text(
        json.dumps({"machine": machine, "trials": trials, "seconds": seconds, "rows": rows}, indent=1) + "\n"
    )


if __name__ == "__main__":
    main()
