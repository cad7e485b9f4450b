"""How often the 95% intervals of mixed means and quantiles cover: ten settings, 4,000 trials each.

Data are fresh in every trial, so an interval must hold the mean or quantile of the *population*. The
noise is seeded, through the same samplers as a release.

    python benchmarks/utility/mixed_coverage.py [--trials 4000]
"""

import argparse
import json
import math
import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sidelight.statistics.answer import MixedAnswer
from sidelight.statistics.group import Group
from sidelight.statistics.mixed_mean import mixed_mean
from sidelight.statistics.mixed_quantile import mixed_quantile
from sidelight.testing import SeededNoise

RESULTS = Path(__file__).resolve().parents[1] / "results" / "mixed_coverage.json"
Draw = Callable[[np.random.Generator, int], Any]


def normal(rng: np.random.Generator, n: int) -> Any:
    return rng.normal(50, 5, n)


def skewed(rng: np.random.Generator, n: int) -> Any:
    return 40 + rng.gamma(4.0, 2.5, n)


@dataclass(frozen=True)
class Setting:
    """People, groups, and what is asked of them."""

    name: str
    truth: float
    draw: Draw
    private: tuple[tuple[int, float], ...]
    """Size and ε of each private group."""
    public: int
    answer: Callable[[list[Group], SeededNoise], MixedAnswer]
    bias: float = 0.0


def mean(**options: Any) -> Callable[[list[Group], SeededNoise], MixedAnswer]:
    return lambda groups, noise: mixed_mean(groups, bounds=(0, 100), noise=noise, alone=True, **options)


def quantile(q: float, **options: Any) -> Callable[[list[Group], SeededNoise], MixedAnswer]:
    return lambda groups, noise: mixed_quantile(
        groups, q, bounds=(0, 100), noise=noise, alone=True, **options
    )


SKEWED_QUARTILE = 40 + 2.5 * 2.5353202  # the lower quartile of Gamma(4) is 2.5353202

SETTINGS = (
    Setting("mean, one noisy group dominates, σ² given", 50, normal, ((500, 0.05), (500, 0.01)), 0,
            mean(variance=25.0)),
    Setting("mean, sampling dominates, σ² given", 50, normal, ((2000, 5.0), (500, 1.0)), 100,
            mean(variance=25.0)),
    Setting("mean, six groups, σ² given", 50, normal,
            ((1000, 1.0), (100, 0.05), (500, 0.1), (1000, 0.01), (2000, 0.25), (2000, 0.15)), 0,
            mean(variance=25.0)),
    Setting("mean, σ² from 30 public people", 50, normal, ((1000, 0.5),), 30, mean(variance="public")),
    Setting("mean, skewed, σ² measured privately", 50, skewed, ((2000, 0.5), (1000, 1.0)), 0,
            mean(variance="private")),
    Setting("mean, zCDP, merged groups", 50, normal, ((1000, 1.0), (1000, 0.9), (500, 0.5)), 50,
            mean(variance=25.0, accounting="zcdp", delta=1e-6, merge=True)),
    Setting("mean, add-or-remove, sizes measured", 50, normal, ((2000, 0.5), (1000, 0.2)), 50,
            mean(variance=25.0, unit="add-or-remove")),
    Setting("mean, public group off by 3, bias measured", 50, normal, ((2000, 0.5), (1000, 0.2)), 500,
            mean(variance=25.0, bias="measure"), bias=3.0),
    Setting("median, density from 300 public people", 50, normal, ((2000, 0.2), (1000, 0.1)), 300,
            quantile(0.5)),
    Setting("lower quartile, skewed, density measured privately", SKEWED_QUARTILE, skewed,
            ((4000, 0.5), (2000, 1.0)), 0, quantile(0.25)),
)  # fmt: skip


def cover(setting: Setting, trials: int, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    noise = SeededNoise(seed)
    covered, errors, claimed, lengths = 0, [], [], []
    for _ in range(trials):
        groups = [Group(setting.draw(rng, n), epsilon=epsilon) for n, epsilon in setting.private]
        if setting.public:
            groups.append(Group(setting.draw(rng, setting.public) + setting.bias, public=True))
        answer = setting.answer(groups, noise)
        low, high = answer.interval
        covered += low <= setting.truth <= high
        errors.append(answer.estimate - setting.truth)
        claimed.append(answer.standard_error)
        lengths.append(high - low)
    share = covered / trials
    return {
        "setting": setting.name,
        "trials": trials,
        "coverage": share,
        "coverage_stderr": math.sqrt(share * (1 - share) / trials),
        "rmse": float(np.sqrt(np.mean(np.square(errors)))),
        "mean_error": float(np.mean(errors)),
        "claimed_standard_error": float(np.mean(claimed)),
        "mean_length": float(np.mean(lengths)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=4000)
    parser.add_argument("--only", type=int, default=None)
    trials, only = (arguments := parser.parse_args()).trials, arguments.only
    rows = []
    for seed, setting in enumerate(SETTINGS, start=1):
        if only is not None and seed != only:
            continue
        start = time.perf_counter()
        row = cover(setting, trials, seed)
        rows.append(row)
        print(
            f"{row['coverage']:.4f}  rmse {row['rmse']:.4f}  claimed {row['claimed_standard_error']:.4f}  "
            f"{time.perf_counter() - start:5.1f} s  {row['setting']}"
        )
    if only is None:
        machine = {"cpus": os.cpu_count(), "python": platform.python_version(), "numpy": np.__version__}
        RESULTS.write_text(
            json.dumps({"machine": machine, "rows": rows}, indent=1, ensure_ascii=False) + "\n"
        )


if __name__ == "__main__":
    main()
