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

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from sidelight._check import brief, listed
from sidelight.data.columns.column import CategoricalColumn, Column, Label
from sidelight.data.domain import Attrs, Combination, Domain
from sidelight.errors import SchemaError, TooLargeError

Mask = tuple[Attrs, NDArray[np.bool_]]
"""Attributes, and true at each combination of their codes that cannot be."""

_LISTED = 12
"""Most labels that a message names."""
MOST_CELLS = 2**27
MOST_COMBINATIONS = 1000


def as_declared(combinations: Sequence[Combination], columns: Sequence[Column]) -> tuple[Combination, ...]:
    """The same combinations, each once, with attributes and labels spelled and ordered as in the schema."""
    coded = as_codes(combinations, columns)
    used = {attr for combination in coded for attr in combination.attrs}
    labels = {column.name: column.code_labels() for column in columns if column.name in used}
    declared = (
        Combination(
            codes.attrs,
            tuple(
                tuple(labels[attr][int(code)] for code in values)
                for attr, values in zip(codes.attrs, codes.values, strict=True)
            ),
        )
        for codes in coded
    )
    return tuple(dict.fromkeys(declared))


def as_codes(combinations: Sequence[Combination], columns: Sequence[Column]) -> tuple[Combination, ...]:
    """The combinations in codes, attributes in the order of the columns."""
    if len(combinations) > MOST_COMBINATIONS:
        raise SchemaError(
            f"the schema declares {len(combinations):,} impossible combinations, more than "
            f"{MOST_COMBINATIONS:,}. An [[impossible]] may list several labels of each column: merge some."
        )
    known = {column.name: place for place, column in enumerate(columns)}
    codes_of: dict[str, Codes] = {}
    coded = []
    for combination in combinations:
        if not combination.attrs:
            raise SchemaError(
                '[[impossible]] names no column; name each with its labels, such as age = ["0–15"].'
            )
        said = dict(zip(combination.attrs, combination.values, strict=True))
        for attr in said:
            if attr not in known:
                raise SchemaError(
                    f"[[impossible]] names the column {brief(attr)}; the schema has {listed(known)}."
                )
            if attr not in codes_of:
                codes_of[attr] = Codes(columns[known[attr]])
        attrs = tuple(sorted(said, key=known.__getitem__))
        coded.append(Combination(attrs, tuple(codes_of[attr].of(said[attr]) for attr in attrs)))
    return tuple(coded)


def masks(domain: Domain, within: Iterable[str] | None = None) -> tuple[Mask, ...]:
    """The impossible combinations as tables, one for each set of attributes; all, or those ``within`` some.

    >>> domain = Domain(("a", "b"), (2, 2), (Combination(("a", "b"), ((0,), (1,))),))
    >>> masks(domain)[0][1].tolist()
    [[False, True], [False, False]]
    """
    found: dict[Attrs, NDArray[np.bool_]] = {}
    cells = 0
    there = set(domain.attrs if within is None else within)
    for combination in domain.impossible:
        if not there.issuperset(combination.attrs):
            continue
        attrs = domain.canonical(combination.attrs)
        if attrs not in found:
            cells += domain.size(attrs)
            if cells > MOST_CELLS:
                raise TooLargeError(
                    f"with {' × '.join(attrs)}, the impossible combinations are about {cells:,} cells, more "
                    f"than {MOST_CELLS:,}. Name fewer attributes in them, or coarsen them."
                )
            found[attrs] = np.zeros(domain.project(attrs).shape, dtype=np.bool_)
        said = dict(zip(combination.attrs, combination.values, strict=True))
        found[attrs][np.ix_(*(np.array(said[attr], dtype=np.intp) for attr in attrs))] = True
    return tuple(found.items())


def possible_cells(domain: Domain, attrs: Attrs | None = None) -> NDArray[np.bool_]:
    """True at every cell that may hold records, by the combinations within these attributes.

    The axes are in the order asked; by default all attributes are asked for.

    >>> domain = Domain(("a", "b"), (2, 2), (Combination(("a", "b"), ((0,), (1,))),))
    >>> possible_cells(domain, ("b", "a")).tolist()
    [[True, True], [False, True]]
    """
    asked = domain.attrs if attrs is None else attrs
    shape = [domain.sizes[attr] for attr in asked]
    forbidden = masks(domain, asked)
    if forbidden and math.prod(shape) > MOST_CELLS:
        raise TooLargeError(
            f"{len(shape)} attributes that impossible combinations join have {math.prod(shape):.3g} cells, "
            f"more than {MOST_CELLS:,}. Name fewer attributes in them, or coarsen them."
        )
    possible = np.ones(shape, dtype=np.bool_)
    for named, mask in forbidden:
        turned = mask.transpose([named.index(attr) for attr in asked if attr in named])
        possible &= ~turned.reshape([domain.sizes[attr] if attr in named else 1 for attr in asked])
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


class Codes:
    """From a column's labels to their codes."""

    def __init__(self, column: Column) -> None:
        self._column = column
        self._labels = column.code_labels()
        self._known: dict[tuple[bool, Label], int] = {}
        for place, label in enumerate(self._labels):
            self._known.setdefault(_key(column, label), place)

    def of(self, labels: tuple[Label, ...]) -> tuple[int, ...]:
        """The codes of these labels, in order; each once."""
        name = brief(self._column.name)
        if not labels:
            raise SchemaError(f"[[impossible]] lists no label of {name}; list those that it is about.")
        found = set()
        for label in labels:
            is_label = isinstance(label, (str, int, float))
            code = self._known.get(_key(self._column, label)) if is_label else None
            if code is None:
                shown = ", ".join(map(brief, self._labels[:_LISTED]))
                more = ", …" if len(self._labels) > _LISTED else ""
                raise SchemaError(
                    f"[[impossible]] lists {brief(label)}, which is no label of {name}; it has {shown}{more}."
                )
            found.add(code)
        return tuple(sorted(found))


def _key(column: Column, label: Label) -> tuple[bool, Label]:
    """How labels are compared: True differs from 1, and a bin's dash may be typed as a hyphen."""
    if isinstance(label, str) and not isinstance(column, CategoricalColumn):
        label = label.replace("–", "-").replace(" ", "")
    return isinstance(label, bool), label
