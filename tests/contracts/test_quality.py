"""Measured quality through the front door: paid for, written, resumable, and true, whatever the mechanism."""

from fractions import Fraction

import numpy as np
import pytest

import sidelight as sl
from sidelight.curator.curator import Curator
from sidelight.curator.journal import Journal
from sidelight.errors import SettingError
from sidelight.mechanisms.registry import mechanism_of, names
from sidelight.privacy.budget import Budget
from sidelight.privacy.event import Gaussian, Laplace
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.sql_ledger import SqlLedger
from sidelight.privacy.unit import Unit
from sidelight.testing import SeededNoise
from torched import torched

SIZES = dict.fromkeys("abcd", 2)
SCHEMA = sl.Schema.from_domain(SIZES)
UNITS = [Unit("replace"), Unit("add-or-remove"), Unit("replace", records=3)]
QUICK = {
    "mwem": {"rounds": 3},
    "mwem-pub": {"rounds": 3},
    "pmw-pub": {"rounds": 3},
    "jam": {"rounds": 4},
    "aim": {"rounds_per_attribute": 2},
    "dualquery": {"max_rounds": 4, "queries_per_round": 5},
    "gem": {"rounds": 2, "steps": 3, "batch": 8, "latent": 2, "width": 4},
    "gem-pub": {"rounds": 2, "steps": 3, "batch": 8, "latent": 2, "width": 4, "public_steps": 3},
    "aperture": {"max_rounds": 3},
}
CASES = [
    *(pytest.param(name, QUICK.get(name, {}), marks=torched(name)) for name in names()),
    ("mwem", {"rounds": 2, "accounting": "pure"}),
    ("barak", {"accounting": "pure"}),
]


def people(seed: int, records: int = 800) -> sl.Table:
    rng = np.random.default_rng(seed)
    a, c = rng.integers(0, 2, records), (rng.random(records) < 0.3).astype(int)
    b, d = (np.where(rng.random(records) < 0.8, column, 1 - column) for column in (a, c))
    return sl.Table.of_codes(SCHEMA.domain, np.stack([a, b, c, d], axis=1))


PRIVATE, PUBLIC = people(1), people(2, 300)


def made(name, settings, *, unit=UNITS[0], epsilon=1.0, seed=5, **more):
    """A release of the same few people; pure mechanisms at δ = 0."""
    is_pure = settings.get("accounting") == "pure"
    delta = None if "ledger" in more else (0.0 if is_pure else 1e-9)
    return sl.release(
        PRIVATE, schema=SCHEMA, epsilon=epsilon, delta=delta, unit=unit, mechanism=name, workload="2-way",
        public=None if mechanism_of(name).public_data == "unused" else PUBLIC,
        noise=SeededNoise(seed), progress=False, **settings, **more,
    )  # fmt: skip


def error_of(release, attrs):
    """‖exact − released‖₁ over the release's own n."""
    return np.abs(PRIVATE.count(attrs) - release.count(attrs)).sum() / release.total


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize(("name", "settings"), CASES, ids=lambda value: str(value))
def test_quality_is_charged_last_and_all_that_is_spent_keeps_the_promise(name, settings, unit):
    release = made(name, settings, unit=unit)

    *others, last = release.events
    allotted = release.card.allotted
    assert isinstance(last, Laplace if settings.get("accounting") == "pure" else Gaussian)
    assert "mean errors" in last.what
    assert last.cost.value == allotted * Fraction(0.02)
    assert sum(event.cost.value for event in others) <= allotted * (1 - Fraction(0.02))
    assert sum(event.cost.value for event in release.events) == release.card.spent <= allotted
    assert release.card.epsilon_spent <= 1.0


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize(("name", "settings"), CASES, ids=lambda value: str(value))
def test_what_is_measured_is_how_far_off_the_release_is(name, settings, unit):
    release = made(name, settings, unit=unit, epsilon=200.0, quality_share=0.5)

    quality = release.quality
    pairs = [(x, y) for x in "abcd" for y in "abcd" if x < y]
    truth = {"2-way": np.mean([error_of(release, pair) for pair in pairs]),
             "1-way": np.mean([error_of(release, (attr,)) for attr in "abcd"])}  # fmt: skip
    assert quality.headline.standard_error < 0.02
    for degree, mean in quality.degrees.items():
        assert abs(mean.error - truth[degree]) < 6 * mean.standard_error + 0.001
    for attr, mean in quality.attributes.items():
        own = np.mean([error_of(release, pair) for pair in pairs if attr in pair])
        assert abs(mean.error - own) < 6 * mean.standard_error + 0.001


