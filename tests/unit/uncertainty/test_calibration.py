"""Error bars are fitted to measured quality: they say what was measured, and no more than it can tell."""

import itertools
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sidelight as sl
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.errors import SettingError
from sidelight.mean_errors import MeanErrors, NoisyMeans
from sidelight.measurement import Measurement
from sidelight.models.histogram import Histogram
from sidelight.privacy.budget import Rho
from sidelight.queries.query import Marginal
from sidelight.testing import SeededNoise
from sidelight.uncertainty.calibration import Calibration, Level, calibrated, expected_errors, strayed
from sidelight.uncertainty.count_errors import CountErrors
from sidelight.uncertainty.model_error import ModelDispersion

N = 10_000.0
DOMAIN = Domain.of({"a": 4, "b": 5, "c": 3, "d": 6})
MODEL = Histogram.of_counts(DOMAIN, np.random.default_rng(0).dirichlet(np.ones(360)) * N, total=N)
SINGLES = tuple(
    Measurement(Marginal((attr,)), np.asarray(MODEL.count((attr,))).reshape(-1), 20.0)
    for attr in DOMAIN.attrs
)
TOLD = ModelDispersion(levels={"unmet": 9.0}, trials={"unmet": 4})
ASKED = MeanErrors.of(list(itertools.combinations(DOMAIN.attrs, 3)), DOMAIN, Rho)


def fitted(means: Mapping[str, float], stddev: float) -> CountErrors:
    """Error bars after these means were measured, by degree or attribute; 0.1 where none is given."""
    guess = CountErrors(MODEL, SINGLES, TOLD)
    values = tuple(N * means.get(part.name, 0.1) for part in ASKED.sets)
    measured = NoisyMeans(values, (N * stddev,) * len(values))
    return CountErrors(MODEL, SINGLES, TOLD, calibrated(guess.parts, ASKED, measured, DOMAIN, N))


def said(errors: CountErrors, degree: int, *, with_attr: str = "") -> float:
    """The mean error that is said of all marginals of a degree."""
    wanted = [
        attrs for attrs in itertools.combinations(DOMAIN.attrs, degree) if not with_attr or with_attr in attrs
    ]
    return float(np.mean([errors.bars(attrs).expected_error for attrs in wanted]))


@pytest.mark.parametrize("measured", [0.02, 0.08, 0.4, 0.9])
def test_what_is_said_is_what_was_measured_where_its_noise_is_small(measured):
    means = {"3": measured, "2": measured / 2, "1": measured / 4} | dict.fromkeys(DOMAIN.attrs, measured)

    errors = fitted(means, 1e-5)

    assert said(errors, 3) == pytest.approx(measured, rel=0.02)
    assert said(errors, 2) == pytest.approx(measured / 2, rel=0.02)
    assert said(errors, 1) == pytest.approx(measured / 4, rel=0.02)


def test_what_drowns_in_its_noise_leaves_the_guess_nearly_as_it_was():
    guess = said(CountErrors(MODEL, SINGLES, TOLD), 3)

    assert [said(fitted({"3": measured}, 30.0), 3) / guess for measured in (-20.0, 20.0)] == pytest.approx(
        [0.75, 0.75], abs=0.1
    )


def test_an_attribute_whose_tables_are_off_by_more_gets_wider_bars():
    means = {"3": 0.1, "2": 0.05, "1": 0.02} | dict.fromkeys("abc", 0.09) | {"d": 0.12}

    errors = fitted(means, 1e-4)
    even = fitted(means | {"d": 0.1}, 1e-4)

    assert said(errors, 3, with_attr="d") > said(errors, 3)
    assert errors.bars(("a", "d")).expected_error > even.bars(("a", "d")).expected_error


