"""What is declared impossible gets no mass and no record, whatever the mechanism."""

import json

import numpy as np
import pytest

import sidelight as sl
from sidelight.data.domain import Combination, Domain
from sidelight.data.impossible import is_possible, masks
from sidelight.data.schema import Schema
from sidelight.data.table import Table
from sidelight.errors import DataError, TooLargeError
from sidelight.mechanisms.aim import AIM
from sidelight.mechanisms.aperture.aperture import Aperture
from sidelight.mechanisms.barak import Barak
from sidelight.mechanisms.base import Mechanism
from sidelight.mechanisms.candidates import tractable
from sidelight.mechanisms.dualquery import DualQuery
from sidelight.mechanisms.gem.gem import GEM
from sidelight.mechanisms.gem.gem_pub import GEMPub
from sidelight.mechanisms.hdmm.hdmm import HDMM
from sidelight.mechanisms.jam import JAM
from sidelight.mechanisms.ladder.ladder import Ladder
from sidelight.mechanisms.mst import MST
from sidelight.mechanisms.mwem import MWEM
from sidelight.mechanisms.mwem_pub import MWEMPub
from sidelight.mechanisms.pmw_pub import PMWPub
from sidelight.models.graphical import GraphicalModel
from sidelight.models.support import Support
from sidelight.privacy.budget import Budget
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit
from sidelight.public.prior import Prior
from sidelight.queries.workload import Workload
from sidelight.testing import SeededNoise
from sidelight.trees.junction_tree import JunctionTree
from sidelight.trees.triangulation import BYTES_PER_CELL, SizeOracle
from torched import torched

IMPOSSIBLE = (
    Combination.of({"a": [0], "b": [2]}),
    Combination.of({"b": [0], "c": [1, 3], "a": [1]}),
    Combination.of({"d": [0]}),
)
DOMAIN = Domain(tuple("abcd"), (2, 3, 4, 2), IMPOSSIBLE)
SCHEMA = Schema.from_domain(DOMAIN)
MECHANISMS: list[Mechanism] = [
    MWEM(rounds=3),
    MWEM(rounds=2, accounting="pure"),
    MWEM(rounds=3, candidates="queries"),
    MWEM(rounds=3, model="components"),
    MWEM(rounds=3, histogram_share=0.3, output="average"),
    MWEMPub(rounds=4),
    PMWPub(rounds=4),
    PMWPub(rounds=4, support="random", support_records=40),
    AIM(rounds_per_attribute=4),
    HDMM(),
    Ladder(),
    DualQuery(max_rounds=20, queries_per_round=20),
    GEM(rounds=3, steps=5, batch=16, latent=4, width=8),
    GEMPub(rounds=3, steps=5, batch=16, latent=4, width=8, public_steps=10),
    AIM(rounds_per_attribute=4, estimator="residual"),
    MST(),
    MST(rare_below=9.0),
    Aperture(max_rounds=4),
    JAM(rounds=5),
]


