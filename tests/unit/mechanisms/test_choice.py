"""The mechanism for people who name none: the rule, what it says, and what it refuses."""

import math

import numpy as np
import pytest

import sidelight as sl
from sidelight.errors import SettingError, TooLargeError
from sidelight.mechanisms.by_size import Size, rounds_of, too_large
from sidelight.mechanisms.choice import choose
from sidelight.mechanisms.hdmm.hdmm import HDMM
from sidelight.mechanisms.ladder.ladder import Ladder
from sidelight.mechanisms.mwem import MWEM
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
    budget, size = Budget(epsilon=epsilon, delta=delta), Size(records, Unit("replace"))
    return choose(domain, workload, budget=budget, public=public, settings=settings, size=size)


@pytest.mark.parametrize(
    ("workload", "delta", "public", "name"),
    [
        (MARGINALS, 1e-9, None, "ladder"),
        (MARGINALS, 1e-9, PUBLIC, "aperture"),
        (RANGES, 1e-9, None, "hdmm"),
        (MIXED, 1e-9, None, "hdmm"),
        (RANGES, 1e-9, PUBLIC, "hdmm"),
        (MARGINALS, 0.0, None, "ladder"),
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
    choice.mechanism.check(DOMAIN, workload, None if choice.mechanism.public_data == "unused" else public)
    choice.mechanism.allotment(Budget(epsilon=1.0, delta=delta))


@pytest.mark.parametrize(
    ("workload", "delta", "records", "name"),
    [
        (MARGINALS, 1e-9, 50, "ladder"),
        (MARGINALS, 1e-9, 50_000, "ladder"),
        (RANGES, 1e-9, 50, "mwem"),
        (RANGES, 1e-9, 50_000, "hdmm"),
        (MARGINALS, 0.0, 50_000, "ladder"),
        (RANGES, 0.0, 50_000, "mwem"),
    ],
)
def test_with_a_public_n_planned_noise_is_taken_where_it_is_small(workload, delta, records, name):
    choice = chosen(workload, delta=delta, records=records)

    assert choice.mechanism.name == name
    assert name in choice.why
    choice.mechanism.check(DOMAIN, workload, None)


def test_large_workloads_are_left_to_mechanisms_that_select_unless_nothing_or_everything_is_heard():
    wide, wider = (sl.Domain.of({f"x{i}": size if i % 2 else 4 for i in range(20)}) for size in (20, 60))

    def names(domain, *, degree):
        asked = Workload.marginals(domain, degree=degree)
        sizes = ((2_000, 0.1), (20_000, 1.0), (10**7, 10.0))
        return [chosen(asked, domain=domain, records=n, epsilon=ε).mechanism.name for n, ε in sizes]

    assert names(wide, degree=2) == ["ladder", "aperture", "ladder"]
    # Of many values, groups are modelled; of more than a million numbers, not all are measured.
    assert names(wider, degree=2) == ["aperture", "aperture", "ladder"]
    assert names(wide, degree=3) == ["ladder", "aperture", "aperture"]


def test_the_same_pairs_are_heard_whether_pairs_or_triples_are_asked_for():
    domain = sl.Domain.of({f"x{i}": 20 if i % 2 else 4 for i in range(20)})
    taken = {}
    for degree in (2, 3):
        asked = Workload.marginals(domain, degree=degree)
        taken[degree] = [
            chosen(asked, domain=domain, records=n, epsilon=0.1).mechanism.name for n in (20_000, 200_000)
        ]

    # What LADDER expects to err by says nothing of this: of a pair it expects less than of a triple.
    assert taken[2] == taken[3] == ["ladder", "aperture"]


@pytest.mark.parametrize(("size", "lost"), [(50, "ladder"), (51, "aperture")])
def test_where_few_pairs_are_heard_the_number_of_values_decides(size, lost):
    domain = sl.Domain.of({"a": size, "b": 6, "c": 6, "d": 6})
    asked, ladder, names = Workload.marginals(domain, degree=3), Ladder(), set()

    for epsilon in np.geomspace(0.01, 1, 9):
        rho = Budget(epsilon=float(epsilon), delta=1e-9).rho()
        heard = ladder.heard(domain, asked, rho, Unit("replace"), n=5_000)
        names.add(name := chosen(asked, domain=domain, records=5_000, epsilon=float(epsilon)).mechanism.name)
        assert name == (lost if heard <= 1 / 3 else "aperture")
    assert names == {lost, "aperture"}


def test_attributes_of_many_values_are_left_to_mechanisms_that_group_them():
    names = [
        chosen(Workload.marginals(domain, degree=2), domain=domain, records=5_000).mechanism.name
        for domain in (sl.Domain.of({"a": size, "b": 3, "c": 3}) for size in (16, 32))
    ]

    assert names == ["ladder", "aperture"]


def test_the_sentence_names_the_bound_that_keeps_ladder_away():
    values, cells = sl.Domain.of({"a": 32, "b": 3}), sl.Domain.of({f"x{i}": 16 for i in range(11)})
    told = sl.Domain.of({f"x{i}": 2 for i in range(45)})

    def why(domain, *, degree, **more):
        return chosen(Workload.marginals(domain, degree=degree), domain=domain, **more).why

    assert "a has 32 values, which is more than 16; there aperture" in why(values, degree=2, records=3_000)
    assert "have more than 50,000 cells; there aperture" in why(cells, degree=3, records=50_000)
    assert "settings were given" in why(DOMAIN, degree=2, max_model_mb=5)
    assert "has made the most of public data" in why(DOMAIN, degree=2, public=PUBLIC)
    # All of 45 attributes in one table have more subsets than could be listed.
    assert "have more than 50,000 cells" in too_large(told, Workload([Marginal(told.attrs)]))


def test_laplace_noise_is_taken_where_it_is_less_and_the_sentence_says_what_it_costs():
    # One table of all values tells of every pair here; among forty attributes it cannot.
    few = chosen(records=2_000)
    domain = sl.Domain.of({f"x{i}": 2 for i in range(40)})
    many = chosen(Workload.marginals(domain, degree=2), domain=domain, records=2_000)

    assert (few.mechanism.accounting, many.mechanism.accounting) == ("pure", "zcdp")
    assert "nothing for others in a ledger" in few.why
    assert "ledger" not in many.why


def test_a_ledger_that_pays_for_more_is_not_emptied_by_laplace_noise(tmp_path):
    asked = {"schema": SCHEMA, "epsilon": 0.5, "delta": 1e-9, "workload": "2-way", "unit": "replace"}
    plans = {
        promised: sl.Plan.of(
            **asked, ledger=sl.Ledger.open(
                tmp_path / f"{promised}.ledger", epsilon=promised, delta=1e-9, unit="replace"
            ),
        ).knowing(2_000)
        for promised in (0.5, 1.0)
    }  # fmt: skip

    assert {promised: plan.mechanism.accounting for promised, plan in plans.items()} == {
        0.5: "pure",
        1.0: "zcdp",
    }


def test_criteria_are_judged_by_looks_that_are_paid_in_rho():
    asked = {"schema": SCHEMA, "epsilon": 1.0, "delta": 1e-9, "workload": "2-way"}
    criteria = {"criterion": [{"tables": "2-way", "at_most": 0.5}]}

    plain, judged = (sl.Plan.of(**asked, accept=accept).knowing(2_000) for accept in (None, criteria))

    assert (plain.mechanism.accounting, judged.mechanism.accounting) == ("pure", "zcdp")


def rounds(n, *, epsilon=1.0, delta=1e-9, domain=DOMAIN, **settings):
    mwem = MWEM(accounting="zcdp" if delta else "pure", **{"candidates": "queries", **settings})
    return rounds_of(mwem, domain, Budget(epsilon=epsilon, delta=delta), Size(n, Unit("replace")))


@pytest.mark.parametrize("delta", [0.0, 1e-9])
def test_more_records_and_more_budget_bear_more_rounds_and_noisier_ones_are_fewer(delta):
    told = [rounds(n, delta=delta) for n in (1, 100, 10_000, 1_000_000)]

    assert told[0] == 1
    assert told == sorted(set(told))
    assert rounds(1_000, epsilon=0.1, delta=delta) < rounds(1_000, epsilon=10.0, delta=delta)
    assert rounds(10_000, delta=delta, candidates="cuboids") < rounds(10_000, delta=delta)


@pytest.mark.parametrize("delta", [0.0, 1e-9])
def test_the_last_round_leaves_out_more_than_its_noise_and_the_next_would_not(delta):
    n, played = 5_000, rounds(5_000, delta=delta)
    for T, is_worthwhile in ((played, True), (played + 1, False)):
        # Half of a round's budget measures; replacing one record moves a range by 1.
        cost = Budget(epsilon=1.0, delta=delta)
        if delta:
            noise = math.sqrt(1 / (2 * float(cost.rho().value) / (2 * T)))
        else:
            b = 1.0 / (2 * T)
            noise = 2 * math.sqrt(2 * math.exp(-b)) / (1 - math.exp(-b))  # discrete Laplace, counted double
        assert (noise <= 1.5 * n / T**1.5) == is_worthwhile


def test_rounds_on_large_histograms_are_bounded_by_time():
    large = sl.Domain.of({"x": 512, "y": 512})

    assert rounds(10**7, epsilon=10.0, domain=large) == 40


@pytest.mark.parametrize("records", [100, 1_000, 1_000_000])
def test_with_public_data_and_pure_epsilon_a_small_table_is_not_refused(records):
    mechanism = chosen(delta=0.0, public=PUBLIC, records=records, epsilon=0.1).mechanism
    allotment = mechanism.allotment(Budget(epsilon=0.1, delta=0.0))

    mechanism.check_total(records, allotment=allotment, unit=Unit("replace"))
    assert 1 <= mechanism.rounds <= 50


def test_settings_belong_to_the_mechanism_that_is_chosen_without_n():
    assert chosen(records=50_000, max_rounds=3).mechanism.name == "aperture"


def test_public_data_outweigh_n():
    assert chosen(records=50_000, public=PUBLIC).mechanism.name == "aperture"


def drawn(records, seed=0):
    """Records of one law, such as public and private ones may be."""
    draw = np.random.default_rng(seed)
    return sl.Table.of_codes(DOMAIN, draw.binomial(np.array(DOMAIN.shape) - 1, 0.3, (records, 3)))


@pytest.mark.parametrize(
    ("workload", "delta", "epsilon", "helped", "alone"),
    [(RANGES, 1e-9, 0.3, "pmw-pub", "hdmm"), (MARGINALS, 0.0, 0.15, "mwem-pub", "ladder")],
)
def test_public_records_are_left_aside_where_they_would_be_further_off_than_planned_noise(
    workload, delta, epsilon, helped, alone
):
    few, many = drawn(50), drawn(100_000)

    def choice(public, n):
        return chosen(workload, delta=delta, epsilon=epsilon, public=public, records=n)

    # Many private records have little noise; few public ones are off by chance, however alike the people.
    names = [choice(public, n).mechanism.name for public in (few, many) for n in (30, 1_500, 10**6)]
    assert names == [helped, alone, alone, helped, helped, alone]
    assert "the 50 public records are off by: these are left aside" in choice(few, 1_500).why
    assert alone in choice(few, 1_500).why
    assert "aside" not in choice(many, 1_500).why
    assert ("outside the workload" in choice(few, 1_500).why) == (workload is RANGES)
    choice(many, 1_500).mechanism.check(DOMAIN, workload, many)


def test_marginals_are_measured_without_public_records_only_where_these_are_off_by_twice_the_noise():
    few, many = drawn(50), drawn(100_000)

    def choice(public, n, **asked):
        return chosen(public=public, records=n, epsilon=0.3, **asked)

    names = [choice(public, n).mechanism.name for public in (few, many) for n in (30, 1_500, 10**6)]
    assert names == ["aperture", "ladder", "ladder", "aperture", "aperture", "ladder"]
    assert "the 50 public records are off by: these are left aside" in choice(few, 1_500).why
    pairs = Workload([("a", "b")])
    assert "what they tell of c, outside the workload; aperture would keep it" in (
        choice(few, 1_500, workload=pairs).why
    )


def test_what_would_not_be_taken_without_public_records_is_not_taken_beside_them():
    domain = sl.Domain.of({"a": 60, "b": 60, "c": 6})
    few = sl.Table.of_codes(domain, np.random.default_rng(0).integers(0, domain.shape, (50, 3)))
    asked, size = Workload.marginals(domain, degree=2), Size(20_000, Unit("replace"))
    budget = Budget(epsilon=1.0, delta=1e-9)

    expected = Ladder().expected_error(domain, asked, allotment=budget.rho(), unit=size.unit, n=size.n)
    assert expected < 0.5 * distance_by_chance(few, asked, n=size.n)
    for public in (None, few):
        choice = choose(domain, asked, budget=budget, public=public, settings={}, size=size)
        assert choice.mechanism.name == "aperture"


def distance_by_chance(public, workload, *, n):
    """What chance alone sets the marginals of as many public and n private records apart by."""
    parts = [np.asarray(public.count(attrs)) / public.records for attrs in workload.attribute_sets]
    scale = math.sqrt(2 / math.pi * (1 / public.records + 1 / n))
    return float(np.mean([scale * np.sqrt(p * (1 - p)).sum() for p in parts]))


def test_a_range_is_helped_until_its_noise_is_what_chance_alone_sets_it_off_by():
    m, n = 4_000, 10_000
    off, names = math.sqrt(1 / m + 1 / n) / 2, set()

    for epsilon in np.geomspace(0.03, 3, 12):
        hdmm, budget = HDMM(), Budget(epsilon=float(epsilon), delta=1e-9)
        told = hdmm.outlook(DOMAIN, RANGES, allotment=hdmm.allotment(budget), unit=Unit("replace"))
        names.add(name := chosen(RANGES, public=drawn(m), records=n, epsilon=float(epsilon)).mechanism.name)
        assert name == ("hdmm" if told.stddev / n < off else "pmw-pub")
    assert names == {"hdmm", "pmw-pub"}


def test_marginals_are_helped_until_their_noise_is_twice_what_chance_alone_sets_them_off_by():
    m, n = 400, 2_000
    # How far apart samples of one law are, found by drawing them.
    pairs = [(drawn(m, seed=2 * turn), drawn(n, seed=2 * turn + 1)) for turn in range(1, 30)]
    apart = np.mean(
        [
            np.abs(public.count(attrs) / m - private.count(attrs) / n).sum()
            for public, private in pairs
            for attrs in MARGINALS.attribute_sets
        ]
    )
    ladder, names = Ladder(accounting="pure"), set()

    for epsilon in np.geomspace(0.01, 10, 30):
        expected = ladder.expected_error(
            DOMAIN, MARGINALS, allotment=ladder.allotment(Budget(epsilon=float(epsilon), delta=0.0)),
            unit=Unit("replace"), n=n,
        )  # fmt: skip
        if abs(expected / (2.1 * apart) - 1) > 0.15:  # what was drawn is not exact
            choice = chosen(delta=0.0, public=drawn(m), records=n, epsilon=float(epsilon))
            names.add(choice.mechanism.name)
            assert choice.mechanism.name == ("ladder" if expected < 2.1 * apart else "mwem-pub")
    assert names == {"ladder", "mwem-pub"}


def test_public_data_of_another_kind_than_one_table_stay_with_aperture_or_are_refused():
    assert chosen(public=PUBLIC, records=10**6, epsilon=10.0).mechanism.name == "aperture"
    with pytest.raises(SettingError, match="records with every column"):
        chosen(
            RANGES,
            public=sl.Table.of_codes(sl.Domain.of({"a": 4}), np.zeros((9, 1), dtype=int)),
            records=10**6,
        )


def test_settings_are_for_the_mechanism_that_uses_public_data():
    assert chosen(RANGES, public=PUBLIC, records=10**6, rounds=7).mechanism.rounds == 7


def test_public_records_are_reweighed_in_fewer_rounds_where_the_table_is_small():
    small, large = (chosen(RANGES, public=PUBLIC, records=n, epsilon=0.1).mechanism for n in (50, 2_000))

    assert (small.name, large.name) == ("pmw-pub", "pmw-pub")
    assert 1 <= small.rounds < large.rounds <= 100


def test_a_release_beside_public_data_that_are_left_aside_is_the_release_without_them():
    draw = np.random.default_rng(1)
    table = sl.Table.of_codes(DOMAIN, draw.integers(0, DOMAIN.shape, (20_000, 3)).astype(np.uint8))
    made = [
        sl.release(
            table, schema=SCHEMA, epsilon=1.0, delta=1e-9, workload=RANGES, public=public, progress=False,
            noise=sl.testing.SeededNoise(1),
        )
        for public in (PUBLIC, None)
    ]  # fmt: skip

    assert [one.card.mechanism for one in made] == ["hdmm", "hdmm"]
    assert [one.card.public for one in made] == [None, None]
    assert "left aside" in made[0].card.why
    assert made[0].count(["a"]).tolist() == made[1].count(["a"]).tolist()
    plan = sl.Plan.of(schema=SCHEMA, epsilon=1.0, delta=1e-9, workload=RANGES, public=PUBLIC).knowing(20_000)
    assert (plan.public_records, plan.helping) == ({}, None)
    # A person who names the mechanism is asked to leave them out.
    with pytest.raises(SettingError, match="does not use public data"):
        sl.Plan.of(schema=SCHEMA, epsilon=1.0, delta=1e-9, workload=RANGES, public=PUBLIC, mechanism="hdmm")


def test_a_plan_that_is_told_n_is_the_plan_that_is_run():
    table = sl.Table.of_codes(DOMAIN, np.random.default_rng(0).integers(0, 2, (5000, 3)).astype(np.uint8))
    plan = sl.Plan.of(schema=SCHEMA, epsilon=1.0, delta=1e-9, workload="2-way")
    made = sl.release(table, schema=SCHEMA, epsilon=1.0, delta=1e-9, workload="2-way", progress=False)

    assert made.card.mechanism == plan.knowing(5000).mechanism.name == "ladder"
    assert "5,000 records" in plan.knowing(5000).why
    assert "records" not in plan.why
    assert made.card.why == plan.knowing(5000).why


def test_a_private_n_is_never_looked_at():
    asked = {"schema": SCHEMA, "epsilon": 1.0, "delta": 1e-9, "unit": "add-or-remove", "progress": False}
    asked["workload"] = RANGES
    made = [
        sl.release(sl.Table.of_codes(DOMAIN, np.zeros((n, 3), dtype=np.uint8)), **asked) for n in (30, 5000)
    ]

    assert [one.card.mechanism for one in made] == ["hdmm", "hdmm"]
    assert made[0].card.why == made[1].card.why


def test_a_named_mechanism_is_never_changed():
    plan = sl.Plan.of(schema=SCHEMA, epsilon=1.0, delta=1e-9, workload="2-way", mechanism="aim")

    assert plan.knowing(10**6) is plan


def test_single_numbers_are_asked_for_one_at_a_time_but_tables_are_not():
    assert chosen(RANGES, records=50).mechanism.candidates == "queries"
    assert chosen(MIXED, records=50).mechanism.candidates == "cuboids"


def test_settings_are_those_of_the_mechanism_that_is_chosen():
    assert chosen(max_rounds=3).mechanism.max_rounds == 3
    assert chosen(RANGES, rounds=3).mechanism.rounds == 3
    assert chosen(delta=0.0, rounds=3).mechanism.accounting == "pure"
    assert chosen(RANGES, delta=0.0, records=2_500).mechanism.rounds == rounds(2_500, delta=0.0)
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
            noise=sl.testing.SeededNoise(1), mechanism=name, **settings,
        )
        for name, settings in (("auto", {}), ("ladder", {"accounting": "pure"}))
    }  # fmt: skip

    why = made["auto"].card.why
    assert "ladder" in why
    assert made["ladder"].card.why is None
    assert made["auto"].card.mechanism == made["ladder"].card.mechanism == "ladder"
    assert sl.Release.load(made["auto"].save(tmp_path / "out")).card.why == why
    pages = {
        name: report(release, tmp_path / f"{name}.html").read_text(encoding="utf-8")
        for name, release in made.items()
    }
    assert ["chosen automatically" in page for page in pages.values()] == [True, False]
    # It is the same run, however it was asked for.
    assert made["auto"].count(["a"]).tolist() == made["ladder"].count(["a"]).tolist()


def test_auto_is_what_people_get_who_name_nothing():
    plan = sl.Plan.of(schema=SCHEMA, epsilon=1.0, delta=1e-9, workload="2-way")

    assert (plan.mechanism.name, plan.why is None) == ("ladder", False)
    assert sl.Synthesizer(schema=SCHEMA).mechanism == "auto"
    with pytest.raises(SettingError, match="one of auto, aperture"):
        sl.Plan.of(schema=SCHEMA, epsilon=1.0, delta=1e-9, mechanism="best")


@pytest.mark.parametrize("epsilon", [1e-300, 1e-160, 1e300])
@pytest.mark.parametrize("delta", [0.0, 1e-9])
def test_a_budget_far_from_all_that_is_usual_is_planned_too(epsilon, delta):
    for workload in (Workload.marginals(DOMAIN, degree=1), RANGES):
        assert chosen(workload, epsilon=epsilon, delta=delta, records=100).why
