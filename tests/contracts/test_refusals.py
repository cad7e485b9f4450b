"""A release comes out, or the call is refused and the ledger has not so much as a run begun."""

import warnings

import numpy as np
import pyarrow as pa
import pytest

import sidelight as sl
from sidelight.errors import InputError, WorkloadError
from sidelight.mechanisms.registry import mechanism_of
from sidelight.privacy.budget import Budget
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit
from sidelight.queries.query import Cell, Fourier, Linear, Marginal, Range
from sidelight.queries.workload import Workload
from sidelight.testing import SeededNoise
from torched import torched

ONE = 2**20
SCHEMA = sl.Schema.from_domain({"a": 2, "b": 2, "c": 2})
TINY = {"rounds": 2, "steps": 2, "batch": 8, "latent": 2, "width": 4, "layers": 1}
MECHANISMS = {
    "mwem": ("mwem", {}),
    "mwem by queries": ("mwem", {"candidates": "queries"}),
    "mwem, pure, from a histogram": (
        "mwem",
        {"accounting": "pure", "histogram_share": 0.3, "output": "average"},
    ),
    "mwem of components": ("mwem", {"model": "components", "selection": "permute-and-flip"}),
    "mwem-pub": ("mwem-pub", {"rounds": 4}),
    "mwem-pub, pure": ("mwem-pub", {"rounds": 4, "accounting": "pure"}),
    "pmw-pub": ("pmw-pub", {"rounds": 4}),
    "aim": ("aim", {"rounds_per_attribute": 3}),
    "aim by residuals": ("aim", {"rounds_per_attribute": 3, "estimator": "residual"}),
    "mst": ("mst", {}),
    "hdmm": ("hdmm", {}),
    "ladder": ("ladder", {}),
    "ladder in pure ε": ("ladder", {"accounting": "pure"}),
    "dualquery": ("dualquery", {"max_rounds": 4, "queries_per_round": 5}),
    "gem": ("gem", TINY),
    "gem as first published": ("gem", TINY | {"form": "gem"}),
    "gem-pub": ("gem-pub", TINY | {"public_steps": 3}),
    "dualquery, pure": ("dualquery", {"max_rounds": 4, "queries_per_round": 5, "accounting": "pure"}),
    "hdmm for a maximum": ("hdmm", {"objective": "maximum", "reconstruction": "least-squares"}),
    "jam": ("jam", {"rounds": 4, "weighting": "public-error"}),
    "barak": ("barak", {}),
    "barak by linear program": ("barak", {"fit": "linear-program", "accounting": "pure"}),
    "aperture": ("aperture", {"max_rounds": 3, "max_particle_rounds": 3}),
    "aperture alone": ("aperture", {"max_rounds": 3, "max_particle_rounds": 3}),
}
KINDS = [pytest.param(kind, marks=torched(name)) for kind, (name, _) in MECHANISMS.items()]
WORKLOADS = {
    "2-way": "2-way",
    "cuboids": "cuboids",
    "the total": [()],
    "linear": Workload([Linear(("a",), (2,), (ONE, -ONE)), Linear(("b",), (2,), (ONE // 3, 5))]),
    "constant": Workload([Linear(("a",), (2,), (ONE, ONE)), Linear(("b",), (2,), (ONE, 0))]),
    "zero": Workload([Linear(("a",), (2,), (0, 0))]),
    "short": Workload([Linear(("a",), (2,), (ONE,))]),
    "fractions": Workload([Linear(("a",), (2,), (0.5, 0.1))]),
    "fourier": Workload([Fourier(()), Fourier(("a",)), Fourier(("a", "b"))]),
    "boxes": Workload([Range((("a", 0, 0),)), Cell(("a", "b"), (0, 1)), Range(())]),
    "all kinds": Workload(
        [Marginal(("a", "b")), Linear(("a",), (2,), (1, 2)), Fourier(("c",)), Marginal(())]
    ),
    "weights far apart": Workload([("a", "b"), ("c",)], weights=[1e-100, 1e100]),
    "the same twice": [("b", "a"), ("a", "b")],
}
UNITS = [Unit("replace"), Unit("add-or-remove"), Unit("add-or-remove", records=5)]


def people(records: int) -> pa.Table:
    draw = np.random.default_rng(records)
    return pa.table({name: draw.integers(0, 2, records) for name in "abc"})


def outcome(kind: str, workload: str, *, epsilon: float, unit: Unit, records: int = 400) -> str:
    """'released' or 'refused'; whatever else happens fails the test, warnings of arithmetic too."""
    mechanism, settings = MECHANISMS[kind]
    takes_public = mechanism_of(mechanism).public_data == "needed" or kind == "aperture"
    book = MemoryLedger(Promise(Budget(epsilon=1e6, delta=1e-9), unit, "people"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            made = sl.release(
                people(records), schema=SCHEMA, epsilon=epsilon, mechanism=mechanism,
                workload=WORKLOADS[workload], public=people(60) if takes_public else None, ledger=book,
                noise=SeededNoise(3), progress=False, **settings,
            )  # fmt: skip
        except InputError:
            assert not list(book.runs())
            assert not list(book.events())
            return "refused"
    assert np.isfinite(made.total)
    assert all(np.isfinite(made.count((name,))).all() for name in "abc")
    return "released"


@pytest.mark.parametrize("unit", UNITS[:2], ids=lambda unit: unit.relation)
@pytest.mark.parametrize("epsilon", [1e-9, 1e-4])
@pytest.mark.parametrize("kind", KINDS)
def test_a_tiny_budget_is_refused_before_it_is_charged_or_gives_a_release(kind, epsilon, unit):
    for workload in ("2-way", "linear", "all kinds"):
        outcome(kind, workload, epsilon=epsilon, unit=unit)


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: f"{unit.relation}-{unit.records}")
@pytest.mark.parametrize("epsilon", [1e-12, 1e-9, 1e-6, 1e-4, 0.02])
@pytest.mark.parametrize("kind", KINDS)
def test_every_workload_at_every_budget_is_refused_uncharged_or_gives_a_release(kind, epsilon, unit):
    for workload in WORKLOADS:
        outcome(kind, workload, epsilon=epsilon, unit=unit)


@pytest.mark.parametrize("query", [lambda table: table["a"] ** 2, {"query": "median", "attrs": ["a"]}, 3])
def test_queries_that_are_no_sums_of_counts_are_refused_with_what_to_do(query):
    book = MemoryLedger(Promise(Budget(epsilon=1.0, delta=1e-9), Unit("replace"), "people"))

    with pytest.raises(WorkloadError, match=r"a weighted sum of counts; got a .*sl\.mixed_quantile"):
        sl.release(people(20), schema=SCHEMA, epsilon=1.0, workload=[query], ledger=book, progress=False)

    assert not list(book.runs())


@pytest.mark.parametrize("workload", ["zero", "short", "fractions"])
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: f"{unit.relation}-{unit.records}")
def test_linear_queries_that_no_mechanism_could_answer_are_refused(workload, unit):
    for kind in MECHANISMS:
        assert outcome(kind, workload, epsilon=1.0, unit=unit) == "refused"


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_of_no_record_is_a_table_where_n_is_private(kind):
    assert outcome(kind, "2-way", epsilon=1.0, unit=UNITS[1], records=0) == "released"


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS[1:], ids=lambda unit: f"{unit.relation}-{unit.records}")
@pytest.mark.parametrize("kind", KINDS)
def test_tables_of_no_record_one_and_two_have_the_same_outcome_where_n_is_private(kind, unit):
    for epsilon in (1e-4, 1e-2, 1.0):
        for workload in ("2-way", "all kinds"):
            found = {
                outcome(kind, workload, epsilon=epsilon, unit=unit, records=records) for records in (0, 1, 2)
            }
            assert len(found) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_of_no_record_is_refused_where_n_is_public(kind):
    assert outcome(kind, "2-way", epsilon=1.0, unit=Unit("replace"), records=0) == "refused"


def test_shares_beyond_the_budget_are_refused_before_the_total_is_paid_for():
    book = MemoryLedger(Promise(Budget(epsilon=1.0, delta=1e-9), UNITS[1], "people"))
    with pytest.raises(InputError, match="more than the whole budget"):
        sl.release(
            people(400), schema=SCHEMA, epsilon=0.5, mechanism="aperture", workload="2-way", ledger=book,
            total_share=0.5, one_way_share=0.9, progress=False,
        )  # fmt: skip
    assert not list(book.runs())


@pytest.mark.parametrize(
    ("mechanism", "settings"),
    [
        ("mwem", {"select_share": 1 - 2**-53}),
        ("mwem", {"total_share": 1e-300}),
        ("pmw-pub", {"rounds": 10**15}),
        ("jam", {"select_share": 1 - 2**-53}),
        ("aim", {"rounds_per_attribute": 10**16}),
        ("aperture", {"one_way_share": 1e-300}),
        ("mst", {"one_way_share": 1e-300}),
        ("mst", {"one_way_share": 0.5, "select_share": 0.5 - 2**-53}),
        ("aperture", {"particle_share": 1e-300}),
        ("aperture", {"particle_share": 1 - 2**-53}),
        ("barak", {"accounting": "pure"}),
    ],
)
def test_a_share_too_small_for_any_noise_is_refused_before_anything_is_paid(mechanism, settings):
    unit = Unit("add-or-remove")
    book = MemoryLedger(Promise(Budget(epsilon=1.0, delta=1e-9), unit, "people"))
    epsilon = 1e-13 if mechanism == "barak" else 1e-4
    with pytest.raises(InputError, match="more than can be drawn exactly"):
        sl.release(
            people(400), schema=SCHEMA, epsilon=epsilon, mechanism=mechanism, workload="2-way", ledger=book,
            public=people(60) if mechanism in ("pmw-pub", "jam") else None, progress=False, **settings,
        )  # fmt: skip
    assert not list(book.runs())


@pytest.mark.parametrize(
    ("mechanism", "settings"),
    [
        ("mwem", {"clip": False, "candidates": "queries", "model": "histogram", "passes": 100}),
        ("mwem", {"clip": False, "step": 1e308, "passes": 1}),
        ("mwem-pub", {"rounds": 9, "step": 1e308}),
        ("pmw-pub", {"rounds": 9, "step": 1e308, "support": "random", "support_records": 1}),
    ],
)
@pytest.mark.parametrize("seed", range(4))
def test_answers_far_below_their_noise_make_a_release_all_the_same(mechanism, settings, seed):
    unit = Unit("add-or-remove", records=1000)
    book = MemoryLedger(Promise(Budget(epsilon=1.0, delta=1e-9), unit, "people"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = sl.release(
            people(seed), schema=SCHEMA, epsilon=1e-3, mechanism=mechanism, ledger=book, progress=False,
            workload=[(), ("a",), ("b",), ("a", "b")], noise=SeededNoise(seed),
            public=people(60) if "pub" in mechanism else None, **settings,
        )  # fmt: skip
    assert np.isfinite(made.count(("a", "b"))).all()


@pytest.mark.parametrize("kind", [kind for kind, (_, given) in MECHANISMS.items() if "accounting" in given])
def test_a_budget_so_large_that_its_noise_is_none_makes_a_release_that_can_be_loaded(kind, tmp_path):
    mechanism, settings = MECHANISMS[kind]
    public = people(60) if mechanism_of(mechanism).public_data == "needed" else None
    book = MemoryLedger(Promise(Budget(epsilon=1e6, delta=0.0), UNITS[1], "people"))

    made = sl.release(
        people(400), schema=SCHEMA, epsilon=1e6, mechanism=mechanism, workload="2-way", public=public,
        ledger=book, noise=SeededNoise(3), progress=False, **settings,
    )  # fmt: skip

    assert sl.Release.load(made.save(tmp_path / "out")).total == pytest.approx(made.total)