def codes(number, *, seed):
    """Records of every kind, a good part of them impossible: whoever wrote the schema was wrong."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 2, number)
    b = np.minimum(a + rng.integers(0, 3, number), 2)
    return np.stack([a, b, rng.integers(0, 4, number), rng.integers(0, 2, number)], axis=1)


def table(*, seed, number=500):
    # Coded under a domain that knows nothing of the schema's combinations.
    return Table.of_codes(Domain.of(DOMAIN.sizes), codes(number, seed=seed))


def made(mechanism, *, public=None, workload="2-way", schema=SCHEMA, ledger=None, seed=3):
    if public is None and mechanism.public_data != "unused":
        public = table(seed=2)
    pure = getattr(mechanism, "accounting", "zcdp") == "pure"
    return sl.release(
        table(seed=1), schema=schema, public=public, epsilon=2.0, delta=0.0 if pure else 1e-9,
        mechanism=mechanism, workload=workload, noise=SeededNoise(seed), progress=False, ledger=ledger,
    )  # fmt: skip


def assert_possible(release, *, domain=DOMAIN):
    whole = release.count(domain.attrs)
    assert whole.sum() == pytest.approx(500)
    for attrs, mask in masks(domain):
        counts = release.count(attrs)
        assert (counts[mask] == 0).all()
        assert (counts[~mask] > 0).any()
        seen = np.moveaxis(whole, [domain.attrs.index(a) for a in attrs], range(len(attrs)))
        assert (seen[mask] == 0).all()
    for seed in range(3):
        drawn = release.model.sample(3000, seed=seed).codes()
        assert is_possible(domain, drawn).all()


@pytest.mark.parametrize(
    "mechanism",
    [
        pytest.param(mechanism, marks=torched(mechanism.name), id=f"{mechanism.name}-{place}")
        for place, mechanism in enumerate(MECHANISMS)
    ],
)
def test_no_mass_and_no_record_is_impossible_and_a_saved_release_keeps_it_so(mechanism, tmp_path):
    release = made(mechanism)

    assert_possible(release)
    release.save(tmp_path / "out")
    loaded = sl.Release.load(tmp_path / "out")
    assert_possible(loaded)
    assert loaded.schema.impossible == SCHEMA.impossible
    drawn = loaded.sample(200, seed=1)
    assert is_possible(DOMAIN, np.stack([drawn[a] for a in DOMAIN.attrs], axis=1)).all()


@pytest.mark.parametrize("mechanism", [AIM(rounds_per_attribute=4), MWEM(rounds=3)], ids=lambda m: m.name)
def test_without_the_declaration_the_same_run_gives_mass_there(mechanism):
    release = made(mechanism, schema=Schema.from_domain(DOMAIN.sizes))

    assert release.count(("a", "b"))[0, 2] > 0


@pytest.mark.parametrize("fit", ["multiplicative-weights", "linear-program"])
def test_barak_keeps_to_it_in_both_fits(fit):
    domain = Domain(tuple("abc"), (2, 2, 2), (Combination.of({"a": [0], "c": [1]}),))
    private = Table.of_codes(Domain.of(domain.sizes), np.random.default_rng(0).integers(0, 2, (500, 3)))

    release = sl.release(
        private, schema=Schema.from_domain(domain), epsilon=2.0, delta=1e-9, mechanism=Barak(fit=fit),
        workload="2-way", noise=SeededNoise(3), progress=False,
    )  # fmt: skip

    assert_possible(release, domain=domain)


def test_a_prior_fitted_without_the_declaration_does_not_undo_it():
    plain = Domain.of(DOMAIN.sizes)
    potentials = {("a", "b"): np.array([[0.0, 0.0, 5.0], [0.0, 0.0, 0.0]])}
    prior = Prior(GraphicalModel(plain, 1.0, potentials), dict.fromkeys(plain.attrs, 100.0), 100.0)

    assert_possible(made(Aperture(max_rounds=3), public=prior))


def test_public_records_beside_a_prior_fitted_without_the_declaration_do_not_undo_it():
    plain = Domain.of(DOMAIN.sizes)
    pairs = {c: np.zeros(plain.project(c).shape) for c in (("a", "b"), ("b", "c"), ("c", "d"))}
    prior = Prior(
        GraphicalModel(plain, 1.0, pairs), dict.fromkeys(plain.attrs, 100.0), 100.0,
        sample=Support.of_table(table(seed=2), total=1.0), sample_share=0.5,
    )  # fmt: skip

    for share in (0.0, 0.5):
        # No tree of 40 cells can hold the whole domain, of 48.
        cramped = Aperture(
            max_rounds=3, particle_share=share, contest_share=0.0, max_model_mb=40 * BYTES_PER_CELL / 2**20
        )
        releases = [made(cramped, public=prior, seed=seed) for seed in range(4)]

        assert any(isinstance(release.model, Support) for release in releases)
        for release in releases:
            assert_possible(release)


def test_public_records_that_are_all_impossible_are_as_good_as_none():
    plain = Domain.of(DOMAIN.sizes)
    rows = Support(plain, np.array([[0, 2, 1, 1], [1, 1, 1, 0]]), np.array([0.5, 0.5]), 1.0)
    prior = Prior(
        GraphicalModel.uniform(plain, total=1.0), dict.fromkeys(plain.attrs, 100.0), 100.0,
        sample=rows, sample_share=0.5,
    )  # fmt: skip

    assert_possible(made(Aperture(max_rounds=3), public=prior))


def test_aperture_without_public_data_keeps_to_it():
    release = sl.release(
        table(seed=1), schema=SCHEMA, epsilon=2.0, delta=1e-9, mechanism=Aperture(max_rounds=3),
        workload="2-way", noise=SeededNoise(3), progress=False,
    )  # fmt: skip

    assert_possible(release)


def test_a_public_model_keeps_the_one_way_marginals_that_the_combinations_allow():
    rng = np.random.default_rng(0)
    domain = Domain(("child", "married"), (2, 2), (Combination.of({"child": [1], "married": [1]}),))
    child = rng.random(4000) < 0.3
    public = Table.of_codes(
        domain, np.stack([child, ~child & (rng.random(4000) < 0.5)], axis=1).astype(np.int64)
    )

    prior = Aperture().prior(public, domain, {("child",): 1.0, ("married",): 1.0})

    assert prior.model.count(("child",)) == pytest.approx(public.count(("child",)) / 4000, abs=0.01)
    assert prior.model.count(("child", "married"))[1, 1] == 0


# --- the size of the model ----------------------------------------------------------------------------


def test_the_tree_holds_every_combination_before_anything_is_measured():
    model = GraphicalModel.uniform(DOMAIN, total=10.0)

    assert ("a", "b", "c") in model.tree.cliques
    assert SizeOracle(DOMAIN).cells == model.tree.cells == 2 * 3 * 4 + 2


def test_predicted_sizes_are_those_of_the_fitted_models():
    domain = Domain(
        tuple("abcde"),
        (2, 3, 4, 5, 6),
        (Combination.of({"a": [0], "e": [1]}), Combination.of({"b": [0], "d": [0]})),
    )
    wanted = [("a", "b"), ("c", "d"), ("d", "e"), ("a", "e"), ("b", "c", "e")]
    oracle = SizeOracle(domain, [("a", "b")])

    for attrs, cells in zip(wanted, oracle.cells_with_each(wanted), strict=True):
        sets = {("a", "b"), attrs}
        model = GraphicalModel(domain, 1.0, {s: np.zeros(domain.project(s).shape) for s in sets})
        assert cells == model.tree.cells == JunctionTree.of(domain, sets).cells


def test_candidates_count_the_combinations_in():
    sizes = {"a": 100, "b": 100, "c": 100}
    plain, declared = (
        Domain.of(sizes),
        Domain(tuple(sizes), (100,) * 3, (Combination.of({"a": [0], "b": [0]}),)),
    )
    limit = 1.1 * 8 * 20_000 / 2**20  # room for two pairs, and not for a clique of all three

    assert ("a", "c") in tractable(plain, [("b", "c")], [("a", "c")], limit_mb=limit)
    assert ("a", "c") not in tractable(declared, [("b", "c")], [("a", "c"), ("a",)], limit_mb=limit)


# --- refused before anything is spent --------------------------------------------------------------------


def promise():
    return MemoryLedger(Promise(Budget(epsilon=9.0, delta=1e-9), Unit("replace"), "toy"))


@pytest.mark.parametrize(
    "mechanism", [AIM(max_model_mb=0.01), JAM(max_model_mb=0.01), Aperture(max_model_mb=0.01)]
)
def test_combinations_too_large_for_the_model_are_refused_and_nothing_is_spent(mechanism):
    sizes = {"a": 40, "b": 40, "c": 2}
    schema = Schema.from_domain(sizes).with_impossible({"a": [0], "b": [0]})
    private, public = (Table.of_codes(Domain.of(sizes), np.zeros((50, 3), dtype=int)) for _ in range(2))
    ledger = promise()

    with pytest.raises(TooLargeError, match="impossible combinations"):
        sl.release(
            private, schema=schema, public=public if mechanism.public_data != "unused" else None, epsilon=1,
            mechanism=mechanism, workload="1-way", noise=SeededNoise(1), progress=False, ledger=ledger,
        )  # fmt: skip

    assert list(ledger.events()) == []


def test_combinations_too_large_for_a_component_are_refused():
    with pytest.raises(TooLargeError, match="impossible combinations join a × b × c"):
        made(MWEM(rounds=2, model="components", max_component_cells=20))


@pytest.mark.parametrize("mechanism", [PMWPub(rounds=2), MWEMPub(rounds=2)], ids=lambda m: m.name)
def test_a_public_table_of_impossible_records_alone_is_refused(mechanism):
    public = Table.of_codes(Domain.of(DOMAIN.sizes), np.array([[0, 2, 0, 1], [1, 1, 1, 0]]))
    ledger = promise()

    with pytest.raises(DataError, match="every public record"):
        made(mechanism, public=public, ledger=ledger)

    assert list(ledger.events()) == []


def test_a_million_sampled_records_hold_none():
    # Cells of mass 0 at the end of a group are where rounding would put a stray record.
    mask = np.zeros((3, 7), dtype=bool)
    mask[:, 5:] = True
    rng = np.random.default_rng(0)
    domain = Domain.of({"a": 3, "b": 7})
    model = GraphicalModel(domain, 1.0, {("a", "b"): rng.normal(size=(3, 7))}, ((("a", "b"), mask),))

    for seed in range(20):
        drawn = model.sample(50_000, seed=seed)
        assert drawn.count(("b",))[5:].sum() == 0


def test_the_schema_of_a_release_folder_is_plain_text(tmp_path):
    made(AIM(rounds_per_attribute=4)).save(tmp_path / "out")

    assert "[[impossible]]" in (tmp_path / "out" / "schema.toml").read_text()
    about = json.loads((tmp_path / "out" / "release.json").read_text())
    assert about["card"]["schema_fingerprint"] == SCHEMA.fingerprint
    assert SCHEMA.fingerprint != Schema.from_domain(DOMAIN.sizes).fingerprint


def test_the_workload_may_hold_every_combination():
    release = made(AIM(rounds_per_attribute=4), workload=Workload([("a", "b", "c"), ("c", "d")]))

    assert_possible(release)
