"""A blend of a graphical model and weighted records: its counts, its records, and its state."""

import numpy as np
import pytest

from cards import card_of
from sidelight.data.domain import Domain
from sidelight.measurement import Measurement
from sidelight.models.blend import Blend
from sidelight.models.graphical import GraphicalModel
from sidelight.models.load import model_from_state
from sidelight.models.support import Support
from sidelight.queries.query import Marginal
from sidelight.releases.release import Release

DOMAIN = Domain.of({"a": 2, "b": 3, "c": 2})
N = 60.0
SHARES = [0.0, 1e-9, 0.3, 0.5, 1.0]


def blend_of(share):
    rng = np.random.default_rng(2)
    potentials = {("a", "b"): rng.normal(size=(2, 3)), ("c",): rng.normal(size=2)}
    # In the records a = b = c throughout; the model knows nothing of c and the rest.
    records = Support(DOMAIN, np.array([[0, 0, 0], [1, 1, 1]]), np.array([20.0, 40.0]), N)
    return Blend(GraphicalModel(DOMAIN, N, potentials), records, share)


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("attrs", [(), ("b",), ("c", "a"), ("a", "b", "c")])
def test_counts_are_those_of_both_mixed(share, attrs):
    blend = blend_of(share)

    expected = (1 - share) * blend.model.count(attrs) + share * blend.records.count(attrs)

    assert blend.count(attrs) == pytest.approx(expected, rel=1e-12)
    assert blend.count(attrs).sum() == pytest.approx(blend.total)


def test_each_of_many_counts_finds_its_place():
    blend, wanted = blend_of(0.4), [("c", "b"), ("a",), ("b", "c"), ("a",)]

    each = dict(blend.count_each(wanted))

    assert sorted(each) == [0, 1, 2, 3]
    for place, attrs in enumerate(wanted):
        assert each[place] == pytest.approx(blend.count(attrs))


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("number", [0, 1, 2, 7, 500])
def test_a_sample_has_the_number_asked_for_and_repeats_with_its_seed(share, number):
    blend = blend_of(share)
    for seed in range(5):
        table = blend.sample(number, seed=seed)

        assert table.records == number
        assert table.domain == DOMAIN
        assert np.array_equal(table.codes(), blend.sample(number, seed=seed).codes())


def test_another_seed_is_another_sample():
    first, second = (blend_of(0.3).sample(300, seed=seed).codes() for seed in (1, 2))

    assert not np.array_equal(first, second)


@pytest.mark.parametrize(("share", "source"), [(0.0, "model"), (1.0, "records")])
def test_at_the_ends_all_records_come_from_one_of_both(share, source):
    blend = blend_of(share)

    found = blend.sample(40, seed=3)

    alone = getattr(blend, source).sample(40, seed=3)
    assert np.array_equal(found.count(DOMAIN.attrs), alone.count(DOMAIN.attrs))


def test_the_last_of_all_random_numbers_asks_for_no_record_too_many(monkeypatch):
    class Last:
        """Rounds up: 500 and this are 501 in double arithmetic."""

        def random(self):
            return 1 - 2.0**-53

        def permutation(self, number):
            return np.arange(number)

    blend = blend_of(1.0)
    whole, nothing = (blend.records.sample(number, seed=1) for number in (500, 0))
    monkeypatch.setattr(Support, "sample", lambda self, number, seed: {500: whole}[number])
    monkeypatch.setattr(GraphicalModel, "sample", lambda self, number, seed: {0: nothing}[number])
    monkeypatch.setattr(np.random, "default_rng", lambda seed: Last())

    assert blend.sample(500, seed=1).records == 500


def test_few_records_come_from_both_in_the_right_shares_on_average():
    blend = blend_of(0.25)
    # Two records: none or one of them is of the weighted records; b = 2 is in the model alone.
    found = np.mean([blend.sample(2, seed=seed).count(("b",)) for seed in range(500)], axis=0)

    assert found == pytest.approx(blend.count(("b",)) * 2 / N, abs=0.12)


def test_records_of_both_are_mixed_in_order():
    codes = blend_of(0.5).sample(400, seed=1).codes()

    is_like_records = (codes[:, 0] == codes[:, 1]) & (codes[:, 0] == codes[:, 2])
    assert abs(is_like_records[:200].sum() - is_like_records[200:].sum()) < 60


def test_the_state_of_a_blend_gives_it_back():
    blend = blend_of(0.3)

    again = model_from_state(DOMAIN, blend.state())

    assert isinstance(again, Blend)
    assert (again.share, again.total) == (0.3, N)
    assert np.array_equal(again.records.records, blend.records.records)
    assert np.array_equal(again.count(DOMAIN.attrs), blend.count(DOMAIN.attrs))


def test_a_saved_release_keeps_the_blend_and_its_samples(tmp_path):
    blend = blend_of(0.3)
    answer = Measurement(Marginal(("a",)), np.array([20.0, 40.0]), 1.0)
    Release(blend, (answer,), card_of(blend)).save(tmp_path / "out")

    loaded = Release.load(tmp_path / "out").model

    assert isinstance(loaded, Blend)
    assert loaded.share == blend.share
    assert loaded.records.records.shape == blend.records.records.shape
    assert np.array_equal(loaded.count(DOMAIN.attrs), blend.count(DOMAIN.attrs))
    assert np.array_equal(loaded.sample(99, seed=4).codes(), blend.sample(99, seed=4).codes())
