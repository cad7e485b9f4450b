"""The facts behind the page: sums that agree, noise that is right, and what was not measured."""

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import cards
import sidelight as sl
from cards import card_of
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.mean_errors import MEAN_ERRORS
from sidelight.measurement import Measurement
from sidelight.mechanisms.told import JointRound, OpenedMarginal, Opening
from sidelight.models.graphical import GraphicalModel
from sidelight.models.histogram import Histogram
from sidelight.privacy.budget import Budget, Epsilon, Rho
from sidelight.privacy.event import Gaussian, Laplace
from sidelight.queries.query import Cell, Marginal
from sidelight.releases.card import PublicData
from sidelight.releases.release import Release
from sidelight.reports.facts import collect, expected_errors, half_width_of
from sidelight.reports.provenance import provenance, public_part
from sidelight.reports.report import render
from sidelight.select.judgement import Contest
from sidelight.testing import SeededNoise
from sidelight.uncertainty.disagreement import Disagreement
from sidelight.uncertainty.model_error import ModelDispersion


@pytest.fixture
def small() -> Release:
    """Two of three attributes measured as a pair, with σ = 10; the model is uniform."""
    domain = Domain.of({"a": 2, "b": 3, "c": 4})
    event = Gaussian(what="a × b", cost=Rho(Fraction(1, 100)), variance=Fraction(100), l2_squared=Fraction(2))
    measured = Measurement(Marginal(("a", "b")), np.full(6, 110.0), 10.0)
    model = Histogram.uniform(domain, total=600.0)
    return Release(model, (measured,), card_of(model, [event]))


def on_card(release: Release, **facts: Any) -> Release:
    """The same release with other facts on its card."""
    return replace(release, card=replace(release.card, **facts))


def opening(moved: dict[tuple[str, ...], float], **facts: Any) -> Opening:
    """What APERTURE tells, with so much moved on each marginal."""
    marginals = tuple(
        OpenedMarginal(attrs=attrs, spread=1.0, trust=0.5, moved=far, expected_error=0.1)
        for attrs, far in moved.items()
    )
    made_up = Opening(
        rounds=1, asked_again=(), public_records=7.0, public_marginals=(), marginals=marginals, alpha={},
        particle_share=0.0,
    )  # fmt: skip
    return replace(made_up, **facts)


def test_shares_and_what_is_left_add_up_to_what_the_promise_holds(released):
    facts = collect(released)

    spent = sum(spending.share for spending in facts.spendings)
    assert spent + facts.unspent == pytest.approx(1, abs=1e-12)
    assert facts.spent == sum(event.cost.value for event in released.events)
    assert facts.times("select") == facts.times("measure") == 4
    assert spent == pytest.approx(float(facts.spent / Budget(epsilon=1.0, delta=1e-6).rho().value))


