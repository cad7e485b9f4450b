"""Mechanisms side by side on small, large and wide tables, for ``auto_table.py``.

    python benchmarks/utility/auto_runs.py                                  all that is missing
    python benchmarks/utility/auto_runs.py --kind small --only mst aim --seeds 10
    python benchmarks/utility/auto_runs.py --data titanic --epsilon 0.3 --seeds 4
    python benchmarks/utility/auto_runs.py --again aperture                 these mechanisms anew
    python benchmarks/utility/auto_runs.py --contenders --seeds 20          more seeds where auto seems beaten

A row is a table with a workload, ε and δ; one record is replaced, and n is public. Each finished run is a
line of ``results/auto_runs.csv``, and is not made again unless ``--again`` names its mechanism. Besides the
mechanisms that are listed for a table, the one that ``auto`` takes is run, and MWEM with half and with twice
as many rounds (up to 90). A mechanism's name is followed by the settings that are not its defaults;
graphical models have 5 MB, but on small tables. The error of marginals is the mean of ‖q(D) − q(A)‖₁/n; of
ranges it is √(mean squared error)/n; of cuboids it is that of a cell, as in ``mwem_cubes.py``, over n. It is
nan where a mechanism refuses: its noise would exceed n, or the table is too large for it.

KEPT_OUT were not looked at while the rule of ``auto`` and the settings of ``ladder`` were chosen; but when
the rule came to ask how many pairs are heard, rows of nist7-tx, nist-tx and income-ga stood beside the rest.
"""

import argparse
import dataclasses
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from mwem_contingency import SMALL, large_table, small_table
from mwem_cubes import Cuboids
from mwem_cubes import adult as adult_of_categories
from mwem_ranges import RANGES, raw_table
from mwem_ranges import SETTINGS as RAW
from pairs import load, with_private

import sidelight as sl
from experiment import RESULTS, coded_table, columns, curator_of, described
from resumable import drop, read, run_cells
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.errors import SidelightError
from sidelight.evaluation.workload_errors import Errors, workload_error
from sidelight.mechanisms.base import Mechanism
from sidelight.mechanisms.by_size import Size
from sidelight.mechanisms.choice import choose
from sidelight.mechanisms.mwem import MWEM
from sidelight.mechanisms.registry import mechanism_of
from sidelight.privacy.budget import Budget
from sidelight.privacy.unit import Unit
from sidelight.queries.workload import Workload
from sidelight.testing import SeededNoise

