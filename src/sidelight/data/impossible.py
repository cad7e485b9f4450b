"""Impossible combinations: what people declare never occurs, as labels, as codes and as tables.

A schema may declare, for any number of attributes,

    [[impossible]]
    age = ["0–15"]
    marital = ["married", "widowed"]

A record is impossible if it holds one of the listed values of every attribute named. Models give such
records no mass, so no answer counts them and no synthetic table holds one.

PRIVACY: combinations are declared by people, like all of the schema, and never learned from private data.
A private record that is impossible all the same is counted like any other, and never named: its noisy
count is one more answer that the model does not follow.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sidelight.data.column import CategoricalColumn, Column, Label
from sidelight.data.domain import Attrs, Combination, Domain
from sidelight.errors import SchemaError, TooLargeError

Mask = tuple[Attrs, NDArray[np.bool_]]
"""Attributes, and true at each combination of their codes that cannot be."""

_LISTED = 12
"""Most labels that a message names."""
MOST_CELLS = 2**27


def as_declared(combination: Combination, columns: Sequence[Column]) -> Combination:
    """The same combination with attributes and labels spelled and ordered as the schema has them."""
    codes = as_codes(combination, columns)
    labels = {column.name: column.code_labels() for column in columns}
    return Combination(
        codes.attrs,
        tuple(
            tuple(labels[attr][int(code)] for code in values)
            for attr, values in zip(codes.attrs, codes.values, strict=True)
        ),
    )


def as_codes(combination: Combination, columns: Sequence[Column]) -> Combination:
    """The combination in codes, attributes in the order of the columns."""
    if not combination.attrs:
        raise SchemaError(
            '[[impossible]] names no column; name each with its labels, such as age = ["0–15"].'
        )
    known = {column.name: column for column in columns}
    for attr in combination.attrs:
        if attr not in known:
            raise SchemaError(f"[[impossible]] names the column {attr!r}; the schema has {', '.join(known)}.")
    said = dict(zip(combination.attrs, combination.values, strict=True))
    attrs = tuple(name for name in known if name in said)
    return Combination(attrs, tuple(_codes(known[attr], said[attr]) for attr in attrs))


def masks(domain: Domain) -> tuple[Mask, ...]:
    """The domain's impossible combinations as tables, one for each set of attributes.

    >>> domain = Domain(("a", "b"), (2, 2), (Combination(("a", "b"), ((0,), (1,))),))
    >>> masks(domain)[0][1].tolist()
    [[False, True], [False, False]]
    """
    found: dict[Attrs, NDArray[np.bool_]] = {}
    for combination in domain.impossible:
        attrs = domain.canonical(combination.attrs)
        if attrs not in found:
            if domain.size(attrs) > MOST_CELLS:
                raise TooLargeError(
                    f"the impossible combination of {' × '.join(attrs)} is about {domain.size(attrs):,} "
                    f"cells, more than {MOST_CELLS:,}. Name fewer attributes in it, or coarsen them."
                )
            found[attrs] = np.zeros(domain.project(attrs).shape, dtype=np.bool_)
        said = dict(zip(combination.attrs, combination.values, strict=True))
        found[attrs][np.ix_(*(np.array(said[attr], dtype=np.intp) for attr in attrs))] = True
    return tuple(found.items())


def possible_cells(domain: Domain) -> NDArray[np.bool_]:
    """True at every cell of the whole domain that may hold records."""
    possible = np.ones(domain.shape, dtype=np.bool_)
    for attrs, mask in masks(domain):
        possible &= ~mask.reshape([domain.sizes[a] if a in attrs else 1 for a in domain.attrs])
    return possible


def is_possible(domain: Domain, codes: NDArray[np.integer]) -> NDArray[np.bool_]:
    """For each record, one a line, whether it holds no impossible combination."""
    possible = np.ones(len(codes), dtype=np.bool_)
    for combination in domain.impossible:
        holds = np.ones(len(codes), dtype=np.bool_)
        for place, values in zip(domain.index(combination.attrs), combination.values, strict=True):
            holds &= np.isin(codes[:, place], np.array(values, dtype=np.intp))
        possible &= ~holds
    return possible


def _codes(column: Column, labels: tuple[Label, ...]) -> tuple[int, ...]:
    """The codes of these labels, in order; each once."""
    if not labels:
        raise SchemaError(f"[[impossible]] lists no label of {column.name!r}; list those that it is about.")
    declared = column.code_labels()
    known: dict[tuple[bool, Label], int] = {}
    for place, label in enumerate(declared):
        known.setdefault(_key(column, label), place)
    found = set()
    for label in labels:
        is_label = isinstance(label, (str, int, float))
        code = known.get(_key(column, label)) if is_label else None
        if code is None:
            shown = ", ".join(map(repr, declared[:_LISTED])) + (", …" if len(declared) > _LISTED else "")
            raise SchemaError(
                f"[[impossible]] lists {label!r}, which is no label of {column.name!r}; it has {shown}."
            )
        found.add(code)
    return tuple(sorted(found))


def _key(column: Column, label: Label) -> tuple[bool, Label]:
    """What a label is recognised by: True is not 1, and people type bins with a hyphen for the dash."""
    if isinstance(label, str) and not isinstance(column, CategoricalColumn):
        label = label.replace("–", "-").replace(" ", "")
    return isinstance(label, bool), label
