"""NIST's K-Marginal score of synthetic records, by SDNist itself: prints one number.

Runs in an environment that holds ``sdnist``; called by benchmarks/utility/nist_score.py. Both files are CSV
files of codes with the same columns.
"""

import sys

import pandas as pd
import sdnist.report.score.utility  # noqa: F401  the metric cannot be imported before it
from sdnist.metrics.kmarginal import KMarginal


def main() -> None:
    target, synthetic = (pd.read_csv(path) for path in sys.argv[1:3])
    print(float(KMarginal(target, synthetic).compute_score()))


if __name__ == "__main__":
    main()
