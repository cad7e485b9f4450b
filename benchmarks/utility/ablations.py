"""APERTURE with one part taken away at a time.

    python benchmarks/utility/ablations.py                    every part, 16 cells, seed 0
    python benchmarks/utility/ablations.py --seeds 3 --variants "all of it" "no other trees"
    python benchmarks/utility/ablations.py --print            only the table, from the results

The cells have good, biased, small, hostile and no public data, and ε from 0.03 to 10. A cell that is in the
results already is never repeated. Parts that are settings are set; the others are replaced here, for the time
of one run, by what the mechanism would be without them. The table says how much each is worth: the geometric
mean over cells of the error without it over the error with it, both as means over the same seeds.
"""

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from hostile_tables import hostile
from jam_grid import DELTA, Answers
from pairs import load

from experiment import RESULTS, curator_of
from resumable import read, run_cells
from sidelight.evaluation.workload_errors import workload_error
from sidelight.measurement import Measurement
from sidelight.mechanisms.aperture.aperture import Aperture
from sidelight.mechanisms.aperture.evidence import Beliefs
from sidelight.mechanisms.aperture.refitting import Fitted
from sidelight.privacy.budget import Budget
from sidelight.public.prior import Prior
from sidelight.queries.workload import Workload

GOOD, NONE = "good", "none"
CELLS = (
    ("titanic", GOOD, 1.0), ("titanic", GOOD, 10.0), ("adult025", GOOD, 0.1), ("adult025", GOOD, 10.0),
    ("adult100", GOOD, 0.1), ("adult100", GOOD, 1.0), ("fire", GOOD, 3.16), ("fire", GOOD, 0.03),
    ("employment-2018-2015", GOOD, 1.0), ("income-ga-ca", GOOD, 0.1),
    ("income-pa-oh", "labels permuted in a third", 0.1), ("income-pa-oh", "bait", 1.0),
    ("adult025", "locked", 1.0), ("titanic", NONE, 10.0), ("income-pa-oh", NONE, 0.1),
    ("adult025", NONE, 1.0),
)  # fmt: skip
"""Private data, the public data beside it (a lie of hostile_tables.py, or the good ones, or none), and ε."""
LIMIT = 5.0
PATH = RESULTS / "ablations.csv"

Replaced = dict[str, Any]
"""Where a part lives, and what takes its place."""


def taken_in_at_once(prior: Prior, singles: Sequence[Measurement], total: float) -> Fitted:
    """q after the answers to single attributes, all of them held against q."""
    beliefs = Beliefs(prior, total)
    beliefs.add_singles(singles, beliefs.start)
    return beliefs.estimate(beliefs.start), beliefs


