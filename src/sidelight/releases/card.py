"""The card of a release: all facts about how it came about, and nothing private.

It is written once, when a run has ended (``run_card.py``), and read by attribute everywhere else. As JSON it
is part of ``release.json``; docs/reference/card.schema.json describes that form.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from functools import cached_property
from typing import Any, Final, Literal

from sidelight._check import brief
from sidelight._foreign import ForeignError
from sidelight.data.domain import Attrs
from sidelight.errors import ReleaseError, SidelightError
from sidelight.mechanisms.paper import Paper
from sidelight.mechanisms.registry import mechanism_of
from sidelight.mechanisms.told import GroupedValues, JointRound, Opening
from sidelight.privacy.budget import Budget, Epsilon, Rho
from sidelight.privacy.convert import epsilon_of
from sidelight.privacy.event import Event
from sidelight.privacy.meaning import Meaning
from sidelight.privacy.unit import Unit
from sidelight.releases.findings import Acceptance
from sidelight.releases.quality import Quality
from sidelight.releases.typed_json import from_json, to_json
from sidelight.releases.unmeasured import Unmeasured
from sidelight.sources import shown_name
from sidelight.uncertainty.calibration import Calibration
from sidelight.uncertainty.disagreement import Disagreement
from sidelight.uncertainty.model_error import ModelDispersion

VERSION: Final = 2
"""Version of the card's JSON. A new field with a default leaves it as it is; any other change raises it."""
NO_LEDGER: Final = "this release"
"""Name of a release's own ledger where none was given; it ends with the run."""
DERIVED: Final[Mapping[str, Any]] = {
    "promise": str,
    "epsilon_spent": float,
    "meaning": str,
    "warning": str | None,
}
"""Written for people who read the JSON; worked out again, and so never believed, when a card is read."""


@dataclass(frozen=True, kw_only=True)
class PublicData:
    """The public data that helped."""

    records: float | None
    """How many records; None where they are not counted, as in the model of an earlier release."""
    disagreements: tuple[Disagreement, ...] = ()
    """How far one public table is from the private one, by noisy answers; the largest difference first."""
    columns: Mapping[str, float] = field(default_factory=dict)
    """How many public records tell of each column; empty on older cards."""
    remarks: tuple[str, ...] = ()
    """Which public values do not fit the schema, and what became of them, in sentences."""


@dataclass(frozen=True, kw_only=True)
class AskedWorkload:
    """The queries that the release should answer well."""

    queries: int
    """How many there are."""
    marginals: int
    """How many sets of attributes they are about."""
    attribute_sets: tuple[Attrs, ...]
    """These sets of attributes; the first 2,000."""
    asked: str | tuple[dict[str, Any], ...] | None
    """The workload's name, or its queries as in a workload file; None where these would be too many."""


@dataclass(frozen=True, kw_only=True)
class PastRun:
    """One run of the table's ledger, as far as everybody may know it."""

    when: datetime
    """When it began."""
    what: str
    """Its mechanism; mean, quantile, screen or discover for the other ways to spend."""
    used: float
    """The share of the budget that was used after it; an open run uses all that it set aside."""


@dataclass(frozen=True, kw_only=True)
class LedgerEntry:
    """Where this release's spending is written down."""

    name: str
    """The name of the private table."""
    run: str
    """The name by which the ledger knows this release."""
    head: str
    """The hash of the ledger's last line when the release was made."""
    promised: float | None = None
    """ε that the ledger promises for the table; None without a ledger, and on older cards."""
    used: float | None = None
    """ε that all releases and answers had used of it, this one included."""
    project: str | None = None
    """The project that the release is for, as its ledger's line says."""
    approved_by: tuple[str, ...] = ()
    """Who approved it, as its ledger's line says."""
    history: tuple[PastRun, ...] = ()
    """All runs of the ledger when the release was made, this one among them; empty on older cards."""

    def __post_init__(self) -> None:
        # PRIVACY: older versions named a ledger after its address, with its password.
        object.__setattr__(self, "name", shown_name(self.name))


