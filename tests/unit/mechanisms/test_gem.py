"""GEM and GEM-Pub: budget, start, refusals, and that no true error decides anything (spec 7.3, 9.5)."""

import subprocess
import sys
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

import sidelight as sl
from sidelight import _extras
from sidelight.curator.journal import Journal
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.errors import MissingExtraError, SchemaError, SettingError, TooLargeError, WorkloadError
from sidelight.mechanisms.aim import AIM
from sidelight.mechanisms.gem import rounds
from sidelight.mechanisms.gem.gem import GEM
from sidelight.mechanisms.gem.gem_pub import GEMPub
from sidelight.privacy.budget import Budget
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.unit import Unit
from sidelight.queries.workload import Workload
from sidelight.testing import SeededNoise
from torched import NEEDS_TORCH

pytestmark = NEEDS_TORCH

SMALL = {"batch": 16, "latent": 4, "width": 8, "layers": 1, "rounds": 3, "steps": 10, "rate": 2e-2}
DOMAIN = Domain.of({"a": 2, "b": 3, "c": 4})
SCHEMA = sl.Schema.from_domain(DOMAIN.sizes)


def people(seed, records=400):
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 2, records)
    return Table.of_codes(
        DOMAIN, np.stack([a, a + rng.integers(0, 2, records), rng.integers(0, 4, records)], 1)
    )


def released(mechanism, *, public=None, ledger=None, **more):
    delta = None if ledger is not None else 1e-9
    return sl.release(
        people(1), schema=SCHEMA, epsilon=1.0, delta=delta, mechanism=mechanism, public=public, ledger=ledger,
        noise=SeededNoise(3), progress=False, **({"workload": "2-way"} | more),
    )  # fmt: skip


def test_the_papers_alpha_is_this_share_of_every_round(toy):
    """Spec 10.7: ρ = 1, T = 10, α = 0.67."""
    select, measure = (
        Fraction(1) / 10 * Fraction(share) for share in (rounds._GEM_SHARE, 1 - rounds._GEM_SHARE)
    )

    assert float(select) == pytest.approx(0.08047687, abs=1e-8)
    assert float(measure) == pytest.approx(0.01952313, abs=1e-8)
    curator, _ = toy.curator(rho="1")
    outcome = GEM(form="gem", **SMALL).run(curator, toy.workload)
    costs = [float(event.cost.value) for event in outcome.events]
    assert costs[0] == pytest.approx(rounds._GEM_SHARE / 3)
    assert sum(costs) == pytest.approx(1.0)


@pytest.mark.parametrize(("form", "most"), [("gem", 3), ("margnet", 6)])
def test_no_marginal_is_measured_twice_and_rounds_are_at_most_the_candidates(form, most):
    release = released(GEM(**(SMALL | {"rounds": 50, "form": form})))

    measured = [made.query.attrs for made in release.measurements]
    assert len(measured) == len(set(measured)) == most


@pytest.mark.parametrize("average", [0.0, 0.9])
def test_the_average_of_weights_is_over_the_last_half_of_the_rounds(average, monkeypatch):
    seen = []
    moved = rounds._moved
    monkeypatch.setattr(rounds, "_moved", lambda *given: seen.append(given) or moved(*given))

    released(GEM(**(SMALL | {"rounds": 5, "average": average})))

    assert len(seen) == 3
    assert seen[0][0] is None


def test_the_average_of_the_same_weights_is_these_weights():
    same = {"matrix_0": np.array([1.0, 2.0], dtype=np.float32)}
    once = rounds._moved(None, same, 0.9)

    np.testing.assert_allclose(rounds._moved(once, same, 0.9)["matrix_0"], same["matrix_0"])


# True errors decide nothing -------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ChoosesByTrueError(GEM):
    """The planted bug, as in the authors' code: of two networks, the one nearer to the private table."""

    def run(self, curator, workload, *, public=None):
        outcome = super().run(curator, workload, public=public)
        start = self._drawn(curator.domain).mixture(outcome.total)
        gaps = [
            sum(abs(model.count(q.attrs) - curator._table.count(q.attrs)).sum() for q in workload)
            for model in (outcome.model, start)
        ]
        return outcome if gaps[0] < gaps[1] else type(outcome)(start, outcome.measurements, outcome.events)