PATH = RESULTS / "auto_runs.csv"
DELTA = 1e-9
LOW, MIDDLE, ALL = (0.3, 1.0, 3.0, 10.0), (0.1, 1.0, 10.0), (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
PURE = [f"mwem, accounting=pure, rounds={T}" for T in (4, 10, 20, 40)]
KEPT_OUT = (
    "transfusion", "titanic7", "nist10-tx", "income-ga", "nist-tx", "taxi",
    "wide-tx", "capital-loss", "ages-hours-pa", "income-ga-ca", "capital-gain", "titanic-fare",
    "salary-gross", "nist8-tx", "nist7-tx", "taxi+", "taxi-fare+", "nist10-tx+", "titanic7+",
)  # fmt: skip
CUBE = ("MSP", "HISP", "RAC1P", "NPF", "INDP_CAT", "EDU", "DVET", "AGEP5")
"""Attributes of NIST's Texas whose cuboids are asked for."""
MIDDLING = ("AGEP5", "INDP_CAT", "EDU", "MSP", "SEX", "OWN_RENT", "DREM")
"""Two of these have 19 and 20 values, all others fewer."""
MANY_VALUES = ("age", "occupation", "capital-gain", "hours-per-week", "native-country")
"""These of ADULT have 15 to 42 values."""
BESIDE = {
    "titanic-fare+": ("titanic", ("Age", "Fare")),
    "salary-gross+": ("salary", ("annual-salary", "ytd-gross")),
    "age-hours+": ("adult050", ("age", "hours-per-week")),
    "taxi-fare+": ("taxi", ("fare", "tips")),
}
"""Two attributes of a pair of tables, private and public, whose ranges are asked for."""
FEW_NUMBERS = {
    "nist10+": 500, "nist10-tx+": 500, "adult7+": 1_000, "acs16+": 1_000, "titanic7+": 300, "czech+": 200,
}  # fmt: skip
"""Small tables beside so many public records: of the nation for NIST's; JAM's public part for TITANIC; a
random part of the table for the others."""
MOST_ROUNDS = 90
"""Of MWEM, where half and twice as many as auto takes are run beside it."""
SIZES = ("max_model_mb", "oversized")
"""Settings that a name leaves out."""


@dataclass(frozen=True)
class Rows:
    """A table with a workload, at several ε."""

    kind: str
    workload: str
    """Such as ``3-way``, or ``ranges``."""
    delta: float
    epsilons: tuple[float, ...]
    mechanisms: tuple[str, ...]
    seeds: int


def _rows() -> dict[str, list[Rows]]:
    """All that is compared, by table."""
    found: dict[str, list[Rows]] = {}

    def add(kind: str, tables: tuple[str, ...], workloads: tuple[str, ...], delta: float,
            epsilons: tuple[float, ...], mechanisms: list[str], seeds: int) -> None:  # fmt: skip
        for table in tables:
            for workload in workloads:
                rows = Rows(kind, workload, delta, epsilons, tuple(mechanisms), seeds)
                found.setdefault(table, []).append(rows)

    both = ("3-way", "2-way")
    alone = ["aperture", "aim", "mst", "hdmm", "mwem", "ladder", "ladder, accounting=pure"]
    pure = [*PURE, "mwem, accounting=pure, rounds=10, histogram_share=0.5", "ladder, accounting=pure",
            "dualquery, accounting=pure"]  # fmt: skip
    binary = ("mildew", "czech", "rochdale")
    add("small", binary, both, DELTA, LOW, [*alone, "barak"], 10)
    add("small", ("transfusion", "titanic7"), ("3-way",), DELTA, LOW, alone, 10)
    add("small", ("nist10", "nist10-tx", "adult7"), ("3-way",), DELTA, ALL, alone, 5)
    add("small", ("acs16",), ("2-way",), DELTA, MIDDLE, [*alone, "barak"], 3)
    add("pure", binary, both, 0.0, LOW, [*pure, "barak, accounting=pure"], 10)
    add("pure", ("acs16",), ("2-way",), 0.0, (0.03, 0.1, 0.3, 1.0), [*pure, "barak, accounting=pure"], 5)
    add("pure", ("transfusion", "titanic7"), ("3-way",), 0.0, LOW, pure, 10)
    add("pure", ("nist10", "nist10-tx", "adult7"), ("3-way",), 0.0, ALL, pure, 5)
    large = ["aperture", "aim", "mst", "ladder"]
    single_years = ("titanic", "income-pa", "income-ga")
    add("middling", single_years, ("3-way",), DELTA, ALL[:3], large, 2)
    add("large", single_years, ("3-way",), DELTA, ALL[3:], large, 2)
    add("large", ("nist-ma", "nist-tx"), ("3-way",), DELTA, ALL, large, 2)
    add("large", ("adult", "salary", "taxi", "employment-2018"), ("3-way",), DELTA, MIDDLE, large, 1)
    add("large", ("fire",), ("3-way",), DELTA, (0.03, *MIDDLE), large, 1)
    add("large", ("fire",), ("2-way",), DELTA, MIDDLE, large, 1)
    add("wide", ("wide-ma", "wide-tx"), ("2-way",), DELTA, MIDDLE, [*large, "hdmm"], 2)
    by_range = [f"mwem, rounds={T}, candidates=queries" for T in (10, 20, 40)]
    raw = (*RAW, "ages-hours-pa", "capital-gain", "titanic-fare", "salary-gross")
    add("ranges", raw, ("ranges",), DELTA, ALL, [*by_range, "hdmm"], 5)
    pure_ranges = [f"mwem, rounds={T}, candidates=queries, accounting=pure" for T in (4, 10, 20, 40)]
    add("ranges", raw, ("ranges",), 0.0, LOW, pure_ranges, 5)
    add("middling", ("nist7", "adult5", "taxi5", "nist7-tx"), ("3-way",), DELTA, MIDDLE, [*large, "hdmm"], 1)
    add("middling", ("income-pa", "nist-ma", "adult", "income-ga"), ("2-way",), DELTA, MIDDLE, large, 1)
    add("middling", ("salary",), ("2-way",), DELTA, (0.03,), ["aperture", "mst", "ladder"], 1)
    add("cuboids", ("adult8", "nist8-tx"), ("cuboids",), 0.0, (0.1, 0.3, 1.0, 3.0), PURE[1:], 3)
    helped = ("titanic+", "salary+", "fire+", "adult025+", "adult050+", "nist-ma-national", "income-pa-oh",
              "income-ga-ca", "taxi+")  # fmt: skip
    with_public = ["mwem-pub, accounting=pure", "ladder, accounting=pure", *PURE[:2]]
    add("public", helped, ("3-way",), 0.0, MIDDLE, with_public, 2)
    few = ["aperture", "pmw-pub", "ladder", "ladder, accounting=pure"]
    beside = ("nist10+", "nist10-tx+", "adult7+", "titanic7+", "czech+")
    add("public", beside, ("3-way",), DELTA, LOW, few, 2)
    add("public", ("acs16+",), ("2-way",), DELTA, (0.1, *LOW[1:]), few, 2)
    add("public", ("income-pa-oh", "income-ga-ca", *BESIDE), ("ranges",), DELTA, (0.1, 0.3, 1.0, 10.0),
        ["pmw-pub", *by_range, "hdmm"], 2)  # fmt: skip
    return found


ROWS = _rows()


@cache
def tables_of(data: str) -> tuple[Table, Table | None]:
    """The private table, and the public one where there is one; each is read once."""
    if data in SMALL:
        return small_table(SMALL[data][0]), None
    if data in RAW:
        file, attrs, _ = RAW[data]
        return raw_table(file, attrs), None
    made: dict[str, Callable[[], Table]] = {
        "acs16": large_table,
        "nist10": lambda: _fewest("nist_acs_ma2019_coded", 10),
        "nist10-tx": lambda: _fewest("nist_acs_tx2019_coded", 10),
        "adult7": lambda: coded_table(
            columns("adult_gem_reduced_coded"), described("adult_gem_reduced_coded")
        ),
        "transfusion": _transfusion,
        "titanic7": lambda: _without("titanic", ("Age", "Fare")),
        "nist7": lambda: _without("nist-ma-national", keep=MIDDLING),
        "nist7-tx": lambda: _without("nist-tx-national", keep=MIDDLING),
        "adult5": lambda: _without("adult025", keep=MANY_VALUES),
        "taxi5": lambda: _without("taxi", keep=("shift", "payment_type", "fare", "tips", "trip_miles")),
        "adult8": adult_of_categories,
        "nist8-tx": lambda: _without("nist-tx-national", keep=CUBE),
        "wide-ma": lambda: _wide("nist-ma-national"),
        "wide-tx": lambda: _wide("nist-tx-national"),
        "ages-hours-pa": lambda: _without("income-pa-oh", keep=("AGEP", "WKHP")),
        "capital-gain": lambda: raw_table("adult", ("capital-gain",)),
        "titanic-fare": lambda: _without("titanic", keep=("Age", "Fare")),
        "salary-gross": lambda: _without("salary", keep=("annual-salary", "ytd-gross")),
    }
    if data in made:
        return made[data](), None
    if data in FEW_NUMBERS:
        return _beside_few(data)
    if data in BESIDE:
        pair, attrs = BESIDE[data]
        private, public = (_of(table, attrs) for table in load(pair))
        return private, public
    if data.endswith("+") or data.count("-") == 2:
        return load(data.removesuffix("+"))
    return load(with_private(data))[0], None


def _beside_few(data: str) -> tuple[Table, Table]:
    """A small table, and a few public records."""
    table, few = tables_of(data.removesuffix("+"))[0], FEW_NUMBERS[data]
    if data == "titanic7+":
        return table, _of(load("titanic")[1], table.domain.attrs)
    if data.startswith("nist"):
        nation = _fewest("nist_acs_national2019_coded", 10)
        return table, _records(nation, np.random.default_rng(1).permutation(nation.records)[:few])
    places = np.random.default_rng(1).permutation(table.records)
    return _records(table, places[few:]), _records(table, places[:few])


def _records(table: Table, places: np.ndarray) -> Table:
    return Table.of_codes(table.domain, table.codes()[places])


def _fewest(file: str, number: int) -> Table:
    """The attributes of fewest values of one of NIST's excerpts."""
    known = {name: about["size"] for name, about in described("nist_acs_coded").items()}
    sizes = {name: known[name] for name in sorted(known, key=known.__getitem__)[:number]}
    return coded_table(columns(file, list(sizes)), sizes)


def _transfusion() -> Table:
    """Blood donors: three numbers in eight public bins each, and whether they came again."""
    raw = columns("blood_transfusion")
    edges = {
        "recency_months": (2, 4, 6, 9, 12, 16, 24),
        "frequency_times": (2, 3, 4, 6, 9, 13, 20),
        "time_months": (6, 12, 18, 26, 36, 48, 64),
    }
    codes = {name: np.searchsorted(at, raw[name], side="right") for name, at in edges.items()}
    return coded_table(codes | {"donated": raw["donated"]}, dict.fromkeys(edges, 8) | {"donated": 2})


def _without(pair: str, dropped: tuple[str, ...] = (), *, keep: tuple[str, ...] = ()) -> Table:
    table = load(pair)[0]
    return _of(table, keep or tuple(attr for attr in table.domain.attrs if attr not in dropped))


def _of(table: Table, attrs: tuple[str, ...]) -> Table:
    """Some attributes of a table."""
    places = [table.domain.attrs.index(attr) for attr in attrs]
    return Table.of_codes(table.domain.project(attrs), table.codes()[:, places])


def _wide(pair: str) -> Table:
    """Every value of every attribute as a column of its own, yes or no: over a hundred of them."""
    table = load(pair)[0]
    codes = {
        f"{attr}={value}": (table.codes()[:, place] == value).astype(np.uint8)
        for place, attr in enumerate(table.domain.attrs)
        for value in range(table.domain.sizes[attr])
    }
    domain = Domain.of(dict.fromkeys(codes, 2))
    return Table.of_codes(domain, np.stack(list(codes.values()), axis=1))


def workload_of(name: str, domain: Domain) -> Workload:
    if name == "cuboids":
        return Workload.cuboids(domain)
    if name == "ranges":
        attrs = domain.attrs if len(domain) < 3 else ("AGEP", "WKHP")
        return Workload.ranges(domain, attrs, number=RANGES, seed=0)
    return Workload.marginals(domain, degree=int(name[0]))


def auto(data: str, workload: str, epsilon: float, delta: float) -> Mechanism:
    """What is chosen for somebody who names nothing."""
    private, public = tables_of(data)
    budget, size = Budget(epsilon=epsilon, delta=delta), Size(private.records, Unit("replace"))
    asked = workload_of(workload, private.domain)
    return choose(private.domain, asked, budget=budget, public=public, settings={}, size=size).mechanism


def name_of(mechanism: Mechanism) -> str:
    """The mechanism with the settings that are not its defaults.

    >>> from sidelight.mechanisms.mwem import MWEM
    >>> name_of(MWEM(rounds=4, accounting="pure"))
    'mwem, rounds=4, accounting=pure'
    """
    parts = [
        f"{one.name}={getattr(mechanism, one.name)}"
        for one in dataclasses.fields(mechanism)
        if one.name not in SIZES and getattr(mechanism, one.name) != one.default
    ]
    return ", ".join([mechanism.name, *parts])


def named(name: str, kind: str) -> Mechanism:
    """The mechanism of a name."""
    what, *settings = name.split(", ")
    given: dict[str, Any] = {}
    for setting in settings:
        key, _, value = setting.partition("=")
        given[key] = float(value) if "." in value else int(value) if value.isdigit() else value
    recipe = mechanism_of(what, given)
    held = {one.name for one in dataclasses.fields(recipe)}
    if kind in ("large", "wide", "middling") and set(SIZES) <= held:
        return dataclasses.replace(recipe, max_model_mb=5.0, oversized="skip")  # type: ignore[call-arg]
    return recipe


def cells(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """What is to be run; all of one seed before the next."""
    for seed in range(asked.seeds or 10):
        for data, several in ROWS.items():
            for rows in several:
                if (
                    rows.kind not in asked.kind
                    or data not in asked.data
                    or seed >= (asked.seeds or rows.seeds)
                ):
                    continue
                for epsilon in rows.epsilons:
                    if asked.epsilon and epsilon not in asked.epsilon:
                        continue
                    chosen = auto(data, rows.workload, epsilon, rows.delta)
                    names = [*map(standard, rows.mechanisms), *map(name_of, [chosen, *near(chosen)])]
                    for mechanism in dict.fromkeys(names):
                        if not asked.only or mechanism.split(",")[0] in asked.only:
                            yield {
                                "data": data, "workload": rows.workload, "delta": rows.delta,
                                "epsilon": epsilon, "mechanism": mechanism, "seed": seed,
                            }  # fmt: skip


def contenders(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """More seeds of auto and of all within a tenth of the best, where auto is above it by a twentieth.

    Of several that are within noise of each other, the best is lucky, until all have seeds enough.
    """
    lines = read(PATH)
    for data, several in ROWS.items():
        for rows in several:
            for epsilon in rows.epsilons if rows.kind in asked.kind and data in asked.data else ():
                if asked.epsilon and epsilon not in asked.epsilon:
                    continue
                row = {"data": data, "workload": rows.workload, "delta": rows.delta, "epsilon": epsilon}
                key = {name: str(value) for name, value in row.items()}
                errors: dict[str, list[float]] = {}
                for line in lines:
                    if key.items() <= line.items() and line["error"] != "nan":
                        errors.setdefault(line["mechanism"], []).append(float(line["error"]))
                means = {name: float(np.mean(values)) for name, values in errors.items()}
                took = name_of(auto(data, rows.workload, epsilon, rows.delta))
                best = min(means.values(), default=math.inf)
                if means.get(took, 0.0) > 1.05 * best:
                    close = [name for name, mean in means.items() if name == took or mean < 1.1 * best]
                    for seed in range(asked.seeds or 10):
                        yield from (row | {"mechanism": name, "seed": seed} for name in close)


def near(chosen: Mechanism) -> Iterator[Mechanism]:
    """The same with half and with twice as many rounds, where auto sets them and it does not take long."""
    if isinstance(chosen, MWEM):
        for rounds in (max(1, chosen.rounds // 2), 2 * chosen.rounds):
            if rounds <= MOST_ROUNDS:
                yield dataclasses.replace(chosen, rounds=rounds)


@cache
def standard(name: str) -> str:
    """The same name with its settings in the order of the fields."""
    return name_of(named(name, ""))


def measure(
    data: str, workload: str, delta: float, epsilon: float, mechanism: str, seed: int
) -> dict[str, float | str]:
    private, public = tables_of(data)
    asked, budget = workload_of(workload, private.domain), Budget(epsilon=epsilon, delta=delta)
    kind = next(
        rows.kind
        for rows in ROWS[data]
        if (rows.workload, rows.delta) == (workload, delta) and epsilon in rows.epsilons
    )
    recipe = named(mechanism, kind)
    if kind == "middling":
        return {"error": in_groups(private, asked, budget, recipe, seed)}
    helping = public if recipe.public_data != "unused" and kind == "public" else None
    try:
        recipe.check(private.domain, asked, helping)
        curator = curator_of(private, recipe.allotment(budget), seed=seed)
        recipe.check_total(private.records, allotment=curator.allotment, unit=curator.unit)
    except SidelightError:
        return {"error": math.nan}
    release = recipe.run(curator, asked, public=helping)
    if workload == "cuboids":
        return {"error": float(np.mean(Cuboids(private).errors(release.model))) / private.records}
    if workload == "ranges":
        errors = Errors.of(private, release, asked, total=private.records)
        return {"error": math.sqrt(errors.mean_squared_error)}
    return {"error": workload_error(private, release, asked, total=private.records)}


def in_groups(private: Table, asked: Workload, budget: Budget, recipe: Mechanism, seed: int) -> float:
    """Through the front door, where mechanisms that select model neighbouring values in groups."""
    made = sl.release(
        private, schema=sl.Schema.from_domain(private.domain), epsilon=budget.epsilon, delta=budget.delta,
        mechanism=recipe.name, workload=asked, quality_share=0, noise=SeededNoise(seed), progress=False,
        **{key: value for key, value in recipe.settings().items() if key in SIZES},
    )  # fmt: skip
    return sl.evaluate(made, private, workload=asked).workload_error


def main() -> None:
    kinds = list(dict.fromkeys(rows.kind for several in ROWS.values() for rows in several))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", choices=ROWS, nargs="*", default=list(ROWS))
    parser.add_argument("--kind", choices=kinds, nargs="*", default=kinds)
    parser.add_argument("--epsilon", type=float, nargs="*", default=[], help="these ε alone")
    parser.add_argument("--only", nargs="*", default=[], help="mechanisms, by their names alone")
    parser.add_argument("--again", nargs="*", default=[], help="mechanisms to be run anew")
    parser.add_argument("--seeds", type=int, help="in place of as many as each row has")
    parser.add_argument("--contenders", action="store_true", help="where auto is above 1.05, the best alone")
    asked = parser.parse_args()
    wanted = list((contenders if asked.contenders else cells)(asked))
    if asked.again:
        drop(PATH, [cell for cell in wanted if cell["mechanism"].split(",")[0] in asked.again])
    run_cells(PATH, wanted, measure)


if __name__ == "__main__":
    main()
