"""decode(encode(x)) gives back labels and types, and a point of the same bin; TOML gives back the schema."""

import numpy as np
import pyarrow as pa
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from encoding import encode_value
from sidelight.data.columns.column import CategoricalColumn, IntegerColumn, RealColumn
from sidelight.data.decode import decode
from sidelight.data.schema import Schema
from sidelight.data.table import Table
from sidelight.privacy.unit import Unit

names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
whole = st.integers(-(2**53) + 1, 2**53 - 1)
finite = st.floats(-1e15, 1e15)
labels = st.one_of(
    st.lists(names, min_size=1, max_size=6, unique=True),
    st.lists(whole, min_size=1, max_size=6, unique=True),
    st.lists(finite, min_size=1, max_size=6, unique=True),
    st.lists(st.booleans(), min_size=1, max_size=2, unique=True),
)


@st.composite
def categorical(draw, name="x"):
    listed = tuple(draw(labels))
    outside = draw(st.sampled_from(["refuse", "other"]))
    assume(outside == "refuse" or "other" not in listed)
    return CategoricalColumn(name, listed, missing=draw(st.booleans()), outside=outside)


@st.composite
def integer(draw, name="x"):
    rest = {"missing": draw(st.booleans()), "outside": draw(st.sampled_from(["refuse", "other", "clamp"]))}
    if draw(st.booleans()):
        edges = tuple(sorted(draw(st.lists(whole, min_size=2, max_size=6, unique=True))))
        return IntegerColumn(name, edges=edges, **rest)
    low = draw(st.integers(-1000, 1000))
    count = draw(st.integers(1, 200))
    bins = draw(st.none() | st.integers(1, count))
    return IntegerColumn(name, low=low, high=low + count - 1, bins=bins, **rest)


@st.composite
def real(draw, name="x"):
    rest = {"missing": draw(st.booleans()), "outside": draw(st.sampled_from(["refuse", "other", "clamp"]))}
    if draw(st.booleans()):
        edges = tuple(sorted(draw(st.lists(finite, min_size=2, max_size=6, unique=True))))
        return RealColumn(name, edges=edges, **rest)
    low = draw(st.floats(-1e6, 1e6))
    width = draw(st.floats(1e-3, 1e6))
    return RealColumn(name, low=low, high=low + width, bins=draw(st.integers(1, 40)), **rest)


columns = st.one_of(categorical(), integer(), real())


def decode_column(column, codes, seed):
    return decode(Schema((column,)), codes[:, None], seed=seed).column(0).combine_chunks()


@given(categorical(), st.integers(0, 2**32))
def test_labels_and_their_types_come_back(column, seed):
    codes = np.array([encode_value(column, label) for label in column.labels])

    decoded = decode_column(column, codes, seed).to_pylist()

    assert decoded == list(column.labels)
    assert [type(value) for value in decoded] == [type(label) for label in column.labels]


@given(columns, st.integers(0, 2**32))
def test_every_code_decodes_to_a_value_of_that_code(column, seed):
    assume(column.declared <= 500)
    codes = np.arange(column.declared)

    decoded = decode_column(column, codes, seed)

    assert [encode_value(column, value) for value in decoded.to_pylist()] == codes.tolist()


@given(integer(), st.integers(0, 2**32), st.data())
def test_whole_numbers_come_back_whole_and_in_their_bin(column, seed, data):
    value = data.draw(st.integers(column.first, column.last))
    code = encode_value(column, value)

    decoded = decode_column(column, np.full(20, code), seed).to_pylist()

    assert column.bounds[code] <= value < column.bounds[code + 1]
    assert all(type(d) is int and column.bounds[code] <= d < column.bounds[code + 1] for d in decoded)


@given(real(), st.integers(0, 2**32), st.data())
def test_real_numbers_come_back_in_their_bin(column, seed, data):
    value = data.draw(st.floats(column.bounds[0], column.bounds[-1]))
    code = encode_value(column, value)

    decoded = decode_column(column, np.full(20, code), seed).to_pylist()

    assert column.bounds[code] <= value <= column.bounds[code + 1]
    assert all(column.bounds[code] <= d < column.bounds[code + 1] for d in decoded)


@given(columns)
def test_missing_values_come_back_missing(column):
    assume(column.missing)
    code = encode_value(column, None)

    assert code == column.size - 1
    assert decode_column(column, np.array([code]), 0).to_pylist() == [None]


@given(st.lists(names, min_size=1, max_size=4, unique=True), st.data())
def test_a_schema_is_its_toml(named, data):
    kinds = [data.draw(st.sampled_from([categorical, integer, real]))(name) for name in named]
    unit = Unit(data.draw(st.sampled_from(["replace", "add-or-remove"])), data.draw(st.integers(1, 9)))
    schema = Schema(tuple(data.draw(kind) for kind in kinds), unit, note=data.draw(names))

    again = Schema.from_toml(schema.to_toml())

    assert again == schema
    assert again.fingerprint == schema.fingerprint
    assert again.domain == schema.domain


@settings(max_examples=25, deadline=None)  # each example opens a connection
@given(columns, st.data())
def test_a_table_is_encoded_as_its_values_are_one_by_one(column, data):
    kind = {"text": st.text(max_size=3).filter(lambda t: "\0" not in t), "boolean": st.booleans()}.get(
        column.value_kind, finite if column.value_kind == "real" else whole
    )
    known = (
        st.sampled_from(column.labels) if isinstance(column, CategoricalColumn) and column.labels else kind
    )
    values = data.draw(st.lists(st.one_of(st.none(), kind, known), min_size=1, max_size=12))
    types = {"text": pa.string(), "integer": pa.int64(), "real": pa.float64(), "boolean": pa.bool_()}
    expected = []
    fitting = []
    for value in values:
        try:
            expected.append(encode_value(column, value))
            fitting.append(value)
        except ValueError:  # refused
            continue
    assume(fitting)

    table = Table.read(pa.table({"x": pa.array(fitting, types[column.value_kind])}), Schema((column,)))

    assert table.codes().ravel().tolist() == expected