def test_where_n_is_private_errors_are_shares_of_the_released_n(monkeypatch):
    """At so little budget the noisy n is far from the exact one, and the exact one would show."""
    found = []

    def kept(self, asked, model, measure=Curator.mean_errors):
        found.append(measure(self, asked, model))
        return found[-1]

    monkeypatch.setattr(Curator, "mean_errors", kept)
    release = made("mwem", QUICK["mwem"], unit=Unit("add-or-remove"), epsilon=0.02)

    assert abs(release.total - PRIVATE.records) > 100
    assert release.quality.headline.error == found[0].means[0] / release.total
    assert release.quality.headline.standard_error == found[0].stddevs[0] / release.total


def test_a_release_that_is_far_off_is_said_to_be():
    """The planted case: no rounds to speak of, so the model is nearly uniform."""
    bad = made("mwem", {"rounds": 1}, epsilon=20.0)
    good = made("aim", QUICK["aim"], epsilon=20.0)

    assert bad.quality.headline.error > 3 * good.quality.headline.error


@pytest.mark.parametrize(("name", "settings"), CASES, ids=lambda value: str(value))
def test_a_share_of_nothing_measures_nothing_and_leaves_all_to_the_mechanism(name, settings):
    release = made(name, settings, quality_share=0)

    assert release.quality is None
    assert release.card.quality is None
    assert not any("mean errors" in event.what for event in release.events)


@pytest.mark.parametrize("share", [-0.1, 1, 1.5, float("nan"), "much", True, None])
def test_a_share_that_is_none_is_refused_before_anything_is_read(share, tmp_path):
    with pytest.raises(SettingError, match="quality_share must be"):
        sl.release(tmp_path / "not there.csv", schema=SCHEMA, epsilon=1, delta=1e-9, quality_share=share)


def test_a_share_too_small_to_draw_noise_for_is_refused_before_anything_is_read(tmp_path):
    with pytest.raises(SettingError, match="switch it off with quality_share = 0"):
        sl.release(tmp_path / "not there.csv", schema=SCHEMA, epsilon=1, delta=1e-9, quality_share=1e-18)


def test_a_share_too_small_for_the_mechanism_that_n_decides_on_is_refused_before_anything_is_paid():
    """Beside so many records ladder takes Laplace noise, which cannot be drawn where Gaussian noise could."""
    schema = sl.Schema.from_domain(dict.fromkeys("abcd", 4))
    table = sl.Table.of_codes(schema.domain, np.random.default_rng(1).integers(0, 4, (20_000, 4)))
    asked = {"epsilon": 0.1, "delta": 1e-6, "workload": "2-way", "quality_share": 1e-10}
    sl.plan(schema=schema, **asked)
    ledger = MemoryLedger(Promise(Budget(epsilon=0.1, delta=1e-6), UNITS[0], "x"))

    with pytest.raises(SettingError, match="switch it off with quality_share = 0"):
        sl.release(table, schema=schema, ledger=ledger, progress=False, **asked)

    assert not list(ledger.runs())


def test_the_ledger_has_a_line_for_it(tmp_path):
    ledger = SqlLedger.create(tmp_path / "l.ledger", Promise(Budget(epsilon=2, delta=1e-9), UNITS[0], "x"))

    release = made("mwem", QUICK["mwem"], ledger=ledger)

    assert tuple(ledger.events()) == release.events
    assert "mean errors" in release.events[-1].what


@pytest.mark.parametrize(("name", "settings"), CASES, ids=lambda value: str(value))
def test_a_run_that_died_before_quality_was_drawn_resumes_and_pays_once(
    name, settings, tmp_path, monkeypatch
):
    ledger = SqlLedger.create(
        tmp_path / "l.ledger",
        Promise(Budget(epsilon=1, delta=0.0 if "accounting" in settings else 1e-9), UNITS[0], "x"),
    )
    run = tmp_path / "run"
    whole = made(name, settings)

    def dies(self, asked, model):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Curator, "mean_errors", dies)
        with pytest.raises(KeyboardInterrupt):
            made(name, settings, ledger=ledger, checkpoint=run)
    before = tuple(ledger.events())
    resumed = made(name, settings, ledger=ledger, checkpoint=run, seed=6)

    assert resumed.events == tuple(ledger.events()) == whole.events
    assert len(before) == len(resumed.events) - 1
    again = made(name, settings, ledger=ledger, checkpoint=run, seed=7)
    assert again.quality == resumed.quality
    Journal.remove(run)


def test_quality_survives_saving_and_loading(tmp_path):
    release = made("mwem", QUICK["mwem"])

    loaded = sl.Release.load(release.save(tmp_path / "out"))

    assert loaded.quality == release.quality
    assert loaded.quality.sentence == release.quality.sentence
