"""Error bars say what noise makes and what the model makes, from released outputs alone."""

from dataclasses import replace

import numpy as np
import pytest

from sidelight.data.domain import Domain
from sidelight.measurement import Measurement
from sidelight.models.histogram import Histogram
from sidelight.queries.merged import Merged
from sidelight.queries.query import Cell, Marginal
from sidelight.uncertainty.count_errors import CountErrors
from sidelight.uncertainty.count_noise import CellNoise, KnownNoise, ReachingNoise
from sidelight.uncertainty.dispersion import variance_at_one
from sidelight.uncertainty.error_bars import ErrorBars
from sidelight.uncertainty.model_error import Dispersion, ModelDispersion
from sidelight.uncertainty.unbiased import Unbiased

DOMAIN = Domain.of({"a": 2, "b": 3, "c": 2})
N = 1200.0
COUNTS = np.arange(1.0, 13.0).reshape(DOMAIN.shape)
MODEL = Histogram.of_counts(DOMAIN, COUNTS, total=N)
TOLD = ModelDispersion(levels={"met": 2.0, "unmet": 8.0}, trials={"met": 3, "unmet": 5})


def measured(attrs, stddev, *, off=0.0):
    """An answer that the model follows, or is off from by so much in each cell."""
    answer = MODEL.count(tuple(attrs)).reshape(-1)
    return Measurement(Marginal(tuple(attrs)), answer + off * (-1) ** np.arange(answer.size), stddev)


def bars(attrs, *measurements, told=TOLD):
    return CountErrors(MODEL, measurements, told).bars(tuple(attrs))


def test_what_was_measured_is_off_by_its_noise():
    found = bars("ab", measured("ab", 5.0))

    assert found.source == "private"
    assert found.noise_error == pytest.approx(np.full((2, 3), 5.0))
    assert found.model_error == pytest.approx(np.zeros((2, 3)))
    assert found.standard_error == pytest.approx(found.noise_error)


def test_several_measurements_count_together_and_sums_of_cells_add_their_noise():
    found = bars("a", measured("ab", 5.0), measured("ac", 5.0))

    assert found.noise_error == pytest.approx(np.full(2, (1 / (25 * 3) + 1 / (25 * 2)) ** -0.5))


def test_an_answer_that_merged_rare_values_makes_the_others_more_precise():
    merged = Measurement(Merged(("b",), ((0, 1, 1),)), MODEL.count(("b",))[:2], 5.0)

    found = bars("b", measured("b", 5.0), merged)

    assert found.noise_error == pytest.approx([5 / np.sqrt(2), 5.0, 5.0])


def test_a_model_that_does_not_follow_an_answer_is_off_by_more_than_noise():
    found = bars("ab", measured("ab", 5.0, off=50.0))

    assert found.noise_error == pytest.approx(np.full((2, 3), 5.0))
    assert np.sqrt((found.model_error**2).mean()) == pytest.approx(50.0, rel=0.1)


def test_answers_are_compared_in_the_order_asked():
    followed = bars("ca", measured("ab", 5.0), measured("abc", 5.0))

    assert followed.estimate.shape == (2, 2)
    assert followed.model_error.max() < 1e-6


def test_a_residual_that_hides_in_noise_cell_by_cell_shows_in_the_sums():
    """Each of six cells is off by 4.9 of σ = 5, all in one direction: a sum of three by 14.7 of 8.7."""
    answer = MODEL.count(("a", "b")).reshape(-1) + 4.9 * np.array([1, 1, 1, -1, -1, -1])
    made = Measurement(Marginal(("a", "b")), answer, 5.0)

    assert bars("ab", made).model_error.max() == 0
    assert bars("a", made).model_error.max() > 5


