"""Counts that a release gives without a measurement: named, so that nobody takes a guess for an answer."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sidelight._check import listed
from sidelight.data.domain import Attrs, Domain
from sidelight.measurement import Measurement

_LISTED, _NAMED = 2000, 5
"""Most sets of attributes that a card names, and that a sentence does."""


@dataclass(frozen=True, kw_only=True)
class Unmeasured:
    """The attributes and the marginals of the workload that no measurement covers.

    >>> pair = ("age", "sex")
    >>> found = Unmeasured(attributes=("age",), told_by_public=(), marginals=(pair,), number=1, of=3)
    >>> for sentence in found.sentences:
    ...     print(sentence)
    Never measured: age. What the release says about it is no more than a guess.
    Not measured: 1 of the workload's 3 marginals. The model fills it in: age × sex.
    Where such attributes are related beyond what other tables tell, intervals may be far too narrow.
    """

    attributes: tuple[str, ...]
    """Attributes that no measurement is about."""
    told_by_public: tuple[str, ...]
    """Attributes that no measurement is about, but public data are."""
    marginals: tuple[Attrs, ...]
    """Sets of attributes in the workload that no measurement is about together; the largest 2,000 tables."""
    number: int
    """How many such sets there are."""
    of: int
    """How many sets of attributes the workload is about."""

    @classmethod
    def after(
        cls,
        measurements: Sequence[Measurement],
        workload: Iterable[Attrs],
        domain: Domain,
        *,
        public_attrs: Iterable[str] = (),
    ) -> "Unmeasured":
        """The attributes and marginals that a run has left unmeasured."""
        asked = [attrs for attrs in workload if attrs]
        open_ = left_open(measurements, asked, domain)
        about = {attr for made in measurements for attr in made.query.attrs}
        attributes = tuple(attr for attr in domain.attrs if attr not in about)
        public = set(public_attrs)
        return cls(
            attributes=attributes,
            told_by_public=tuple(attr for attr in attributes if attr in public),
            marginals=tuple(open_[:_LISTED]),
            number=len(open_),
            of=len(asked),
        )

    @property
    def guessed(self) -> tuple[str, ...]:
        """Attributes that neither a measurement nor public data tell of."""
        return tuple(attr for attr in self.attributes if attr not in self.told_by_public)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about attributes that were never measured."""
        said = []
        if self.guessed:
            it = "it" if len(self.guessed) == 1 else "them"
            said.append(
                f"Never measured: {listed(self.guessed, 12)}. What the release says about {it} is no more "
                "than a guess."
            )
        if self.told_by_public:
            it = "it" if len(self.told_by_public) == 1 else "them"
            said.append(
                f"Never measured: {listed(self.told_by_public, 12)}. What the release says about {it} comes "
                "from public data alone."
            )
        return tuple(said)

    @property
    def sentences(self) -> tuple[str, ...]:
        """Everything that was left unmeasured, in sentences."""
        if not self.number:
            return self.warnings
        names = ", ".join(listed([" × ".join(attrs)]) for attrs in self.marginals[:_NAMED])
        more = self.number - _NAMED
        if more > 0:
            names += f" and {more:,} more (release.json lists them under unmeasured)"
        it = "it" if self.number == 1 else "them"
        return (
            *self.warnings,
            f"Not measured: {self.number:,} of the workload's {self.of:,} marginals. The model fills {it} "
            f"in: {names}.",
            "Where such attributes are related beyond what other tables tell, intervals may be far too "
            "narrow.",
        )


def left_open(measurements: Iterable[Measurement], asked: Iterable[Attrs], domain: Domain) -> list[Attrs]:
    """The marginals asked for whose attributes no measurement is about together, the largest tables first.

    A residual, or a single number, is a measurement of its attributes too. The model knows least of a table
    of many cells: so much is public.
    """
    by_attr: dict[str, set[int]] = {attr: set() for attr in domain.attrs}
    for index, made in enumerate(measurements):
        for attr in made.query.attrs:
            by_attr[attr].add(index)
    found = [attrs for attrs in asked if attrs and not set.intersection(*(by_attr[attr] for attr in attrs))]
    return sorted(found, key=lambda attrs: -domain.size(attrs))