@pytest.mark.parametrize("stddev", [20.0, 200.0, 600.0])
def test_fitting_attributes_again_and_again_does_not_widen_them_each_time(monkeypatch, stddev):
    """Noise does not grow with g: where it is most of the error, g must not be raised for it every round."""
    singles = tuple(
        Measurement(Marginal((attr,)), np.asarray(MODEL.count((attr,))).reshape(-1), stddev)
        for attr in DOMAIN.attrs
    )
    guess = CountErrors(MODEL, singles, TOLD)
    base = said(guess, 3)
    means = {"3": base, "2": base / 2, "1": base / 4} | dict.fromkeys("abc", 0.93 * base) | {"d": 1.25 * base}
    values = tuple(N * means[part.name] for part in ASKED.sets)
    found = []
    for rounds in (3, 12):
        monkeypatch.setattr("sidelight.uncertainty.calibration._ROUNDS", rounds)
        fit = calibrated(guess.parts, ASKED, NoisyMeans(values, (1e-3 * N * base,) * len(values)), DOMAIN, N)
        found.append(fit.attributes)

    assert found[0]["d"] > 1.1 > 1 > found[0]["a"]
    assert found[0] == pytest.approx(found[1], rel=0.06)


def test_noise_that_reaches_unmeasured_counts_is_scaled_once():
    level = Calibration(degrees={"1": Level(known=0.25, model=0.0)}, attributes={})
    guess, errors = CountErrors(MODEL, SINGLES, TOLD), CountErrors(MODEL, SINGLES, TOLD, level)

    attrs = ("a", "b")
    assert errors.bars(attrs).noise_variance == pytest.approx(0.25 * guess.bars(attrs).noise_variance)
    mask = np.ones((4, 5), dtype=bool)
    mask[0] = False
    before, after = (found.bars(("a", "b")).sum(mask).noise_variance for found in (guess, errors))
    assert after == pytest.approx(0.25 * before)


@pytest.mark.parametrize(("stddev", "least", "most"), [(20.0, 0.99, 1.0), (1e5, 0.25, 0.26)])
def test_noise_of_counts_far_above_it_stays_although_small_counts_lose_theirs(stddev, least, most):
    """Counts of about 2,500: noise of 20 stays, and noise of 100,000 does not, as no count is below 0."""
    singles = (replace(SINGLES[0], stddev=stddev),)
    level = Calibration(degrees={"1": Level(known=0.25, model=0.0)}, attributes={})
    guess, errors = (CountErrors(MODEL, singles, TOLD, one).bars(("a",)) for one in (None, level))

    left = errors.noise_variance / guess.noise_variance
    assert least < left.min() + 1e-9
    assert left.max() <= most


def test_a_fit_to_many_small_counts_does_not_take_the_noise_of_large_ones():
    """Noise of 100 on 300 values of 33 records, and on two of 5,000; quality finds smaller errors."""
    domain = Domain.of({"name": 300, "sex": 2})
    model = Histogram.of_counts(domain, np.full(600, N / 600), total=N)
    made = tuple(
        Measurement(Marginal((attr,)), np.asarray(model.count((attr,))).reshape(-1), 100.0)
        for attr in domain.attrs
    )
    asked = MeanErrors.of([("name",), ("sex",)], domain, Rho)
    guess = CountErrors(model, made, TOLD)
    found = 0.75 * np.mean([guess.bars((attr,)).expected_error for attr in domain.attrs])
    values = tuple(N * found for _ in asked.sets)
    level = calibrated(guess.parts, asked, NoisyMeans(values, (1e-4 * N,) * len(values)), domain, N)
    errors = CountErrors(model, made, TOLD, level)

    before, after = (
        {attr: one.bars((attr,)).expected_error for attr in domain.attrs} for one in (guess, errors)
    )
    assert after["name"] < 0.8 * before["name"]
    assert after["sex"] > 0.95 * before["sex"]
    assert np.mean(list(after.values())) == pytest.approx(found, rel=0.02)


def test_intervals_allow_for_how_little_is_known_of_one_table():
    level = Calibration(degrees={"1": Level(known=1.0, model=0.0)}, attributes={})
    low, high = CountErrors(MODEL, SINGLES, TOLD, level).bars(("a",)).interval()
    plain_low, plain_high = CountErrors(MODEL, SINGLES, TOLD).bars(("a",)).interval()

    assert np.all(high - low > 1.1 * (plain_high - plain_low))


