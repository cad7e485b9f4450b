"""Acceptance fixed beforehand: what is refused, what is measured, and when a verdict is given."""

import json
from fractions import Fraction

import numpy as np
import pytest

import sidelight as sl
from sidelight.errors import InputError, ReleaseError, SettingError
from sidelight.mean_errors import MeanErrors
from sidelight.privacy.budget import Budget, Rho
from sidelight.privacy.promise import Promise
from sidelight.privacy.sql_ledger import SqlLedger
from sidelight.privacy.unit import Unit
from sidelight.releases.acceptance import Criteria
from sidelight.releases.findings import Finding
from sidelight.releases.quality import MeanError
from sidelight.reports.report import report
from sidelight.testing import SeededNoise

SCHEMA = sl.Schema.from_domain({"a": 2, "b": 3, "c": 2})
DOMAIN = SCHEMA.domain
REPLACE = Unit("replace")


def people(records=4000, seed=0):
    draw = np.random.default_rng(seed)
    a, b = draw.integers(0, 2, records), draw.choice(3, records, p=[0.85, 0.1, 0.05])
    return sl.Table.of_codes(DOMAIN, np.stack([a, b, a], axis=1))


def criterion(tables="2-way", at_most=0.2, **more):
    return {"tables": tables, "at_most": at_most, **more}


def release(*criteria, mechanism="aim", epsilon=20.0, seed=3, **settings):
    settings |= {"mwem": {"rounds": 1}, "aim": {"rounds_per_attribute": 2}}[mechanism]
    return sl.release(
        people(), schema=SCHEMA, epsilon=epsilon, delta=1e-9, workload="2-way", noise=SeededNoise(seed),
        mechanism=mechanism, progress=False, accept={"criterion": list(criteria)}, **settings,
    )  # fmt: skip


