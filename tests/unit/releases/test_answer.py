"""Answers carry what noise and what the model make of their errors, and keep it on disk."""

import json

import numpy as np
import pyarrow as pa
import pytest

import cards
import sidelight as sl
from sidelight.data.table import Table
from sidelight.errors import SettingError
from sidelight.mechanisms.aim import AIM
from sidelight.mechanisms.aperture.aperture import Aperture
from sidelight.mechanisms.barak import Barak
from sidelight.mechanisms.jam import JAM
from sidelight.mechanisms.ladder.ladder import Ladder
from sidelight.mechanisms.mwem import MWEM
from sidelight.mechanisms.mwem_pub import MWEMPub
from sidelight.mechanisms.pmw_pub import PMWPub
from sidelight.releases.release import Release
from sidelight.testing import SeededNoise

MECHANISMS = [
    AIM(rounds_per_attribute=4), Aperture(max_rounds=4), JAM(rounds=6), MWEM(rounds=3), MWEMPub(rounds=4),
    PMWPub(rounds=4),
]  # fmt: skip
PARTS = ["noise_error", "model_error", "standard_error", "low", "high"]


def made(mechanism, toy, **settings):
    curator, _ = toy.curator(**settings)
    rng = np.random.default_rng(2)
    public = Table.of_codes(
        toy.table.domain, np.stack([rng.integers(0, k, 300) for k in toy.table.domain.shape], axis=1)
    )
    outcome = mechanism.run(
        curator, toy.workload, public=None if mechanism.public_data == "unused" else public
    )
    return cards.released(outcome)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda mechanism: mechanism.name)
def test_every_count_has_an_interval_that_holds_its_estimate(mechanism, toy):
    release = made(mechanism, toy)

    for attrs in [("a",), ("c", "a"), ("a", "b", "c")]:
        cells = release.answer(attrs).to_pydict()
        if set(release.card.model_error.untold) & set(attrs) and cells["noise_error"][0] is None:
            assert cells["low"] == [None] * len(cells["low"])
            continue
        estimate, low, high = (np.array(cells[name]) for name in ("estimate", "low", "high"))
        assert (low <= estimate).all()
        assert (estimate <= high).all()
        known = [cells[part] for part in PARTS[:2] if cells[part][0] is not None]
        squares = np.square(np.array(known)).sum(axis=0)
        assert np.square(cells["standard_error"]) == pytest.approx(squares)


@pytest.mark.parametrize(
    "mechanism", [*MECHANISMS, AIM(rounds_per_attribute=4, estimator="residual"), Ladder()], ids=str
)
def test_whoever_changes_the_counts_that_they_were_given_changes_no_release(mechanism, toy):
    release = made(mechanism, toy)
    before = release.count("a").copy()

    counts = release.count("a")
    counts *= 2

    assert np.array_equal(release.count("a"), before)


@pytest.mark.parametrize("confidence", [95, -1, 0, 1, "0.95", float("nan"), True])
def test_a_confidence_that_is_no_share_is_refused(confidence, toy):
    release = made(MWEM(rounds=1), toy)

    with pytest.raises(SettingError, match="confidence must be a share between 0 and 1; got"):
        release.answer("a", by="b", confidence=confidence)
    with pytest.raises(SettingError, match="confidence must be a share between 0 and 1; got"):
        release.error_bars("a").interval(confidence)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda mechanism: mechanism.name)
def test_a_saved_release_gives_the_same_errors(mechanism, toy, tmp_path):
    release = made(mechanism, toy)

    loaded = Release.load(release.save(tmp_path / "out"))

    for attrs in [("b",), ("b", "c"), ("a", "b", "c")]:
        ours, theirs = release.answer(attrs).to_pydict(), loaded.answer(attrs).to_pydict()
        assert ours == theirs


def test_a_folder_from_before_model_errors_gives_noise_alone(toy, tmp_path):
    folder = made(AIM(rounds_per_attribute=4), toy).save(tmp_path / "out")
    about = json.loads((folder / "release.json").read_text(encoding="utf-8"))
    del about["card"]["model_error"]
    (folder / "release.json").write_text(json.dumps(about), encoding="utf-8")

    old = Release.load(folder)

    measured = old.answer("a").to_pydict()
    assert measured["model_error"] == [None, None]
    assert measured["standard_error"] == measured["noise_error"]
    unmeasured = old.answer(("a", "b", "c")).to_pydict()
    assert all(unmeasured[part] == [None] * 24 for part in PARTS)
    assert set(unmeasured["source"]) == {"model"}


def test_a_mechanism_without_trials_claims_no_model_error_and_knows_its_noise(toy):
    from sidelight.data.domain import Domain
    from sidelight.queries.workload import Workload

    domain = Domain.of({"a": 2, "b": 2})
    table = Table.of_codes(domain, toy.table.codes()[:, [0, 0]])
    pair = type(toy)(table, Workload.marginals(domain, degree=2))

    release = cards.released(Barak().run(pair.curator(epsilon="3/2")[0], pair.workload))

    bars = release.error_bars(("a", "b"))
    assert not bars.model_variance.any()
    low, high = bars.interval()
    assert ((low <= table.count(("a", "b"))) & (table.count(("a", "b")) <= high)).all()


def test_the_model_is_trusted_less_where_it_was_often_wrong(toy):
    """b follows a, c follows nothing: a model that was off on (a, b) says so about what it never measured."""
    right = made(AIM(rounds_per_attribute=4), toy, rho="100")
    shuffled = toy.table.codes().copy()
    shuffled[:, 1] = np.random.default_rng(3).permutation(shuffled[:, 1])
    apart = type(toy)(Table.of_codes(toy.table.domain, shuffled), toy.workload)
    calm = made(AIM(rounds_per_attribute=4), apart, rho="100")

    surprised = right.card.model_error.levels["unmet"]
    assert surprised > 3 * calm.card.model_error.levels["unmet"]


def test_more_confidence_makes_a_wider_interval(toy):
    release = made(AIM(rounds_per_attribute=4), toy)

    narrow, wide = (release.answer(("a", "b"), confidence=c).to_pydict() for c in (0.5, 0.99))

    assert (np.array(wide["high"]) > np.array(narrow["high"])).all()


@pytest.mark.parametrize("has_public", [True, False])
def test_an_answer_rests_on_public_data_only_where_they_tell_of_it(has_public):
    rng = np.random.default_rng(1)
    first = rng.integers(0, 3, 600)
    people = pa.table({"a": first, "b": (first + rng.integers(0, 2, 600)) % 3, "c": rng.integers(0, 2, 600)})
    found = sl.release(
        people, schema=sl.Schema.from_domain({"a": 3, "b": 3, "c": 2}), epsilon=3, delta=1e-9,
        mechanism="aperture", workload="2-way", public=people.select(["a", "b"]) if has_public else None,
        noise=SeededNoise(1), progress=False,
    )  # fmt: skip

    sources = [found.answer(attrs)["source"][0].as_py() for attrs in ([], "a", "c")]

    assert sources == ["public", "both" if has_public else "private", "private"]
    told = {one.attrs: one.told_by_public for one in found.card.aperture.marginals}
    assert (told[("a",)], told[("c",)]) == (has_public, False)
