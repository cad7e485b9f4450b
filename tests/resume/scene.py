"""A tiny table in a folder, and the command that releases it with each mechanism."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

ATTRIBUTES = {"sex": 2, "work": 2, "home": 2, "age": 2}
SCHEMA = '[unit]\nrelation = "replace"\n' + "".join(
    f'\n[columns.{name}]\nkind = "categorical"\nlabels = {[f"{name}{code}" for code in range(size)]}\n'
    for name, size in ATTRIBUTES.items()
)
NETWORK = [
    part
    for setting in ("rounds=3", "steps=3", "batch=8", "latent=4", "width=8")
    for part in ("--set", setting)
]
"""Settings of a network that trains in no time."""
RUNS: dict[str, Sequence[str]] = {
    "mwem": ["--mechanism", "mwem", "--set", "rounds=2", "--set", "passes=5"],
    "factored mwem": ["--mechanism", "mwem", "--set", "rounds=3", "--set", "model=components"],
    "barak": ["--mechanism", "barak", "--set", "passes=5"],
    "mwem-pub": ["--mechanism", "mwem-pub", "--set", "rounds=4", "--public", "public.csv"],
    "pmw-pub": ["--mechanism", "pmw-pub", "--set", "rounds=4", "--public", "public.csv"],
    "aim": ["--mechanism", "aim", "--set", "rounds_per_attribute=1", "--set", "max_model_mb=1"],
    "dualquery": ["--mechanism", "dualquery", "--set", "max_rounds=4", "--set", "queries_per_round=5"],
    "hdmm": ["--mechanism", "hdmm"],
    "ladder": ["--mechanism", "ladder"],
    "mst": ["--mechanism", "mst"],
    "gem": ["--mechanism", "gem", *NETWORK],
    "gem-pub": ["--mechanism", "gem-pub", *NETWORK, "--set", "public_steps=5", "--public", "public.csv"],
    "jam": ["--mechanism", "jam", "--set", "rounds=4", "--public", "public.csv"],
    "aperture": ["--mechanism", "aperture", "--set", "max_rounds=3", "--public", "public.csv"],
}
"""What each run adds to the command; small, so that a run takes a fraction of a second."""
# Public data are believed, so that what stands beside the tree is judged at the end.
RUNS["aperture that believes"] = [*RUNS["aperture"], "--set", "contest_share=0"]


def command(
    run: str, *, checkpoint: str | None, ledger: str = "l.ledger", table: str = "private.csv"
) -> list[str]:
    """The whole command line of a run."""
    extra = [] if checkpoint is None else ["--checkpoint", checkpoint]
    return [
        "release", table, "--schema", "schema.toml", "--ledger", ledger, "--epsilon", "0.9",
        "--workload", "2-way", "--out", "out", "--quiet", *RUNS[run], *extra,
    ]  # fmt: skip


def prepare(folder: Path, ledger: str | None = None) -> None:
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
    where = folder / "l.ledger" if ledger is None else ledger
    SqlLedger.create(where, Promise(Budget(epsilon=1.0, delta=1e-9), Unit("replace"), "tiny"))
