"""How PUBLIC tables are read where they differ from the schema: the part ``[public]`` of a schema file.

    [public]
    weight = "PERWT"               a column that says how many people each public record stands for

    [public.map.sex]
    "1" = "male"                   the public table writes 1, the schema calls it male
    "9" = ["female", "male"]       either: such records are dealt out evenly

They say nothing about private records, so they are no part of a schema's fingerprint.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sidelight._check import brief, listed
from sidelight.data.columns.column import Column
from sidelight.errors import SchemaError

Codes = tuple[int, ...]


@dataclass(frozen=True)
class PublicRules:
    """How public values are read, by column; and which columns hold the weights of public records."""

    map: Mapping[str, Mapping[str, tuple[Any, ...]]] = field(default_factory=dict)
    """Column to public value (as text) to the labels of the schema that it may stand for."""
    weight: tuple[str, ...] = ()
    """Names of columns of weights; each public table is weighted by the first of these that it has."""

    @classmethod
    def of(cls, said: Any) -> "PublicRules":
        """The rules as TOML or Python people write them."""
        if not isinstance(said, Mapping) or set(said) - {"map", "weight"}:
            raise SchemaError("[public] may say weight = …, and hold tables such as [public.map.sex].")
        weight, maps = said.get("weight", ()), said.get("map", {})
        names = (weight,) if isinstance(weight, str) else weight
        if not isinstance(names, list | tuple) or not all(isinstance(name, str) and name for name in names):
            raise SchemaError(
                f"[public]: weight must be a column's name, or a list of them; got {brief(weight)}."
            )
        if not isinstance(maps, Mapping) or not all(isinstance(one, Mapping) for one in maps.values()):
            raise SchemaError(
                '[public.map] must hold tables, such as [public.map.sex] with a line "1" = "male".'
            )
        return cls(
            {name: {str(k): _labels(v) for k, v in one.items()} for name, one in maps.items()}, tuple(names)
        )

    def check(self, columns: Sequence[Column]) -> None:
        """Refuse maps of columns or to labels that the schema does not have."""
        known = {column.name: column for column in columns}
        for name, one in self.map.items():
            if name not in known:
                raise SchemaError(
                    f"[public.map.{name}] names no column of the schema; it has {listed(known)}."
                )
            self.codes(known[name])
            if not one:
                raise SchemaError(f'[public.map.{name}] is empty; write a line such as "1" = "male".')
        for name in self.weight:
            if name in known:
                raise SchemaError(
                    f"[public]: weight = {brief(name)} is a column of the schema; weights are no attribute."
                )

    def codes(self, column: Column) -> dict[str, Codes]:
        """The codes that each mapped public value of this column may stand for."""
        labels = column.code_labels()
        by_text = {str(label): code for code, label in enumerate(labels)}
        found: dict[str, Codes] = {}
        for value, targets in self.map.get(column.name, {}).items():
            unknown = [target for target in targets if str(target) not in by_text]
            if unknown:
                raise SchemaError(
                    f"[public.map.{column.name}] maps {brief(value)} to {brief(unknown[0])}, which is no "
                    f"label of the column; it has {listed(map(str, labels), 12)}."
                )
            found[value] = tuple(by_text[str(target)] for target in targets)
        return found


def _labels(target: Any) -> tuple[Any, ...]:
    targets = tuple(target) if isinstance(target, list | tuple) else (target,)
    if not targets:
        raise SchemaError("[public.map]: a public value must be mapped to a label; got an empty list.")
    return targets
