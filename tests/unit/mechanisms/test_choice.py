"""The mechanism for people who name none: the rule, what it says, and what it refuses."""

import numpy as np
import pytest

import sidelight as sl
from sidelight.errors import SettingError, TooLargeError
from sidelight.mechanisms.by_size import Size, rounds_of
from sidelight.mechanisms.choice import choose
from sidelight.privacy.budget import Budget
from sidelight.privacy.unit import Unit
from sidelight.queries.query import Cell, Marginal, Range
from sidelight.queries.workload import Workload
from sidelight.reports.report import report

SCHEMA = sl.Schema.from_domain({"a": 4, "b": 3, "c": 2})
DOMAIN = SCHEMA.domain
PUBLIC = sl.Table.of_codes(DOMAIN, np.zeros((50, 3), dtype=np.uint8))
MARGINALS = Workload.marginals(DOMAIN, degree=2)
RANGES = Workload.ranges(DOMAIN, ["a"])
MIXED = Workload([Marginal(("a", "b")), Range((("a", 0, 1),)), Cell(("c",), (0,))])


def chosen(
    workload=MARGINALS, *, delta=1e-9, public=None, domain=DOMAIN, records=None, epsilon=1.0, **settings
):
    budget = Budget(epsilon=epsilon, delta=delta)
    size = None if records is None else Size(records, Unit("replace"))
    return choose(domain, workload, budget=budget, public=public, settings=settings, size=size)


@pytest.mark.parametrize(
    ("workload", "delta", "public", "name"),
    [
        (MARGINALS, 1e-9, None, "aperture"),
        (MARGINALS, 1e-9, PUBLIC, "aperture"),
        (RANGES, 1e-9, None, "mwem"),
        (MIXED, 1e-9, None, "mwem"),
        (RANGES, 1e-9, PUBLIC, "pmw-pub"),
        (MARGINALS, 0.0, None, "mwem"),
        (RANGES, 0.0, None, "mwem"),
        (MARGINALS, 0.0, PUBLIC, "mwem-pub"),
    ],
)
def test_the_rule_takes_a_mechanism_that_can_run_and_says_why(workload, delta, public, name):
    choice = chosen(workload, delta=delta, public=public)

    assert choice.mechanism.name == name
    assert name in choice.why
    assert choice.why[0].isupper() or choice.why.startswith("δ")
    assert choice.why.endswith(".")
    choice.mechanism.check(DOMAIN, workload, public)
    choice.mechanism.allotment(Budget(epsilon=1.0, delta=delta))


@pytest.mark.parametrize(
    ("workload", "delta", "records", "name"),
    [
        (MARGINALS, 1e-9, 50, "aperture"),
        (MARGINALS, 1e-9, 50_000, "hdmm"),
        (RANGES, 1e-9, 50, "mwem"),
        (RANGES, 1e-9, 50_000, "hdmm"),
        (MARGINALS, 0.0, 50_000, "mwem"),
    ],
)
def test_with_a_public_n_planned_noise_is_taken_where_it_is_small(workload, delta, records, name):
    choice = chosen(workload, delta=delta, records=records)

    assert choice.mechanism.name == name
    assert name in choice.why
    choice.mechanism.check(DOMAIN, workload, None)


def test_binary_marginals_in_pure_epsilon_are_taken_from_coefficients_where_their_noise_is_small():
    domain = sl.Domain.of(dict.fromkeys("abcd", 2))
    pairs, triples = (Workload.marginals(domain, degree=degree) for degree in (2, 3))

    names = {
        (degree, n): chosen(asked, delta=0.0, domain=domain, records=n).mechanism.name
        for degree, asked in ((2, pairs), (3, triples))
        for n in (20, 2_000, 200_000)
    }

    assert [names[2, n] for n in (20, 2_000, 200_000)] == ["mwem", "barak", "barak"]
    assert [names[3, n] for n in (20, 2_000, 200_000)] == ["mwem", "mwem", "barak"]


def test_more_records_bear_more_rounds():
    for workload, delta in ((MARGINALS, 0.0), (RANGES, 1e-9)):
        budget = Budget(epsilon=1.0, delta=delta)
        few, many = (rounds_of(DOMAIN, workload, budget, Size(n, Unit("replace"))) for n in (100, 100_000))
        assert few < many


def test_settings_belong_to_the_mechanism_that_is_chosen_without_n():
    assert chosen(records=50_000, max_rounds=3).mechanism.name == "aperture"


def test_public_data_outweigh_n():
    assert chosen(records=50_000, public=PUBLIC).mechanism.name == "aperture"