def test_noise_by_itself_is_hardly_ever_read_as_an_error_of_the_model():
    """The model is right, and answers have noise: what is called misfit is chance alone."""
    rng = np.random.default_rng(7)
    right = MODEL.count(("a", "b")).reshape(-1)
    found = [
        bars("ab", Measurement(Marginal(("a", "b")), right + 500 * rng.standard_normal(6), 500.0))
        for _ in range(400)
    ]

    read = np.mean([one.model_error.max() ** 2 for one in found])
    assert read < 0.2 * 500**2  # 0.13; 0.30 if every excess above 0 counted
    assert np.mean([one.model_error.max() == 0 for one in found]) > 0.75


def prior_of(attrs, s, *, level=0.0, sampling=0.0):
    spread = Dispersion(attrs=tuple(attrs), s=s, sampling=sampling)
    return replace(TOLD, levels={"unmet": level}, spreads=(spread,))


@pytest.mark.parametrize(("s", "noise", "model"), [(1e9, 5.0, 0.0), (1e-9, 0.0, 0.0)])
def test_a_prior_shares_the_error_with_the_noise(s, noise, model):
    found = bars("ab", measured("ab", 5.0), told=prior_of("ab", s))

    assert found.source == "both"
    assert found.noise_error == pytest.approx(np.full((2, 3), noise), abs=1e-3)
    assert found.model_error == pytest.approx(np.full((2, 3), model), abs=1e-3)


@pytest.mark.parametrize(
    ("public", "asked", "source"),
    [
        (("a", "b"), "ab", "both"),
        ((), "ab", "private"),
        (("a", "c"), "ab", "private"),
        (("a", "c"), "a", "both"),
    ],
)
def test_both_is_what_public_data_tell_all_of(public, asked, source):
    told = replace(prior_of("ab", 0.3), told_by_public=public)

    found = bars(asked, measured("ab", 5.0), told=told)

    assert found.source == source
    assert ("public data" in found.words) == (source == "both")


def test_a_public_number_of_records_is_a_public_number():
    made = [measured("ab", 5.0)]
    known, noisy = (
        CountErrors(MODEL, made, prior_of("ab", 0.3), total_is_public=public).bars(())
        for public in (True, False)
    )

    assert (known.source, noisy.source) == ("public", "private")
    assert float(known.standard_error) == 0
    assert [float(end) for end in known.interval()] == [N, N]
    assert "public" in known.words
    assert float(noisy.standard_error) > 0


def test_with_a_prior_both_parts_make_the_variance_of_the_posterior():
    found = bars("ba", measured("ab", 5.0), told=prior_of("ab", 0.3))

    believed = 0.3 * variance_at_one(found.estimate, total=N, cells=6)
    assert found.standard_error**2 == pytest.approx(1 / (1 / 25 + 1 / believed))
    assert (found.noise_error > 0).all()
    assert (found.model_error > 0).all()


def test_with_a_prior_too_what_a_fit_does_not_follow_counts():
    """It follows the answer all the way, or so its s says; but it is ten standard deviations off."""
    told = prior_of("ab", 1e9)
    close, off = (bars("ab", measured("ab", 5.0, off=off), told=told) for off in (5.0, 50.0))

    assert close.noise_error == pytest.approx(off.noise_error, abs=1e-3)
    assert np.sqrt((close.model_error**2).mean()) == pytest.approx(5.0, rel=0.1)
    assert np.sqrt((off.model_error**2).mean()) == pytest.approx(50.0, rel=0.1)


def test_a_prior_explains_what_it_holds_back():
    """A fit that trusts its prior is meant to be off from the answer by noise, and by the prior's error."""
    told = prior_of("ab", 1e-9, level=4.0)

    near, far = (bars("ab", measured("ab", 5.0, off=off), told=told) for off in (5.0, 500.0))

    believed = 4.0 * variance_at_one(near.estimate, total=N, cells=6)
    assert near.model_error**2 == pytest.approx(believed)
    assert (far.model_error**2 > 2 * believed).all()


