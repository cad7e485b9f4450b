"""What APERTURE's arbiter can tell apart: the constant of its theorem, as a share of n.

    python benchmarks/utility/arbiter_bound.py

With probability 0.95 what the arbiter chooses errs by at most so much more, on average over the marginals
that it judges by, than all public relations (the first number) and than any other candidate (the second).
Nothing is run.
"""

import math
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from sidelight.mechanisms.aperture.aperture import Aperture
from sidelight.mechanisms.aperture.arbiter import odds_of_cuts, sets_to_cut
from sidelight.privacy.budget import Budget
from sidelight.select.judgement import excess

EPSILONS = (0.03, 0.1, 0.31, 1.0, 3.16, 10.0)
RECORDS = (10**3, 10**4, 10**5, 10**6)
ATTRIBUTES = 15
FAILURE = 0.05
OTHERS = 3
"""Models without what noisy answers contradict: as many as there are such attributes, and no public data."""
REPLACED = 2.0
"""Δ₁ of a marginal where a record is replaced by another."""


def main() -> None:
    share = Aperture().contest_share
    print("| n | " + " | ".join(f"ε = {epsilon:g}" for epsilon in EPSILONS) + " |")
    print("|---" * (1 + len(EPSILONS)) + "|")
    for n in RECORDS:
        shown = []
        for epsilon in EPSILONS:
            rho = float(Budget(epsilon=epsilon, delta=1e-9).rho()) * share
            more = excess(
                odds_of_cuts(sets_to_cut(ATTRIBUTES), OTHERS),
                epsilon=math.sqrt(8 * rho),
                sensitivity=REPLACED,
                failure=FAILURE,
            )
            shown.append(f"{more[0] / n:.2g}, {max(more) / n:.2g}")
        print(f"| {n:,} | " + " | ".join(shown) + " |")


if __name__ == "__main__":
    main()
