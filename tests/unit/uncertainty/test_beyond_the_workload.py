"""Tables of more attributes than the workload asks for: measured quality does not tell of them."""

import numpy as np
import pytest

import sidelight as sl
from sidelight.testing import SeededNoise

DOMAIN = {"age": 4, "sex": 2, "ill": 2}
TRIPLE = ["age", "sex", "ill"]


def people(n=5000):
    """Illness follows from age and sex together, which no pair shows."""
    draw = np.random.default_rng(1)
    age, sex = draw.integers(0, 4, n), draw.integers(0, 2, n)
    ill = (age > 1) & (sex == 1) & (draw.random(n) < 0.6)
    return sl.Table.of_codes(sl.Domain.of(DOMAIN), np.stack([age, sex, ill.astype(int)], axis=1))


def pairs_of(mechanism, seed=2):
    return sl.release(
        people(), schema=sl.Schema.from_domain(DOMAIN), epsilon=3, delta=1e-9, workload="2-way",
        mechanism=mechanism, noise=SeededNoise(seed), progress=False,
    )  # fmt: skip


@pytest.mark.parametrize("mechanism", ["ladder", "hdmm"])
def test_where_nothing_tried_the_model_a_larger_table_has_no_interval(mechanism):
    release = pairs_of(mechanism)

    bars = release.error_bars(TRIPLE)

    assert bars.interval(0.95) is None
    assert bars.words.startswith("No interval")
    assert release.error_bars(TRIPLE[:2]).interval(0.95) is not None


def test_elsewhere_a_larger_table_is_off_by_the_guess_at_least():
    release = pairs_of("aim")
    exact = people().count(tuple(TRIPLE))

    bars = release.error_bars(TRIPLE)

    actual = np.abs(exact - bars.estimate).sum() / 5000
    assert actual / 2 < bars.expected_error