def test_a_prior_that_the_fit_trusted_too_much_is_not_believed_to_be_that_good():
    """The fit took the prior as exact; it errs as others did, or at least as its records' sampling does."""
    pair = bars("ab", measured("ab", 5.0), told=prior_of("ab", 1e-9, level=4.0, sampling=100.0))
    single = bars("a", measured("a", 5.0), told=prior_of("a", 1e-9, level=4.0, sampling=9.0))

    assert pair.model_error**2 == pytest.approx(4.0 * variance_at_one(pair.estimate, total=N, cells=6))
    assert single.model_error**2 == pytest.approx(9.0 * variance_at_one(single.estimate, total=N, cells=2))


def test_a_card_that_lost_the_spread_of_a_measured_marginal_is_read_as_if_it_had_none():
    """Somebody edited the card: an answer must not end in a KeyError."""
    made = measured("a", 4.0)

    found = bars("a", made, told=prior_of("b", 1.0))

    np.testing.assert_allclose(found.noise_error, bars("a", made).noise_error)
    np.testing.assert_allclose(found.model_error, bars("a", made).model_error)


def test_what_nothing_measured_together_is_off_by_the_level_of_its_kind():
    pairs = [measured(pair, 5.0) for pair in ("ab", "bc", "ac")]

    met, unmet = bars("abc", *pairs), bars("ac", *pairs[:2])

    assert met.source == unmet.source == "model"
    assert met.model_error**2 == pytest.approx(2.0 * variance_at_one(met.estimate, total=N, cells=12))
    assert unmet.model_error**2 == pytest.approx(8.0 * variance_at_one(unmet.estimate, total=N, cells=4))


def test_noise_in_single_attributes_reaches_what_nothing_measured_together():
    found = bars("ac", measured("a", 30.0), measured("c", 40.0))

    a, c = MODEL.count(("a",)) / N, MODEL.count(("c",)) / N
    assert found.noise_error**2 == pytest.approx(30**2 * c[None, :] ** 2 + 40**2 * a[:, None] ** 2)
    assert found.standard_error**2 == pytest.approx(found.noise_error**2 + found.model_error**2)


def test_cells_of_one_value_move_together_with_its_noise():
    found = bars("ac", measured("a", 30.0), measured("c", 40.0))
    side, whole = np.array([[True, True], [False, False]]), np.ones((2, 2))

    a = MODEL.count(("a",)) / N
    assert found.sum(side).noise_variance == pytest.approx(30**2 + 2 * 40**2 * a[0] ** 2)
    assert found.sum(whole).noise_variance == pytest.approx(2 * 30**2 + 2 * 40**2)


def test_a_value_that_noise_drove_to_nothing_may_have_records():
    empty = Histogram.of_counts(DOMAIN, COUNTS * np.array([0.0, 1.0]).reshape(2, 1, 1), total=N)
    ones = [Measurement(Marginal((attr,)), empty.count((attr,)), 200.0) for attr in "ab"]

    found = CountErrors(empty, ones, TOLD).bars(("a", "b"))

    assert found.estimate[0].max() == 0
    assert found.interval(0.95)[1][0].min() > 50


def test_a_kind_that_was_never_tried_takes_the_level_of_the_rest_only_if_that_is_safe():
    pairs = [measured(pair, 5.0) for pair in ("ab", "bc", "ac")]
    only_unmet, only_met = (replace(TOLD, levels={kind: 8.0}) for kind in ("unmet", "met"))

    assert bars("abc", *pairs, told=only_unmet).model_error is not None
    assert bars("ac", *pairs[:2], told=only_met).standard_error is None


def test_an_attribute_that_nothing_told_of_has_no_interval():
    found = bars("ac", measured("ab", 5.0), told=replace(TOLD, untold=("c",)))

    assert found.interval() is None
    assert found.words.startswith("No interval")


def test_single_cells_say_nothing_about_noise_on_a_marginal():
    found = bars("ab", Measurement(Cell(("a", "b"), (0, 0)), np.array([30.0]), 5.0))

    assert found.noise_error is None
    assert found.source == "model"


