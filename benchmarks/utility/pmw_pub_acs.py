"""PMW-Pub on the American Community Survey: largest error over three-way marginals.

Private Pennsylvania 2018 with other states as public data, and private Massachusetts 2018 with its
own 2015; δ = 1/n², T = 100 throughout, fixed beforehand. Baselines: the public table as it is (ε = 0),
MWEM+PUB, the uniform prior on the support, a random support, and parts of the public table.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from experiment import FIGURES, RESULTS
from plot import line_plot
from resumable import read, run_cells, summary
from sidelight.mechanisms.mwem_pub import MWEMPub
from sidelight.mechanisms.pmw_pub import PMWPub
from sidelight.models.support import Support
from sidelight.queries.workload import Workload
from support_runs import EPSILONS, SEEDS, errors, run
from tables import employment, income

MIXTURES = RESULTS / "best_mixture.csv"
STATES = ("OH", "NY", "CA", "SC")
METHODS = {
    "last iterate": PMWPub(output="last"),
    "mwem-pub": MWEMPub(),
    "uniform prior": PMWPub(prior="uniform"),
    "random support": PMWPub(support="random", prior="uniform", support_records=20_000),
}


def states() -> None:
    """Pennsylvania from other states."""
    private = income("PA")
    workload = Workload.of("3-way", private.domain)
    tables = {state: income(state) for state in STATES}

    def work(public: str, method: str, epsilon: float, seed: int) -> dict[str, float]:
        if method == "public alone":
            return errors(Support.of_table(tables[public], total=private.records), private, workload)
        made = METHODS.get(method, PMWPub())
        return run(made, private, tables[public], workload, epsilon=epsilon, seed=seed)

    cells = [{"public": state, "method": "public alone", "epsilon": 0.0, "seed": 0} for state in STATES]
    cells += [
        {"public": state, "method": "pmw-pub", "epsilon": epsilon, "seed": seed}
        for state in STATES
        for epsilon in EPSILONS
        for seed in SEEDS
    ]
    cells += [
        {"public": "OH", "method": method, "epsilon": epsilon, "seed": seed}
        for method in METHODS
        for epsilon in (0.1, 0.25, 1.0)
        for seed in SEEDS
    ]
    lines = run_cells(RESULTS / "pmw_pub_states.csv", cells, work)
    series = {
        state: summary(lines, "epsilon", "max_error", public=state, method="pmw-pub") for state in STATES
    }
    line_plot(
        FIGURES / "pmw_pub_states.svg", series, "PMW-Pub, private PA 2018, 165 three-way marginals",
        "ε (δ = 1/n²)", "largest error", log_x=True, band=_band("PA from OH", "best mixture of OH"),
    )  # fmt: skip
    ohio = {
        method: summary(lines, "epsilon", "max_error", public="OH", method=method)
        for method in ("pmw-pub", *METHODS)
    }
    alone = summary(lines, "epsilon", "max_error", public="OH", method="public alone")[0][1]
    ohio["OH as it is (ε = 0)"] = [(epsilon, alone, 0.0) for epsilon in EPSILONS]
    line_plot(
        FIGURES / "pmw_pub_ohio.svg", ohio, "Private PA 2018, public OH 2018",
        "ε (δ = 1/n²)", "largest error", log_x=True, log_y=True,
        band=_band("PA from OH", "best mixture of OH"),
    )  # fmt: skip


def years() -> None:
    """Massachusetts 2018 from its own 2015, and from parts of it."""
    private, public = employment(2018), employment(2015)
    workload = Workload.of("3-way", private.domain)

    def work(share: float, epsilon: float, seed: int) -> dict[str, float]:
        if epsilon == 0:
            start = Support.of_table(public, total=private.records, share=share, seed=seed)
            return errors(start, private, workload)
        mechanism = PMWPub(public_share=share, seed=seed)
        return run(mechanism, private, public, workload, epsilon=epsilon, seed=seed)

    shares = (1.0, 0.1, 0.01, 0.001)
    cells = [
        {"share": share, "epsilon": epsilon, "seed": seed}
        for epsilon in (0.0, *EPSILONS)
        for share in shares
        for seed in SEEDS
    ]
    lines = run_cells(RESULTS / "pmw_pub_years.csv", cells, work)
    series = {
        f"{100 * share:g}% of 2015": [
            p for p in summary(lines, "epsilon", "max_error", share=share) if p[0] > 0
        ]
        for share in shares
    }
    alone = summary(lines, "epsilon", "max_error", share=1.0)[0][1]
    series["2015 as it is (ε = 0)"] = [(epsilon, alone, 0.0) for epsilon in EPSILONS]
    line_plot(
        FIGURES / "pmw_pub_years.svg", series, "PMW-Pub, private MA 2018, 680 three-way marginals",
        "ε (δ = 1/n²)", "largest error", log_x=True, log_y=True,
        band=_band("MA 2018 from 2015", "best mixture of 2015"),
    )  # fmt: skip


def _band(name: str, label: str) -> tuple[str, list[tuple[float, float]]] | None:
    found = [float(line["low"]) for line in read(MIXTURES) if line["name"] == name]
    return (label, [(epsilon, found[0]) for epsilon in EPSILONS]) if found else None


if __name__ == "__main__":
    asked = sys.argv[1:] or ["states", "years"]
    for name in asked:
        {"states": states, "years": years}[name]()
