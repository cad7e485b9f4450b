"""What the fuzzer starts from: tables, schemas, workloads, ledgers, a release, a prior and a checkpoint.

Everything is made once, in one folder, by fixed seeds; a case copies what it needs and damages the copy.
Values and passwords that must never be printed are planted here.
"""

import contextlib
import io
import json
import random
import sys
from pathlib import Path
from unittest import mock

import pyarrow as pa
from pyarrow import parquet

PLANTED = ("zqvalue7731", "zqlabel8842", "zqpass5519", "7654321")
"""Of private records (two of them in columns that the schema reads, one in none), and of addresses."""
IN_ODD_ALONE = (PLANTED[1], PLANTED[3])
PASSWORD = PLANTED[2]
PASSWORD_URL = f"postgresql://bob:{PASSWORD}@127.0.0.1:1/db?password={PASSWORD}"

SCHEMA = """[unit]
relation = "replace"

[columns.age]
kind = "integer"
low = 0
high = 4

[columns.sex]
kind = "categorical"
labels = ["f", "m"]
"""
ODD_SCHEMA = """[columns.age]
kind = "integer"
low = 0
high = 4
outside = "clamp"
missing = true

[columns.sex]
kind = "categorical"
labels = ["f", "[red]m[/red]"]
outside = "other"
missing = true

[columns.inc]
kind = "real"
low = 0.0
high = 100.0
bins = 3
outside = "other"
missing = true
"""
WORKLOADS: dict[str, str] = {
    "w1.json": '[{"attrs": ["age", "sex"], "weight": 2}, {"attrs": ["age"]}]',
    "w2.json": '[{"query": "range", "bounds": [["age", 0, 2]]}]',
    "w3.json": '[{"query": "cell", "attrs": ["age", "sex"], "values": [1, 0]}]',
    "w4.json": '[{"query": "linear", "attrs": ["sex"], "shape": [2], "numerators": [1, 524288]}]',
    "w5.json": '[{"query": "fourier", "attrs": ["sex"]}]',
    "bad1.json": '[{"attrs": ["nope"]}]',
    "bad2.json": "[" * 500,
    "bad3.json": '[{"query": "cell", "attrs": ["age"], "values": [9]}]',
}
HEAD = "age,sex,inc,eps,who,name"


def make(folder: Path) -> None:
    """Fill the folder; about two seconds."""
    draw = random.Random(1)  # no secrets are drawn
    rows = [
        (
            draw.randint(0, 4), draw.choice("fm"), round(draw.uniform(0, 100), 1), draw.choice([0.1, 0.5]),
            draw.choice("ab"), PLANTED[0],
        )
        for _ in range(150)
    ]  # fmt: skip
    tables = {
        "people.csv": rows,
        "public.csv": [(*row[:5], "x") for row in rows[:60]],
        "holes.csv": [*rows[:50], ("", "f", "", "0.1", "a", PLANTED[0])],
        "odd.csv": [*rows[:50], (PLANTED[3], PLANTED[1], PLANTED[1], -1, PLANTED[1], PLANTED[0])],
        "one.csv": rows[:1],
        "names.csv": [],
    }
    for name, lines in tables.items():
        text = "".join(",".join(map(str, line)) + "\n" for line in lines)
        (folder / name).write_text(f"{HEAD}\n{text}", encoding="utf-8")
    columns = list(zip(*rows, strict=True))
    parquet.write_table(
        pa.table(dict(zip(HEAD.split(","), map(list, columns), strict=True))), folder / "people.parquet"
    )
    (folder / "empty.csv").write_bytes(b"")
    (folder / "utf16.csv").write_bytes(f"{HEAD}\n1,f,1,1,a,x\n".encode("utf-16"))
    (folder / "ragged.csv").write_text(f"{HEAD}\n1,f\n2,m,3,0.1,a,{PLANTED[0]},9\n", encoding="utf-8")
    (folder / "quotes.csv").write_text(
        f'{HEAD}\n1,"f,1,0.1,a,{PLANTED[0]}\n2,m,1,0.1,b,x\n', encoding="utf-8"
    )
    (folder / "twice.csv").write_text("age,age,sex\n1,1,f\n", encoding="utf-8")
    (folder / "junk.parquet").write_bytes(b"PAR1 no such thing")
    (folder / "people.toml").write_text(SCHEMA, encoding="utf-8")
    (folder / "odd.toml").write_text(ODD_SCHEMA, encoding="utf-8")
    for name, text in WORKLOADS.items():
        (folder / name).write_text(text, encoding="utf-8")
    _ledgers(folder)
    _releases(folder)


def _ledgers(folder: Path) -> None:
    from sidelight.privacy.budget import Budget
    from sidelight.privacy.promise import Promise
    from sidelight.privacy.sql_ledger import SqlLedger
    from sidelight.privacy.unit import Unit

    # Each command begins with these anew, so that ε = 10 pays for whatever one of them asks for.
    for name, epsilon, delta, unit in (
        ("good.ledger", 10.0, 1e-6, Unit("replace")),
        ("tight.ledger", 0.2, 0.0, Unit("replace")),
        ("people.ledger", 10.0, 1e-6, Unit("add-or-remove")),
    ):
        SqlLedger.create(folder / name, Promise(Budget(epsilon=epsilon, delta=delta), unit, name))


def _releases(folder: Path) -> None:
    common = ("--schema", "people.toml", "--ledger", "good.ledger", "--epsilon", "1", "--quiet")
    made = [
        ("release", "people.csv", *common, "--workload", "2-way", "--mechanism", "mwem", "--set", "rounds=2",
         "--out", "histogram"),
        ("release", "people.csv", *common, "--workload", "2-way", "--mechanism", "aim", "--out", "graphical"),
        ("release", "people.csv", *common, "--workload", "2-way", "--mechanism", "pmw-pub",
         "--set", "rounds=2", "--public", "public.csv", "--out", "support"),
        ("prior", "fit", "public.csv", "--schema", "people.toml", "--workload", "2-way", "--out", "prior"),
        ("release", "people.csv", *common, "--workload", "1-way", "--mechanism", "mwem", "--set", "rounds=1",
         "--checkpoint", "kept", "--out", "checkpointed"),
    ]  # fmt: skip
    for argv in made:
        code, _, err = run_here(argv, folder)
        if code:
            raise RuntimeError(f"the fuzzer's own material could not be made: {argv}: {err}")
    (folder / "places.json").write_text(json.dumps(sorted(path.name for path in folder.iterdir())))


def run_here(argv: tuple[str, ...] | list[str], folder: Path) -> tuple[object, str, str]:
    """A command in this process: its exit code, or the exception that escaped, and what it printed."""
    from sidelight.cli.app import main

    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="strict")
    err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace")
    code: object = 0
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        mock.patch.object(sys, "argv", ["sidelight", *argv]),
    ):
        try:
            main()
        except SystemExit as stop:
            code = stop.code or 0
    return code, _text(out), _text(err)


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    content: bytes = stream.buffer.getvalue()  # type: ignore[attr-defined]  # a BytesIO
    return content.decode("utf-8", errors="backslashreplace")
