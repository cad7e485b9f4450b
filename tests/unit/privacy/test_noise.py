import math
from fractions import Fraction

import numpy as np
import pytest

from sidelight.errors import InputError, SettingError
from sidelight.privacy import noise as noise_module
from sidelight.privacy.coins import below, exp_bounds
from sidelight.privacy.noise import SystemNoise, _histogram, discrete_gaussian, discrete_laplace
from sidelight.testing import SeededNoise

SETTINGS = [
    (Fraction(1, 2), 2),  # σ² = 1
    (Fraction(1, 2 * 2500), 2),  # σ = 50
    (Fraction(10**6, 2), 2),  # σ = 0.001
    (Fraction(1, 2 * 10**18), 2),  # σ = 10⁹
    (Fraction(1), 1),
    (Fraction(7, 10**4), 1),
    (Fraction(1, 2**40), 1),
]
PLAIN = [SETTINGS[i] for i in (0, 1, 3, 4, 5, 6)]
"""All but the one whose blocks other than 0 are beyond belief."""
ALL_ONES = 2**64 - 1


def attempt_word(histogram, slot: int, place: int, u: int) -> int:
    return slot | place << 12 | u << (12 + histogram.block_bits)


def u_bits_of(histogram) -> int:
    return 52 - histogram.block_bits


@pytest.mark.parametrize("draw", [discrete_gaussian, discrete_laplace])
@pytest.mark.parametrize("size", [0, 1, 2, 40_000])
def test_as_many_integers_come_out_as_were_asked(draw, size):
    drawn = draw(SystemNoise(), Fraction(9), size)

    assert drawn.shape == (size,)
    assert drawn.dtype == np.int64


@pytest.mark.parametrize(
    "setting",
    [Fraction(1, 10**400), Fraction(1, 10**6), Fraction(10**40 + 1, 3 * 10**38), Fraction(1, 3), 4],
)
@pytest.mark.parametrize("draw", [discrete_gaussian, discrete_laplace])
def test_any_positive_fraction_works(draw, setting):
    drawn = draw(SeededNoise(1), setting, 1000)

    assert np.abs(drawn).max() <= 60 * math.sqrt(max(1.0, float(setting))) * max(1.0, float(setting)) ** 0.5


@pytest.mark.parametrize("draw", [discrete_gaussian, discrete_laplace])
@pytest.mark.parametrize("setting", [Fraction(0), Fraction(-1), Fraction(2**63), 0.5, math.nan])
def test_a_scale_that_cannot_be_drawn_is_refused(draw, setting):
    with pytest.raises(
        SettingError, match=r"^(variance|scale) must be a fraction above 0 and at most .*; got"
    ):
        draw(SeededNoise(1), setting, 3)


@pytest.mark.parametrize("size", [-1, 2.0])
def test_a_size_that_is_no_count_is_refused(size):
    with pytest.raises(InputError, match="size must be a whole number of at least 0"):
        discrete_gaussian(SeededNoise(1), Fraction(1), size)


def test_tiny_variance_gives_zeros():
    assert not discrete_gaussian(SystemNoise(), Fraction(1, 10**6), 100_000).any()
    assert not discrete_laplace(SystemNoise(), Fraction(1, 10**3), 100_000).any()


def test_the_largest_variance_gives_noise_of_its_size():
    drawn = discrete_gaussian(SeededNoise(3), Fraction(10**18), 20_000)

    assert drawn.std() == pytest.approx(1e9, rel=0.03)
    assert np.unique(drawn % 1024).size == 1024


def test_equal_seeds_give_equal_draws_and_others_do_not():
    first, second, other = (discrete_gaussian(SeededNoise(s), Fraction(100), 500) for s in (7, 7, 8))

    assert np.array_equal(first, second)
    assert not np.array_equal(first, other)


def test_draws_do_not_repeat_from_chunk_to_chunk():
    chunk = noise_module._CHUNK
    drawn = discrete_gaussian(SeededNoise(5), Fraction(10**12), 3 * chunk)

    for lag in (1, chunk - 1, chunk, chunk + 1):
        correlation = np.corrcoef(drawn[:-lag], drawn[lag:])[0, 1]
        assert abs(correlation) < 5 / math.sqrt(drawn.size - lag)


@pytest.mark.parametrize(("rate", "power"), SETTINGS)
def test_no_block_is_kept_with_a_probability_above_one(rate, power):
    """n_v ≥ c·g at both ends of every block, in integer arithmetic; and so in the tails."""
    histogram = _histogram(rate, power)
    width = 1 << histogram.block_bits

    for i, n_v in enumerate(histogram.slots.tolist()):
        v = i - histogram.blocks
        for z in (v * width, (v + 1) * width - 1):
            _, high = exp_bounds(histogram.energy(z), 200)
            assert histogram.height * high <= n_v << 200
    for j in range(200):
        z = (histogram.blocks + 4 * j) * width
        _, high = exp_bounds(histogram.energy(z), 600)
        assert histogram.height * 2 ** (40 + j) * high < 1 << 600


