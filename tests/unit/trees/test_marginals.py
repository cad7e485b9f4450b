"""Marginals across cliques: right whatever was asked before, and in little memory."""

import itertools
import tracemalloc

import numpy as np
import pytest

from sidelight.data.domain import Domain
from sidelight.models.graphical import GraphicalModel, calibrated
from sidelight.trees import marginals as answering
from sidelight.trees import named_tables
from sidelight.trees.junction_tree import JunctionTree
from sidelight.trees.routes import Routes, axes_of

DOMAIN = Domain.of({"a": 2, "b": 4, "c": 5, "d": 2, "e": 4, "f": 2})
TREES = {
    "star": [("a", "c"), ("b", "c"), ("a", "f"), ("a", "e")],
    "wide separators": [("a", "b", "d"), ("a", "b", "c"), ("c", "e"), ("c", "f")],
    "chain": [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e"), ("e", "f")],
}


def model_of(sets, domain=DOMAIN):
    rng = np.random.default_rng(0)
    return GraphicalModel(domain, 10.0, {s: rng.normal(size=domain.project(s).shape) for s in sets})


def every_marginal(domain):
    return [attrs for k in (1, 2, 3) for attrs in itertools.combinations(domain.attrs, k)]


def by_brute_force(model, attrs):
    joint = np.ones(model.domain.shape)
    for names, potential in model.potentials.items():
        joint = joint * np.exp(potential).reshape(
            [size if attr in names else 1 for attr, size in model.domain.sizes.items()]
        )
    dropped = tuple(i for i, attr in enumerate(model.domain.attrs) if attr not in attrs)
    return 10.0 * joint.sum(axis=dropped) / joint.sum()


@pytest.mark.parametrize("sets", TREES.values(), ids=TREES)
def test_a_workload_is_answered_rightly_whatever_was_kept_from_earlier_questions(sets):
    """A table kept for one question once was divided in its place for another."""
    model = model_of(sets)
    wanted = every_marginal(DOMAIN)

    for order in (wanted, wanted[::-1]):
        for place, counts in model.count_each(order):
            np.testing.assert_allclose(counts, by_brute_force(model, order[place]), atol=1e-9)


@pytest.mark.parametrize("sets", TREES.values(), ids=TREES)
def test_slices_add_up_to_the_whole(sets, monkeypatch):
    monkeypatch.setattr(answering, "_PIECE", (4, 4))
    sliced = []
    at = named_tables.at_value
    monkeypatch.setattr(named_tables, "at_value", lambda *asked: sliced.append(asked) or at(*asked))
    model = model_of(sets)

    wanted = every_marginal(DOMAIN)
    for place, counts in model.count_each(wanted):
        np.testing.assert_allclose(counts, by_brute_force(model, wanted[place]), atol=1e-9)
    assert sliced


@pytest.mark.parametrize("sets", TREES.values(), ids=TREES)
def test_messages_too_large_to_be_made_are_made_slice_by_slice_and_not_kept(sets, monkeypatch):
    monkeypatch.setattr(answering, "_FEWEST_KEPT", 8)
    monkeypatch.setattr(answering, "_MOST_KEPT", 10.0)
    monkeypatch.setattr(answering, "_MOST_MESSAGE", 0.0)
    sliced = []
    message = answering.Answers._message

    def noted(answers, branch, at=()):
        sliced.extend(at)
        return message(answers, branch, at)

    monkeypatch.setattr(answering.Answers, "_message", noted)
    model = model_of(sets)

    for order in (every_marginal(DOMAIN), every_marginal(DOMAIN)[::-1]):
        for place, counts in model.count_each(order):
            np.testing.assert_allclose(counts, by_brute_force(model, order[place]), atol=1e-9)
    assert sliced


def test_no_message_is_made_that_would_be_many_times_the_model():
    """About v, given b, c and d, there would be eight times as many cells as the model has."""
    domain = Domain.of({"a": 3, "b": 30, "c": 30, "d": 30, "e": 4, "v": 60})
    model = model_of([("a", "b", "c", "d"), ("b", "c", "d", "e"), ("e", "v")], domain)
    model.count(())

    tracemalloc.start()
    found = model.count(("a", "b", "v"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 2 * model.tree.bytes
    given_e = model.count(("e", "v")) / model.count(("e",))[:, None]
    np.testing.assert_allclose(found, model.count(("a", "b", "e")) @ given_e, rtol=1e-9)


def test_little_is_kept_where_little_may_be_and_the_answers_are_the_same(monkeypatch):
    monkeypatch.setattr(answering, "_FEWEST_KEPT", 30)
    monkeypatch.setattr(answering, "_MOST_KEPT", 0.0)
    model = model_of(TREES["wide separators"])
    answers = answering.Answers(model.tree, calibrated(model).cliques)
    most = 0

    for place, counts in answering.marginals_of(answers, every_marginal(DOMAIN), total=10.0):
        np.testing.assert_allclose(counts, by_brute_force(model, every_marginal(DOMAIN)[place]), atol=1e-9)
        kept = [table.values.size for table in answers._kept.values()]
        assert sum(kept) == answers._kept_cells
        assert sum(kept) <= 30 or len(kept) == 1
        most = max(most, sum(kept))
    assert most > 0


def test_every_marginal_comes_once_with_its_place():
    model = model_of(TREES["chain"])
    wanted = [("f", "a"), ("c",), ("b", "e"), ("c",)]

    found = dict(model.count_each(wanted))

    assert sorted(found) == [0, 1, 2, 3]
    for place, attrs in enumerate(wanted):
        np.testing.assert_allclose(found[place], model.count(attrs), rtol=1e-12)


@pytest.mark.parametrize("sets", TREES.values(), ids=TREES)
def test_answers_are_the_same_to_the_last_bit_whatever_was_asked_before(sets):
    """A run that is resumed does not look again at what it selected from, and must go on alike."""
    asked, fresh = model_of(sets), model_of(sets)
    list(asked.count_each(every_marginal(DOMAIN)))
    asked.sample(100, seed=0)

    for attrs in every_marginal(DOMAIN):
        np.testing.assert_array_equal(asked.count(attrs), fresh.count(attrs))


def test_messages_are_multiplied_in_by_the_cheapest_order():
    domain = Domain.of({"a": 60, "b": 60, "c": 60, "x": 40, "y": 2, "z": 2})
    routes = Routes(JunctionTree.of(domain, [("a", "b", "c"), ("a", "x"), ("b", "y"), ("c", "z")]))
    wanted = routes.mask(("x", "y", "z"))

    route = routes.route(routes.centre(wanted), wanted)

    assert [domain.attrs[axes_of(branch.about)[0]] for branch, _ in route.steps][-1] == "x"


@pytest.mark.slow
def test_answering_a_workload_takes_less_memory_than_three_models():
    """A product on the way would have ten million cells, and the answers take as much as the model."""
    domain = Domain.of({"a": 30, "b": 30, "c": 30, "d": 32, "x": 40, "y": 40, "z": 40, "w": 40})
    sets = [("a", "b", "c", "d"), ("a", "b", "x"), ("b", "c", "y"), ("a", "c", "z"), ("d", "w")]
    model = GraphicalModel(domain, 10.0, {s: np.zeros(domain.project(s).shape) for s in sets})
    model.count(())

    tracemalloc.start()
    for _, counts in model.count_each(every_marginal(domain)):
        assert counts.sum() == pytest.approx(10.0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 2.5 * model.tree.bytes
