"""The scikit-learn-style door: parameters only stored, nothing learned silently, every fit paid for."""

import copy
import sys

import numpy as np
import pytest

import sidelight as sl
from sidelight.errors import BudgetExhausted, InputError, NotFittedError, PrivacyWarning, SettingError
from sidelight.privacy.budget import Budget
from sidelight.privacy.ledger import MemoryLedger
from sidelight.privacy.promise import Promise
from sidelight.privacy.sql_ledger import SqlLedger
from sidelight.privacy.unit import Unit
from sidelight.testing import SeededNoise

TOML = """
[columns.sex]
kind = "categorical"
labels = ["female", "male"]
[columns.age]
kind = "integer"
low = 0
high = 99
bins = 5
"""


@pytest.fixture
def schema():
    return sl.Schema.from_toml(TOML)


@pytest.fixture
def people():
    import pandas as pd

    rng = np.random.default_rng(0)
    return pd.DataFrame({"sex": rng.choice(["female", "male"], 300), "age": rng.integers(0, 100, 300)})


def book(epsilon=1.0):
    return MemoryLedger(Promise(Budget(epsilon=epsilon, delta=1e-6), Unit("replace"), "people"))


def synthesizer(schema, **settings):
    return sl.Synthesizer(
        **{"schema": schema, "workload": "2-way", "noise": SeededNoise(1), "progress": False} | settings
    )


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_the_sample_is_of_the_kind_that_was_fitted(schema, people, kind):
    given = {"pandas": lambda: people, "polars": lambda: pytest.importorskip("polars").from_pandas(people),
             "pyarrow": lambda: pytest.importorskip("pyarrow").Table.from_pandas(people)}[kind]()  # fmt: skip

    drawn = synthesizer(schema).fit(given).sample(20, seed=1)

    assert type(drawn) is type(given)
    assert len(drawn) == 20


def test_criteria_of_acceptance_are_judged_at_each_fit(schema, people):
    criteria = {"criterion": [{"tables": "1-way", "at_most": 1.5}]}

    fitted = synthesizer(schema, accept=criteria, epsilon=5.0).fit(people)

    assert fitted.release_.card.acceptance.verdict == "passed"


def test_public_data_are_used(schema, people):
    fitted = synthesizer(schema, mechanism="aperture").fit(people, public=people.head(200))

    assert fitted.release_.card.mechanism == "aperture"
    assert fitted.release_.card.public.records == 200


def test_labels_in_the_place_of_y_are_never_taken_for_public_data(schema, people):
    with pytest.raises(SettingError, match=r"by name, as fit\(private, public=…\). Nothing was read"):
        synthesizer(schema).fit(people, people["sex"])


def test_a_sample_has_as_many_records_as_the_table_and_its_seed_draws_it_again(schema, people):
    fitted = synthesizer(schema).fit(people)

    drawn = fitted.sample()
    again = fitted.sample(seed=fitted.seed_)

    assert len(drawn) == 300
    assert drawn.equals(again)


def test_without_a_schema_nothing_is_read(people):
    with pytest.raises(SettingError, match=r"never learned from private data.*Draft one from PUBLIC data"):
        sl.Synthesizer().fit(people, public=people)


def test_asking_before_fitting_says_what_to_do(schema):
    unfitted = synthesizer(schema)

    with pytest.raises(NotFittedError, match="not fitted yet: call fit"):
        unfitted.sample(3)
    assert issubclass(NotFittedError, InputError)
    assert not hasattr(unfitted, "release_")


def test_bad_parameters_are_refused_by_fit_and_not_before(schema, people):
    odd = synthesizer(schema, epsilon=-1.0, mechanism="nonsense")

    with pytest.raises(SettingError):
        odd.fit(people)


def test_fitting_twice_spends_twice_and_the_ledger_says_no_in_time(schema, people):
    ledger = book(epsilon=1.0)
    fitted = synthesizer(schema, epsilon=0.6, ledger=ledger).fit(people)
    once = ledger.spent

    fitted.fit(people)
    assert ledger.spent == 2 * once
    with pytest.raises(BudgetExhausted):
        fitted.fit(people)
    assert ledger.spent == 2 * once


def test_fitting_twice_without_a_ledger_warns(schema, people):
    fitted = synthesizer(schema).fit(people)

    with pytest.warns(PrivacyWarning, match="and nothing adds that to what the last fit spent"):
        fitted.fit(people)


def test_delta_is_the_ledgers_own_or_small(schema, people):
    assert synthesizer(schema).fit(people).release_.card.delta == 1e-9
    assert synthesizer(schema, ledger=book()).fit(people).release_.card.delta == 1e-6


def test_parameters_are_stored_as_given_and_set_by_name(schema):
    made = synthesizer(schema)

    assert made.get_params()["schema"] is schema
    assert made.set_params(epsilon=0.5).get_params()["epsilon"] == 0.5
    with pytest.raises(SettingError, match="no parameter 'rounds'; it has epsilon, delta"):
        made.set_params(rounds=3)


def test_scikit_learn_clones_it_and_the_clone_spends_from_the_same_ledger(schema, people):
    base = pytest.importorskip("sklearn.base", reason="scikit-learn is an extra")
    ledger = book()
    fitted = synthesizer(schema, epsilon=0.6, ledger=ledger).fit(people)
    once = ledger.spent

    twin = base.clone(fitted)

    assert not hasattr(twin, "release_")
    assert twin.get_params() == fitted.get_params()
    twin.fit(people)
    assert ledger.spent == 2 * once


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_ledger_has_no_copy_that_could_forget(copied, tmp_path):
    on_disk = SqlLedger.create(tmp_path / "t.ledger", book().promise)
    for ledger in (book(), on_disk):
        assert copied(ledger) is ledger


def test_it_needs_no_scikit_learn(schema, people, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)

    assert len(synthesizer(schema).fit(people).sample(5, seed=1)) == 5


def test_its_text_hides_a_ledgers_password(schema):
    shown = repr(sl.Synthesizer(epsilon=0.5, ledger="postgresql://me:secret@host/db#t"))

    assert shown == "Synthesizer(epsilon=0.5, mechanism='auto')"
