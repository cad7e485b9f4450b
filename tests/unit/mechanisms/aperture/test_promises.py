"""APERTURE keeps the answers that were paid for, and serves a workload for its own sake."""

from fractions import Fraction

import numpy as np
import pytest

from sidelight.curator.curator import Curator
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.mechanisms.aperture.aperture import Aperture
from sidelight.privacy.budget import Budget, Rho
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit
from sidelight.queries.workload import Workload
from sidelight.testing import SeededNoise

REPLACE = Unit("replace")


def mixed_table(domain, records, seed, *, rare=0.02):
    """Attributes that all tell of two hidden things; the last value of the first attribute is rare."""
    rng = np.random.default_rng(seed)
    hidden = rng.integers(0, 4, (records, 2))
    columns = []
    for place, size in enumerate(domain.shape):
        told = (hidden[:, place % 2] + place) % size
        columns.append(np.where(rng.random(records) < 0.6, told, rng.integers(0, size, records)))
    columns[0] = np.where(rng.random(records) < rare, domain.shape[0] - 1, columns[0] % (domain.shape[0] - 1))
    return Table.of_codes(domain, np.stack(columns, axis=1))


def curator_of(table, rho, seed):
    ledger = MemoryLedger(Promise(Budget(epsilon=1e7, delta=1e-9), REPLACE, "promises"))
    return Curator(table, allotment=Rho(Fraction(rho)), unit=REPLACE, ledger=ledger, noise=SeededNoise(seed))


def residuals(release, model):
    """How far a model is from the answers to single attributes, in standard deviations of their noise."""
    merged = {}
    for made in release.measurements:
        if len(made.query.attrs) == 1:
            precision, weighted = merged.get(made.query.attrs, (0.0, 0.0))
            merged[made.query.attrs] = precision + made.precision, weighted + made.precision * made.answer
    return np.concatenate(
        [
            (np.asarray(model.count(attrs)).reshape(-1) - weighted / precision) * precision**0.5
            for attrs, (precision, weighted) in merged.items()
        ]
    )


WIDE = Domain.of({f"x{place}": 3 + place % 3 for place in range(9)})
SMALL = Aperture(max_model_mb=0.02, max_rounds=6, max_particle_rounds=12, oversized="skip")


@pytest.mark.parametrize("rho", ["1/1000", "1/10"])
@pytest.mark.parametrize(
    "kind", ["without public data", "public data without the rare value", "good public data"]
)
def test_answers_to_single_attributes_are_followed_to_within_their_noise(rho, kind):
    """Rare values included; also where public records, which are mixed in, do not have them."""
    private = mixed_table(WIDE, 8000, seed=1)
    public = {
        "without public data": None,
        "public data without the rare value": mixed_table(WIDE, 8000, seed=2, rare=0.0),
        "good public data": mixed_table(WIDE, 8000, seed=2),
    }[kind]

    release = SMALL.run(curator_of(private, rho, seed=3), Workload.marginals(WIDE, degree=2), public=public)

    found = residuals(release, release.model)
    assert np.mean(found**2) < 1.7
    assert np.abs(found).max() < 5
    # Samples add their own rounding, and no more than that.
    n = 8000
    drawn = release.model.sample(n, seed=1)
    moved = np.concatenate([drawn.count((a,)) - release.model.count((a,)) for a in WIDE.attrs])
    assert np.abs(moved).max() < 4 * np.sqrt(n / 3)


@pytest.mark.slow
def test_pairs_are_served_no_worse_by_a_workload_of_pairs_than_by_one_of_triples():
    domain = Domain.of({f"x{place}": 2 + place % 4 for place in range(14)})
    private = mixed_table(domain, 10_000, seed=1)
    pairs = Workload.marginals(domain, degree=2)
    errors = {2: [], 3: []}
    for degree, found in errors.items():
        for seed in range(2):
            release = Aperture(max_model_mb=1.0, oversized="skip").run(
                curator_of(private, "1/100", seed), Workload.marginals(domain, degree=degree)
            )
            gaps = [release.model.count(q.attrs) - private.count(q.attrs) for q in pairs]
            found.append(np.mean([np.abs(gap).sum() for gap in gaps]) / private.records)

    assert np.mean(errors[2]) < 1.05 * np.mean(errors[3])


@pytest.mark.slow
def test_public_data_that_lack_an_attribute_help_and_the_more_they_have_the_more_they_do():
    private, public = mixed_table(WIDE, 8000, seed=1), mixed_table(WIDE, 8000, seed=2)
    workload = Workload.marginals(WIDE, degree=2)

    def error(kept):
        given = None
        if kept:
            part = WIDE.project(WIDE.attrs[:kept])
            given = Table.of_codes(part, public.codes()[:, :kept])
        found = []
        for seed in range(6):
            release = Aperture(max_model_mb=0.1, oversized="skip").run(
                curator_of(private, "1/1000", seed), workload, public=given
            )
            gaps = [release.model.count(q.attrs) - private.count(q.attrs) for q in workload]
            found.append(np.mean([np.abs(gap).sum() for gap in gaps]) / private.records)
        return np.mean(found)

    whole, most, some, none = (error(kept) for kept in (9, 8, 5, 0))

    assert whole < most < some < 1.02 * none
