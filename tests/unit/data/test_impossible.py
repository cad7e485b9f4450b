"""Combinations that people declare impossible: how they are written, checked, coded and recognised."""

import itertools

import numpy as np
import pytest

from sidelight.data.columns.column import CategoricalColumn, IntegerColumn, RealColumn
from sidelight.data.domain import Combination, Domain
from sidelight.data.impossible import is_possible, masks, possible_cells
from sidelight.data.schema import Schema
from sidelight.data.table import Table
from sidelight.errors import SchemaError, TooLargeError

COLUMNS = """
[columns.age]
kind = "integer"
edges = [0, 16, 65, 100]

[columns.marital]
kind = "categorical"
labels = ["single", "married", "widowed"]
missing = true

[columns.works]
kind = "categorical"
labels = [true, false]
"""
CHILDREN = """
[[impossible]]
marital = ["widowed", "married"]
age = ["0-15"]
"""


def combination(**said):
    return Combination.of(said)


def test_a_schema_declares_labels_and_its_domain_holds_codes():
    schema = Schema.from_toml(COLUMNS + CHILDREN)

    assert schema.impossible == (combination(age=["0–15"], marital=["married", "widowed"]),)
    assert schema.domain.impossible == (combination(age=[0], marital=[1, 2]),)
    assert str(schema.impossible[0]) == "age = '0–15', marital = 'married' or 'widowed'"


def test_what_is_written_is_read_back_equal(tmp_path):
    schema = Schema.from_toml(COLUMNS + CHILDREN)

    schema.write(tmp_path / "again.toml")
    again = Schema.read(tmp_path / "again.toml")

    assert again == schema
    assert again.domain.impossible == schema.domain.impossible
    assert again.to_toml() == schema.to_toml()


def test_combinations_are_part_of_the_fingerprint_however_they_are_spelled():
    plain, declared = Schema.from_toml(COLUMNS), Schema.from_toml(COLUMNS + CHILDREN)
    other = '[[impossible]]\nage = "0–15"\nmarital = ["married", "widowed", "married"]\n'

    assert declared.fingerprint != plain.fingerprint
    assert declared != plain
    assert Schema.from_toml(COLUMNS + other).fingerprint == declared.fingerprint
    assert Schema.from_toml(COLUMNS + other + other).fingerprint == declared.fingerprint


def test_a_schema_without_combinations_keeps_its_text():
    assert "impossible" not in Schema.from_toml(COLUMNS).to_toml()


def test_special_labels_truths_and_numbers_can_be_named():
    schema = Schema(
        (
            CategoricalColumn("marital", ("single", "married"), missing=True, outside="other"),
            CategoricalColumn("works", (True, False)),
            IntegerColumn("rooms", low=1, high=4),
            RealColumn("pay", low=0.0, high=1.0, bins=2),
        ),
        impossible=(combination(marital=["missing", "other"], works=False, rooms=[2, 4], pay="[0,0.5)"),),
    )

    assert schema.domain.impossible == (combination(marital=[2, 3], works=[1], rooms=[1, 3], pay=[0]),)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[[impossible]]\nheight = ["tall"]', "'height'; the schema has age, marital, works"),
        ('[[impossible]]\nmarital = ["maried"]', "'maried', which is no label of 'marital'; it has 'single'"),
        ("[[impossible]]\nmarital = []", "lists no label of 'marital'"),
        ("[[impossible]]", "names no column"),
        ("[[impossible]]\nage = [7]", "7, which is no label of 'age'; it has '0–15'"),
        ("[[impossible]]\nworks = [1]", "1, which is no label of 'works'"),
        ("[[impossible]]\nmarital = [[1]]", "which is no label of 'marital'"),
        ('[impossible]\nmarital = ["single"]', "double brackets"),
        ("[[impossible]]\nworks = [true, false]", "exclude every record"),
        ("[[impossible]]\nworks = true\n[[impossible]]\nworks = false", "exclude every record"),
    ],
)
def test_mistakes_are_named(text, said):
    with pytest.raises(SchemaError) as found:
        Schema.from_toml(text + "\n" + COLUMNS if text.startswith("impossible") else COLUMNS + text)

    assert said in str(found.value)


def test_combinations_that_leave_no_record_together_are_found_out_and_others_are_not():
    rng = np.random.default_rng(0)
    sizes = {"a": 2, "b": 2, "c": 3}
    outcomes = set()
    for _ in range(300):
        listed = []
        for _ in range(int(rng.integers(1, 7))):
            attrs = rng.permutation(list(sizes))[: rng.integers(1, 4)]
            listed.append(
                Combination.of(
                    {
                        str(a): [int(c) for c in rng.permutation(sizes[a])[: rng.integers(1, sizes[a] + 1)]]
                        for a in attrs
                    }
                )
            )
        free = [
            cell
            for cell in itertools.product(*(range(size) for size in sizes.values()))
            if not any(
                all(
                    dict(zip(sizes, cell, strict=True))[a] in v
                    for a, v in zip(c.attrs, c.values, strict=True)
                )
                for c in listed
            )
        ]
        try:
            domain = Domain(tuple(sizes), tuple(sizes.values()), tuple(listed))
        except SchemaError:
            assert not free
            outcomes.add("none")
            continue
        assert [tuple(map(int, cell)) for cell in np.argwhere(possible_cells(domain))] == free
        every = np.array(list(itertools.product(*(range(size) for size in sizes.values()))))
        assert [tuple(map(int, line)) for line in every[is_possible(domain, every)]] == free
        outcomes.add("some")

    assert outcomes == {"none", "some"}


def test_combinations_of_the_same_attributes_share_a_table_whatever_their_order():
    domain = Domain(("a", "b"), (2, 3), (combination(b=[2], a=[0]), combination(a=[1], b=[0])))

    ((attrs, mask),) = masks(domain)

    assert attrs == ("a", "b")
    assert mask.tolist() == [[False, False, True], [True, False, False]]


def test_codes_out_of_range_and_tables_too_large_to_hold_are_refused():
    with pytest.raises(SchemaError, match="codes of 'a' from 0 to 1"):
        Domain(("a",), (2,), (combination(a=[2]),))
    with pytest.raises(SchemaError, match="names 'b'"):
        Domain(("a",), (2,), (combination(b=[0]),))
    wide = Domain(tuple("abcd"), (1000,) * 4, (combination(a=[0], b=[0], c=[0], d=[0]),))
    with pytest.raises(TooLargeError, match="Name fewer attributes"):
        masks(wide)


def test_a_table_of_codes_takes_over_what_the_schema_declares():
    schema = Schema.from_domain({"a": 2, "b": 2}).with_impossible({"a": 0, "b": 1})
    plain = Table.of_codes(Domain.of({"a": 2, "b": 2}), np.array([[0, 1], [1, 1]]))

    read = Table.read(plain, schema)

    assert read.domain.impossible == schema.domain.impossible
    assert read.count(("a",)).tolist() == [1, 1]  # the impossible record is counted like any other
    assert Table.read(read, schema) is read


def test_a_private_record_that_is_impossible_raises_nothing_and_is_no_misfit(tmp_path):
    schema = Schema.from_toml(COLUMNS + CHILDREN)
    path = tmp_path / "people.csv"
    path.write_text("age,marital,works\n3,married,true\n40,single,false\n")

    assert schema.check(str(path)) == []
    assert Table.read(str(path), schema).records == 2
