"""Releases that rest on public data are off by chance at least, however small a noisy mean of errors is."""

import itertools

import numpy as np
import pyarrow as pa
import pytest

import sidelight as sl
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.mean_errors import MeanErrors, NoisyMeans
from sidelight.measurement import Measurement
from sidelight.models.histogram import Histogram
from sidelight.privacy.budget import Rho
from sidelight.privacy.unit import Unit
from sidelight.queries.query import Cell, Marginal
from sidelight.testing import SeededNoise
from sidelight.uncertainty.calibration import calibrated
from sidelight.uncertainty.chance import Chance
from sidelight.uncertainty.count_errors import CountErrors
from sidelight.uncertainty.model_error import Dispersion, ModelDispersion

N, M = 8000, 2000
DOMAIN = Domain.of({"a": 4, "b": 5, "c": 3})
TRUTH = np.random.default_rng(0).dirichlet(np.full(60, 4.0)).reshape(4, 5, 3)
RECORDS = dict.fromkeys(DOMAIN.attrs, float(M))


def drawn(records: int, seed: int) -> np.ndarray:
    """The counts of so many records of the same distribution."""
    return np.random.default_rng(seed).multinomial(records, TRUTH.reshape(-1)).reshape(4, 5, 3).astype(float)


def summed(counts: np.ndarray, attrs: tuple[str, ...]) -> np.ndarray:
    return counts.sum(axis=tuple(axis for axis, attr in enumerate(DOMAIN.attrs) if attr not in attrs))


def expected(chance: Chance, attrs: tuple[str, ...], counts: np.ndarray) -> float:
    return float(np.sqrt(2 / np.pi * chance.variance(attrs, counts)).sum())


def made(attrs: tuple[str, ...], stddev: float) -> Measurement:
    return Measurement(Marginal(attrs), np.zeros(DOMAIN.size(attrs)), stddev)


def mean_ratio(attrs: tuple[str, ...], answers: list[Measurement], estimate) -> float:
    """Said over actual error of a table, both as means over 400 private and public samples."""
    said, actual = [], []
    for seed in range(400):
        private, public = drawn(N, 2 * seed), drawn(M, 2 * seed + 1) * (N / M)
        said.append(expected(Chance(DOMAIN, N, answers, RECORDS), attrs, summed(public, attrs)))
        actual.append(np.abs(summed(private, attrs) - estimate(private, public, seed)).sum())
    return float(np.mean(said) / np.mean(actual))


@pytest.mark.parametrize("attrs", [("a",), ("b",), ("c",)])
def test_public_records_of_the_same_kind_are_off_by_what_is_said(attrs):
    assert mean_ratio(attrs, [], lambda _, public, __: summed(public, attrs)) == pytest.approx(1, abs=0.03)


@pytest.mark.parametrize("attrs", [("a", "b"), ("a", "b", "c")])
def test_relations_of_public_records_are_off_by_more_than_is_said(attrs):
    """The least, not the most: a model may know relations better than its public records do."""
    assert 0.4 < mean_ratio(attrs, [], lambda _, public, __: summed(public, attrs)) < 1


@pytest.mark.parametrize("stddev", [20.0, 60.0, 200.0])
def test_a_noisy_answer_takes_away_what_it_tells(stddev):
    """The best estimate weighs public records and answer, each by its variance."""
    attrs = ("b",)

    def weighed(private: np.ndarray, public: np.ndarray, seed: int) -> np.ndarray:
        noise = np.random.default_rng(10_000 + seed).normal(0, stddev, 5)
        noise -= noise.mean()  # the number of records is known
        share = summed(TRUTH, attrs)
        strays = N * (1 + N / M) * share * (1 - share)
        answered = summed(private, attrs) + noise
        trust = strays / (strays + stddev**2 * 4 / 5)
        return trust * answered + (1 - trust) * summed(public, attrs)

    assert mean_ratio(attrs, [made(attrs, stddev)], weighed) == pytest.approx(1, abs=0.03)


