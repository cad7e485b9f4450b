import numpy as np
import pytest

from sidelight.data.domain import Domain
from sidelight.errors import InputError, SchemaError, SettingError, WorkloadError
from sidelight.models.graphical import GraphicalModel
from sidelight.trees.arrays import arrays
from sidelight.trees.junction_tree import JunctionTree
from sidelight.trees.sum_product import Calibrator

DOMAIN = Domain.of({"a": 2, "b": 3, "c": 4, "d": 5})


def random_potentials(sets, scale=1.0, seed=0):
    rng = np.random.default_rng(seed)
    return {attrs: scale * rng.normal(size=DOMAIN.project(attrs).shape) for attrs in sets}


def test_axes_come_in_the_order_asked():
    model = GraphicalModel(DOMAIN, 10.0, random_potentials([("a", "b"), ("b", "c")]))

    np.testing.assert_allclose(model.count(("c", "a")), model.count(("a", "c")).T)
    assert model.count(("c", "a")).sum() == pytest.approx(10.0)


def test_attributes_without_a_potential_are_uniform_and_independent():
    model = GraphicalModel(DOMAIN, 10.0, random_potentials([("a", "b")]))

    np.testing.assert_allclose(model.count(("a", "d")), np.outer(model.count(("a",)), np.full(5, 0.2)))


def test_the_empty_marginal_is_the_total():
    assert GraphicalModel.uniform(DOMAIN, total=3.5).count(()) == pytest.approx(3.5)


def test_a_workload_gets_the_same_answers_as_its_marginals_one_by_one():
    model = GraphicalModel(DOMAIN, 10.0, random_potentials([("a", "b"), ("b", "c"), ("c", "d")]))
    wanted = [("d", "a"), ("a", "b", "d"), ("c",), ("a", "b", "c", "d"), ("d", "a")]

    together = dict(model.count_each(wanted))

    assert together.keys() == set(range(len(wanted)))
    for place, attrs in enumerate(wanted):
        np.testing.assert_allclose(together[place], model.count(attrs), rtol=1e-12)


def test_messages_that_underflow_are_summed_in_logarithms():
    # The two cliques each insist on another value of b, e^3000 and e^2000 strong: only the stronger wins.
    potentials = {
        ("a", "b"): np.array([[0.0, -3000.0, -9000.0], [0.0, -3000.0, -9000.0]]),
        ("b", "c"): np.array([[-5000.0] * 4, [0.0] * 4, [0.0] * 4]),
    }

    model = GraphicalModel(DOMAIN, 1.0, potentials)

    np.testing.assert_allclose(model.count(("b",)), [0.0, 1.0, 0.0], atol=1e-12)
    assert model.log_partition == pytest.approx(-3000.0 + np.log(2 * 4 * 5))


def test_potentials_may_jump_by_thousands_between_calls():
    library = arrays("numpy")
    tree = JunctionTree.of(DOMAIN, [("a", "b"), ("b", "c")])
    calibrator = Calibrator(tree, [("a", "b"), ("b", "c")], library=library)
    rng = np.random.default_rng(3)

    for scale in (1.0, 5000.0, 0.1, 800.0, 3.0):
        tables = [scale * rng.normal(size=(2, 3)), scale * rng.normal(size=(3, 4))]
        log_partition = calibrator.run(tables)
        exponent = tables[0][:, :, None] + tables[1][None]
        p = np.exp(exponent - exponent.max())
        assert log_partition == pytest.approx(exponent.max() + np.log(p.sum()) + np.log(5.0), rel=1e-10)
        np.testing.assert_allclose(calibrator.marginals()[0], p.sum(axis=2) / p.sum(), atol=1e-12)


def test_a_long_tree_of_conflicting_tables_is_soon_summed_without_logarithms(monkeypatch):
    # Three pairs in each clique of three attributes, none of which peaks where the others do.
    names = [f"x{place:02d}" for place in range(24)]
    sets = [pair for a, b, c in zip(names, names[1:], names[2:], strict=False) for pair in ((a, b), (a, c))]
    tree, library = JunctionTree.of(Domain.of(dict.fromkeys(names, 4)), sets), arrays("numpy")
    rng = np.random.default_rng(0)
    tables = [16.0 * rng.normal(size=(4, 4)) for _ in sets]
    slow = Calibrator(tree, sets, library=library)
    monkeypatch.setattr(slow, "_sum_scaled", lambda known: -np.inf)
    calls, in_logarithms = [], Calibrator._sum_logarithms
    quick = Calibrator(tree, sets, library=library)
    monkeypatch.setattr(
        quick, "_sum_logarithms", lambda given: calls.append(1) or in_logarithms(quick, given)
    )

    for _ in range(20):
        tables = [table + 0.1 * rng.normal(size=(4, 4)) for table in tables]
        assert quick.run(tables) == pytest.approx(slow.run(tables), rel=1e-12)
        for found, expected in zip(quick.marginals(), slow.marginals(), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-15)

    assert len(calls) < 10