def test_a_release_that_spent_half_of_its_promise_says_so(released):
    half = tuple(released.events[: len(released.events) // 2])
    spent = sum((event.cost.value for event in half), start=Fraction(0))

    facts = collect(on_card(released, spent=spent, events=half))

    # The last event, in the other half, measured quality with 2% of it all.
    assert facts.unspent == pytest.approx(1 - 0.98 / 2, abs=1e-6)


def test_the_total_that_is_measured_under_add_or_remove_is_a_step_of_its_own(toy):
    from sidelight.mechanisms.mwem import MWEM
    from sidelight.privacy.unit import Unit

    curator, _ = toy.curator(unit=Unit("add-or-remove"))
    facts = collect(cards.released(MWEM(rounds=2).run(curator, toy.workload)))

    assert [spending.step for spending in facts.spendings] == [
        "total",
        "select",
        "measure",
        "select",
        "measure",
    ]


def test_the_choice_of_what_to_follow_is_a_step_and_was_learned(small, toy):
    curator, _ = toy.curator()
    models = [GraphicalModel.uniform(curator.domain, total=100.0)] * 2
    contest = Contest(
        models, lambda _, said: (said, np.arange(2)), weights={("a",): 1.0}, total=100.0, log_odds=[0.0, 0.0]
    )
    curator.choose([Marginal(("a",))], contest, curator.remaining / 2)
    chosen = curator.events
    quality = Gaussian.at(Rho(Fraction(1, 100)), what=f"{MEAN_ERRORS} …", l2_squared=Fraction(2))
    events = (*small.events, *chosen, quality)
    spent = sum((event.cost.value for event in events), start=Fraction(0))

    facts = collect(on_card(small, events=events, spent=spent))

    assert [one.step for one in facts.spendings] == ["measure", "follow", "quality"]
    assert facts.learned == (
        "From the private table, nothing was learned but these numbers, the choice of which model to follow "
        "and the measured quality"
    )
    assert facts.learned in render(on_card(small, events=events, spent=spent))


def test_the_misfit_is_the_distance_of_model_and_measurement_in_noise(small):
    (measured,) = collect(small).measured

    assert measured.misfit == pytest.approx(1.0)  # the model says 100, the measurement 110, and σ is 10


def test_single_queries_are_not_called_a_marginal(small):
    cells = tuple(Measurement(Cell(("a", "c"), (0, code)), np.array([75.0]), 5.0) for code in range(3))

    measured = collect(replace(small, measurements=cells)).measured

    assert [(group.name, group.numbers, group.kind) for group in measured] == [("a × c", 3, "single queries")]


def test_the_expected_error_of_a_measured_marginal_is_that_of_its_noise(small):
    errors = expected_errors(small)

    by_name = {expected.name: expected for expected in errors.known}
    assert set(by_name) == {"a × b", "a", "b"}
    # The six cells, and the two, sum to the number of records, which is public.
    assert by_name["a × b"].stddev == pytest.approx(10 * math.sqrt(5 / 6))
    assert by_name["a"].stddev == pytest.approx(10 * math.sqrt(3 / 2))
    # √(2/π) of that in each cell of 100 records, nearly: no cell is off by more than it can hold.
    mean = math.sqrt(2 / math.pi) * 10 * math.sqrt(5 / 6)
    assert by_name["a × b"].error == pytest.approx(6 * mean / (1 + mean / 200) / 600)
    assert errors.unmeasured == (("b", "c"), ("a", "c"), ("c",))
    assert all(one.is_measured for one in errors.known)
    assert "holds for such marginals on average" in render(small)


def test_the_workload_on_the_card_decides_which_errors_are_listed(small):
    errors = expected_errors(on_card(small, workload=cards.asked([("b",), ("b", "c")])))

    assert [expected.name for expected in errors.known] == ["b"]
    assert errors.unmeasured == (("b", "c"),)


def test_an_interval_of_laplace_noise_is_wider_in_its_own_stddev():
    paid = Laplace.at(Epsilon(1), what="a", l1=Fraction(2))

    half_width = half_width_of([paid])

    # P(|Laplace| > t) = exp(−t/b), with σ = √2 b.
    assert math.exp(-half_width * math.sqrt(2)) == pytest.approx(0.05)
    assert half_width > half_width_of([]) == 1.96


def test_how_far_public_and_private_disagreed_is_read_from_the_card(small):
    apart = (
        Disagreement(attrs=("c",), numbers=2, difference=0.1),
        Disagreement(attrs=("a",), numbers=3, difference=0.2),
    )

    part = public_part(on_card(small, public=PublicData(records=7, disagreements=apart)))

    assert part is not None
    assert [(one.name, one.error, one.numbers) for one in part.disagreements] == [
        ("a", "120", 3),
        ("c", "60.0", 2),
    ]
    assert part.records == 7
    assert part.unmeasured == ("c",)


@pytest.mark.parametrize("records", [7.0, 0.0], ids=["kept", "left out"])
def test_how_far_aperture_moved_away_from_public_records_is_read_from_the_card(small, records):
    moved = {("a",): 0.125, ("a", "b"): 0.5}

    part = public_part(
        on_card(small, public=PublicData(records=7), aperture=opening(moved, public_records=records))
    )

    assert part is not None
    assert [(one.name, one.error) for one in part.disagreements] == [("a × b", "50%"), ("a", "12.5%")]


@pytest.mark.parametrize("is_older", [False, True])
def test_nothing_disagrees_with_public_data_that_do_not_tell_of_it(small, is_older):
    moved = opening({("a",): 0.125, ("c",): 0.932, ("a", "c"): 0.5})
    if not is_older:
        told = tuple(replace(one, told_by_public="c" not in one.attrs) for one in moved.marginals)
        moved = replace(moved, marginals=told)
    public = PublicData(records=7, columns={"a": 7.0, "b": 7.0, "c": 0.0} if is_older else {})

    part = public_part(on_card(small, public=public, aperture=moved))

    assert part is not None
    assert [one.name for one in part.disagreements] == ["a"]


def test_a_release_without_public_data_has_no_public_part(small):
    assert public_part(small) is None


def test_the_citation_names_the_paper_of_the_mechanism_and_the_command_its_plan(released):
    origin = provenance(released, "survey")

    assert [str(paper) for paper in released.card.papers] == [
        'Hardt, Ligett, McSherry, "A simple and practical algorithm for differentially private data release" '
        "(NIPS 2012), arXiv:1012.4763"
    ]
    assert "mechanism mwem" in origin.citation
    assert "--mechanism mwem" in origin.command
    assert "--epsilon 1.0 " in origin.command
    assert "--workload 2-way" in origin.command
    assert "--set rounds=4" in origin.command
    assert "passes" not in origin.command  # which is the mechanism's own
    assert "--quality-share" not in origin.command
    assert "--quality-share 0.1" in provenance(on_card(released, quality_share=0.1), "survey").command
    assert "--quality-share 0.0" in provenance(on_card(released, quality_share=0.0), "survey").command


def test_what_was_not_measured_has_an_expected_error_where_the_model_has_one(small):
    told = ModelDispersion(levels={"met": 1.0, "unmet": 4.0}, trials={})

    blind, seeing = expected_errors(small), expected_errors(on_card(small, model_error=told))

    # c, and its pairs with a and b, were never measured.
    assert {one.name for one in seeing.known} - {one.name for one in blind.known} == {"c", "a × c", "b × c"}
    (alone,) = (one for one in seeing.known if one.name == "c")
    each = math.sqrt(4.0 * 150 * 0.75)
    assert alone.stddev is None
    assert alone.model_error == pytest.approx(each, rel=0.01)
    mean = math.sqrt(2 / math.pi) * each
    assert alone.error == pytest.approx(4 * mean / (1 + mean / 300) / 600, rel=0.01)


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (
            {
                "rounds": (
                    JointRound(marginal=("a", "b"), source="public", stddev=1.0),
                    JointRound(marginal=("c",), source="private", stddev=1.0),
                    JointRound(marginal=("a", "b"), source="public", stddev=1.0),
                )
            },
            ("a × b",),
        ),
        (
            {"aperture": opening({}, public_marginals=(("b", "c"),), records_share=0.25)},
            (
                "further models of public records, or such records themselves (about 25% of the release)",
                "b × c",
            ),
        ),
        ({}, ()),
    ],
    ids=["jam", "aperture", "others"],
)
def test_marginals_taken_from_public_data_are_named(small, facts, expected):
    part = public_part(on_card(small, public=PublicData(records=7), **facts))

    assert part is not None
    assert part.taken == expected


