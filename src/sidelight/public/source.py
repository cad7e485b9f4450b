"""Public records, as a mechanism sees them: frequencies on attribute sets, and two random halves.

A public table may lack attributes of the private one, may leave single values open, may be an earlier
release, and may carry a weight a record. Several tables count together, each with a weight of its own.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sidelight._check import listed
from sidelight.data.compact import Compact, count_compactly
from sidelight.data.count_source import CountSource
from sidelight.data.domain import Attrs, Domain
from sidelight.data.impossible import is_possible
from sidelight.data.table import Table
from sidelight.errors import DataError, SchemaError, SettingError
from sidelight.models.support import Support

Array = NDArray[np.float64]

UNKNOWN = -1
"""The code of a value that a public record leaves open."""


@runtime_checkable
class PublicSource(CountSource, Protocol):
    """Public records: how many they are worth, and many marginals of them in one pass."""

    @property
    def records(self) -> float: ...
    def count_many(self, marginals: Sequence[Attrs]) -> Sequence[NDArray[np.integer] | Array]: ...


class WeightedRecords:
    """Public records that stand for more or fewer people each, and may leave some values open.

    A record counts towards the marginals of all values that are known of it, and towards no others: what it
    leaves open is taken to be like what other records tell.

    >>> codes = np.array([[0, 1], [1, UNKNOWN]])
    >>> survey = WeightedRecords(Domain.of({"sex": 2, "job": 2}), codes, [3.0, 1.0])
    >>> survey.count(("sex",)).tolist(), survey.count(("job",)).tolist(), survey.records
    ([3.0, 1.0], [0.0, 3.0], 1.6)
    """

    def __init__(self, domain: Domain, codes: NDArray[np.integer], weights: ArrayLike | None = None) -> None:
        self.domain = domain
        self._codes = codes
        self._weights = np.ones(len(codes)) if weights is None else np.asarray(weights, dtype=np.float64)
        if self._weights.shape != (len(codes),):
            raise DataError(f"{len(codes)} records need as many weights.")
        if not np.isfinite(self._weights).all() or (self._weights < 0).any():
            raise DataError("weights of public records must be finite, and at least 0.")
        known = codes != UNKNOWN
        self._known = {
            attr: known[:, place] for place, attr in enumerate(domain.attrs) if not known[:, place].all()
        }
        Table.of_codes(domain, np.where(known, codes, 0))  # refuses codes that no value has

    @property
    def records(self) -> float:
        """How many unweighted records would say as much."""
        return self.records_of(())

    def records_of(self, attrs: Iterable[str]) -> float:
        """The same of the records of which all these values are known: (Σw)² / Σw² (Kish 1965)."""
        weights = self._weights[self._knowing(attrs)]
        square = float(np.dot(weights, weights))
        return float(weights.sum()) ** 2 / square if square else 0.0

    def count_many(self, marginals: Sequence[Attrs]) -> list[Array]:
        return [self.count(attrs) for attrs in marginals]

    def count(self, attrs: Attrs) -> Array:
        kept, domain = self._knowing(attrs), self.domain.project(attrs)
        codes, weights = self._codes[:, self.domain.index(attrs)][kept], self._weights[kept]
        return Support(domain, codes, weights, float(weights.sum())).count(attrs)

    @property
    def support(self) -> Support | None:
        """The records of which all values are known, weights as shares; None where there are none."""
        kept = self._knowing(self.domain.attrs)
        weights = self._weights[kept]
        if not weights.any():
            return None
        return Support(self.domain, self._codes[kept], weights / weights.sum(), 1.0)

    @property
    def whole(self) -> Table | None:
        """The same records, each once, whatever it weighs; None where there are none."""
        codes = self._codes[self._knowing(self.domain.attrs)]
        return Table.of_codes(self.domain, codes) if len(codes) else None

    def only(self, attrs: Iterable[str]) -> "WeightedRecords":
        """The same records, of which these attributes alone are told."""
        wanted = tuple(attrs)
        codes = self._codes[:, self.domain.index(wanted)]
        return WeightedRecords(self.domain.project(wanted), codes, self._weights)

    def halves(self, rng: np.random.Generator) -> tuple["WeightedRecords", "WeightedRecords"]:
        """Each record in one of two halves."""
        order = rng.permutation(len(self._weights))
        first, second = (
            WeightedRecords(self.domain, self._codes[part], self._weights[part])
            for part in (order[::2], order[1::2])
        )
        return first, second

    def _knowing(self, attrs: Iterable[str]) -> "NDArray[np.bool_] | slice":
        """Which records have a value of each of these attributes."""
        open_somewhere = [self._known[attr] for attr in attrs if attr in self._known]
        return np.logical_and.reduce(open_somewhere) if open_somewhere else slice(None)


def records_telling(source: PublicSource, attrs: Iterable[str]) -> float:
    """How many records of a source tell of all these attributes together."""
    wanted = tuple(attrs)
    if not set(wanted) <= set(source.domain.attrs):
        return 0.0
    return source.records_of(wanted) if isinstance(source, WeightedRecords) else source.records


@dataclass(frozen=True, eq=False)
class PublicRecords:
    """One or several public sources over (parts of) one domain, counted together."""

    domain: Domain
    """All attributes of the private table; a source may lack some."""
    sources: tuple[PublicSource, ...]
    weights: tuple[float, ...]
    """The share of each source in the mixture, where all sources tell of an attribute."""

    @classmethod
    def of(
        cls, domain: Domain, sources: Iterable[PublicSource], *, weights: Sequence[float] | None = None
    ) -> "PublicRecords":
        """These sources; each counts by its records unless weights are given."""
        given = tuple(sources)
        require_records(given, domain)
        shares = [source.records for source in given] if weights is None else list(weights)
        return cls(domain, given, tuple(share / sum(shares) for share in shares))

    @property
    def records(self) -> float:
        """How many records there are in all."""
        return sum(source.records for source in self.sources)

    def holds(self, attrs: Iterable[str]) -> bool:
        """Whether some source has records of all these attributes."""
        return bool(self._holders(attrs))

    def records_of(self, *attrs: str) -> float:
        """How many records tell of all these attributes, as the mixture counts them: (Σπ)² / Σ π²/m."""
        holders = [k for k in self._holders(attrs) if self.weights[k] > 0]
        if not holders:
            return 0.0
        variance = sum(self.weights[k] ** 2 / records_telling(self.sources[k], attrs) for k in holders)
        return float(sum(self.weights[k] for k in holders) ** 2 / variance)

    def frequencies(self, wanted: Sequence[Attrs]) -> list[Array]:
        """The mixture on each attribute set, summing to 1."""
        found = self._counted(wanted, _count)
        return [found[attrs] for attrs in wanted]

    def kept_frequencies(self, wanted: Sequence[Attrs]) -> "KeptFrequencies":
        """The same for many attribute sets, kept in little memory and made when asked for."""
        return self._counted(wanted, _count_compactly)

    def _counted(self, wanted: Sequence[Attrs], count: "_Counting") -> "KeptFrequencies":
        sets = list(dict.fromkeys(wanted))
        held = []
        for k, source in enumerate(self.sources):
            some = [attrs for attrs in sets if records_telling(source, attrs)]
            if some and self.weights[k]:
                held.append((self.weights[k], count(source, some)))
        return KeptFrequencies(sets, held)

    def halves(self, *, seed: int) -> "tuple[PublicRecords, PublicRecords] | None":
        """Two random halves of every source; None where there are too few records to have two."""
        rng = np.random.default_rng(seed)
        pairs = [_halves(source, rng) for source in self.sources]
        if any(not half.records for pair in pairs for half in pair):
            return None
        first, second = (
            PublicRecords(self.domain, tuple(pair[side] for pair in pairs), self.weights) for side in (0, 1)
        )
        told = [attr for attr in self.domain.attrs if self.holds([attr])]
        return (
            (first, second) if all(half.holds([attr]) for half in (first, second) for attr in told) else None
        )

    def whole(self, *, most: int, seed: int, share: float = 1.0) -> Support | None:
        """The records that tell of all attributes, weighted as the mixture counts them, with total 1.

        A random share of them, and of these no more than ``most``; None where no source has all attributes.
        """
        parts = []
        for k in self._holders(self.domain.attrs):
            source, weight = self.sources[k], self.weights[k]
            if not weight:
                continue
            part: Support | None
            if isinstance(source, WeightedRecords):
                part = source.support
                assert part is not None  # a holder of all attributes
            else:
                assert isinstance(source, Table)
                some, any_record = min(1.0, most / source.records), Domain.of(source.domain.sizes)
                part = Support.of_table(source, total=1.0, share=some, seed=seed, domain=any_record)
            codes = part.records[:, source.domain.index(self.domain.attrs)]
            parts.append((codes, part.weights * weight))
        if not parts:
            return None
        codes, weights = (np.concatenate(found) for found in zip(*parts, strict=True))
        kept = np.flatnonzero(is_possible(self.domain, codes) & (weights > 0))
        most = min(most, max(1, round(share * kept.size)))
        if kept.size > most:
            kept = np.sort(np.random.default_rng(seed).choice(kept, most, replace=False))
        if not kept.size:
            return None
        return Support(self.domain, codes[kept], weights[kept] / weights[kept].sum(), 1.0)

    def _holders(self, attrs: Iterable[str]) -> list[int]:
        wanted = tuple(attrs)
        return [k for k, source in enumerate(self.sources) if records_telling(source, wanted)]


_Counted = dict[Attrs, Any]
_Counting = Callable[[PublicSource, Sequence[Attrs]], _Counted]


class KeptFrequencies(Mapping[Attrs, Array]):
    """Shares on many attribute sets, kept as the counts that they come from."""

    def __init__(self, wanted: Iterable[Attrs], held: Sequence[tuple[float, _Counted]]) -> None:
        """Every source that counts: its weight, and its counts."""
        self._wanted = list(wanted)
        self._held = held

    def __getitem__(self, attrs: Attrs) -> Array:
        held = [(weight, counted[attrs]) for weight, counted in self._held if attrs in counted]
        mixed: Array | None = None
        for weight, kept in held:
            counts = _wide(kept)
            # In one order of memory, however it was counted: sums over it round alike.
            part = np.multiply(counts, weight / float(counts.sum()), order="C", dtype=np.float64)
            mixed = part if mixed is None else np.add(mixed, part, out=mixed)
        assert mixed is not None
        mixed /= sum(weight for weight, _ in held)
        return mixed

    def __iter__(self) -> Iterator[Attrs]:
        return iter(self._wanted)

    def __len__(self) -> int:
        return len(self._wanted)


def require_part(public: Domain, domain: Domain) -> None:
    """Refuse a public table with attributes, or values of them, that the private one does not have."""
    for attr, size in zip(public.attrs, public.shape, strict=True):
        if attr not in domain:
            raise SchemaError(
                f"the public table has the attribute {attr!r}, which the private schema does not have; "
                f"it has {', '.join(domain.attrs)}. Encode both tables with one schema."
            )
        if domain.sizes[attr] != size:
            raise SchemaError(
                f"attribute {attr!r} has {size} values in the public table and {domain.sizes[attr]} in the "
                "private schema. Encode both tables with one schema."
            )


def require_records(sources: Sequence[PublicSource], domain: Domain) -> None:
    """Refuse public tables of other attributes, and such without records."""
    for source in sources:
        require_part(source.domain, domain)
    if not any(source.records for source in sources):
        raise DataError("the public table has no records; give one that has, or leave it out.")


def require_whole_records(who: str, domain: Domain, sources: Sequence[PublicSource]) -> None:
    """Refuse public tables of which none has records with every attribute."""
    require_records(sources, domain)
    if any(records_telling(source, domain.attrs) for source in sources):
        return
    untold = [a for a in domain.attrs if not any(records_telling(source, [a]) for source in sources)]
    found = f"the public data tell nothing of {listed(untold)}" if untold else "no public record has them all"
    raise SettingError(
        f"mechanism {who!r} needs public records with every column of the schema, but {found}. Choose "
        "mechanism='aperture' or 'jam', which use the columns that there are."
    )


def sources_of(who: str, public: Any) -> list[PublicSource]:
    """One public table, or several, as a list; anything else is refused."""
    sources = list(public) if isinstance(public, list | tuple) else [public]
    if not all(isinstance(source, Table | WeightedRecords) for source in sources):
        raise SettingError(
            f"mechanism {who!r} takes public tables; a prior or an earlier release can be given to "
            "mechanism='aperture'."
        )
    return sources


def _count(source: PublicSource, wanted: Sequence[Attrs]) -> _Counted:
    return dict(zip(wanted, source.count_many(wanted), strict=True))


def _count_compactly(source: PublicSource, wanted: Sequence[Attrs]) -> _Counted:
    return count_compactly(source, wanted) if isinstance(source, Table) else _count(source, wanted)


def _wide(counts: Any) -> NDArray[Any]:
    return counts.wide() if isinstance(counts, Compact) else counts


def _halves(source: PublicSource, rng: np.random.Generator) -> tuple[PublicSource, PublicSource]:
    if isinstance(source, WeightedRecords):
        return source.halves(rng)
    assert isinstance(source, Table)
    # Distinct records and how often each occurs: sorted, so that the halves do not depend on the engine.
    codes, counts = source.distinct()
    kind = np.int32 if source.records < 2**31 else np.int64
    records = np.repeat(np.arange(len(counts), dtype=kind), counts)
    shuffled = np.arange(len(records), dtype=kind)
    rng.shuffle(shuffled)
    is_first = np.zeros(len(records), dtype=bool)
    is_first[shuffled[::2]] = True
    first, second = (records[part] for part in (is_first, ~is_first))
    one, other = (
        Table.of_codes(source.domain, [column[part] for column in codes.T]) for part in (first, second)
    )
    return one, other