def test_a_release_that_estimated_no_model_error_gives_noise_alone():
    known, unknown = bars("ab", measured("ab", 5.0), told=None), bars("ac", measured("ab", 5.0), told=None)

    assert known.model_error is None
    assert known.standard_error == pytest.approx(np.full((2, 3), 5.0))
    assert "noise alone" in known.words
    assert unknown.standard_error is None
    assert unknown.interval() is None


def test_an_interval_grows_with_its_confidence_and_never_holds_less_than_nobody():
    found = bars("abc", measured("ab", 5.0))

    (low, high), (lower, higher) = found.interval(0.5), found.interval(0.99)

    assert (lower <= low).all()
    assert (higher > high).all()
    assert lower.min() == 0


def test_a_sum_of_cells_adds_noise_and_all_cells_together_have_no_model_error():
    noisy, modelled = bars("ab", measured("ab", 5.0)), bars("abc", measured("ab", 5.0))
    two = np.array([[True, True, False], [False, False, False]])

    assert noisy.sum(two).noise_error == pytest.approx(5 * np.sqrt(2))
    assert noisy.sum(two).estimate == pytest.approx(noisy.estimate[two].sum())
    assert modelled.sum(np.ones(modelled.estimate.shape)).model_error == pytest.approx(0, abs=1e-3)


def test_a_sum_to_a_smaller_marginal_is_off_as_that_marginal_is():
    cell, whole = bars("bc", measured("a", 5.0)), bars("b", measured("a", 5.0))
    side = np.zeros((3, 2), dtype=bool)
    side[1] = True

    assert cell.sum(side).model_error == pytest.approx(whole.model_error[1], rel=0.01)


def shared(weights):
    """The variance of a weighted sum of cells that have errors in common."""
    return float(np.sum(weights) ** 2 + (np.arange(weights.size) * weights.reshape(-1) ** 2).sum())


@pytest.mark.parametrize("kept", [0, 1, 2, 3])
@pytest.mark.parametrize("kind", ["apart", "reached", "shared", "unbiased"])
def test_sums_of_many_cells_at_once_are_those_of_each(kind, kept):
    draw = np.random.default_rng(5)
    shape = (3, 4, 5)
    counts, noise, model = draw.uniform(1, 9, size=(3, *shape))
    mask = draw.uniform(size=shape) < 0.6
    mask[1] = False
    known, reaching = KnownNoise(noise, shared), ReachingNoise({0: noise[:, 0, 0], 2: noise[0, 0]}, model)
    laws = {"apart": CellNoise(noise), "reached": reaching, "shared": known, "unbiased": known}
    unbiased = Unbiased(model, known) if kind == "unbiased" else None
    bars = ErrorBars(counts, laws[kind], model, float(counts.sum()), "model", unbiased=unbiased)

    at_once = bars.sum(mask, kept=kept)

    for cell in np.ndindex(shape[:kept]):
        own = np.zeros(shape, dtype=bool)
        own[cell] = mask[cell]
        each = bars.sum(own)
        assert each.estimate == pytest.approx(counts[own].sum())
        for part in ("estimate", "noise_variance", "model_variance"):
            assert getattr(at_once, part)[cell] == pytest.approx(getattr(each, part)), part
        if kind == "unbiased":
            assert at_once.unbiased.noise.variance[cell] == pytest.approx(shared(own.astype(float)))
            assert at_once.unbiased.values[cell] == pytest.approx(model[own].sum())


def test_what_moves_with_one_value_adds_up_before_it_is_squared():
    shares = np.array([[0.3, 0.25, 0.0], [0.2, 0.0, 0.0]])
    noise = ReachingNoise({0: np.array([4.0, 9.0])}, shares)

    found = noise.sums(np.array([[True, True, False], [True, False, True]])).variance

    assert found == pytest.approx(4 * 0.75**2 + 9 * 0.5**2)