BAD = {
    "no criterion": ({}, "at least one criterion"),
    "an empty list": ({"criterion": []}, "at least one criterion"),
    "an unknown key": ({"criterion": [criterion()], "confidense": 0.9}, "Did you mean 'confidence'"),
    "an unknown key inside": ({"criterion": [criterion(atmost=1)]}, "has no setting 'atmost'"),
    "no threshold": ({"criterion": [{"tables": "2-way"}]}, "at_most must be above 0"),
    "a threshold of 0": ({"criterion": [criterion(at_most=0)]}, "at_most must be above 0"),
    "a threshold of 2": ({"criterion": [criterion(at_most=2)]}, "below 2"),
    "a threshold that is no number": ({"criterion": [criterion(at_most="5%")]}, "at_most must be above 0"),
    "nan": ({"criterion": [criterion(at_most=float("nan"))]}, "at_most must be above 0"),
    "an unknown attribute": ({"criterion": [criterion([["a", "z"]])]}, "unknown attribute 'z'"),
    "too high a degree": ({"criterion": [criterion("4-way")]}, "4-way marginal needs 4 attributes"),
    "a table of nothing": ({"criterion": [criterion([[]])]}, "must have an attribute"),
    "tables that are none": ({"criterion": [criterion("pairs")]}, "tables must be a name"),
    "one table unlisted": ({"criterion": [criterion(["a", "b"])]}, "tables must be a name"),
    "an unknown attribute between": ({"criterion": [criterion(between="d")]}, "between must be an attribute"),
    "no attribute between": ({"criterion": [criterion(between=["a"])]}, "between must be an attribute"),
    "between and worst": ({"criterion": [criterion(between="a", worst="attribute")]}, "not both"),
    "another worst": ({"criterion": [criterion(worst="cell")]}, "worst must be one of 'attribute'"),
    "a confidence of 1": ({"criterion": [criterion()], "confidence": 1}, "confidence must be above 0.5"),
    "two thresholds for the same tables": (
        {"criterion": [criterion([["a", "b"]], 0.1), criterion([["b", "a"]], 0.2)]},
        "two criteria are about the same tables",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_criteria_are_refused_before_anything_is_read(case, tmp_path):
    accept, says = BAD[case]

    with pytest.raises(InputError, match=says):
        sl.release(tmp_path / "not there.csv", schema=SCHEMA, epsilon=1, delta=1e-9, accept=accept)


@pytest.mark.parametrize("text", ["[[criterion]\n", "criterion = 3", None])
def test_a_file_that_holds_no_criteria_is_refused(text, tmp_path):
    path = tmp_path / "accept.toml"
    if text is not None:
        path.write_text(text)

    with pytest.raises(SettingError, match=r"at_most = 0\.05"):
        Criteria.of(path, DOMAIN)


def test_criteria_cannot_be_measured_with_nothing(tmp_path):
    with pytest.raises(SettingError, match="leaves nothing to measure the criteria"):
        sl.release(
            tmp_path / "not there.csv", schema=SCHEMA, epsilon=1, delta=1e-9, quality_share=0,
            accept={"criterion": [criterion()]},
        )  # fmt: skip


def test_a_threshold_below_the_noise_is_refused_with_the_least_one_and_that_one_is_taken(tmp_path):
    book = SqlLedger.create(
        tmp_path / "p.ledger", Promise(Budget(epsilon=2.0, delta=1e-9), REPLACE, "people")
    )
    asked = {"schema": SCHEMA, "epsilon": 0.5, "workload": "2-way", "ledger": book, "progress": False}

    with pytest.raises(SettingError, match="least threshold for 4,000 records is") as refused:
        sl.release(people(), accept={"criterion": [criterion(at_most=0.001)]}, **asked)

    assert not list(book.runs())
    least = float(str(refused.value).split("records is ")[1].split("%")[0]) / 100
    with pytest.raises(SettingError, match="least threshold"):
        sl.release(people(), accept={"criterion": [criterion(at_most=0.9 * least)]}, **asked)
    made = sl.release(people(), accept={"criterion": [criterion(at_most=least)]}, **asked)
    assert made.card.acceptance is not None


def test_a_good_release_passes_and_a_bad_one_fails_the_same_criteria():
    criteria = (
        criterion(at_most=0.1),
        criterion([["a", "c"]], 0.1),
        criterion(worst="attribute", at_most=0.15),
    )

    good = release(*criteria).card.acceptance
    bad = release(*criteria, mechanism="mwem").card.acceptance

    assert [finding.verdict for finding in good.findings] == ["passed"] * 3
    assert good.verdict == "passed"
    assert bad.verdict == "failed"
    assert len(good.findings[2].errors) == 3


def test_what_is_judged_is_the_error_of_the_tables_that_were_named():
    made = release(
        criterion([["a", "c"], ["b"]]), criterion("1-way", 0.3, worst="attribute"), quality_share=0.5
    )

    def error(attrs):
        return np.abs(people().count(attrs) - made.count(attrs)).sum() / made.total

    pair, single = made.card.acceptance.findings
    assert pair.errors[""].error == pytest.approx((error(("a", "c")) + error(("b",))) / 2, abs=0.01)
    for attr in "abc":
        assert single.errors[attr].error == pytest.approx(error((attr,)), abs=0.01)


def test_a_quantity_that_is_judged_is_the_one_that_quality_says():
    """Not the same mean twice with different noise."""
    made = release(criterion("2-way"), criterion("2-way", 0.5, worst="attribute"))

    whole, worst = made.card.acceptance.findings
    assert whole.errors[""] == made.quality.headline
    assert worst.errors == made.quality.attributes


def test_values_are_compared_by_their_own_errors_and_records():
    made = release(criterion("1-way", 0.4, between="b"), quality_share=0.5)

    (finding,) = made.card.acceptance.findings
    exact, said = (source.count(("a", "b")) for source in (people(), made))
    first = np.abs(exact - said)[:, 2].sum() / made.count(["b"])[2]
    assert set(finding.errors) == {"0", "1", "2"}
    assert finding.verdict == "passed"
    # Means over a × b, b and b × c; of these a × b is at most twice the mean of three.
    assert finding.errors["2"].error >= first / 3 - 3 * finding.errors["2"].standard_error
    assert "values of b apart" in finding.sentence


def judged_apart(gap, at_most, *, runs=3000):
    """How often each verdict is given, where the errors of two values differ by so many records of 500."""
    criteria = Criteria.of(
        {"criterion": [criterion([["b"]], at_most, between="a")], "confidence": 0.9}, DOMAIN
    )
    asked, cost = criteria.added_to(None, DOMAIN, Rho), Rho(Fraction(1, 50))
    event, steps = asked.event(cost, REPLACE), asked.sets[0].steps
    half = sl.Table.of_codes(DOMAIN, np.repeat([[0, 0, 0], [1, 0, 0]], 500, axis=0))
    found = {"passed": 0, "failed": 0, "cannot tell": 0}
    for noise in np.rint(np.random.default_rng(1).normal(0, event.stddev, (runs, 2))).astype(np.int64):
        noisy = asked.measured(np.array([0, int(steps * gap)]) + noise, event.stddev)
        found[criteria.judged(asked, noisy, half, total=1000.0, cost=cost).verdict] += 1
    return {verdict: number / runs for verdict, number in found.items()}


def test_a_difference_is_judged_wrongly_no_more_often_than_the_confidence_allows():
    just_met, just_missed = judged_apart(99.5, 0.2), judged_apart(100.5, 0.2)

    assert just_met["failed"] < 0.11
    assert 0.06 < just_missed["passed"] < 0.115
    assert judged_apart(0.0, 0.3)["passed"] > 0.95
    assert judged_apart(300.0, 0.2)["failed"] > 0.95


def test_looking_is_paid_from_the_same_budget_with_the_share_that_was_set_aside():
    plain, judged = (
        release(*asked, quality_share=0.1) for asked in ((criterion(),), (criterion(), criterion("1-way")))
    )

    for made in (plain, judged):
        *others, last = made.events
        assert last.cost.value == made.card.allotted * Fraction(0.1)
        assert sum(event.cost.value for event in others) <= made.card.allotted * (1 - Fraction(0.1))
    assert judged.quality.headline.standard_error > plain.quality.headline.standard_error


@pytest.mark.parametrize("unit", [REPLACE, Unit("add-or-remove"), Unit("replace", records=3)], ids=str)
def test_the_worst_neighbours_move_all_means_by_just_what_is_paid_for(unit):
    """Everybody alike, the model right, and one person who differs in everything."""
    criteria = Criteria.of({"criterion": [criterion(), criterion([["a"]], 0.5, worst="attribute")]}, DOMAIN)
    asked = criteria.added_to(MeanErrors.of([("a", "b")], DOMAIN, Rho), DOMAIN, Rho)
    records = np.zeros((50, 3), dtype=np.uint8)
    moved = records.copy()
    moved[: unit.records] = 1
    other = moved if unit.relation == "replace" else records[unit.records :]
    model, tables = (
        sl.Table.of_codes(DOMAIN, records),
        [sl.Table.of_codes(DOMAIN, one) for one in (records, other)],
    )

    counts = [
        asked.counted(
            {
                place: error(table.count(asked.marginals[place]).reshape(-1))
                for place, error in asked.each(model)
            }
        )
        for table in tables
    ]

    assert int(((counts[1] - counts[0]) ** 2).sum()) == asked.l2_squared(unit)


def judged_often(error_in_records, at_most, *, runs=4000, total=1000.0):
    """How often each verdict is given, where the true mean error is known."""
    criteria = Criteria.of({"criterion": [criterion([["a"]], at_most)], "confidence": 0.9}, DOMAIN)
    asked = criteria.added_to(None, DOMAIN, Rho)
    cost = Rho(Fraction(1, 500))
    event = asked.event(cost, REPLACE)
    steps = asked.sets[0].steps
    draw = np.random.default_rng(1)
    found = {"passed": 0, "failed": 0, "cannot tell": 0}
    for noise in np.rint(draw.normal(0, event.stddev, runs)).astype(np.int64):
        noisy = np.array([int(steps * error_in_records) + noise])
        verdict = criteria.judged(
            asked, asked.measured(noisy, event.stddev), people(10), total=total, cost=cost
        ).verdict
        found[verdict] += 1
    return {verdict: number / runs for verdict, number in found.items()}


def test_a_verdict_is_wrong_no_more_often_than_the_confidence_allows_and_not_much_less():
    just_met, just_missed = judged_often(199.9, 0.2), judged_often(200.2, 0.2)

    assert 0.07 < just_met["failed"] < 0.115  # a criterion that is met, declared failed
    assert 0.07 < just_missed["passed"] < 0.115  # one that is missed, declared passed
    assert judged_often(0.0, 0.5)["passed"] > 0.99
    assert judged_often(400.0, 0.2)["failed"] > 0.9


def test_an_edited_verdict_is_refused(tmp_path):
    folder = release(criterion(at_most=0.1), mechanism="mwem").save(tmp_path / "out")
    path = folder / "release.json"
    about = json.loads(path.read_text(encoding="utf-8"))
    assert about["card"]["acceptance"]["verdict"] == "failed"
    about["card"]["acceptance"]["verdict"] = "passed"
    path.write_text(json.dumps(about), encoding="utf-8")

    with pytest.raises(ReleaseError):
        sl.Release.load(folder)


def test_the_verdict_is_on_the_card_in_the_report_and_in_a_notebook(tmp_path):
    made = release(criterion(at_most=0.1))

    assert sl.Release.load(made.save(tmp_path / "out")).card.acceptance == made.card.acceptance
    page = report(made, tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Accepted: every criterion passed" in page
    assert "passed: 2-way tables" in page
    assert "Accepted" in made._repr_html_()
    plain = sl.release(
        people(), schema=SCHEMA, epsilon=1, delta=1e-9, workload="1-way", progress=False, mechanism="mwem"
    )
    assert plain.card.acceptance is None


def test_where_n_is_private_nothing_is_refused_for_it_and_noise_makes_it_impossible_to_tell():
    made = sl.release(
        people(50), schema=SCHEMA, epsilon=0.1, delta=1e-9, unit="add-or-remove", workload="1-way",
        mechanism="aim", noise=SeededNoise(1), progress=False,
        accept={"criterion": [criterion(at_most=0.01)]},
    )  # fmt: skip

    assert made.card.acceptance.verdict == "cannot tell"


def test_a_finding_about_some_of_many_tables_says_so():
    off = MeanError(error=0.02, standard_error=0.001, marginals=1000, of=4950)
    finding = Finding(
        what="2-way tables",
        at_most=0.1,
        errors={"": off},
        reach=0.01,
        reach_of_largest=0.01,
        verdict="passed",
    )

    assert "(an even part of them was measured: 1,000 of 4,950)" in finding.sentence


def judged_three(most, *, errors=(10, 10, 0), **keys):
    """A verdict on three values of b with 490, 490 and 20 records, by the errors measured for each."""
    criteria = Criteria.of({"criterion": [criterion([["c"]], 0.3, between="b", **keys)]}, DOMAIN)
    asked, cost = criteria.added_to(None, DOMAIN, Rho), Rho(Fraction(1, 50))
    steps = asked.sets[0].steps
    codes = np.zeros((1000, 3), dtype=np.int64)
    codes[490:980, 1], codes[980:, 1] = 1, 2
    noisy = asked.measured(steps * np.array(errors[: len(asked.sets)]), asked.event(cost, REPLACE).stddev)
    table = sl.Table.of_codes(DOMAIN, codes)
    (finding,) = criteria.judged(
        asked, noisy, table, total=1000.0, cost=cost, most=None if most is None else lambda _: most
    ).findings
    return finding


def test_values_that_hardly_anybody_has_are_left_out_and_named():
    assert judged_three(None).verdict == "cannot tell"  # 20 records are no match for the noise

    finding = judged_three([500.0, 500.0, 40.0])

    assert finding.verdict == "passed"
    assert finding.left_out == ("2",)
    assert "0 2% ±" in finding.sentence
    assert "1 2% ±" in finding.sentence
    assert finding.sentence.endswith("not judged, since too few records have it: 2")


def test_whether_a_value_is_left_out_does_not_depend_on_its_measured_error():
    small, large = (judged_three([500.0, 500.0, 40.0], errors=(10, 10, error)) for error in (0, 900))
    assert small == large

    # A count that the release is unsure of may be large; and values that a file names are all judged.
    assert judged_three([500.0, 500.0, 490.0]).left_out == ()
    assert judged_three([500.0, 500.0, 40.0], values=["0", "2"]).left_out == ()
    assert set(judged_three([500.0, 40.0, 40.0]).errors) == {"0", "1", "2"}  # two must be left to compare


def test_a_criterion_names_its_values():
    finding = judged_three([500.0, 500.0, 40.0], values=["0", "1"])

    assert set(finding.errors) == {"0", "1"}
    assert (finding.verdict, finding.left_out) == ("passed", ())
    with pytest.raises(SettingError, match="has no value"):
        judged_three(None, values=["0", "x"])
    with pytest.raises(SettingError, match="values must be a list of two"):
        judged_three(None, values=["0"])
    with pytest.raises(SettingError, match="name it, too"):
        Criteria.of({"criterion": [criterion(values=["0", "1"])]}, DOMAIN)


def test_a_release_leaves_out_a_value_without_records():
    codes = np.random.default_rng(0).integers(0, 2, (4000, 3))
    made = sl.release(
        sl.Table.of_codes(DOMAIN, codes), schema=SCHEMA, epsilon=4, delta=1e-9, workload="2-way",
        mechanism="mst", accept={"criterion": [criterion("1-way", 0.4, between="b")]}, quality_share=0.3,
        noise=SeededNoise(1), progress=False,
    )  # fmt: skip

    (finding,) = made.card.acceptance.findings
    assert (finding.verdict, finding.left_out) == ("passed", ("2",))


@pytest.mark.parametrize(("mechanism", "workload"), [("aperture", [("a", "b")]), ("pmw-pub", "2-way")])
def test_a_release_that_loses_a_group_is_not_let_off_for_it(mechanism, workload):
    """A third of the people have g = 2, and no public record has: the release says that nobody has."""
    draw, records = np.random.default_rng(0), 30_000
    group = np.repeat([0, 1, 2], records // 3)
    first = np.where(group == 2, 3, draw.integers(0, 4, records))
    domain = sl.Domain.of({"g": 3, "a": 4, "b": 3})
    private = sl.Table.of_codes(domain, np.stack([group, first, draw.integers(0, 3, records)], axis=1))
    public = sl.Table.of_codes(domain, draw.integers(0, (2, 4, 3), (records, 3)))

    release = sl.release(
        private, schema=sl.Schema.from_domain(domain), public=public, epsilon=1.0, delta=1e-9,
        mechanism=mechanism, workload=workload, noise=SeededNoise(1), progress=False,
        accept={"criterion": [{"tables": [["a"]], "between": "g", "at_most": 0.25}]},
    )  # fmt: skip

    (finding,) = release.card.acceptance.findings
    assert release.count(["g"])[2] < 0.01 * records
    assert finding.left_out == ()
    assert finding.verdict != "passed"