def test_what_is_impossible_never_gets_mass():
    mask = np.zeros((2, 4), dtype=bool)
    mask[1, 2:] = True

    model = GraphicalModel(
        DOMAIN, 8.0, random_potentials([("a", "b"), ("b", "c")], scale=5.0), ((("a", "c"), mask),)
    )

    assert (model.count(("a", "c"))[mask] == 0.0).all()
    assert (model.count(("c", "a", "d")).sum(axis=2).T[mask] == 0.0).all()
    assert model.count(("a", "c")).sum() == pytest.approx(8.0)


def test_constraints_that_exclude_every_record_are_refused():
    no_first = (("a",), np.array([True, False]))
    no_second = (("a", "b"), np.array([[False] * 3, [True] * 3]))

    with pytest.raises(InputError, match="exclude every record"):
        GraphicalModel(DOMAIN, 1.0, {}, (no_first, no_second)).count(("a",))


def test_a_model_comes_back_from_its_state():
    mask = np.array([[True, False, False], [False, False, False]])
    model = GraphicalModel(DOMAIN, 10.0, random_potentials([("b", "a"), ("b", "c")]), ((("a", "b"), mask),))

    again = GraphicalModel.from_state(DOMAIN, model.state())

    np.testing.assert_array_equal(again.count(("a", "c")), model.count(("a", "c")))
    assert again.total == model.total


def test_bad_tables_are_refused():
    with pytest.raises(SchemaError, match=r"potential on a × b must have shape \(2, 3\); got \(3, 2\)"):
        GraphicalModel(DOMAIN, 1.0, {("a", "b"): np.zeros((3, 2))})
    with pytest.raises(WorkloadError, match="must be finite"):
        GraphicalModel(DOMAIN, 1.0, {("a",): np.array([0.0, -np.inf])})
    with pytest.raises(WorkloadError, match="unknown attribute"):
        GraphicalModel.uniform(DOMAIN, total=1.0).count(("z",))
    with pytest.raises(WorkloadError, match="twice"):
        GraphicalModel.uniform(DOMAIN, total=1.0).count(("a", "a"))
    with pytest.raises(SettingError, match="total must be"):
        GraphicalModel.uniform(DOMAIN, total=0.0)


@pytest.mark.slow
def test_torch_gives_the_same_marginals_as_numpy():
    pytest.importorskip("torch", reason="torch is not installed: pip install 'sidelight[torch]'")
    mask = np.zeros((2, 4), dtype=bool)
    mask[1, 2:] = True
    for scale in (1.0, 2000.0):
        potentials = random_potentials([("a", "b"), ("b", "c"), ("c", "d")], scale=scale)

        plain, torch = (
            GraphicalModel(DOMAIN, 9.0, potentials, ((("a", "c"), mask),), arrays=name)
            for name in ("numpy", "torch:cpu")
        )

        assert torch.log_partition == pytest.approx(plain.log_partition, rel=1e-12)
        np.testing.assert_allclose(torch.count(("a", "d")), plain.count(("a", "d")), atol=1e-12)


def test_an_unknown_array_library_is_refused():
    with pytest.raises(SettingError, match="arrays must be one of 'numpy'"):
        arrays("fortran")


def test_independent_attributes_have_the_products_of_their_shares():
    domain = Domain.of({"a": 2, "b": 3, "c": 4})
    rng = np.random.default_rng(0)
    model = GraphicalModel(domain, 50.0, {(attr,): rng.normal(size=domain.sizes[attr]) for attr in "ac"})

    wanted = [("c", "a"), ("b", "a", "c"), ("b",), ()]
    a, b, c = (model.count((attr,)) / 50 for attr in "abc")
    expected = [np.einsum("c,a->ca", c, a), np.einsum("b,a,c->bac", b, a, c), b, np.array(1.0)]
    assert b == pytest.approx([1 / 3] * 3)
    for place, counts in model.count_each(wanted):
        np.testing.assert_allclose(counts, 50 * expected[place], rtol=1e-12)
