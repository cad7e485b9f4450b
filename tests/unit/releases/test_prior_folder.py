"""A prior on disk comes back the same, or is refused with the reason."""

import json
from dataclasses import replace

import numpy as np
import pytest

import cards
from sidelight.data.domain import Domain
from sidelight.data.schema import Schema
from sidelight.data.table import Table
from sidelight.errors import ReleaseError, SchemaError
from sidelight.mechanisms.aim import AIM
from sidelight.mechanisms.aperture.aperture import Aperture
from sidelight.mechanisms.pmw_pub import PMWPub
from sidelight.models.graphical import GraphicalModel
from sidelight.models.support import Support
from sidelight.public.prior import Prior
from sidelight.releases.card import PublicData
from sidelight.releases.prior_folder import load_prior, save_prior
from sidelight.releases.public_data import read_public
from sidelight.releases.release import Release
from sidelight.releases.run import release

SCHEMA = Schema.from_domain({"a": 2, "b": 3, "c": 4})
OTHER = [[0.0, -1.0, -0.5, 0.0], [-2.0, 0.0, -1.0, -0.25]]


@pytest.fixture
def saved(toy, tmp_path):
    prior = Aperture().prior(toy.table, toy.table.domain, toy.workload.closure(toy.table.domain))
    return prior, save_prior(prior, SCHEMA, tmp_path / "prior")


def test_a_saved_prior_comes_back_the_same(saved):
    prior, folder = saved

    loaded = read_public(str(folder), SCHEMA)

    assert isinstance(loaded, Prior)
    assert loaded.sets == prior.sets
    assert np.array_equal(loaded.model.count(("a", "b")), prior.model.count(("a", "b")))
    assert loaded.records == prior.records
    assert loaded.records_by_attribute == prior.records_by_attribute


@pytest.fixture
def sampled(toy, saved, tmp_path):
    """A prior that keeps records; five of six, with weights of their own."""
    prior, _ = saved
    records = toy.table.codes()[:5]
    records_kept = Support(toy.table.domain, records, np.array([0.1, 0.3, 0.2, 0.15, 0.25]), 1.0)
    other = GraphicalModel(toy.table.domain, 1.0, {("a", "c"): np.array(OTHER)})
    prior = replace(prior, others=(other,), sample=records_kept, sample_share=0.35)
    return prior, save_prior(prior, SCHEMA, tmp_path / "sampled")


def test_a_saved_prior_keeps_its_records(sampled):
    prior, folder = sampled

    loaded = load_prior(folder, SCHEMA)

    (other,) = loaded.others
    assert np.array_equal(other.count(("a", "c")), prior.others[0].count(("a", "c")))
    assert loaded.sample_share == 0.35
    assert loaded.sample.total == 1.0
    assert loaded.sample.domain == prior.domain
    assert np.array_equal(loaded.sample.records, prior.sample.records)
    assert np.array_equal(loaded.sample.weights, prior.sample.weights)


def test_a_saved_prior_without_records_has_none_afterwards(saved, tmp_path):
    prior = replace(saved[0], sample=None, sample_share=0.0)

    folder = save_prior(prior, SCHEMA, tmp_path / "bare")

    assert not list(folder.glob("sample.*"))
    loaded = load_prior(folder, SCHEMA)
    assert (loaded.sample, loaded.sample_share) == (None, 0.0)


def test_a_saved_prior_gives_the_release_of_the_prior_itself_records_included(sampled, toy):
    prior, folder = sampled
    releases = []
    for public in (prior, load_prior(folder)):
        curator, _ = toy.curator()
        releases.append(Aperture(max_rounds=2).run(curator, toy.workload, public=public))

    first, second = releases

    assert first.events == second.events
    # Other trees, half of them or none, records likewise; and a tree without public relations.
    assert "10 options, by 3 queries" in [event.what for event in first.events]
    assert np.array_equal(first.count(("a", "b", "c")), second.count(("a", "b", "c")))


