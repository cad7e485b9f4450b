"""The queries that a release should answer well, with weights."""

import itertools
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import numpy as np

from sidelight import _check
from sidelight._check import brief
from sidelight._files import write_text
from sidelight._foreign import ForeignError, parse_json, read_text
from sidelight.data.domain import Attrs, Domain
from sidelight.errors import WorkloadError
from sidelight.queries.query import Marginal, Prefix, Query, Range, query_from_json

MOST_QUERIES = 1_000_000
"""Most queries of a workload, and of the marginals below it: more take hours, and all memory."""
_LEAST_WEIGHT = 1e-100
"""Least weight of a query; its inverse is the largest. Products of two of them are still finite."""


@dataclass(frozen=True, init=False)
class Workload(Sequence[Query]):
    """Weighted queries. Marginals may be given by their attributes alone.

    >>> workload = Workload([("age", "sex"), ("age",)], weights=[2, 1])
    >>> [query.describe() for query in workload], workload.weights
    (['age × sex', 'age'], (2.0, 1.0))
    """

    queries: tuple[Query, ...]
    weights: tuple[float, ...]

    def __init__(self, queries: Iterable[Query | Iterable[str]], *, weights: Iterable[float] | None = None):
        asked = tuple(_as_query(query) for query in queries)
        given = tuple(1.0 for _ in asked) if weights is None else tuple(map(_as_weight, weights))
        if not asked:
            raise WorkloadError("a workload must hold at least one query.")
        if len(given) != len(asked):
            raise WorkloadError(f"{len(asked)} queries need as many weights; got {len(given)}.")
        object.__setattr__(self, "queries", asked)
        object.__setattr__(self, "weights", given)

    @overload
    def __getitem__(self, index: int) -> Query: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Query]: ...
    def __getitem__(self, index: int | slice) -> Query | Sequence[Query]:
        return self.queries[index]

    def __len__(self) -> int:
        return len(self.queries)

    def __iter__(self) -> Iterator[Query]:
        return iter(self.queries)

    @classmethod
    def marginals(cls, domain: Domain, *, degree: int, max_cells: int | None = None) -> "Workload":
        """All marginals of that many attributes, without those above ``max_cells``."""
        _check.positive_integer(degree=degree)
        if degree > len(domain):
            raise WorkloadError(
                f"a {degree}-way marginal needs {degree} attributes; there are {len(domain)}."
            )
        if (there_are := math.comb(len(domain), degree)) > MOST_QUERIES:
            few = (k for k in range(1, degree) if math.comb(len(domain), k) <= MOST_QUERIES)
            lower = max(few, default=1)
            raise WorkloadError(
                f"{len(domain)} attributes have {there_are:,} marginals of {degree}, and a workload holds at "
                f"most {MOST_QUERIES:,}. Ask for '{lower}-way' ({math.comb(len(domain), lower):,}), "
                "name those that matter in a file, or take a random part (Workload.random_marginals)."
            )
        chosen = [
            attrs
            for attrs in itertools.combinations(domain.attrs, degree)
            if max_cells is None or domain.size(attrs) <= max_cells
        ]
        if not chosen:
            raise WorkloadError(f"no {degree}-way marginal has at most {max_cells} cells; raise max_cells.")
        return cls(chosen)

    @classmethod
    def random_marginals(cls, domain: Domain, *, degree: int, number: int, seed: int) -> "Workload":
        """``number`` random marginals of a degree, drawn without replacement (spec 1.4)."""
        _check.positive_integer(degree=degree, number=number)
        if degree > len(domain):
            raise WorkloadError(
                f"a {degree}-way marginal needs {degree} attributes; there are {len(domain)}."
            )
        there_are = math.comb(len(domain), degree)
        drawn = np.random.default_rng(seed).permutation(there_are)[: min(number, there_are)]
        wanted = set(drawn.tolist())
        combinations = itertools.combinations(domain.attrs, degree)
        return cls(attrs for index, attrs in enumerate(combinations) if index in wanted)

    @classmethod
    def ranges(
        cls, domain: Domain, attrs: Iterable[str], *, number: int | None = None, seed: int = 0
    ) -> "Workload":
        """All ranges over one attribute, or ``number`` random boxes over one or more.

        >>> len(Workload.ranges(Domain.of({"age": 4}), ["age"]))
        10
        """
        names = tuple(attrs)
        sizes = domain.project(names).shape
        if number is None:
            ends = [
                [(name, low, high) for low in range(size) for high in range(low, size)]
                for name, size in zip(names, sizes, strict=True)
            ]
            if math.prod(len(end) for end in ends) > 1_000_000:
                raise WorkloadError(
                    f"all ranges over {' × '.join(names)} are more than a million; ask for a number of them."
                )
            return cls(Range(box) for box in itertools.product(*ends))
        _check.positive_integer(number=number)
        rng = np.random.default_rng(seed)
        boxes = []
        for _ in range(number):
            # Both ends uniform, then ordered: what "random ranges" means in Hardt et al. section 4.1.
            ends_drawn = [sorted(rng.integers(0, size, 2).tolist()) for size in sizes]
            boxes.append(
                Range(tuple((a, low, high) for a, (low, high) in zip(names, ends_drawn, strict=True)))
            )
        return cls(boxes)

    @classmethod
    def prefixes(cls, domain: Domain, attr: str) -> "Workload":
        """All ranges that start at the first value: the cumulative distribution."""
        return cls(Prefix(attr, high) for high in range(domain.project([attr]).shape[0]))

    @classmethod
    def cuboids(cls, domain: Domain, *, with_total: bool = True) -> "Workload":
        """All 2^d cuboids, from the total to the full table (spec 1.2)."""
        if len(domain) > 16:
            raise WorkloadError(f"{len(domain)} attributes have 2^{len(domain)} cuboids; use at most 16.")
        lowest = 0 if with_total else 1
        return cls(
            attrs
            for degree in range(lowest, len(domain) + 1)
            for attrs in itertools.combinations(domain.attrs, degree)
        )

    @classmethod
    def of(cls, asked: "Workload | str | Path | Iterable[Any]", domain: Domain) -> "Workload":
        """A workload from itself, from a name such as ``3-way``, from a file, or from a list.

        >>> len(Workload.of("2-way", Domain.of({"a": 2, "b": 2, "c": 2})))
        3
        """
        if isinstance(asked, Workload):
            workload = asked
        elif isinstance(asked, str) and (named := re.fullmatch(r"([0-9]+)-way", asked)):
            workload = cls.marginals(domain, degree=int(named[1][:7]))  # as many attributes as nobody has
        elif isinstance(asked, str) and asked == "cuboids":
            workload = cls.cuboids(domain)
        elif isinstance(asked, str | Path):
            workload = cls.read(Path(asked))
        elif isinstance(asked, Iterable):
            workload = cls(asked)
        else:
            raise WorkloadError(
                "a workload is a name such as '2-way', a file, or a list such as [['age', 'sex'], ['job']]; "
                f"got {brief(asked)}."
            )
        for query in workload:
            query.check(domain)
        return workload

    @classmethod
    def read(cls, path: Path) -> "Workload":
        """A workload from the JSON file that ``write`` makes."""
        if not path.is_file():
            raise WorkloadError(
                f"workload {brief(str(path))} is neither a name ('2-way', '3-way', 'cuboids') nor a file. "
                'A file is JSON such as [{"attrs": ["age", "sex"], "weight": 2}].'
            )
        try:
            items = parse_json(read_text(path))
            if not isinstance(items, list) or len(items) > MOST_QUERIES:
                raise ForeignError(f"it is no list of at most {MOST_QUERIES:,} queries")
            queries = [query_from_json({"query": "marginal", **item}) for item in items]
            return cls(queries, weights=[item.get("weight", 1.0) for item in items])
        except WorkloadError:
            raise
        except (LookupError, TypeError, ValueError, OverflowError) as error:
            reason = f"{error}; it" if isinstance(error, ForeignError) else "it"
            raise WorkloadError(
                f"{path} is not a workload: {reason} must be a JSON list such as "
                '[{"attrs": ["age", "sex"], "weight": 2}].'
            ) from error

    def write(self, path: Path) -> None:
        """Write a file that ``read`` takes."""
        write_text(path, json.dumps(self.as_json(), ensure_ascii=False, indent=1) + "\n", "the workload")

    def as_json(self) -> list[dict[str, Any]]:
        """A plain form, one object a query."""
        return [
            {**query.as_json(), "weight": weight}
            for query, weight in zip(self.queries, self.weights, strict=True)
        ]

    def name_in(self, domain: Domain) -> str | None:
        """The name under which ``of`` would give the same workload; None where it has none.

        >>> domain = Domain.of({"a": 2, "b": 2, "c": 2})
        >>> Workload.of("2-way", domain).name_in(domain), Workload([("a",)]).name_in(domain)
        ('2-way', None)
        """
        degree = len(self.queries[0].attrs)
        if degree and len(self) == math.comb(len(domain), degree):
            name = f"{degree}-way"
        elif len(domain) <= 16 and len(self) == 2 ** len(domain):
            name = "cuboids"
        else:
            return None
        return name if self == Workload.of(name, domain) else None

    @property
    def attribute_sets(self) -> tuple[Attrs, ...]:
        """The attribute sets that the queries are about, each once, in order of appearance."""
        return tuple(dict.fromkeys(query.attrs for query in self.queries))

    @property
    def attrs(self) -> Attrs:
        """The attributes that some query is about, in order of appearance."""
        return tuple(dict.fromkeys(attr for query in self.queries for attr in query.attrs))

    def leaves_out(self, domain: Domain) -> Attrs:
        """The attributes of a domain that no query is about."""
        asked = set(self.attrs)
        return tuple(attr for attr in domain.attrs if attr not in asked)

    def within(self, attrs: Iterable[str]) -> "Workload | None":
        """The queries about these attributes alone, with their weights; None where there are none.

        >>> [query.describe() for query in Workload([("age", "sex"), ("age",)]).within(["age"])]
        ['age']
        """
        there = set(attrs)
        kept = [(q, w) for q, w in zip(self.queries, self.weights, strict=True) if set(q.attrs) <= there]
        return Workload([q for q, _ in kept], weights=[w for _, w in kept]) if kept else None

    @property
    def only_marginals(self) -> bool:
        """Whether every query is a whole marginal."""
        return all(isinstance(query, Marginal) for query in self.queries)

    def closure(self, domain: Domain) -> dict[Attrs, float]:
        """Downward closure: every non-empty subset of a member, with weight Σ_s c_s |r ∩ s| (spec 7.1)."""
        known: dict[Domain, dict[Attrs, float]] = self.__dict__.setdefault("_closures", {})
        if domain not in known:
            known[domain] = self._closure(domain)
        return dict(known[domain])

    def _closure(self, domain: Domain) -> dict[Attrs, float]:
        check_closure([len(query.attrs) for query in self.queries], attributes=len(domain))
        members: dict[Attrs, None] = {}
        for attrs in sorted({domain.canonical(query.attrs) for query in self.queries}):
            for degree in range(1, len(attrs) + 1):
                members.update(dict.fromkeys(itertools.combinations(attrs, degree)))
        position = {attr: index for index, attr in enumerate(domain.attrs)}
        asked = np.zeros((len(self.queries), len(domain)))
        for row, query in enumerate(self.queries):
            asked[row, [position[attr] for attr in query.attrs]] = self.weights[row]
        by_attr = asked.sum(axis=0)
        # Σ_s c_s |r ∩ s| = Σ_{a in r} (weight of the queries that mention a).
        ordered = sorted(members, key=lambda attrs: (len(attrs), [position[a] for a in attrs]))
        return {attrs: float(sum(by_attr[position[a]] for a in attrs)) for attrs in ordered}


