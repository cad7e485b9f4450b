"""What every model keeps. Adding one to the list is how it joins."""

import itertools

import numpy as np
import pytest

from sidelight.data.domain import Domain
from sidelight.data.grouping import Grouping
from sidelight.errors import WorkloadError
from sidelight.fit.multiplicative_weights import MultiplicativeWeights
from sidelight.fit.private_pgm import MirrorDescent
from sidelight.measurement import Measurement
from sidelight.models.components import Components
from sidelight.models.evidence import along
from sidelight.models.histogram import Histogram
from sidelight.models.load import model_from_state
from sidelight.models.product_mixture import Blocks, ProductMixture
from sidelight.models.refined import Refined
from sidelight.models.support import Support
from sidelight.queries.query import Marginal

DOMAIN = Domain.of({"a": 2, "b": 3, "c": 4, "d": 2})
TOTAL = 250.0


def measured():
    rng = np.random.default_rng(9)
    return [
        Measurement(Marginal(attrs), rng.dirichlet(np.ones(DOMAIN.size(attrs))) * TOTAL, 1.0)
        for attrs in [("b",), ("c", "a")]
    ]


def fitted(kind):
    return MultiplicativeWeights(passes=30).estimate(kind.uniform(DOMAIN, total=TOTAL), measured())


MODELS = {
    "histogram": fitted(Histogram),
    "components": fitted(Components),
    "support": Support.random(DOMAIN, records=30, seed=3, total=TOTAL),
    "graphical": MirrorDescent().estimate(DOMAIN, measured(), total=TOTAL),
}
_BLOCKS = Blocks.of(DOMAIN)
_ROWS = np.random.default_rng(5).random((20, _BLOCKS.width))
for _columns in _BLOCKS.columns:
    _ROWS[:, _columns] /= _ROWS[:, _columns].sum(axis=1, keepdims=True)
MODELS["product mixture"] = ProductMixture(_BLOCKS, _ROWS, TOTAL)
GROUPING = Grouping(DOMAIN, {"c": (0, 0, 1, 1)})
MODELS["refined"] = Refined(
    MirrorDescent().estimate(GROUPING.domain, [], total=TOTAL),
    GROUPING,
    {"c": np.array([0.25, 0.75, 1.0, 0.0])},
)


@pytest.fixture(params=MODELS, ids=str)
def model(request):
    return MODELS[request.param]


def test_every_marginal_has_its_shape_is_not_negative_and_sums_to_the_total(model):
    for degree in range(len(DOMAIN) + 1):
        for attrs in itertools.combinations(DOMAIN.attrs, degree):
            counts = model.count(attrs)
            assert counts.shape == DOMAIN.project(attrs).shape
            assert counts.min() >= 0
            assert counts.sum() == pytest.approx(model.total, rel=1e-9)


def test_a_marginal_of_a_marginal_is_the_smaller_marginal(model):
    np.testing.assert_allclose(model.count(("a", "b", "c")).sum(axis=(0, 2)), model.count(("b",)))


def test_axes_come_in_the_order_asked(model):
    np.testing.assert_allclose(model.count(("c", "b", "a")), model.count(("a", "b", "c")).transpose(2, 1, 0))


def test_an_unknown_attribute_is_refused_by_name(model):
    with pytest.raises(WorkloadError, match="unknown attribute 'x'"):
        model.count(("a", "x"))


def test_samples_have_the_number_asked_for_follow_the_model_and_repeat_with_their_seed(model):
    table = model.sample(20_000, seed=4)

    assert table.records == 20_000
    for attrs in [("b",), ("a", "c"), ("d", "b")]:
        expected = model.count(attrs) * 20_000 / model.total
        # Four standard deviations of a sample without any rounding tricks.
        assert (np.abs(table.count(attrs) - expected) <= 4 * np.sqrt(expected) + 1).all()
    assert np.array_equal(table.count(DOMAIN.attrs), model.sample(20_000, seed=4).count(DOMAIN.attrs))


CONDITION = {"a": np.array([0.0, 1.0]), "c": np.array([1.0, 0.0, 0.0, 0.5])}


def conditioned(model):
    """The whole table under CONDITION, worked out cell by cell."""
    return model.count(DOMAIN.attrs) * along(DOMAIN.attrs, CONDITION)


def test_a_model_under_a_condition_counts_and_samples_what_meets_it(model):
    found = model.given(CONDITION)

    expected = conditioned(model)
    assert found.total == pytest.approx(expected.sum())
    np.testing.assert_allclose(found.count(("d", "c")), expected.sum(axis=(0, 1)).T, atol=1e-9)
    drawn = found.sample(5000, seed=4)
    assert drawn.records == 5000
    cells = drawn.count(DOMAIN.attrs)
    assert not cells[expected == 0].any()
    shares = expected * 5000 / expected.sum()
    assert (np.abs(cells - shares) <= 5 * np.sqrt(shares) + 1).all()


def test_a_condition_that_no_record_can_meet_leaves_no_model(model):
    nothing = {"a": np.zeros(2), "b": np.ones(3)}

    assert model.given(nothing) is None


def test_no_records_can_be_sampled_too(model):
    assert model.sample(0, seed=1).records == 0


def test_a_model_comes_back_from_its_state(model):
    again = model_from_state(DOMAIN, model.state())

    assert type(again) is type(model)
    assert again.total == model.total
    np.testing.assert_allclose(again.count(("d", "c", "a")), model.count(("d", "c", "a")), rtol=1e-12)