def test_a_plan_that_is_told_n_is_the_plan_that_is_run():
    table = sl.Table.of_codes(DOMAIN, np.random.default_rng(0).integers(0, 2, (5000, 3)).astype(np.uint8))
    plan = sl.Plan.of(schema=SCHEMA, epsilon=1.0, delta=1e-9, workload="2-way")
    made = sl.release(table, schema=SCHEMA, epsilon=1.0, delta=1e-9, workload="2-way", progress=False)

    assert plan.mechanism.name == "aperture"
    assert made.card.mechanism == plan.knowing(5000).mechanism.name == "hdmm"
    assert made.card.why == plan.knowing(5000).why


def test_a_private_n_is_never_looked_at():
    table = sl.Table.of_codes(DOMAIN, np.random.default_rng(0).integers(0, 2, (5000, 3)).astype(np.uint8))
    made = sl.release(
        table, schema=SCHEMA, epsilon=1.0, delta=1e-9, workload="2-way", unit="add-or-remove", progress=False
    )

    assert made.card.mechanism == "aperture"


def test_a_named_mechanism_is_never_changed():
    plan = sl.Plan.of(schema=SCHEMA, epsilon=1.0, delta=1e-9, workload="2-way", mechanism="aim")

    assert plan.knowing(10**6) is plan


def test_single_numbers_are_asked_for_one_at_a_time_but_tables_are_not():
    assert chosen(RANGES).mechanism.candidates == "queries"
    assert chosen(MIXED).mechanism.candidates == "cuboids"


def test_settings_are_those_of_the_mechanism_that_is_chosen():
    assert chosen(max_rounds=3).mechanism.max_rounds == 3
    assert chosen(RANGES, rounds=3).mechanism.rounds == 3
    assert chosen(delta=0.0, rounds=3).mechanism.accounting == "pure"
    assert chosen(delta=0.0).mechanism.rounds == 20
    assert chosen(delta=0.0, rounds=3).mechanism.rounds == 3


def test_a_setting_of_another_mechanism_is_refused_and_the_message_says_what_to_do():
    with pytest.raises(SettingError, match=r"'aperture' has no setting 'rounds'.*chosen for you.*name it"):
        chosen(rounds=3)


def test_marginals_too_large_to_be_measured_do_not_stop_the_release_but_are_named():
    schema = sl.Schema.from_domain({"a": 5000, "b": 5000, "c": 2})

    plan = sl.Plan.of(schema=schema, epsilon=1.0, delta=1e-9, workload="2-way")

    assert plan.mechanism.settings()["oversized"] == "skip"
    assert any("a × b" in note for note in plan.as_json()["notes"])
    with pytest.raises(TooLargeError):  # a person who named the mechanism is asked
        sl.Plan.of(schema=schema, epsilon=1.0, delta=1e-9, workload="2-way", mechanism="aperture")


@pytest.mark.parametrize(("workload", "delta"), [(RANGES, 1e-9), (MARGINALS, 0.0)])
def test_public_data_that_nobody_could_use_are_refused(workload, delta):
    fewer = sl.Schema.from_domain({"a": 4, "b": 3}).domain
    part = sl.Table.of_codes(fewer, np.zeros((50, 2), dtype=np.uint8))

    for public in (part, [part, part]):
        with pytest.raises(SettingError, match="records with every column"):
            chosen(workload, delta=delta, public=public)


def test_the_card_the_plan_and_the_report_say_why_and_a_named_mechanism_has_no_why(tmp_path):
    table = sl.Table.of_codes(DOMAIN, np.random.default_rng(0).integers(0, 2, (300, 3)).astype(np.uint8))
    made = {
        name: sl.release(
            table, schema=SCHEMA, epsilon=1.0, delta=1e-9, workload="1-way", progress=False,
            noise=sl.testing.SeededNoise(1), mechanism=name,
        )
        for name in ("auto", "hdmm")
    }  # fmt: skip

    why = made["auto"].card.why
    assert "hdmm" in why
    assert made["hdmm"].card.why is None
    assert made["auto"].card.mechanism == made["hdmm"].card.mechanism == "hdmm"
    assert sl.Release.load(made["auto"].save(tmp_path / "out")).card.why == why
    pages = {
        name: report(release, tmp_path / f"{name}.html").read_text(encoding="utf-8")
        for name, release in made.items()
    }
    assert ["chosen automatically" in page for page in pages.values()] == [True, False]
    # It is the same run, however it was asked for.
    assert made["auto"].count(["a"]).tolist() == made["hdmm"].count(["a"]).tolist()


def test_auto_is_what_people_get_who_name_nothing():
    plan = sl.Plan.of(schema=SCHEMA, epsilon=1.0, delta=1e-9, workload="2-way")

    assert (plan.mechanism.name, plan.why is None) == ("aperture", False)
    assert sl.Synthesizer(schema=SCHEMA).mechanism == "auto"
    with pytest.raises(SettingError, match="one of auto, aperture"):
        sl.Plan.of(schema=SCHEMA, epsilon=1.0, delta=1e-9, mechanism="best")
