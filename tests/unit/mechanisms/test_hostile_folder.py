"""Release and prior folders from strangers: what they hold is checked before it is allocated or believed."""

import hashlib
import json
import shutil

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from sidelight.data.schema import Schema
from sidelight.data.table import Table
from sidelight.errors import ReleaseError, SidelightError
from sidelight.mechanisms.aperture.aperture import Aperture
from sidelight.releases.prior_folder import load_prior, save_prior
from sidelight.releases.release import Release
from sidelight.releases.run import release
from sidelight.testing import SeededNoise

MECHANISMS = {
    "histogram": {"mechanism": "mwem", "rounds": 2},
    "components": {"mechanism": "mwem", "rounds": 2, "model": "components"},
    "graphical": {"mechanism": "aim"},
    "support": {"mechanism": "pmw-pub", "rounds": 2},
}
"""A mechanism that ends in each kind of model."""


@pytest.fixture(scope="module")
def folders(toy, tmp_path_factory):
    root = tmp_path_factory.mktemp("hostile")
    schema = Schema.from_domain(toy.table.domain)
    for kind, recipe in MECHANISMS.items():
        public = Table.of_codes(toy.table.domain, toy.table.codes()[:50]) if kind == "support" else None
        release(
            toy.table, schema=schema, epsilon=1.0, delta=1e-6, workload=[("a", "b"), ("c",)], public=public,
            noise=SeededNoise(5), progress=False, **recipe,
        ).save(root / kind)  # fmt: skip
    prior = Aperture().prior(toy.table, toy.table.domain, toy.workload.closure(toy.table.domain))
    save_prior(prior, schema, root / "prior")
    return root


@pytest.fixture
def open_folder(folders, tmp_path):
    """A copy of a folder, and what seals it again after an edit, as a stranger would."""

    class Folder:
        def __init__(self, kind):
            self.path = shutil.copytree(folders / kind, tmp_path / kind)
            self.json = self.path / ("prior.json" if kind == "prior" else "release.json")
            self.about = json.loads(self.json.read_text(encoding="utf-8"))

        def column(self, name, values, column="value"):
            with (self.path / name).open("wb") as file:
                parquet.write_table(pa.table({column: values}), file)

        def load(self):
            for name in self.about["checksums"]:
                content = (self.path / name).read_bytes()
                self.about["checksums"][name] = hashlib.sha256(content).hexdigest()
            self.json.write_text(json.dumps(self.about), encoding="utf-8")
            return load_prior(self.path) if self.json.name == "prior.json" else Release.load(self.path)

    return Folder


@pytest.mark.parametrize("kind", [*MECHANISMS, "prior"])
def test_a_folder_that_nobody_edited_still_loads(open_folder, kind):
    open_folder(kind).load()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -5.0, 1e308])
@pytest.mark.parametrize("kind", ["histogram", "components", "support"])
def test_weights_that_cannot_be_are_refused(open_folder, kind, value):
    folder = open_folder(kind)
    weights = parquet.read_table(folder.path / "model.weights.parquet")["value"].to_numpy().copy()
    weights[0] = value
    folder.column("model.weights.parquet", weights)

    with pytest.raises(ReleaseError, match=r"not finite|must be finite|add up to"):
        folder.load()


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("kind", ["graphical", "prior"])
def test_potentials_that_cannot_be_are_refused(open_folder, kind, value):
    folder = open_folder(kind)
    name = next(name for name in folder.about["checksums"] if name.startswith("model.potential"))
    values = parquet.read_table(folder.path / name)["value"].to_numpy().copy()
    values[0] = value
    folder.column(name, values)

    with pytest.raises(ReleaseError, match="not finite"):
        folder.load()


def test_a_small_file_that_grows_without_end_is_refused_before_it_is_read(open_folder, monkeypatch):
    folder = open_folder("histogram")
    zeros = pa.table({"value": np.zeros(10_000_000)})
    with parquet.ParquetWriter(folder.path / "model.weights.parquet", zeros.schema) as writer:
        for _ in range(8):
            writer.write_table(zeros)
    monkeypatch.setattr(parquet.ParquetFile, "read", lambda *_, **__: pytest.fail("640 MB were read"))

    with pytest.raises(ReleaseError, match="does not hold as many numbers"):
        folder.load()

    assert (folder.path / "model.weights.parquet").stat().st_size < 2_000_000


