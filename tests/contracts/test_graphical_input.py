"""What AIM, JAM, MST and APERTURE cannot do is said before anything is spent; what is merely odd is done."""

import numpy as np
import pytest

from sidelight.data.schema import Schema
from sidelight.data.table import Table
from sidelight.errors import DataError, InputError, SettingError, TooLargeError, WorkloadError
from sidelight.mechanisms.aim import AIM
from sidelight.mechanisms.aperture.aperture import Aperture
from sidelight.mechanisms.jam import JAM
from sidelight.mechanisms.mst import MST
from sidelight.privacy.budget import Budget
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit
from sidelight.releases.run import release
from sidelight.testing import SeededNoise

KINDS = {"aim": AIM, "mst": MST, "jam": JAM, "aperture": Aperture}
WITH_PUBLIC = ["jam", "aperture"]
QUICK = {"aim": {"rounds_per_attribute": 3}, "mst": {}, "jam": {"rounds": 3}, "aperture": {"max_rounds": 2}}
# 1,000 × 1,000 cells of 8 bytes are 7.63 MB.
SIZES = {"town": 1000, "job": 1000, "sex": 2}
SCHEMA = Schema.from_domain(SIZES)


def table(records, *, seed=0):
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, size, records) for size in SIZES.values()], axis=1)
    return Table.of_codes(SCHEMA.domain, codes)


def attempt(name, *, public="as needed", workload="2-way", **settings):
    """A release through the front door, and the ledger that it was charged to."""
    ledger = MemoryLedger(Promise(Budget(epsilon=1.0, delta=1e-9), Unit("replace"), "toy"))
    if public == "as needed":
        public = table(50, seed=1) if name in WITH_PUBLIC else None

    def go():
        return release(
            table(300), schema=SCHEMA, epsilon=1.0, mechanism=KINDS[name](**{**QUICK[name], **settings}),
            workload=workload, public=public, ledger=ledger, noise=SeededNoise(1), progress=False,
            bins="as declared",  # groups may fit where the marginal itself is too large
        )  # fmt: skip

    return go, ledger


def refused(error, said, name, **settings):
    """It raises this error, whose message says all of that, and the ledger is as it was."""
    go, ledger = attempt(name, **settings)
    before = ledger.head

    with pytest.raises(error) as caught:
        go()

    assert isinstance(caught.value, InputError)
    for part in said:
        assert part in str(caught.value)
    assert ledger.head == before
    assert not ledger.runs()
    assert ledger.spent == 0


@pytest.mark.parametrize("name", KINDS)
def test_a_marginal_above_the_size_limit_is_named_with_its_size_and_what_to_do(name):
    said = ["town × job", "7.63 MB", "max_model_mb = 5", "Raise max_model_mb, coarsen", "oversized='skip'"]

    refused(TooLargeError, said, name, max_model_mb=5.0)


@pytest.mark.parametrize("name", KINDS)
def test_a_marginal_above_the_size_limit_may_be_answered_from_smaller_ones(name):
    go, _ = attempt(name, max_model_mb=5.0, oversized="skip", workload=[("town", "job"), ("sex",)])

    made = go()

    assert made.count(("town", "job")).sum() == pytest.approx(300)
    assert all(m.query.attrs != ("town", "job") for m in made.measurements)


@pytest.mark.parametrize("oversized", ["refuse", "skip"])
@pytest.mark.parametrize("name", KINDS)
def test_a_limit_that_holds_no_model_at_all_is_refused(name, oversized):
    said = ["max_model_mb = 0.001 cannot hold even the one-way marginal of 'town'", "Raise max_model_mb"]

    refused(TooLargeError, said, name, max_model_mb=0.001, oversized=oversized)


@pytest.mark.parametrize("limit", [0.0, -1.0, float("nan"), float("inf")])
@pytest.mark.parametrize("name", KINDS)
def test_a_limit_that_is_no_size_is_refused(name, limit):
    with pytest.raises(SettingError, match="max_model_mb must be"):
        KINDS[name](max_model_mb=limit)


@pytest.mark.parametrize("name", KINDS)
def test_unknown_attributes_are_named(name):
    refused(WorkloadError, ["unknown attribute 'shoe size'"], name, workload=[("town", "shoe size")])


@pytest.mark.parametrize("name", WITH_PUBLIC)
def test_a_public_table_without_records_is_refused(name):
    refused(DataError, ["the public table has no records"], name, public=table(0), max_model_mb=20.0)


@pytest.mark.parametrize("name", WITH_PUBLIC)
def test_a_public_table_of_one_record_is_used_for_what_it_is_worth(name):
    go, ledger = attempt(name, public=table(1), workload="1-way")

    made = go()

    assert made.total == 300
    assert np.isfinite(made.count(("sex",))).all()
    assert len(list(ledger.events())) == len(made.events) > 0


@pytest.mark.parametrize("name", KINDS)
def test_a_private_table_of_one_record_is_released_like_any_other(name):
    ledger = MemoryLedger(Promise(Budget(epsilon=1.0, delta=1e-9), Unit("replace"), "toy"))
    schema = Schema.from_domain({"a": 2, "b": 3})
    one, other = (Table.of_codes(schema.domain, np.array([[1, 2]])) for _ in range(2))

    made = release(
        one, schema=schema, epsilon=1.0, mechanism=KINDS[name](**QUICK[name]), workload="2-way",
        public=other if name in WITH_PUBLIC else None, ledger=ledger, noise=SeededNoise(1), progress=False,
    )  # fmt: skip

    assert made.count(("a", "b")).sum() == pytest.approx(1.0)
