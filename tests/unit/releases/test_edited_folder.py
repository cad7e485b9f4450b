"""A release folder that somebody edited: refused in a sentence, never in a traceback, nor believed."""

import contextlib
import json
import os

import pytest

from sidelight.data.schema import Schema
from sidelight.errors import CheckpointError, ReleaseError, SidelightError
from sidelight.releases.release import Release
from sidelight.releases.run import release
from sidelight.reports.report import render
from sidelight.testing import SeededNoise

WRONG = [None, [], {}, "x", 3, -1.5, [1, "a", None], {"attrs": 7, "shape": "no"}]


@pytest.fixture(scope="module")
def folder(toy, tmp_path_factory):
    schema = Schema.from_domain(toy.table.domain)
    made = release(
        toy.table, schema=schema, epsilon=1.0, delta=1e-6, workload=[("a", "b"), ("c",)], mechanism="mwem",
        rounds=2, noise=SeededNoise(5), progress=False,
    )  # fmt: skip
    return made.save(tmp_path_factory.mktemp("edited") / "out")


def places(value, path=()):
    """Every place of a JSON value, but for long lists: of those the first."""
    yield path
    listed = value[:1] if isinstance(value, list) else ()
    for key, inner in value.items() if isinstance(value, dict) else enumerate(listed):
        yield from places(inner, (*path, key))


def edited(about, path, new):
    """A copy with another value in that place; ``KeyError`` as a value takes it away."""
    copy = json.loads(json.dumps(about))
    at = copy
    for key in path[:-1]:
        at = at[key]
    if new is KeyError:
        del at[path[-1]]
    else:
        at[path[-1]] = new
    return copy


@pytest.mark.slow
def test_whatever_is_edited_the_report_is_made_or_refused_in_a_sentence(folder):
    original = (folder / "release.json").read_text(encoding="utf-8")
    about = json.loads(original)
    refused, unexpected = [], []
    try:
        for path in places(about):
            for new in [*WRONG, KeyError] if path else []:
                (folder / "release.json").write_text(json.dumps(edited(about, path, new)), encoding="utf-8")
                try:
                    render(Release.load(folder))
                except SidelightError as error:
                    refused.append(str(error))
                except Exception as error:  # noqa: BLE001  # which one is what the test asks
                    unexpected.append(f"{'.'.join(map(str, path))} = {new!r}: {error!r}")
    finally:
        (folder / "release.json").write_text(original, encoding="utf-8")

    assert unexpected == []
    assert len(refused) > 100
    assert min(map(len, refused)) > 20


@pytest.mark.parametrize(
    ("name", "content"), [("schema.toml", b"\xff\xfe not text"), ("measurements.parquet", b"PAR1 cut off")]
)
def test_a_file_that_was_damaged_with_its_checksum_is_named(folder, name, content, tmp_path):
    import hashlib
    import shutil

    copy = shutil.copytree(folder, tmp_path / "copy")
    (copy / name).write_bytes(content)
    about = json.loads((copy / "release.json").read_text(encoding="utf-8"))
    about["checksums"][name] = hashlib.sha256(content).hexdigest()
    (copy / "release.json").write_text(json.dumps(about), encoding="utf-8")

    with pytest.raises(SidelightError, match=name.split(".")[0]):
        Release.load(copy)


def test_names_that_are_no_utf_8_are_taken_and_told(folder, tmp_path):
    odd = tmp_path / os.fsdecode(b"caf\xe9")
    with contextlib.suppress(OSError):  # some file systems refuse such names
        written = Release.load(folder).save(odd)
        assert Release.load(written).total == 600

    with pytest.raises(ReleaseError, match="there is no folder") as refusal:
        Release.load(tmp_path / os.fsdecode(b"\xff\xfe"))
    assert str(refusal.value).encode("utf-8", "backslashreplace")


def test_a_place_that_cannot_be_written_is_refused_before_anything_is_paid(toy, folder, tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(ReleaseError, match="could not be written"):
        Release.load(folder).save(tmp_path / "file" / "out")
    with pytest.raises(CheckpointError, match="cannot hold a checkpoint"):
        release(
            toy.table, schema=Schema.from_domain(toy.table.domain), epsilon=1.0, delta=1e-6, workload="2-way",
            mechanism="mwem", rounds=2, checkpoint=tmp_path / "file" / "run", progress=False,
        )  # fmt: skip
