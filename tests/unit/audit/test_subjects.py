"""What is audited: every mechanism there is, with settings that it knows."""

import pytest

import torched
from commands import sidelight
from sidelight.audit.neighbours import UNITS, Asked
from sidelight.audit.subjects import SUBJECTS
from sidelight.mechanisms.registry import names


@pytest.mark.parametrize("is_planted", [False, True])
@pytest.mark.parametrize("name", [pytest.param(name, marks=torched.torched(name)) for name in SUBJECTS])
def test_every_subject_can_be_built_with_and_without_the_planted_bug(name, is_planted):
    subject = SUBJECTS[name]
    for unit in subject.units:
        case = subject.case(Asked(unit=UNITS[unit], budget=subject.budget, is_planted=is_planted))

        assert len(case.neighbours) == 2
        assert 0 < float(case.claim) <= subject.budget.epsilon


@pytest.mark.parametrize("unit", UNITS)
def test_neighbours_of_barak_differ_in_their_total_wherever_half_the_budget_measures_it(unit):
    subject = SUBJECTS["barak"]
    case = subject.case(Asked(unit=UNITS[unit], budget=subject.budget, is_planted=False))

    first, second = (table.records for table in case.neighbours)

    assert first - second == (0 if UNITS[unit].total_is_public else UNITS[unit].records)


@pytest.mark.parametrize("name", names())
def test_every_mechanism_of_the_registry_is_audited(name):
    assert name in SUBJECTS


def test_names_with_commas_are_told_apart_where_an_audit_is_not_found(tmp_path):
    done = sidelight("audit", "hdm", folder=tmp_path)

    assert done.returncode == 2
    assert "'barak', 'barak, pure', 'mwem'" in done.stderr
    assert "Did you mean 'hdmm'?" in done.stderr


@pytest.mark.parametrize("unit", ["replace", "replace, by person"])
def test_answers_of_a_mean_that_tell_as_much_are_not_told_apart(unit):
    subject = SUBJECTS["mean"]
    case = subject.case(Asked(unit=UNITS[unit], budget=subject.budget, is_planted=True))

    found = [case.statistic(table, seed) for seed in range(30) for table in case.neighbours]

    # Beyond either of two values every answer of Laplace noise tells as much; many answers lie there.
    assert found.count(max(found)) + found.count(min(found)) > len(found) / 3
