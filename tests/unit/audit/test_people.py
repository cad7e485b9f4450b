"""What an engine keeps of a person under attack: k records and no more, and each planted bug keeps others."""

import numpy as np
import pytest

from commands import sidelight
from sidelight.audit.people import AS_IT_IS, ENGINES, RECORDS, WAYS, by, kept_counts


@pytest.mark.parametrize("relation", ["replace", "add-or-remove"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("engine", ENGINES)
def test_one_person_moves_k_records_and_with_a_planted_bug_more(engine, way, relation):
    first, second = map(np.array, kept_counts(by(engine), relation, way))
    allowed = RECORDS * (2 if relation == "replace" else 1)

    assert (np.abs(first - second).sum() > allowed) == (way != AS_IT_IS)


def test_an_audit_of_people_names_the_engine_and_refuses_what_it_would_not_heed(tmp_path):
    done = sidelight("audit", "people", "--runs", "20", "--json", folder=tmp_path)
    refused = sidelight("audit", "people", "--epsilon", "2", folder=tmp_path)

    assert done.returncode == 0
    assert '"subject": "duckdb"' in done.stdout
    assert refused.returncode == 2
    assert "leave out --unit and --epsilon" in refused.stderr
