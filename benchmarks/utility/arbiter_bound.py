"""What APERTURE's arbiter can tell apart: the constant of its theorem, as a share of n.

    python benchmarks/utility/arbiter_bound.py

With probability 0.95 what the arbiter chooses errs by at most so much more, on average over the marginals
that it judges by, than all public relations (the first number) and than any other candidate (the second).
Handicaps are not in it. A dash says that it is not asked, since it could not tell. Nothing is run.
"""

import math
import sys
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from sidelight.mechanisms.aperture.aperture import Aperture
from sidelight.mechanisms.aperture.arbiter import FOR_RELATIONS, Arbiter, odds_of_cuts, sets_to_cut
from sidelight.privacy.budget import Budget
from sidelight.privacy.unit import Unit
from sidelight.select.judgement import excess

EPSILONS = (0.03, 0.1, 0.31, 1.0, 3.16, 10.0)
RECORDS = (10**3, 10**4, 10**5, 10**6)
ATTRIBUTES = 15
FAILURE = 0.05
OTHERS = 3
"""Models without what noisy answers contradict: as many as there are such attributes, and no public data."""
UNIT = Unit("replace")


def main() -> None:
    print("| n | " + " | ".join(f"ε = {epsilon:g}" for epsilon in EPSILONS) + " |")
    print("|---" * (1 + len(EPSILONS)) + "|")
    for n in RECORDS:
        print(f"| {n:,} | " + " | ".join(_shown(n, epsilon) for epsilon in EPSILONS) + " |")


def _shown(n: int, epsilon: float) -> str:
    rho = Budget(epsilon=epsilon, delta=1e-9).rho()
    curator = SimpleNamespace(allotment=rho, remaining=rho, unit=UNIT)
    cost = Arbiter(curator, {}, float(n)).price(Aperture().contest_share, finely=FOR_RELATIONS)
    if not cost:
        return "–"
    more = excess(
        odds_of_cuts(sets_to_cut(ATTRIBUTES), OTHERS), epsilon=math.sqrt(8 * float(cost)),
        sensitivity=float(UNIT.l1), failure=FAILURE,
    )  # fmt: skip
    return f"{more[0] / n:.2g}, {max(more) / n:.2g}"


if __name__ == "__main__":
    main()
