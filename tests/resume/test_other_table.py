"""A checkpoint is the run of one private table and its public ones: it does not resume with another."""

import stat

import numpy as np
import pyarrow as pa
import pytest

import sidelight as sl
from sidelight.errors import CheckpointError, LedgerError
from sidelight.privacy.promise import Promise
from sidelight.progress import Silent

SCHEMA = sl.Schema.from_domain({"age": 8, "sex": 2})


class PowerCut(Silent):
    """A progress bar during whose fifth step the power is cut."""

    steps = 0

    def step(self, what, *, share=None):
        self.steps += bool(what)  # of counting, only the share is told
        if what and self.steps == 5:
            raise KeyboardInterrupt


def people(seed, records=400):
    draw = np.random.default_rng(seed)
    return pa.table({"age": draw.integers(0, 8, records), "sex": draw.integers(0, 2, records)})


def other_last_record(table):
    sex = table["sex"].to_numpy().copy()
    sex[-1] = 1 - sex[-1]
    return table.set_column(1, "sex", pa.array(sex))


@pytest.fixture
def asked(tmp_path):
    ledger = sl.SqlLedger.create(
        tmp_path / "l.ledger", Promise(sl.Budget(epsilon=1, delta=1e-9), sl.Unit("replace"), "people")
    )
    return {
        "schema": SCHEMA,
        "epsilon": 0.5,
        "workload": "2-way",
        "ledger": ledger,
        "checkpoint": tmp_path / "run",
        "mechanism": "pmw-pub",
        "rounds": 5,
        "progress": False,
    }


def interrupted(private, public, asked):
    with pytest.raises(KeyboardInterrupt):
        sl.release(private, public=public, **(asked | {"progress": PowerCut()}))
    return asked["ledger"].head


def test_another_private_table_is_refused_by_the_ledger(asked):
    private, public = people(1), people(2)
    head = interrupted(private, public, asked)

    with pytest.raises((CheckpointError, LedgerError), match="another"):
        sl.release(other_last_record(private), public=public, **asked)

    assert asked["ledger"].head == head
    sl.release(private, public=public, **asked)


def test_another_private_table_is_refused_by_the_checkpoint_too(asked):
    """As where the ledger was told that the table has changed."""
    private, public = people(1), people(2)
    interrupted(private, public, asked)
    asked["ledger"].rebind({"nothing": "known"})

    with pytest.raises(CheckpointError, match="another private table"):
        sl.release(other_last_record(private), public=public, **asked)


def test_another_public_table_is_refused_by_the_checkpoint(asked):
    private, public = people(1), people(2)
    head = interrupted(private, public, asked)

    with pytest.raises(CheckpointError, match="another public table"):
        sl.release(private, public=other_last_record(public), **asked)

    assert asked["ledger"].head == head


def test_the_key_is_readable_by_its_owner_alone_and_enters_nothing_else(asked, tmp_path):
    private, public = people(1), people(2)
    interrupted(private, public, asked)
    key = (tmp_path / "run" / "key").read_text()

    release = sl.release(private, public=public, **asked)
    release.save(tmp_path / "out")

    assert stat.S_IMODE((tmp_path / "run" / "key").stat().st_mode) == 0o600
    published = b"".join(path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file())
    for secret in (key, asked["ledger"].key):
        assert secret.encode() not in published
        assert secret.encode() not in (tmp_path / "run" / "journal.jsonl").read_bytes()


@pytest.mark.parametrize("is_there", [False, True])
def test_a_run_that_paid_for_nothing_leaves_no_folder_of_its_own(asked, tmp_path, is_there, monkeypatch):
    if is_there:
        asked["checkpoint"].mkdir()

    def refuse(*_args, **_more):
        raise LedgerError("somebody else was faster")

    monkeypatch.setattr(type(asked["ledger"]), "begin", refuse)
    with pytest.raises(LedgerError, match="faster"):
        sl.release(people(0), public=people(1), **asked)

    assert asked["checkpoint"].exists() == is_there
