"""Generator networks: their answers by hand, what training lowers, and that it repeats."""

import numpy as np
import pytest

from sidelight.data.domain import Combination, Domain
from sidelight.errors import SchemaError, SettingError
from sidelight.fit import generator
from sidelight.fit.generator import Generator, Target, Training
from sidelight.models.product_mixture import Blocks, ProductMixture
from torched import NEEDS_TORCH

pytestmark = NEEDS_TORCH

DOMAIN = Domain.of({"a": 2, "b": 3, "c": 4})
ALL = Training(steps=60, rate=1e-2, loss="all", at_once=8)
LARGEST = Training(steps=60, rate=1e-2, loss="largest", at_once=8)


def drawn(domain=DOMAIN, seed=3, device="cpu"):
    return Generator.drawn(domain, batch=16, latent=5, hidden=[8, 6], seed=seed, device=device)


@pytest.fixture
def gpu():
    import torch

    if not torch.cuda.is_available():
        pytest.skip("no GPU here")


def noisy_targets(seed=0, stddev=0.02):
    """Marginals of a table in which b follows a, with noise."""
    rng = np.random.default_rng(seed)
    joint = rng.dirichlet(np.full(24, 0.3)).reshape(2, 3, 4)
    return [
        Target(attrs, (cells := joint.sum(axis=gone).reshape(-1)) + rng.normal(0, stddev, cells.size))
        for attrs, gone in ((("a", "b"), 2), (("b", "c"), 0), (("a", "c"), 1))
    ]


def by_hand(weights, blocks):
    """The forward pass in NumPy."""
    h = weights["noise"].astype(np.float64)
    layers = sum(name.startswith("scale_") for name in weights)
    for layer in range(layers):
        inner = h @ weights[f"matrix_{layer}"] + weights[f"shift_{layer}"]
        inner = (inner - inner.mean(axis=0)) / np.sqrt(inner.var(axis=0) + 1e-5)
        inner = inner * weights[f"scale_{layer}"] + weights[f"offset_{layer}"]
        h = np.concatenate([np.maximum(inner, 0), h], axis=1)
    logits = np.where(blocks.possible, h @ weights[f"matrix_{layers}"] + weights[f"shift_{layers}"], -np.inf)
    rows = np.exp(logits)
    for columns in blocks.columns:
        rows[:, columns] /= rows[:, columns].sum(axis=1, keepdims=True)
    return rows


@pytest.mark.parametrize(
    "domain",
    [DOMAIN, Domain(DOMAIN.attrs, DOMAIN.shape, (Combination.of({"a": [0], "c": [2]}),))],
    ids=["plain", "impossible"],
)
def test_the_mixture_is_the_networks_forward_pass(domain):
    network = drawn(domain)

    mixture = network.mixture(100.0)

    np.testing.assert_allclose(mixture.rows, by_hand(network.weights, mixture.blocks), atol=1e-5)
    whole = ProductMixture(mixture.blocks, by_hand(network.weights, mixture.blocks), 100.0)
    for attrs in (("a",), ("c", "a"), ("b", "c", "a")):
        np.testing.assert_allclose(network.answers(100.0).count(attrs), whole.count(attrs), atol=1e-3)


@pytest.mark.parametrize("how", [ALL, LARGEST], ids=["all", "largest"])
def test_training_lowers_the_noisy_loss(how):
    network, targets = drawn(), noisy_targets()
    before = network.largest_error(targets)

    losses = network.train(targets, how, rng=np.random.default_rng(0))

    assert losses[-1] < 0.5 * losses[0]
    assert network.largest_error(targets) < before
    assert np.isfinite(losses).all()


def test_the_same_targets_give_the_same_network():
    first, again = drawn(), drawn()
    for network in (first, again):
        network.train(noisy_targets(), ALL, rng=np.random.default_rng(0))

    for name, array in first.weights.items():
        assert np.array_equal(array, again.weights[name])


@pytest.mark.parametrize("how", [ALL, LARGEST], ids=["all", "largest"])
def test_errors_below_the_floor_are_left_alone(how):
    network = drawn()
    before = network.weights

    losses = network.train(noisy_targets(), how, floor=1.0, rng=np.random.default_rng(0))

    assert not losses
    assert all(np.array_equal(array, network.weights[name]) for name, array in before.items())


def test_few_marginals_at_once_reach_all_of_them():
    network, targets = drawn(), noisy_targets(stddev=0.0)

    network.train(
        targets, Training(steps=300, rate=1e-2, loss="all", at_once=1), rng=np.random.default_rng(0)
    )

    assert network.largest_error(targets) < 0.05


def test_a_saved_network_goes_on_where_it_was():
    network = drawn()
    network.train(noisy_targets(), ALL, rng=np.random.default_rng(0))

    again = Generator.of(network.mixture(5.0), DOMAIN, device="cpu")

    assert np.array_equal(again.mixture(5.0).rows, network.mixture(5.0).rows)


def test_a_network_of_another_schema_is_refused():
    with pytest.raises(SchemaError, match="another schema"):
        Generator.of(drawn().mixture(1.0), Domain.of({"a": 2, "b": 3, "c": 5}), device="cpu")


def test_a_model_without_a_network_or_with_an_edited_one_is_refused():
    mixture = drawn().mixture(1.0)
    for edited in ({}, {"noise": np.ones((2, 2))}, dict(mixture.network) | {"shift_0": np.ones(3)}):
        with pytest.raises(SettingError, match="no network to start from"):
            Generator.of(ProductMixture(Blocks.of(DOMAIN), mixture.rows, 1.0, edited), DOMAIN, device="cpu")


def test_a_gpu_that_is_not_there_is_refused(monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SettingError, match="device='cpu'"):
        generator.library("cuda")


@pytest.mark.parametrize("at_once", [1, 8])
def test_a_gpu_that_plays_recorded_steps_trains_the_same_network(gpu, at_once, monkeypatch):
    how = Training(steps=60, rate=1e-2, loss="largest", at_once=at_once)

    def trained(network):
        losses = network.train(noisy_targets(), how, floor=0.001, rng=np.random.default_rng(1))
        return losses, network.mixture(1.0).rows

    recorded, rows = trained(drawn(device="cuda"))
    again, _ = trained(drawn(device="cuda"))
    monkeypatch.setattr(Generator, "_repeated", lambda _, work: work)
    called, plain = trained(drawn(device="cuda"))
    on_processor, _ = trained(drawn())

    assert recorded == again
    np.testing.assert_allclose(recorded, called, rtol=1e-5)
    np.testing.assert_allclose(rows, plain, atol=1e-5)
    np.testing.assert_allclose(recorded[:10], on_processor[:10], rtol=1e-2)
