"""One PMW-Pub round on real data, against recounting every answer with ``bincount``.

Private: Massachusetts 2018. Public: Massachusetts 2015. Workload: all 680 three-way marginals. Four
recounts of the public records' answers are timed in the same run: with ``ravel_multi_index`` as it is
usually written, from the records line by line, from one contiguous array an attribute, and from cell
numbers that are kept (227 MB of them).
"""

import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from experiment import RESULTS, machine
from sidelight.curator.curator import Curator
from sidelight.mechanisms.pmw_pub import PMWPub
from sidelight.models.support import Support
from sidelight.models.support_weights import SupportWeights
from sidelight.privacy.budget import Budget
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit
from sidelight.queries.numbers import by_attributes, part
from sidelight.queries.workload import Workload
from sidelight.select.score import CellError
from tables import employment

ROUNDS = 40


def main() -> None:
    private, public = employment(2018), employment(2015)
    domain, n = private.domain, float(private.records)
    workload = Workload.of("3-way", domain)
    budget = Budget(epsilon=1.0, delta=1 / n**2)
    mechanism = PMWPub(rounds=100)
    unit = Unit("replace")
    ledger = MemoryLedger(Promise(budget, unit, "speed"))
    curator = Curator(private, allotment=mechanism.allotment(budget), unit=unit, ledger=ledger)
    select_cost, measure_cost = (curator.remaining / mechanism.rounds).split(mechanism.select_share)

    support = Support.of_table(public, total=n)
    built, fit = timed(lambda: SupportWeights(support, workload.attribute_sets))
    candidates = by_attributes(workload)
    order = np.random.default_rng(0)
    known: list = []
    times: dict[str, list[float]] = {"select": [], "measure": [], "update": [], "applied": [], "round": []}
    for index in range(ROUNDS + 1):
        select, chosen = timed(lambda: curator.select_cell(candidates, CellError(fit), select_cost))
        asked = fit.asked(part(*chosen, domain))
        measure, noisy = timed(lambda asked=asked: curator.measure(asked.query, measure_cost))
        known.append((asked, float(np.clip(noisy.answer[0], 0, n))))
        update, applied = timed(lambda: apply(mechanism, fit, known, order, n))
        if index == 0:  # the first selection also counts the private table, which later rounds reuse
            continue
        for name, seconds in (("select", select), ("measure", measure), ("update", update)):
            times[name].append(seconds)
        times["round"].append(select + measure + update)
        times["applied"].append(applied)

    recounts, answers = recount_all(support, fit.weights, workload)
    worst = max(
        np.abs(fit.count(attrs).reshape(-1) - answers[attrs]).max() / n for attrs in workload.attribute_sets
    )
    whole, _ = timed(lambda: fit.recount(fit.weights))
    median = {name: statistics.median(values) for name, values in times.items()}
    result = {
        "machine": machine(),
        "data": "acs_employment_ma_2015_2018: private 2018, public 2015, 680 three-way marginals",
        "distinct_public_records": len(support.records),
        "answers": int(fit.answers.size),
        "cache_mb": fit.cache_bytes / 2**20,
        "build_seconds": built,
        "round_ms": {name: 1000 * median[name] for name in ("select", "measure", "update", "round")},
        "measurements_applied_a_round": median["applied"],
        "whole_recount_through_projections_ms": 1000 * whole,
        "bincount_recount_ms": {name: 1000 * seconds for name, seconds in recounts.items()},
        "times_faster_round": {name: seconds / median["round"] for name, seconds in recounts.items()},
        "times_faster_update": {name: seconds / median["update"] for name, seconds in recounts.items()},
        "largest_difference_of_n": worst,
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "pmw_pub.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=1))


def apply(mechanism: PMWPub, fit: SupportWeights, known: list, order: np.random.Generator, n: float) -> int:
    kept = mechanism._to_apply(fit, known, order)
    for asked, answer in kept:
        fit.update(asked, mechanism.step * (answer - fit.answer(asked)) / n)
    fit.settle()
    return len(kept)


def recount_all(support: Support, weights: np.ndarray, workload: Workload) -> tuple[dict[str, float], dict]:
    domain, records = support.domain, np.ascontiguousarray(support.records, dtype=np.int64)
    columns = np.ascontiguousarray(records.T)
    kept = {attrs: flat(columns, domain, attrs) for attrs in workload.attribute_sets}
    sizes = {attrs: domain.size(attrs) for attrs in workload.attribute_sets}

    def count(cells_of: Callable) -> dict:
        return {
            a: np.bincount(cells_of(a), weights=weights, minlength=sizes[a]) for a in workload.attribute_sets
        }

    ways = {
        "ravel_multi_index": lambda: count(lambda attrs: raveled(records, domain, attrs)),
        "from records": lambda: count(lambda attrs: flat(records.T, domain, attrs)),
        "from columns": lambda: count(lambda attrs: flat(columns, domain, attrs)),
        "from kept cell numbers": lambda: count(kept.__getitem__),
    }
    times = {}
    for name, way in ways.items():
        times[name] = statistics.median(timed(way)[0] for _ in range(5))
    return times, count(kept.__getitem__)


def raveled(records: np.ndarray, domain, attrs) -> np.ndarray:
    return np.ravel_multi_index(tuple(records[:, domain.index(attrs)].T), domain.project(attrs).shape)


def flat(columns: np.ndarray, domain, attrs) -> np.ndarray:
    first, *others = domain.index(attrs)
    cells = columns[first]
    for index in others:
        cells = cells * domain.shape[index] + columns[index]
    return cells


def timed(work: Callable) -> tuple[float, object]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


if __name__ == "__main__":
    main()
