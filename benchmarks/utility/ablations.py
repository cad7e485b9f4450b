"""APERTURE with one part taken away at a time.

    python benchmarks/utility/ablations.py                    every part, five cells, two seeds
    python benchmarks/utility/ablations.py --cells 2 --seeds 1
    python benchmarks/utility/ablations.py --print            only the table, from the results

A cell that is in the results already is never repeated. Parts that are settings are set; the others are
replaced here, for the time of one run, by what the mechanism would be without them.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from jam_grid import DELTA, Answers
from pairs import load

from experiment import RESULTS, curator_of, mean_and_error
from resumable import read, run_cells
from sidelight.evaluation.workload_errors import workload_error
from sidelight.mechanisms.aperture.aperture import Aperture
from sidelight.privacy.budget import Budget
from sidelight.public.prior import Prior
from sidelight.queries.workload import Workload

CELLS = (
    ("titanic", 10.0), ("fire", 3.16), ("adult100", 0.1), ("adult075", 0.03), ("employment-2018-2015", 1.0),
    ("adult025", 10.0), ("income-ga-ca", 0.1),
)  # fmt: skip
LIMIT = 5.0
PATH = RESULTS / "ablations.csv"

Replaced = dict[str, Any]
"""Where a part lives, and what takes its place."""

PUBLIC: dict[str, Replaced] = {
    "no public records beside the trees": {
        "sidelight.public.source.PublicRecords.whole": lambda *_, **__: None,
    },
    "no other trees": {"sidelight.public.prior._OTHERS": 0},
}
"""Parts of the public fit."""
PRIVATE: dict[str, Replaced] = {
    "every answer taken as it is": {"sidelight.uncertainty.dispersion.PooledSpread.median": lambda *_: 1e12},
    "single attributes held against q alone": {
        "sidelight.mechanisms.aperture.evidence._TELLING": float("inf"),
    },
    "public model keeps its room": {
        "sidelight.mechanisms.aperture.aperture.narrowed": lambda prior, **_: prior,
    },
    "candidates that noise swamps": {
        "sidelight.mechanisms.aperture.worth._MOST_NOISE": float("inf"),
    },
}
"""Parts of the private phase."""
SETTINGS: dict[str, dict[str, Any]] = {
    "all of it": {},
    "no public data": {},
    "no arbiter at the start": {"max_contests": 0},
    "no arbiter at the end": {"mixture_share": 0.0},
    "no particles, all in the tree": {"particle_share": 0.0, "max_rounds": 24},
    "no attribute asked again": {"max_asked_again": 0},
}
VARIANTS = (*SETTINGS, *PUBLIC, *PRIVATE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--cells", type=int, default=len(CELLS), help="how many of the cells")
    parser.add_argument("--print", action="store_true", dest="only_print")
    asked = parser.parse_args()
    if not asked.only_print:
        run_cells(PATH, cells(asked.seeds, asked.cells), measure)
    table()


def cells(seeds: int, number: int) -> Iterator[dict[str, Any]]:
    for seed in range(seeds):
        for data, epsilon in CELLS[:number]:
            for variant in VARIANTS:
                yield {"variant": variant, "data": data, "epsilon": epsilon, "seed": seed}


def measure(variant: str, data: str, epsilon: float, seed: int) -> dict[str, float]:
    """The workload error of one release."""
    private, _ = load(data)
    workload = Workload.marginals(private.domain, degree=3)
    curator = curator_of(private, Budget(epsilon=epsilon, delta=DELTA).rho(), seed=seed)
    fitted = variant if variant in PUBLIC else "all of it"
    prior = None if variant == "no public data" else _prior(fitted, data)
    with _without(PRIVATE.get(variant, {})):
        release = _recipe(variant).run(curator, workload, public=prior)
    answers = Answers(release.model, workload)
    return {"error": workload_error(private, answers, workload, total=private.records)}


def _recipe(variant: str) -> Aperture:
    return Aperture(max_model_mb=LIMIT, oversized="skip", **SETTINGS.get(variant, {}))


@cache
def _prior(variant: str, data: str) -> Prior:
    private, public = load(data)
    closure = Workload.marginals(private.domain, degree=3).closure(private.domain)
    with _without(PUBLIC.get(variant, {})):
        return _recipe(variant).prior(public, private.domain, closure)


@contextmanager
def _without(replaced: Replaced) -> Iterator[None]:
    with ExitStack() as stack:
        for place, part in replaced.items():
            stack.enter_context(patch(place, part))
        yield


def table() -> None:
    """Errors as means over seeds, with the standard error."""
    lines = read(PATH)
    named: Callable[[str, float], str] = lambda data, epsilon: f"{data} @ {epsilon:g}"  # noqa: E731
    found = {(line["data"], float(line["epsilon"])) for line in lines}
    shown_cells = [cell for cell in CELLS if cell in found]
    print("| without | " + " | ".join(named(*cell) for cell in shown_cells) + " |")
    print("|---" * (1 + len(shown_cells)) + "|")
    for variant in VARIANTS:
        shown = []
        for data, epsilon in shown_cells:
            key = {"variant": variant, "data": data, "epsilon": str(epsilon)}
            errors = [float(x["error"]) for x in lines if all(x[k] == v for k, v in key.items())]
            mean, spread = mean_and_error(errors) if errors else (float("nan"), 0.0)
            one = f"{mean:.4f}" if errors else ""
            shown.append(f"{mean:.4f} ± {spread:.4f} ({len(errors)})" if len(errors) > 1 else one)
        print(f"| {variant} | " + " | ".join(shown) + " |")


if __name__ == "__main__":
    main()
