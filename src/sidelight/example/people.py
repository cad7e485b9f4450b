"""People who never lived: the demo's survey, simulated, for those who installed nothing else.

    x_root ~ p(root),    x_a ~ p(a | x_parent)        one attribute after the other, with a fixed seed

The shares p are summary facts of the General Social Survey in thousandths, for the answers of 1994 to 2004
and of 2006 (``simulated.json``, printed by ``benchmarks/utility/demo_facts.py``). Attributes depend on each
other along a tree alone, so simulated people are simpler than real ones.
"""

import json
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sidelight.data.schema import Schema

_SEEDS = {"2006": 2006, "1994–2004": 1994}


def simulated_survey() -> "tuple[Any, Any, Schema]":
    """The private answers of 2006, the public ones of 1994 to 2004, and their schema."""
    schema = survey_schema()
    return *simulated_people(schema), schema


def survey_schema() -> "Schema":
    """The schema of the survey's answers."""
    from sidelight.data.schema import Schema

    return Schema.from_toml(files("sidelight.example").joinpath("survey.toml").read_text(encoding="utf-8"))


def simulated_people(schema: "Schema") -> tuple[Any, Any]:
    """The private answers of 2006 and the public ones of 1994 to 2004, as pyarrow tables."""
    from sidelight.data.table import Table

    facts = json.loads(files("sidelight.example").joinpath("simulated.json").read_text(encoding="utf-8"))
    private, public = (
        Table.of_codes(
            schema.domain, _drawn(facts["parents"], facts["years"][years], seed), schema=schema
        ).to_frame("pyarrow", seed=seed)
        for years, seed in _SEEDS.items()
    )
    return private, public


def _drawn(
    parents: dict[str, str | None], told: dict[str, Any], seed: int
) -> "dict[str, NDArray[np.integer[Any]]]":
    import numpy as np

    rng = np.random.default_rng(seed)
    codes: dict[str, NDArray[np.integer[Any]]] = {}
    for attr, parent in parents.items():
        shares = np.array(told["per mille"][attr], dtype=np.float64)
        ends = np.cumsum(shares, axis=1) / np.maximum(shares.sum(axis=1, keepdims=True), 1.0)
        of = ends[np.zeros(told["records"], dtype=np.intp) if parent is None else codes[parent]]
        codes[attr] = (rng.random((len(of), 1)) >= of).sum(axis=1).clip(max=shares.shape[1] - 1)
    return codes