def test_what_all_files_hold_together_is_limited_and_the_limit_can_be_raised(open_folder, monkeypatch):
    folder = open_folder("support")
    folder.load()
    monkeypatch.setattr("sidelight._foreign._MOST_MB", 0)

    with pytest.raises(ReleaseError, match="set SIDELIGHT_MAX_MB=1 or more"):
        folder.load()

    monkeypatch.setenv("SIDELIGHT_MAX_MB", "64")
    assert folder.load().total > 0


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        ("histogram", ("domain", "shape"), [10**9, 10**9, 10**9]),
        ("histogram", ("domain", "shape"), ["2", 3, 4]),
        ("histogram", ("domain", "shape"), [2.0, 3, 4]),
        ("histogram", ("domain", "attrs"), ["x", "b", "c"]),
        ("histogram", ("model", "shapes", "weights"), [10**12]),
        ("histogram", ("model", "shapes", "weights"), [-2, -12]),
        ("histogram", ("model", "shapes"), {"x/../../../etc/passwd": [1]}),
        ("histogram", ("model", "kind"), "os.system"),
        ("histogram", ("model", "meta"), {"__class__": "x"}),
        ("histogram", ("model", "meta", "total"), 1e300),
        ("histogram", ("model", "meta", "total"), -1.0),
        ("histogram", ("model", "meta", "total"), float("nan")),
        ("histogram", ("model", "meta", "total"), "many"),
        ("histogram", ("measurements", 0, "stddev"), 0),
        ("histogram", ("measurements", 0, "stddev"), "nan"),
        ("histogram", ("measurements", 0, "cells"), 10**12),
        ("histogram", ("card", "events", 0, "cost"), {"rho": "1e999999999"}),
        ("histogram", ("card", "total"), float("inf")),
        ("histogram", ("card", "epsilon"), True),
        ("histogram", ("kind",), ["pandas"]),
        ("support", ("model", "shapes", "records"), [1, 1]),
        ("graphical", ("model", "meta", "total"), 0),
        ("prior", ("records",), float("nan")),
        ("prior", ("sample_share",), -1.0),
        ("prior", ("records_by_attribute",), {"a": "much"}),
        ("prior", ("records_by_attribute",), {"nobody": 1.0}),
        ("prior", ("records_by_attribute",), [1]),
        ("prior", ("model", "meta", "potentials"), 7),
        ("prior", ("others",), 5),
        ("prior", ("sample_share",), float("inf")),
    ],
)
def test_a_number_that_cannot_be_is_refused_in_a_sentence(open_folder, kind, path, value):
    folder = open_folder(kind)
    place = folder.about
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value

    with pytest.raises(SidelightError) as refused:
        folder.load()

    assert 20 < len(str(refused.value)) < 1000


def test_codes_that_no_attribute_has_are_refused(open_folder):
    folder = open_folder("support")
    codes = parquet.read_table(folder.path / "model.records.parquet")["value"].to_numpy().copy()
    codes[:] = 200
    folder.column("model.records.parquet", codes)

    with pytest.raises(SidelightError, match="outside"):
        folder.load()


@pytest.mark.parametrize("values", [["x"] * 24, [[1.0]] * 24, [None] * 24, [b"x"] * 24])
def test_what_is_no_number_is_refused(open_folder, values):
    folder = open_folder("histogram")
    folder.column("model.weights.parquet", values)

    with pytest.raises(ReleaseError, match=r"something else than numbers|missing values|fit together"):
        folder.load()


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", "a/b", "..", ".hidden", "", "x\0"])
def test_no_file_outside_the_folder_is_looked_at(open_folder, name):
    folder = open_folder("histogram")
    folder.json.write_text(
        json.dumps({**folder.about, "checksums": {**folder.about["checksums"], name: "0"}}), encoding="utf-8"
    )

    with pytest.raises(ReleaseError, match="is no file of a release"):
        Release.load(folder.path)


@pytest.mark.parametrize("inserted", ["[" * 200_000 + "]" * 200_000, "[" * 900 + "]" * 900, "1" * 5000])
def test_deep_or_endless_json_is_refused(open_folder, inserted):
    folder = open_folder("histogram")
    text = json.dumps(folder.about)
    folder.json.write_text('{"x": ' + inserted + ", " + text[1:], encoding="utf-8")

    with pytest.raises(ReleaseError, match="cannot be read"):
        Release.load(folder.path)


def test_small_potentials_that_make_a_huge_tree_are_refused(open_folder):
    folder = open_folder("graphical")
    attrs = [f"a{place}" for place in range(40)]
    pairs = [[a, b] for i, a in enumerate(attrs) for b in attrs[:i]]
    folder.about |= {"domain": {"attrs": attrs, "shape": [10] * 40}, "measurements": [], "events": []}
    folder.about["model"] = {
        "kind": "graphical",
        "meta": {"total": 5.0, "potentials": pairs, "impossible": []},
        "shapes": {f"potential_{i}": [10, 10] for i in range(len(pairs))},
    }
    folder.about["checksums"] = {"measurements.parquet": ""} | {
        f"model.potential_{i}.parquet": "" for i in range(len(pairs))
    }
    folder.column("measurements.parquet", np.zeros(0), "answer")
    folder.column("model.potential_0.parquet", np.zeros(100))
    for i in range(1, len(pairs)):
        shutil.copy(folder.path / "model.potential_0.parquet", folder.path / f"model.potential_{i}.parquet")

    with pytest.raises(ReleaseError, match="the tree of this model would take"):
        folder.load()