@pytest.mark.parametrize(
    ("mechanism", "is_sound"),
    [(GEM(**SMALL), True), (GEM(form="gem", **SMALL), True), (ChoosesByTrueError(**SMALL), False)],
    ids=["margnet", "gem", "planted"],
)
def test_which_network_is_released_follows_from_noisy_answers_alone(mechanism, is_sound, toy, tmp_path):
    """Replayed against another table, the journal gives the same network, unless a true error decided."""
    counts = []
    for table in (toy.table, Table.of_codes(DOMAIN, np.tile([0, 2, 3], (600, 1)))):
        with Journal.open(tmp_path / "run", run="r", settings={}) as journal:
            curator, _ = type(toy)(table, toy.workload).curator(rho="10", journal=journal)
            counts.append(mechanism.run(curator, toy.workload).count(("a", "b")))

    assert np.array_equal(*counts) == is_sound


# Public data ----------------------------------------------------------------------------------------


def test_public_training_brings_the_start_near_the_public_table():
    public = people(2, 2000)
    mechanism = GEMPub(**(SMALL | {"public_steps": 300, "public_rate": 2e-2}))

    start = mechanism._start(DOMAIN, [("a", "b"), ("b", "c")], public).mixture(1.0)

    assert np.abs(start.count(("a", "b")) - public.count(("a", "b")) / 2000).sum() < 0.1


def test_a_release_is_a_start_for_the_next_from_its_folder_too(tmp_path):
    first = released(GEM(**SMALL))
    first.save(tmp_path / "first")
    later = GEMPub(**SMALL)

    from_memory = released(later, public=first)
    from_folder = released(later, public=tmp_path / "first")

    assert np.array_equal(from_memory.count(("a", "b", "c")), from_folder.count(("a", "b", "c")))
    assert np.array_equal(from_memory.model.network["noise"], first.model.network["noise"])


def test_a_saved_release_answers_and_samples_without_torch(tmp_path):
    release = released(GEM(**SMALL))
    release.save(tmp_path / "out")
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import sidelight as sl\n"
        f"release = sl.Release.load({str(tmp_path / 'out')!r})\n"
        "print(release.count(['a', 'b']).tolist(), release.sample(20, seed=1).num_rows)"
    )

    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert said.returncode == 0, said.stderr
    assert said.stdout.strip() == f"{release.count(['a', 'b']).tolist()} 20"


# Refused, and nothing spent -------------------------------------------------------------------------


def test_what_cannot_be_run_is_refused_and_nothing_is_spent(monkeypatch):
    other = sl.release(
        Table.of_codes(Domain.of({"a": 2, "b": 2}), np.zeros((50, 2), dtype=int)),
        schema=sl.Schema.from_domain({"a": 2, "b": 2}), epsilon=1.0, delta=1e-9, mechanism=GEM(**SMALL),
        workload="2-way", noise=SeededNoise(1), progress=False,
    )  # fmt: skip
    tree = released(AIM(rounds_per_attribute=2))
    ledger = MemoryLedger(Promise(Budget(epsilon=9.0, delta=1e-9), Unit("replace"), "toy"))
    wide = {"batch": 10**9}

    for refused, said, given in (
        (SchemaError, "another schema", {"mechanism": GEMPub(**SMALL), "public": other.model}),
        (SettingError, "takes one public table", {"mechanism": GEMPub(**SMALL), "public": tree}),
        (SettingError, "starts from public data", {"mechanism": GEMPub(**SMALL)}),
        (WorkloadError, "whole marginals", {"mechanism": GEM(), "workload": Workload.prefixes(DOMAIN, "c")}),
        (WorkloadError, "the total alone", {"mechanism": GEM(), "workload": [()]}),
        (TooLargeError, "lower at_once", {"mechanism": GEM(**(SMALL | wide))}),
    ):
        with pytest.raises(refused, match=said):
            released(**given, ledger=ledger)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(SettingError, match="torch sees none here; use device='cpu'"):
        released(GEM(device="cuda", **SMALL), ledger=ledger)
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.mem_get_info", lambda: (1000, 2000))
    with pytest.raises(TooLargeError, match=r"there are 9\.31e-07 GiB\. Ask for smaller marginals"):
        released(GEM(device="cuda", **SMALL), ledger=ledger)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'sidelight\[torch\]'"):
        released(GEM(**SMALL), ledger=ledger)
    assert _extras.need("json", "to compare") is not None
    assert not list(ledger.runs())


@pytest.mark.parametrize(
    "settings",
    [
        {"rounds": 0},
        {"select_share": 1.0},
        {"form": "gan"},
        {"device": "tpu"},
        {"average": 1.5},
        {"rate": 0},
        {"batch": 1},
    ],
)
def test_bad_settings_are_refused(settings):
    with pytest.raises(SettingError, match=next(iter(settings))):
        GEM(**settings)
