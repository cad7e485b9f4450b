"""A tiny table in a folder, and the command that releases it with each mechanism."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

ATTRIBUTES = {"sex": 2, "work": 2, "home": 2, "age": 2}
SCHEMA = '[unit]\nrelation = "replace"\n' + "".join(
    f'\n[columns.{name}]\nkind = "categorical"\nlabels = {[f"{name}{code}" for code in range(size)]}\n'
    for name, size in ATTRIBUTES.items()
)
RUNS: dict[str, Sequence[str]] = {
    "mwem": ["--mechanism", "mwem", "--set", "rounds=2", "--set", "passes=5"],
    "factored mwem": ["--mechanism", "mwem", "--set", "rounds=3", "--set", "model=components"],
    "barak": ["--mechanism", "barak", "--set", "passes=5"],
    "mwem-pub": ["--mechanism", "mwem-pub", "--set", "rounds=4", "--public", "public.csv"],
    "pmw-pub": ["--mechanism", "pmw-pub", "--set", "rounds=4", "--public", "public.csv"],
    "aim": ["--mechanism", "aim", "--set", "rounds_per_attribute=1", "--set", "max_model_mb=1"],
    "dualquery": ["--mechanism", "dualquery", "--set", "max_rounds=4", "--set", "queries_per_round=5"],
    "hdmm": ["--mechanism", "hdmm"],
    "mst": ["--mechanism", "mst"],
    "jam": ["--mechanism", "jam", "--set", "rounds=4", "--public", "public.csv"],
    "aperture": ["--mechanism", "aperture", "--set", "max_rounds=3", "--public", "public.csv"],
}
"""What each run adds to the command; small, so that a run takes a fraction of a second."""
# Without structure in the public model, the records themselves are worth something: a blend is chosen last.
RUNS["blended aperture"] = [*RUNS["aperture"], "--set", "max_contests=2"]


def command(run: str, *, checkpoint: str | None) -> list[str]:
    """The whole command line of a run."""
    extra = [] if checkpoint is None else ["--checkpoint", checkpoint]
    return [
        "release", "private.csv", "--schema", "schema.toml", "--ledger", "l.ledger", "--epsilon", "0.9",
        "--workload", "2-way", "--out", "out", "--quiet", *RUNS[run], *extra,
    ]  # fmt: skip


def prepare(folder: Path) -> None:
    """Private and public records, a schema, and a ledger that could never pay for two such runs."""
    from sidelight.privacy.budget import Budget
    from sidelight.privacy.promise import Promise
    from sidelight.privacy.sql_ledger import SqlLedger
    from sidelight.privacy.unit import Unit

    folder.mkdir(parents=True)
    for seed, name in enumerate(("private.csv", "public.csv")):
        rng = np.random.default_rng(seed)
        sex = rng.integers(0, 2, 300)
        work = np.minimum(sex + rng.integers(0, 2, 300), 1)
        home, age = rng.integers(0, 2, 300), np.minimum(work + rng.integers(0, 2, 300), 1)
        rows = zip(sex, work, home, age, strict=True)
        lines = [f"sex{a},work{b},home{c},age{d}" for a, b, c, d in rows]
        (folder / name).write_text("\n".join([",".join(ATTRIBUTES), *lines]) + "\n", encoding="utf-8")
    (folder / "schema.toml").write_text(SCHEMA, encoding="utf-8")
    SqlLedger.create(folder / "l.ledger", Promise(Budget(epsilon=1.0, delta=1e-9), Unit("replace"), "tiny"))