def check_closure(degrees: Sequence[int], *, attributes: int) -> None:
    """Refuse queries with more than ``MOST_QUERIES`` marginals below them, before any is made."""
    widest = max(degrees, default=0)
    of_each = sum(2**degree for degree in degrees)
    of_all = sum(math.comb(attributes, degree) for degree in range(1, widest + 1))
    if min(of_each, of_all) > MOST_QUERIES:
        raise WorkloadError(
            f"queries of up to {widest} attributes hold more than {MOST_QUERIES:,} smaller marginals. Ask "
            "for fewer or lower marginals, or for mechanism='mwem'."
        )


def _as_weight(weight: object) -> float:
    _check.positive(weight=weight)
    found = float(weight)  # type: ignore[arg-type]  # a finite number by now
    if not _LEAST_WEIGHT <= found <= 1 / _LEAST_WEIGHT:
        raise WorkloadError(
            f"a query's weight must lie between {_LEAST_WEIGHT:g} and {1 / _LEAST_WEIGHT:g}; got {found:g}."
        )
    return found


def _as_query(query: Query | Iterable[str]) -> Query:
    if isinstance(query, str):
        return Marginal((query,))
    if isinstance(query, tuple | list):  # asked first: whether something is a Query takes long to tell
        return Marginal(tuple(query))
    if isinstance(query, Query):
        return query
    if isinstance(query, Iterable) and not isinstance(query, Mapping):
        return Marginal(tuple(query))
    raise WorkloadError(
        "a query is the attributes of a marginal, or a range, a cell or a linear query: "
        f"a weighted sum of counts; got a {type(query).__name__}. What is no such sum, say a variance, is "
        "computed from released counts or records; for means and quantiles see sl.mixed_mean and "
        "sl.mixed_quantile."
    )
