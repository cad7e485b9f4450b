"""PMW-Pub on ADULT with public samples that are biased by sex.

Private: a random 90% of 48,813 records. Public: 1,500 of the others, drawn without replacement with a
target share of women (r ≈ 0.33 in the data, plus a bias). 256 random three-way marginals, T = 50.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from experiment import FIGURES, RESULTS
from plot import line_plot
from resumable import run_cells, summary
from sidelight.data.table import Table
from sidelight.evaluation.best_mixture import exact, frequencies_of
from sidelight.mechanisms.pmw_pub import PMWPub
from sidelight.models.support import Support
from sidelight.queries.workload import Workload
from support_runs import SEEDS, errors, run
from tables import adult

BIASES = (-0.2, -0.1, 0.0, 0.1, 0.3, 0.65)
EPSILONS = (0.1, 0.25, 1.0)
PUBLIC_RECORDS = 1500


def main() -> None:
    domain, records = adult()
    workload = Workload.random_marginals(domain, degree=3, number=256, seed=0)
    is_private = np.random.default_rng(0).permutation(len(records)) < round(0.9 * len(records))
    private, others = Table.of_codes(domain, records[is_private]), records[~is_private]
    is_woman = others[:, domain.index(["sex"])[0]] == 0
    women_share = is_woman.mean()

    def public(bias: float, seed: int) -> Table:
        rng = np.random.default_rng(100 + seed)
        women = round(PUBLIC_RECORDS * min(0.99, women_share + bias))
        drawn = [
            rng.choice(np.flatnonzero(is_woman), women, replace=False),
            rng.choice(np.flatnonzero(~is_woman), PUBLIC_RECORDS - women, replace=False),
        ]
        return Table.of_codes(domain, others[np.concatenate(drawn)])

    def work(bias: float, epsilon: float, seed: int) -> dict[str, float]:
        table = public(bias, seed)
        if epsilon == 0:
            support = Support.of_table(table, total=private.records)
            marginals, frequencies = frequencies_of(private, workload)
            mixture = exact(support, marginals, frequencies, tolerance=1e-4)
            return errors(support, private, workload) | {"mixture_low": mixture.low}
        found = run(PMWPub(rounds=50, seed=seed), private, table, workload, epsilon=epsilon, seed=seed)
        return found | {"mixture_low": float("nan")}

    cells = [
        {"bias": bias, "epsilon": epsilon, "seed": seed}
        for epsilon in (0.0, *EPSILONS)
        for bias in BIASES
        for seed in SEEDS
    ]
    lines = run_cells(RESULTS / "pmw_pub_adult.csv", cells, work)
    series = {
        f"ε = {epsilon:g}": summary(lines, "bias", "max_error", epsilon=epsilon) for epsilon in EPSILONS
    }
    series["public alone"] = summary(lines, "bias", "max_error", epsilon=0.0)
    mixtures = summary(lines, "bias", "mixture_low", epsilon=0.0)
    line_plot(
        FIGURES / "pmw_pub_adult.svg",
        series,
        "PMW-Pub, ADULT, 1,500 public records of biased sex",
        "public share of women less the private one",
        "largest error",
        band=("best mixture", [(bias, value) for bias, value, _ in mixtures]),
    )


if __name__ == "__main__":
    main()
