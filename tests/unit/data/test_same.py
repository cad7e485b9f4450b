"""The guard against public data that are the private table."""

import shutil
import warnings

import pytest

from sidelight.data.same import warn_if_same
from sidelight.errors import PrivacyWarning


@pytest.fixture
def private(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("sex\nf\nm\n", encoding="utf-8")
    return path


def test_a_copy_of_the_private_file_is_not_public_data(private, tmp_path):
    copy = tmp_path / "public.csv"
    shutil.copy(private, copy)

    with pytest.warns(PrivacyWarning, match="byte for byte"):
        warn_if_same(str(private), copy)


def test_the_same_object_is_not_public_data():
    frame = object()

    with pytest.warns(PrivacyWarning, match="not public data"):
        warn_if_same(frame, [object(), frame])


def test_other_data_pass_in_silence(private, tmp_path):
    other = tmp_path / "public.csv"
    other.write_text("sex\nf\nf\n", encoding="utf-8")

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_if_same(private, other)
        warn_if_same(private, [tmp_path, "postgresql://host/db#table", None])
        warn_if_same(private, None)