@given(st.floats(0, 1e15), st.lists(st.floats(0, 1e6), min_size=1, max_size=30))
def test_no_error_is_said_to_be_above_two(variance, counts):
    estimate = np.array(counts)
    total = max(float(estimate.sum()), 1.0)

    errors = expected_errors(np.full(estimate.shape, variance), estimate, total)

    assert np.all(errors >= 0)
    assert errors.sum() / total <= 2 + 1e-9


def test_no_cell_strays_by_many_times_what_it_holds():
    counts = np.array([1.0, 100.0, 1e6])

    assert np.all(np.sqrt(strayed(counts, 1e12)) <= 3.2 * counts)
    assert strayed(counts, 0.1) == pytest.approx(0.1 * counts, rel=0.011)


@pytest.mark.parametrize(
    ("degrees", "attributes"),
    [({}, {}), ({"1": Level(known=-1.0, model=0.0)}, {}), ({"1": Level(known=1.0, model=0.0)}, {"a": 0.0})],
)
def test_a_calibration_that_cannot_be_is_refused(degrees, attributes):
    with pytest.raises(SettingError, match="fitted"):
        Calibration(degrees=degrees, attributes=attributes)


def test_a_release_carries_its_calibration_and_one_without_quality_has_none(tmp_path):
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 3, (2000, 3))
    codes[:, 1] = (codes[:, 0] + (rng.random(2000) < 0.2)) % 3
    private = sl.Table.of_codes(Domain.of({"a": 3, "b": 3, "c": 3}), codes)

    def made(share):
        return sl.release(
            private, schema=sl.Schema.from_domain(private.domain), epsilon=1, delta=1e-9, workload="2-way",
            mechanism="mst", quality_share=share, noise=SeededNoise(1), progress=False,
        )  # fmt: skip

    with_quality, without = made(0.02), made(0)
    loaded = sl.Release.load(with_quality.save(tmp_path / "out"))

    assert set(with_quality.card.calibration.degrees) == {"1", "2"}
    assert without.card.calibration is None
    assert loaded.card.calibration == with_quality.card.calibration
    assert loaded.error_bars(["a", "c"]).standard_error == pytest.approx(
        with_quality.error_bars(["a", "c"]).standard_error
    )


def test_tables_left_to_the_model_are_not_said_to_be_exact_because_measured_ones_err_less_than_their_noise():
    """Without a look LADDER leaves pairs of eight independent attributes; all errors are those of singles."""
    rng = np.random.default_rng(0)
    sizes = {"a": 12, "b": 14, "c": 8, "d": 4, "e": 13, "f": 6, "g": 11, "h": 4}
    codes = [rng.choice(size, 11_000, p=rng.dirichlet(np.full(size, 2.0))) for size in sizes.values()]
    table = Table.of_codes(Domain.of(sizes), np.stack(codes, axis=1))

    made = sl.release(
        table, schema=sl.Schema.from_domain(sizes), epsilon=0.1, delta=1e-9, workload="2-way",
        mechanism="ladder", pairs=4.0, noise=SeededNoise(0), progress=False,
    )  # fmt: skip

    bars = {attrs: made.error_bars(attrs) for attrs in itertools.combinations(sizes, 2)}
    left = {attrs: one for attrs, one in bars.items() if one.source == "model"}
    assert 2 <= len(left) < len(bars) / 2
    held = [
        (low <= exact) & (exact <= high)
        for (low, high), exact in ((one.interval(), table.count(attrs)) for attrs, one in left.items())
    ]
    large = [np.asarray(table.count(attrs)) >= 110 for attrs in left]
    assert np.concatenate([one[big] for one, big in zip(held, large, strict=True)]).mean() >= 0.9
    assert all("far too narrow" in one.words for one in left.values())