def test_answers_to_single_attributes_leave_their_relation_to_chance():
    counts = N * summed(TRUTH, ("a", "b"))
    singles = [made(("a",), 1e-6), made(("b",), 1e-6)]

    none, some, all_ = (
        expected(Chance(DOMAIN, N, answers, RECORDS), ("a", "b"), counts)
        for answers in ([], singles, [made(("a", "b"), 1e-6)])
    )

    # 12 of the 19 degrees of freedom of a table of 4 x 5 are the relation's; the other 7 stray by 1 + R.
    assert some / none == pytest.approx((12 / (12 + 7 * (1 + N / M))) ** 0.5, rel=0.05)
    assert all_ < 1e-3 * none


def test_one_number_of_a_marginal_tells_far_less_than_all():
    counts = N * summed(TRUTH, ("a",))
    cell = Measurement(Cell(("a", "b"), (0, 0)), np.zeros(1), 20.0)

    none, one, whole = (
        expected(Chance(DOMAIN, N, answers, RECORDS), ("a",), counts)
        for answers in ([], [cell], [made(("a", "b"), 20.0)])
    )

    assert whole < 0.5 * none
    assert 0.85 * none < one < none


def test_of_relations_only_the_private_records_own_sampling_is_sure():
    counts = N * summed(TRUTH, ("a", "b"))
    singles = [made(("a",), 1e-6), made(("b",), 1e-6)]

    few, many = (
        Chance(DOMAIN, N, singles, dict.fromkeys(DOMAIN.attrs, records)).variance(("a", "b"), counts)
        for records in (20.0, 1e12)
    )

    assert few == pytest.approx(many, rel=1e-6)


def test_attributes_without_public_records_have_no_least_error():
    counts = N * summed(TRUTH, ("a", "b"))

    assert not Chance(DOMAIN, N, [], {"c": M}).variance(("a", "b"), counts).any()
    partly = Chance(DOMAIN, N, [], {"a": M}).variance(("a", "b"), counts)
    assert 0 < partly.sum() < Chance(DOMAIN, N, [], RECORDS).variance(("a", "b"), counts).sum()