def test_a_setting_of_a_setting_is_named_as_one_for_python(released):
    settings = {"rounds": 4, "estimator": {"tolerance": 0.5}}

    origin = provenance(on_card(released, mechanism="from the future", settings=settings), "survey")

    assert "--set rounds=4" in origin.command
    assert "estimator" not in origin.command
    assert origin.unsaid == (("estimator", "{'tolerance': 0.5}"),)


def test_residuals_are_measured_as_the_card_says_and_their_noise_is_in_records():
    sizes = {"a": 3, "b": 4, "c": 2}
    codes = np.random.default_rng(0).integers(0, 2, (2000, 3))
    table = Table.of_codes(Domain.of(sizes), codes)
    made = sl.release(
        table, schema=sl.Schema.from_domain(sizes), epsilon=1, delta=1e-9, workload="2-way",
        mechanism="hdmm", noise=SeededNoise(0), progress=False,
    )  # fmt: skip

    page = render(made)

    assert expected_errors(made).unmeasured == made.card.unmeasured.marginals == ()
    assert "exact count plus noise" not in page
    assert "a count is a sum of residuals" in page
    by_name = {one.name: one for one in collect(made).measured}
    measured = {one.query.attrs: one.stddev for one in made.measurements}
    assert by_name["a × b"].stddev == pytest.approx(measured["a", "b"] / 12)
    assert by_name["a × b"].kind == "residuals"
