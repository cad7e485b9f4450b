"""Wide tables: what takes too long is refused beforehand, with its size and with what to do instead."""

from fractions import Fraction

import numpy as np
import pytest

import sidelight as sl
from sidelight.curator.curator import Curator
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.errors import TooLargeError
from sidelight.mechanisms.aim import AIM
from sidelight.mechanisms.aperture.aperture import Aperture
from sidelight.mechanisms.by_size import Size
from sidelight.mechanisms.candidates import MOST_CANDIDATES, has_too_many
from sidelight.mechanisms.choice import choose
from sidelight.mechanisms.hdmm.hdmm import HDMM
from sidelight.mechanisms.mst import MST
from sidelight.models import reconstruction
from sidelight.privacy.budget import Budget, Rho
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit
from sidelight.queries.workload import Workload
from sidelight.testing import SeededNoise


def bits(attributes, values=2):
    return Domain.of({f"x{place:03d}": values for place in range(attributes)})


@pytest.mark.parametrize("mechanism", [AIM(), AIM(estimator="residual"), Aperture()])
def test_more_marginals_than_rounds_can_look_at_are_refused_with_their_number(mechanism):
    domain = bits(60)

    with pytest.raises(TooLargeError, match=r"34,220 are asked for.*25,000.*mechanism='mst'.*59 pairs"):
        mechanism.check(domain, Workload.marginals(domain, degree=3), None)
    mechanism.check(domain, Workload.marginals(domain, degree=2), None)
    mechanism.check(domain, Workload.random_marginals(domain, degree=3, number=10_000, seed=0), None)


def test_what_lies_below_the_workload_counts_too():
    domain = bits(60)
    few = Workload.random_marginals(domain, degree=3, number=MOST_CANDIDATES - 1_000, seed=0)

    assert len(few) < MOST_CANDIDATES < len(few.closure(domain))
    assert has_too_many(domain, few)
    assert not has_too_many(bits(200), Workload.marginals(bits(200), degree=2))


def test_more_cells_than_rounds_can_compare_are_refused_unless_the_largest_are_left_out():
    domain = bits(20, values=200)
    workload = Workload.marginals(domain, degree=3)

    with pytest.raises(TooLargeError, match=r"9,127,604,000 cells together \(68 GB\).*lower max_model_mb"):
        Aperture().check(domain, workload, None)
    Aperture(max_model_mb=20, oversized="skip").check(domain, workload, None)


def test_a_release_is_refused_before_its_table_is_opened(tmp_path):
    asked = {"schema": sl.Schema.from_domain(bits(100).sizes), "epsilon": 1.0, "workload": "3-way"}

    with pytest.raises(TooLargeError, match="161,700"):
        sl.release(tmp_path / "there is no such file.csv", mechanism="aim", delta=1e-9, **asked)


def test_hdmm_names_a_mechanism_that_takes_what_it_refuses():
    domain = bits(60, values=9)

    with pytest.raises(TooLargeError, match="use mechanism='mst'"):
        HDMM().check(domain, Workload.marginals(domain, degree=3), None)
    with pytest.raises(TooLargeError, match="use mechanism='aim'"):
        HDMM(max_model_mb=0.1).check(domain, Workload.marginals(domain, degree=2), None)


def test_auto_takes_a_mechanism_that_can_do_it():
    domain = bits(60)
    triples = sl.plan(schema=sl.Schema.from_domain(domain.sizes), epsilon=1.0, delta=1e-9, workload="3-way")

    assert triples.mechanism.name == "mst"
    assert "34,220 marginals" in triples.why


def test_aperture_refuses_more_trees_than_it_can_price_and_auto_takes_mst():
    wide, narrower = bits(159), bits(158)
    pairs = Workload.marginals(wide, degree=2)
    public = Table.of_codes(wide, np.zeros((50, 159), dtype=np.uint8))

    with pytest.raises(TooLargeError, match=r"159 attributes for each of 12,720 marginals.*2,000,000.*'aim'"):
        Aperture().check(wide, pairs, None)
    Aperture().check(narrower, Workload.marginals(narrower, degree=2), None)
    AIM().check(wide, pairs, None)

    asked = {"budget": Budget(epsilon=1.0, delta=1e-9), "settings": {}, "size": Size(None, Unit("replace"))}
    told = choose(wide, pairs, public=public, **asked)
    assert told.mechanism.name == "mst"
    assert told.mechanism.public_data == "unused"
    assert "159 attributes and 12,561 marginals" in told.why
    assert "left aside" in told.why
    kept = choose(narrower, Workload.marginals(narrower, degree=2), public=public, **asked)
    assert kept.mechanism.name == "aperture"


def test_mst_refuses_more_pairs_than_its_tree_is_selected_among():
    with pytest.raises(TooLargeError, match="80,200, more than the 80,000"):
        MST().check(bits(401), Workload([(attr,) for attr in bits(401).attrs]), None)
    MST().check(bits(400), Workload([(attr,) for attr in bits(400).attrs]), None)


@pytest.mark.parametrize("relation", ["replace", "add-or-remove"])
def test_errors_that_are_kept_are_those_that_would_be_found_again(monkeypatch, relation):
    domain = bits(6, values=3)
    codes = np.random.default_rng(1).integers(0, 3, (500, 6))
    codes[:, 1] = codes[:, 0]

    def measured():
        ledger = MemoryLedger(Promise(Budget(epsilon=9, delta=1e-9), Unit(relation), "toy"))
        curator = Curator(
            Table.of_codes(domain, codes), allotment=Rho(Fraction(1, 2)), unit=Unit(relation),
            ledger=ledger, noise=SeededNoise(3),
        )  # fmt: skip
        made = AIM(estimator="residual").run(curator, Workload.marginals(domain, degree=3)).measurements
        return [(one.query.attrs, one.answer.tolist()) for one in made]

    kept = measured()
    # An answer that may be changed is none whose error is kept.
    monkeypatch.setattr(reconstruction, "read_only", lambda counts: counts)

    assert len({attrs for attrs, _ in kept if len(attrs) > 1}) > 1
    assert measured() == kept