def test_records_that_were_edited_or_lost_are_refused(sampled):
    _, folder = sampled
    weights = folder / "sample.weights.parquet"
    with weights.open("ab") as file:
        file.write(b" ")
    with pytest.raises(ReleaseError, match=r"sample\.weights\.parquet was changed"):
        load_prior(folder)
    weights.unlink()
    with pytest.raises(ReleaseError, match=r"sample\.weights\.parquet is missing"):
        load_prior(folder)


def test_a_folder_of_the_format_before_is_refused_with_the_remedy(saved):
    _, folder = saved
    about = folder / "prior.json"
    plain = json.loads(about.read_text())
    older = {name: value for name, value in plain.items() if name not in ("sample", "sample_share")}
    about.write_text(json.dumps(older | {"format": 2}))

    with pytest.raises(ReleaseError, match="Fit the prior again"):
        load_prior(folder, SCHEMA)


def test_a_release_from_a_saved_prior_is_the_one_from_the_public_table(saved, toy):
    _, folder = saved
    releases = []
    for public in (toy.table, load_prior(folder)):
        curator, _ = toy.curator()
        releases.append(Aperture(max_rounds=2).run(curator, toy.workload, public=public))

    first, second = releases

    assert np.allclose(first.count(("a", "b", "c")), second.count(("a", "b", "c")))


def test_another_schema_is_refused_and_the_difference_named(saved):
    _, folder = saved

    with pytest.raises(SchemaError, match="'c'"):
        load_prior(folder, Schema.from_domain({"a": 2, "b": 3, "c": 5}))


@pytest.mark.parametrize("damage", ["cut", "newer", "edited", "missing", "incomplete"])
def test_a_damaged_folder_is_refused(saved, damage):
    _, folder = saved
    about = folder / "prior.json"
    plain = json.loads(about.read_text())
    if damage == "cut":
        about.write_text(about.read_text()[:40])
    elif damage == "newer":
        about.write_text(json.dumps(plain | {"format": 99}))
    elif damage == "incomplete":
        about.write_text(json.dumps({"format": 1}))
    elif damage == "edited":
        (folder / "schema.toml").write_text("")
    else:
        (folder / "model.potential_0.parquet").unlink()

    with pytest.raises(ReleaseError):
        load_prior(folder, SCHEMA)


def test_a_folder_that_is_no_prior_or_not_empty_is_refused(saved, tmp_path):
    prior, folder = saved

    with pytest.raises(ReleaseError, match="is not a prior"):
        load_prior(tmp_path)
    with pytest.raises(ReleaseError, match="not empty"):
        save_prior(prior, SCHEMA, folder)


def test_an_earlier_release_is_read_as_public_data(toy, tmp_path):
    curator, _ = toy.curator()
    cards.released(AIM(rounds_per_attribute=4).run(curator, toy.workload)).save(tmp_path / "out")

    earlier = read_public(tmp_path / "out", SCHEMA)

    assert earlier.domain == toy.table.domain
    with pytest.raises(SchemaError, match="another schema"):
        read_public(tmp_path / "out", Schema.from_domain({"a": 2}))


def test_an_earlier_release_of_weighted_records_is_no_public_table_on_the_card(toy, tmp_path):
    codes = toy.table.codes()
    asked = {"schema": SCHEMA, "epsilon": 1.0, "delta": 1e-9, "workload": "2-way", "progress": False}
    earlier = release(
        toy.table, public=Table.of_codes(toy.table.domain, codes[:90]), mechanism=PMWPub(rounds=2), **asked
    )

    later = release(toy.table, public=earlier, mechanism=Aperture(max_rounds=2), **asked)

    told = dict.fromkeys(toy.table.domain.attrs, earlier.total)
    assert later.card.public == PublicData(records=None, columns=told)
    assert Release.load(later.save(tmp_path / "later")).total == later.total


def test_tables_and_lists_are_handed_through(toy):
    assert read_public(toy.table, SCHEMA) is toy.table
    assert read_public([toy.table, toy.table], SCHEMA) == [toy.table, toy.table]


def test_a_frame_is_encoded():
    import pandas as pd

    frame = pd.DataFrame({"a": [0, 1], "b": [2, 0], "c": [3, 3]})

    found = read_public(frame, SCHEMA)

    assert isinstance(found, Table)
    assert found.domain == Domain.of({"a": 2, "b": 3, "c": 4})
