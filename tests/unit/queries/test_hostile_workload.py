"""Workload files from strangers end in a sentence, and no workload is made that never ends."""

import json

import pytest

from sidelight.data.domain import Domain
from sidelight.errors import WorkloadError
from sidelight.queries.workload import Workload

DOMAIN = Domain.of({"age": 5, "sex": 2})
WIDE = Domain.of({f"a{place}": 2 for place in range(400)})


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000 + "]" * 100_000,
        "[" + "9" * 5000 + "]",
        "null",
        "{}",
        "[1]",
        '["age"]',
        '[{"attrs": "age"}]',
        '[{"attrs": [1]}]',
        '[{"attrs": [["age"]]}]',
        '[{"attrs": ["age"], "weight": "2"}]',
        '[{"attrs": ["age"], "weight": NaN}]',
        '[{"attrs": ["age"], "weight": 1e400}]',
        '[{"attrs": ["age"], "weight": [1]}]',
        '[{"query": "cell", "attrs": ["age"], "values": ["a"]}]',
        '[{"query": "cell", "attrs": ["age"], "values": [1, 2]}]',
        '[{"query": "cell", "attrs": ["age"], "values": [true]}]',
        '[{"query": "range", "bounds": [["age", 0]]}]',
        '[{"query": "range", "bounds": [["age", "x", 2]]}]',
        '[{"query": "range", "bounds": [["age", 0.5, 2]]}]',
        '[{"query": "range", "bounds": 5}]',
        '[{"query": "linear", "attrs": ["sex"], "shape": [2], "numerators": []}]',
        '[{"query": "linear", "attrs": ["sex"], "shape": [2], "numerators": [1]}]',
        '[{"query": "linear", "attrs": ["sex"], "shape": [2], "numerators": [1, 1e300]}]',
        '[{"query": "linear", "attrs": ["sex"], "shape": [2], "numerators": [1, 99999999]}]',
        '[{"query": "linear", "attrs": ["sex"], "shape": "2", "numerators": [1, 2]}]',
        '[{"query": "fourier", "attrs": [null]}]',
        '[{"query": ["x"]}]',
        "\ud800",
    ],
)
def test_a_file_that_is_no_workload_is_refused_in_a_sentence(text, tmp_path):
    (tmp_path / "w.json").write_text(text, encoding="utf-8", errors="surrogatepass")

    with pytest.raises(WorkloadError) as refused:
        Workload.of(str(tmp_path / "w.json"), DOMAIN)

    assert 20 < len(str(refused.value)) < 500


@pytest.mark.parametrize("asked", ["3-way", "200-way", "9" * 5000 + "-way", "\u0663-way"])
def test_no_workload_is_made_that_never_ends(asked):
    with pytest.raises(WorkloadError):
        Workload.of(asked, WIDE)


def test_one_marginal_of_many_attributes_has_more_subsets_than_can_be_gone_through(tmp_path):
    (tmp_path / "w.json").write_text(json.dumps([{"attrs": list(WIDE.attrs[:60])}]))

    asked = Workload.of(str(tmp_path / "w.json"), WIDE)

    with pytest.raises(WorkloadError, match="smaller marginals"):
        asked.closure(WIDE)


def test_all_pairs_of_many_attributes_are_fine():
    wide = Domain.of({f"a{place}": 2 for place in range(100)})

    assert len(Workload.of("2-way", wide).closure(wide)) == 100 + 100 * 99 // 2