PUBLIC: dict[str, Replaced] = {
    "no public records beside the trees": {
        "sidelight.public.source.PublicRecords.whole": lambda *_, **__: None,
    },
    "no other trees": {"sidelight.public.prior._OTHERS": 0},
}
"""Parts of the public fit."""
PRIVATE: dict[str, Replaced] = {
    "every answer taken as it is": {"sidelight.uncertainty.dispersion.PooledSpread.median": lambda *_: 1e12},
    "candidates that noise swamps": {
        "sidelight.mechanisms.aperture.worth._MOST_NOISE": float("inf"),
    },
    "public values that answers contradict stay": {
        "sidelight.mechanisms.aperture.aperture.without_false_values": lambda prior, *_: prior,
        "sidelight.mechanisms.aperture.refitting.without_false_values": lambda prior, *_: prior,
    },
    "single attributes not moved back": {
        "sidelight.mechanisms.aperture.aperture.kept": lambda model, *_: model,
    },
    "attributes in doubt all kept, or all left out": {
        "sidelight.mechanisms.aperture.refitting._numbers": lambda _: [],
    },
    "answers to single attributes all at once": {
        "sidelight.mechanisms.aperture.aperture.taken_in": taken_in_at_once,
        "sidelight.mechanisms.aperture.refitting.taken_in": taken_in_at_once,
    },
    "of what stands beside the tree all or nothing": {
        "sidelight.mechanisms.aperture.arbiter.product": lambda _, repeat: product((0.0, 1.0), repeat=repeat),
    },
    "untold attributes from their own answers alone": {
        "sidelight.mechanisms.aperture.evidence.Beliefs._said_beside": lambda *_: iter(()),
    },
    "beyond the tree however little is heard": {"sidelight.mechanisms.aperture.schedule._CLEARLY": 0},
}
"""Parts of the private phase."""
NUMBERS: dict[str, Replaced] = {
    "no attribute goes its own way": {"sidelight.mechanisms.aperture.evidence._APART": 0.0},
    "no handicaps": {"sidelight.mechanisms.aperture.arbiter._MATTERS": 0.0},
    "even odds": {"sidelight.mechanisms.aperture.arbiter._FAITH": 0.0},
    "the arbiter is asked wherever it is paid": {"sidelight.mechanisms.aperture.arbiter._TELLS": 1e9},
    "one batch beyond the tree": {"sidelight.mechanisms.aperture.beyond_tree._BATCHES": 1},
}
"""Numbers at the value at which they would not be needed."""
SETTINGS: dict[str, dict[str, Any]] = {
    "all of it": {},
    "no arbiter at the start": {"contest_share": 0.0},
    "no arbiter at the end": {"mixture_share": 0.0},
    "no particles, all in the tree": {"particle_share": 0.0, "max_rounds": 24},
    "no attribute asked again": {"max_asked_again": 0},
}
VARIANTS = (*SETTINGS, *PUBLIC, *PRIVATE, *NUMBERS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--variants", nargs="+", default=list(VARIANTS), choices=VARIANTS)
    parser.add_argument("--print", action="store_true", dest="only_print")
    asked = parser.parse_args()
    if not asked.only_print:
        run_cells(PATH, cells(asked.seeds, asked.variants), measure)
    table()


def cells(seeds: int, variants: list[str]) -> Iterator[dict[str, Any]]:
    for seed in range(seeds):
        for variant in variants:
            for data, public, epsilon in CELLS:
                yield {"variant": variant, "data": data, "public": public, "epsilon": epsilon, "seed": seed}


def measure(variant: str, data: str, public: str, epsilon: float, seed: int) -> dict[str, float]:
    """The workload error of one release."""
    private, _ = load(data)
    workload = Workload.marginals(private.domain, degree=3)
    curator = curator_of(private, Budget(epsilon=epsilon, delta=DELTA).rho(), seed=seed)
    prior = None
    if public != NONE:
        fitted = variant if variant in PUBLIC else "all of it"
        prior = _prior(fitted, data, public, 0 if public == GOOD else seed)
    with _without((PRIVATE | NUMBERS).get(variant, {})):
        release = _recipe(variant).run(curator, workload, public=prior)
    answers = Answers(release.model, workload)
    return {"error": workload_error(private, answers, workload, total=private.records)}


def _recipe(variant: str) -> Aperture:
    return Aperture(max_model_mb=LIMIT, oversized="skip", **SETTINGS.get(variant, {}))


@cache
def _prior(variant: str, data: str, public: str, seed: int) -> Prior:
    private, records = load(data)
    closure = Workload.marginals(private.domain, degree=3).closure(private.domain)
    given = records
    if public != GOOD:
        other, _ = load("fire" if data == "titanic" else "titanic")
        given = hostile(public, private, records, other=other, seed=seed)
    with _without(PUBLIC.get(variant, {})):
        return _recipe(variant).prior(given, private.domain, closure)


@contextmanager
def _without(replaced: Replaced) -> Iterator[None]:
    with ExitStack() as stack:
        for place, part in replaced.items():
            stack.enter_context(patch(place, part))
        yield


def table() -> None:
    """How much worse the mechanism is without each part: over all cells, and by kind of public data."""
    errors: dict[str, dict[tuple[str, str, float, int], float]] = {}
    for line in read(PATH):
        cell = line["data"], line["public"], float(line["epsilon"]), int(line["seed"])
        errors.setdefault(line["variant"], {})[cell] = float(line["error"])
    whole = errors["all of it"]
    print("| without | all | good public data | hostile | none | largest | cells |")
    print("|---|---|---|---|---|---|---|")
    for variant in VARIANTS[1:]:
        if ratios := {c: e / whole[c] for c, e in errors.get(variant, {}).items() if c in whole}:
            good = [r for c, r in ratios.items() if c[1] == GOOD]
            none = [r for c, r in ratios.items() if c[1] == NONE]
            hostile_ = [r for c, r in ratios.items() if c[1] not in (GOOD, NONE)]
            shown = [_change(part) for part in (list(ratios.values()), good, hostile_, none)]
            data, public, epsilon, _ = max(ratios, key=lambda c: ratios[c])
            most = f"{max(ratios.values()):.3f} ({data}, {public}, ε = {epsilon:g})"
            print(f"| {variant} | " + " | ".join([*shown, most, str(len(ratios))]) + " |")


def _change(ratios: list[float]) -> str:
    """The geometric mean as a change in per cent."""
    return f"{100 * math.expm1(sum(map(math.log, ratios)) / len(ratios)):+.1f}%" if ratios else ""


if __name__ == "__main__":
    main()