@pytest.mark.parametrize(("rate", "power"), SETTINGS)
def test_slots_and_blocks_add_up(rate, power):
    histogram = _histogram(rate, power)

    assert histogram.slots.min() >= 1
    assert histogram.slots.sum() == 4095
    assert histogram.blocks <= 129
    assert histogram.energy(histogram.blocks << histogram.block_bits) >= 40
    assert np.bincount((histogram.start[1:] >> histogram.block_bits) + histogram.blocks).tolist() == (
        histogram.slots.tolist()
    )


def law_of_words_gone_through(scripted, rate: Fraction, power: int, steps: int) -> dict[int, float]:
    """How often each integer comes out when slots and places are all gone through, and U in steps."""
    histogram = _histogram(rate, power)
    width = 1 << histogram.block_bits
    middles = (2 * np.arange(steps, dtype=np.uint64) + 1) * np.uint64(
        2 ** u_bits_of(histogram) // (2 * steps)
    )
    slot, place, u = np.meshgrid(
        np.arange(4096, dtype=np.uint64), np.arange(width, dtype=np.uint64), middles, indexing="ij"
    )
    words = slot | place << np.uint64(12) | u << np.uint64(12 + histogram.block_bits)
    kept = histogram.attempt(scripted(*words.ravel().tolist()), words.size)
    values, counts = np.unique(kept, return_counts=True)
    return dict(zip(values.tolist(), (counts / kept.size).tolist(), strict=True))


@pytest.mark.parametrize(
    ("rate", "power", "at_zero"), [(Fraction(1, 2), 2, 0.39894228), (Fraction(1), 1, 0.46211716)]
)
def test_words_gone_through_one_by_one_give_the_law(rate, power, at_zero, scripted):
    law = law_of_words_gone_through(scripted, rate, power, steps=64)

    assert law[0] == pytest.approx(at_zero, rel=1e-2)
    for z in range(-3, 4):
        expected = at_zero * math.exp(-float(rate) * abs(z) ** power)
        assert law[z] == pytest.approx(expected, rel=1 / 64)


@pytest.mark.parametrize(("rate", "power"), PLAIN)
@pytest.mark.parametrize("slot", [1, 700, 2048, 4095])
@pytest.mark.parametrize("step", [-1, 1])
def test_an_attempt_too_close_for_doubles_is_decided_as_rationals_decide(rate, power, slot, step, scripted):
    """U agrees with the probability in all its first bits and in all but the last of 64 more."""
    histogram = _histogram(rate, power)
    u_bits = u_bits_of(histogram)
    place = (1 << histogram.block_bits) // 3
    z = int(histogram.start[slot]) + place
    n_v = int(histogram.slots[(z >> histogram.block_bits) + histogram.blocks])
    low, _ = exp_bounds(histogram.energy(z), 2000)
    probability = histogram.height / n_v * low
    u = max(0, int(probability * 2 ** (u_bits + 64)) // 2**2000 + 2 * step)
    script = scripted(attempt_word(histogram, slot, place, u >> 64), u & ALL_ONES, 0)

    kept = histogram.attempt(script, 1)

    assert kept.tolist() == ([z] if Fraction(u, 2 ** (u_bits + 64)) < probability / 2**2000 else [])
    assert len(script.script) < 2, "the extra word was not asked for: the attempt was decided too early"


@pytest.mark.parametrize(("rate", "power"), PLAIN)
@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("is_kept", [True, False])
def test_the_tails_reach_beyond_the_blocks(rate, power, side, is_kept, scripted):
    histogram = _histogram(rate, power)
    j, place = 2, 3
    width_bits = histogram.block_bits + 2
    place_word = place << (64 - width_bits) | side
    last = [0] * 40 if is_kept else [ALL_ONES]
    in_tails = [0] if u_bits_of(histogram) < 36 else []
    script = scripted(attempt_word(histogram, 0, 0, 0), *in_tails, 1 << j, place_word, *last)

    kept = histogram.attempt(script, 1).tolist()

    size = (histogram.blocks << histogram.block_bits) + (j << width_bits) + place
    expected = ~size if side else size
    assert kept == ([expected] if is_kept else [])


def test_slot_zero_is_not_the_tails_unless_u_is_small_enough(scripted):
    histogram = _histogram(Fraction(1, 2), 2)
    edge = 2 ** (52 - 36)

    assert histogram.attempt(scripted(attempt_word(histogram, 0, 0, edge)), 1).size == 0
    assert histogram.attempt(scripted(attempt_word(histogram, 0, 0, edge + 1)), 1).size == 0
    with pytest.raises(AssertionError, match="more words"):
        histogram.attempt(scripted(attempt_word(histogram, 0, 0, edge - 1)), 1)


def test_a_tail_coin_can_be_longer_than_a_word(scripted):
    histogram = _histogram(Fraction(1, 2), 2)
    script = scripted(attempt_word(histogram, 0, 0, 0), 0, 0, 1 << 5, 0, ALL_ONES)

    assert histogram.attempt(script, 1).size == 0
    assert script.script == []


def test_undecided_attempts_are_as_rare_as_promised(monkeypatch):
    asked = []

    def counted(*arguments):
        asked.append(arguments)
        return below(*arguments)

    monkeypatch.setattr(noise_module, "below", counted)
    discrete_gaussian(SeededNoise(2), Fraction(10**6), 100_000)

    assert len(asked) <= 1
