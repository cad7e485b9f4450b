"""Ways to damage a file or a folder, as a disk, a careless person or a stranger would."""

import copy
import hashlib
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 2, 0.5, -0.5, 1e308, -1e308, 2**53, 10**30, float("nan"), float("inf"), "",
    "x", "1e999999999", "[red]x[/red]", "<script>", "a/../b", [], {}, [1, "a", None], {"attrs": 7}, [[[[1]]]],
    ["age", "sex"], ["age", "age"], [5, 2], [10**12], "x" * 3000,
]  # fmt: skip
KEYS = ["kind", "low", "high", "bins", "edges", "labels", "missing", "outside", "other_label", "note", "zz"]
TOML = [
    '"categorical"', '"integer"', '"real"', '"x"', "0", "1", "-1", "5", "1.5", "nan", "inf", "-inf", "1e308",
    "9007199254740993", "true", "false", "[]", "[1]", "[1, 2]", "[2, 1]", '["f", "m"]', '["f", "f"]',
    '[1, "a"]', "[true, false]", "[1.0, 2]", '"refuse"', '"other"', '"clamp"', '""', '"\\u0000"', "[[1]]",
    "{a = 1}", "2020-01-01", "[nan]", "10000000", "1000000000000", "0x" + "f" * 300, "9" * 5000,
]  # fmt: skip


def flip(path: Path, draw: random.Random) -> None:
    """Another value in one byte, or in a few."""
    content = bytearray(path.read_bytes())
    for _ in range(draw.choice([1, 1, 1, 5])):
        if content:
            content[draw.randrange(len(content))] = draw.randrange(256)
    path.write_bytes(content)


def cut(path: Path, draw: random.Random) -> None:
    """Without its end."""
    content = path.read_bytes()
    path.write_bytes(content[: draw.randrange(len(content) + 1)])


def plain(value: Any, draw: random.Random) -> Any:
    """A JSON value with another value, or none, in one place."""
    changed = copy.deepcopy(value)
    at, path = changed, []
    while isinstance(at, (dict, list)) and at and (not path or draw.random() < 0.8):
        key = draw.choice(list(at)) if isinstance(at, dict) else draw.randrange(len(at))
        path.append((at, key))
        at = at[key]
    if not path:
        return draw.choice(VALUES)
    holder, key = path[-1]
    if draw.random() < 0.15:
        del holder[key]
    else:
        holder[key] = copy.deepcopy(draw.choice(VALUES))
    return changed


def schema(text: str, draw: random.Random) -> str:
    """A schema with other characters, cut off, or made of random declarations."""
    kind = draw.random()
    if kind < 0.15:
        return text[: draw.randrange(len(text))]
    if kind < 0.35:
        characters = list(text)
        for _ in range(draw.randint(1, 4)):
            characters[draw.randrange(len(characters))] = draw.choice('"[]=\n#.{}\\\x00é9x')
        return "".join(characters)
    parts = []
    if draw.random() < 0.4:
        relation = draw.choice(['"replace"', '"add-or-remove"', '"x"', "1"])
        records = draw.choice(["1", "2", "0", "-1", "1.5", '"a"', "1000000", "9" * 30])
        parts.append(f"[unit]\nrelation = {relation}\nrecords = {records}\n")
    for name in draw.sample(["age", "sex", "inc", "who", "a b", 'q"uote', ""], draw.randint(1, 4)):
        parts.append(f"[columns.{json.dumps(name)}]\n")
        if draw.random() < 0.7:
            parts += [f"{key} = {draw.choice(TOML)}\n" for key in draw.sample(KEYS, draw.randint(0, 5))]
        else:
            parts.append('kind = "categorical"\nlabels = ["f", "m"]\noutside = "other"\n')
    if draw.random() < 0.2:
        age, sex = draw.choice(["[0]", "0", '["x"]', "[]"]), draw.choice(['["f"]', '"m"', "[1]"])
        parts.append(f"[[impossible]]\nage = {age}\nsex = {sex}\n")
    return "".join(parts)


def folder(path: Path, draw: random.Random) -> None:
    """A release or a prior in which something is missing, edited, or edited and sealed again."""
    about = path / ("prior.json" if (path / "prior.json").exists() else "release.json")
    files = sorted(path.iterdir())
    kind = draw.random()
    if kind < 0.1:
        draw.choice(files).unlink()
    elif kind < 0.2:
        draw.choice([flip, cut])(draw.choice(files), draw)
    elif kind < 0.7:
        described = plain(json.loads(about.read_text(encoding="utf-8")), draw)
        about.write_text(json.dumps(described), encoding="utf-8")
    else:
        _other_numbers(draw.choice([file for file in files if file.suffix == ".parquet"]), draw)
        _seal(about)


def _other_numbers(path: Path, draw: random.Random) -> None:
    table = parquet.read_table(path)
    name = table.column_names[-1]
    rows = draw.choice([table.num_rows, table.num_rows, table.num_rows + 1, 0, 1, 100_000])
    column: Any = draw.choice(
        [
            np.full(rows, draw.choice([np.nan, np.inf, -1.0, 0.0, 1e308, 1e-320])),
            np.full(rows, draw.choice([0, -1, 255, 2**62])),
            ["x"] * rows,
            [None] * rows,
            [[1.0]] * rows,
        ]
    )
    with path.open("wb") as file:
        parquet.write_table(pa.table({name: column}), file)


def _seal(about: Path) -> None:
    """Right checksums, as whoever edits on purpose would write them."""
    described = json.loads(about.read_text(encoding="utf-8"))
    for name in described["checksums"]:
        described["checksums"][name] = hashlib.sha256((about.parent / name).read_bytes()).hexdigest()
    about.write_text(json.dumps(described), encoding="utf-8")