@dataclass(frozen=True, kw_only=True)
class ReusedRelease:
    """An earlier release of the same records, whose noisy answers were used again for nothing."""

    run: str
    """The name by which the ledger knows it."""
    mechanism: str
    created: datetime
    answers: int
    """How many of its noisy numbers were used again: averaged with a new answer, or taken as they are."""
    of: int | None = None
    """How many noisy numbers it holds; None on older cards, where ``answers`` counts them all."""
    holds: tuple[str, ...] = ()
    """Still earlier runs whose answers are among these."""

    @property
    def sentence(self) -> str:
        """The answers that were used again, in a sentence."""
        held, of = self.of or self.answers, f"of the release of {self.created:%Y-%m-%d}"
        if not self.answers:
            return (
                f"none of the {held:,} noisy answers {of} was used again: nothing was measured as it was then"
            )
        which = f"{held:,}" if self.answers == held else f"{self.answers:,} of {held:,}"
        return f"used again, free of charge: {which} noisy answers {of}"


@dataclass(frozen=True, kw_only=True)
class PaidAgain:
    """Draws that are not in the release: a crash lost them, or they went to a copy of its checkpoint."""

    events: int
    """How many draws."""
    cost: Fraction
    """Their cost, in ρ or ε; it is part of ``spent``."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Card:
    """All facts about how a release came about, and nothing private."""

    version: Literal[2] = VERSION
    """Version of the card's JSON."""
    mechanism: str
    """The name of the mechanism."""
    why: str | None = None
    """Why this mechanism, where it was chosen automatically; None where a person named it."""
    settings: Mapping[str, Any]
    """Every setting of the mechanism, as plain values; what it was left to choose ("auto"), as it chose."""
    papers: tuple[Paper, ...]
    """Where the mechanism comes from."""

    unit: Unit
    """What one person can change."""
    epsilon: float
    """ε that this release was allowed to spend."""
    delta: float
    """δ of the promise."""
    accounting: Literal["zcdp", "pure"]
    """The currency of costs: ρ of zero-concentrated differential privacy, or ε itself."""
    allotted: Fraction
    """The budget that was set aside, in ρ or ε."""
    spent: Fraction
    """The cost that was charged, in ρ or ε."""
    events: tuple[Event, ...]
    """Every spending in its order."""
    paid_again: PaidAgain | None = None
    """None where every answer was drawn once."""
    ledger: LedgerEntry
    """Where the spending is written down."""
    noise: str
    """Where the noise came from."""
    noise_is_private: bool
    """Whether nobody can draw that noise again; false for seeded noise, which protects nobody."""

    workload: AskedWorkload
    """The queries that were asked for."""
    public: PublicData | None
    """None where no public data were used."""
    reused: tuple[ReusedRelease, ...] = ()
    """Earlier releases of the same records, whose noisy answers were used again."""
    schema_fingerprint: str
    """The hash by which the schema is recognised."""

    counting: str | None = None
    """Where and how the private records were counted; None on older cards."""
    total: float
    """n, public or noisy."""
    quality_share: float | None = None
    """The share of the budget that was set aside to measure quality; None on older cards."""
    quality: Quality | None = None
    """How far off the release is, as it was measured under ε; None where that was switched off."""
    acceptance: Acceptance | None = None
    """Whether the release keeps the criteria that were fixed beforehand; None where there were none."""
    unmeasured: Unmeasured | None = None
    """Attributes and marginals that no measurement covers; None for mechanisms without any, and on older
    cards."""
    model_error: ModelDispersion | None = None
    """The error of the model, by the measurements; None where none of them counted records."""
    calibration: Calibration | None = None
    """How error bars were fitted to the measured quality; None where that was not measured."""
    notes: tuple[str, ...] = ()
    """Further remarks for a reader, in sentences."""
    rounds: tuple[JointRound, ...] = ()
    """JAM's rounds."""
    bins: Literal["auto", "as declared"] = "as declared"
    """Whether values might be modelled in groups."""
    groups: tuple[GroupedValues, ...] = ()
    """Attributes whose neighbouring values were modelled in groups."""
    aperture: Opening | None = None
    """How far APERTURE moved away from the public data."""

    versions: Mapping[str, str]
    """Versions of sidelight, Python and the libraries that computed the release."""
    created: datetime
    """When the release was made."""

    def __post_init__(self) -> None:
        charged = sum((event.cost.value for event in self.events), start=Fraction(0))
        if self.paid_again is not None:
            charged += self.paid_again.cost
        if charged != self.spent:
            raise ReleaseError("its events do not add up to what it says was spent.")
        if self.accounting == "zcdp" and self.budget.is_pure:
            raise ReleaseError("a promise with δ = 0 cannot be kept by what costs ρ.")

    @property
    def budget(self) -> Budget:
        """The budget that was promised: ε and δ."""
        return Budget(epsilon=self.epsilon, delta=self.delta)

    @property
    def promise(self) -> str:
        """The promise in a sentence."""
        return f"({self.epsilon:g}, {self.delta:g})-differential privacy under {self.unit.describe()}"

    @cached_property
    def epsilon_spent(self) -> float:
        """ε of what was charged, at the card's δ."""
        spent = float(self.spent)
        return spent if self.accounting == "pure" else epsilon_of(spent, self.delta)

    @cached_property
    def means(self) -> Meaning:
        """The charged cost, as the odds of somebody who accuses people."""
        return Meaning.of(Epsilon(self.spent) if self.accounting == "pure" else Rho(self.spent))

    @property
    def meaning(self) -> str:
        """The charged cost, as a sentence about somebody who accuses people."""
        return self.means.sentence(self.unit)

    @property
    def warning(self) -> str | None:
        """The warning that a reader must see first, if there is one."""
        if self.noise_is_private:
            return None
        return "NOT PRIVATE: the noise was seeded, and can be drawn again by anyone who knows the seed."

    def as_json(self) -> dict[str, Any]:
        """The card as plain values, from which ``from_json`` gives back an equal card."""
        sentences = {name: getattr(self, name) for name in DERIVED}
        plain: dict[str, Any] = to_json(self)
        return {"version": plain.pop("version"), **sentences, **plain}

    @staticmethod
    def from_json(plain: Any) -> "Card":
        """The card that ``as_json`` wrote, in this version of sidelight or in an earlier one."""
        if not isinstance(plain, dict):
            raise ForeignError("card must be an object")
        version = plain.get("version", 0)
        if type(version) is not int or not 0 <= version <= VERSION:
            raise ReleaseError(
                f"the release's card has version {brief(version)}; this sidelight reads versions up to "
                f"{VERSION}. Update sidelight, or ask for the release in a version that it reads."
            )
        given = plain
        for rewritten in _REWRITES[version:]:
            given = rewritten(given)
        card: Card = from_json(Card, {name: given[name] for name in given.keys() - DERIVED}, "card")
        return card

    def __repr__(self) -> str:
        return (
            f"Card({self.mechanism}, ε = {self.epsilon_spent:.4g} of {self.epsilon:g} at δ = {self.delta:g}, "
            f"{self.unit.relation}, {len(self.events)} events)"
        )


def _since_version_0(plain: dict[str, Any]) -> dict[str, Any]:
    """A card from before cards had a version, in the words of version 1."""
    given = {**plain, "version": 1, "workload": {**plain["workload"]}}
    given["workload"]["attribute_sets"] = given["workload"].pop("supports")
    errors = given.pop("public_error", [])
    if given.get("public") is not None:
        # APERTURE's errors are also among its own marginals, as ``moved``.
        given["public"] = {**given["public"], "disagreements": [] if "aperture" in given else errors}
    try:
        given["papers"] = to_json(mechanism_of(given["mechanism"]).papers)
    except (SidelightError, ImportError):
        given["papers"] = []  # another package's mechanism
    return given


def _since_version_1(plain: dict[str, Any]) -> dict[str, Any]:
    """A card of version 1 in the words of version 2."""
    renamed = {"private": "noise_is_private", "schema": "schema_fingerprint"}
    return {renamed.get(name, name): value for name, value in plain.items()} | {"version": 2}


_REWRITES = (_since_version_0, _since_version_1)
"""At place v: a card of version v in the words of version v + 1."""