@pytest.mark.parametrize("counts", [[1e12, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
def test_values_that_nobody_has_leave_a_number_however_many_records_there_are(counts):
    with np.errstate(all="raise"):
        found = Chance(DOMAIN, 1e12, SINGLES, RECORDS).variance(("a",), np.array(counts))

    assert np.isfinite(found).all()


def test_noise_in_the_number_of_records_moves_every_cell():
    counts = N * summed(TRUTH, ("a",))
    exact, noisy = (
        Chance(DOMAIN, N, [], RECORDS, stddev).variance(("a",), counts) for stddev in (0.0, 300.0)
    )

    assert noisy - exact == pytest.approx((300 * counts / N) ** 2)


MODEL = Histogram.of_counts(DOMAIN, TRUTH * N, total=float(N))
SINGLES = tuple(
    Measurement(Marginal((attr,)), np.asarray(MODEL.count((attr,))).reshape(-1), 150.0)
    for attr in DOMAIN.attrs
)
WEIGHED = tuple(Dispersion(attrs=(attr,), s=4.0, sampling=1 + N / M) for attr in DOMAIN.attrs)
TOLD = ModelDispersion(
    levels={"unmet": 5.0}, trials={"unmet": 3}, spreads=WEIGHED, told_by_public=DOMAIN.attrs
)
ASKED = MeanErrors.of(list(itertools.combinations(DOMAIN.attrs, 2)), DOMAIN, Rho)


def said(measured: float, stddev: float, degree: int, public: dict[str, float] | None = None) -> float:
    """The mean error that is said of a degree, after each measured mean was this much."""
    chance = None if public is None else Chance(DOMAIN, N, SINGLES, public)
    guess = CountErrors(MODEL, SINGLES, TOLD, total_is_public=True, chance=chance)
    means = NoisyMeans((N * measured,) * len(ASKED.sets), (N * stddev,) * len(ASKED.sets))
    fit = calibrated(guess.parts, ASKED, means, DOMAIN, N)
    errors = CountErrors(MODEL, SINGLES, TOLD, fit, total_is_public=True)
    sets = itertools.combinations(DOMAIN.attrs, degree)
    return float(np.mean([errors.bars(attrs).expected_error for attrs in sets]))


def least(degree: int) -> float:
    chance, sets = Chance(DOMAIN, N, SINGLES, RECORDS), list(itertools.combinations(DOMAIN.attrs, degree))
    return float(np.mean([expected(chance, attrs, np.asarray(MODEL.count(attrs))) / N for attrs in sets]))


@pytest.mark.parametrize("degree", [1, 2])
def test_a_mean_that_drowns_in_its_noise_says_no_less_than_chance(degree):
    low = said(-0.2, 0.06, degree)

    assert low < 0.8 * least(degree)  # without public records, the noisy mean is believed
    assert said(-0.2, 0.06, degree, RECORDS) == pytest.approx(least(degree), rel=0.1)


@pytest.mark.parametrize("degree", [1, 2])
def test_a_mean_that_is_known_well_is_believed_below_chance_too(degree):
    """Public and private records may be the same people's."""
    assert said(0.01, 1e-5, degree, RECORDS) == pytest.approx(0.01, rel=0.05)


@pytest.mark.parametrize("degree", [1, 2])
def test_a_mean_that_contradicts_chance_is_believed(degree):
    """Where public records are few, chance knows little: private answers may have outweighed them."""
    few = dict.fromkeys(DOMAIN.attrs, 20.0)

    measured = 0.2 * least(2)

    assert said(measured, 0.08 * measured, degree, few) == said(measured, 0.08 * measured, degree)


def test_what_is_said_above_chance_stays_as_it_was():
    assert said(0.3, 0.02, 2, RECORDS) == said(0.3, 0.02, 2)


def test_a_release_says_no_less_than_chance_at_small_epsilon():
    """One-way tables of six releases: each is said to be off by about what two samples differ, or more."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        private, public = (
            Table.of_codes(DOMAIN, np.stack(np.unravel_index(codes, (4, 5, 3)), axis=1))
            for codes in (rng.choice(60, N, p=TRUTH.reshape(-1)) for _ in range(2))
        )
        release = sl.release(
            private, schema=sl.Schema.from_domain(DOMAIN), public=public, epsilon=0.1, delta=1e-9,
            workload="2-way", mechanism="aperture", noise=SeededNoise(seed), progress=False,
        )  # fmt: skip
        shares = {attr: np.asarray(release.count(attr)) / N for attr in DOMAIN.attrs}
        two_samples = [np.sqrt(2 / np.pi * p * (1 - p) * 2 / N).sum() for p in shares.values()]
        said_of_each = [release.error_bars(attr).expected_error for attr in DOMAIN.attrs]

        # At this ε noisy answers take off a tenth at most.
        assert np.mean(said_of_each) > 0.88 * np.mean(two_samples)


def test_a_release_about_people_counts_the_noise_in_the_number_of_records():
    """The number of kept records is private, and every table of a release is off by the noise in it."""
    unit = Unit(person="who", records=3)
    for seed in range(4):
        rng = np.random.default_rng(seed)
        codes = [rng.choice(60, N, p=TRUTH.reshape(-1)) for _ in range(2)]
        private, public = (
            pa.table(dict(zip("abc", np.unravel_index(one, (4, 5, 3)), strict=True))) for one in codes
        )
        release = sl.release(
            private.append_column("who", pa.array(np.arange(N) // 3)), schema=sl.Schema.from_domain(DOMAIN),
            public=public, epsilon=0.3, delta=1e-9, unit=unit, workload="2-way", mechanism="aperture",
            noise=SeededNoise(seed), progress=False,
        )  # fmt: skip
        (stddev,) = (event.stddev for event in release.events if event.what == "total")

        said_of_each = [release.error_bars(attr).expected_error for attr in DOMAIN.attrs]
        assert np.mean(said_of_each) > 0.95 * np.sqrt(2 / np.pi) * stddev / N
