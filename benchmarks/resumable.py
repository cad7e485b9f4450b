"""Experiments cell by cell: each finished cell is one line of a CSV, and is not run again."""

import csv
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from experiment import mean_and_error


def run_cells(
    path: Path, cells: Iterable[Mapping[str, Any]], work: Callable[..., Mapping[str, float | str]]
) -> list[dict[str, str]]:
    """Run ``work(**cell)`` for each cell that the file does not hold yet; gives all lines."""
    path.parent.mkdir(exist_ok=True)
    done = read(path)
    for cell in cells:
        key = {name: str(value) for name, value in cell.items()}
        if any(key.items() <= line.items() for line in done):
            continue
        start = time.perf_counter()
        found = work(**cell)
        told = {name: value if isinstance(value, str) else f"{value:.8g}" for name, value in found.items()}
        line = key | told
        line["seconds"] = f"{time.perf_counter() - start:.3f}"
        with path.open("a", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, fieldnames=list(line), lineterminator="\n")
            if not done:
                writer.writeheader()
            writer.writerow(line)
        done.append(line)
        print(" ".join(f"{name}={value}" for name, value in line.items()), flush=True)
    return done


def drop(path: Path, cells: Iterable[Mapping[str, Any]]) -> None:
    """Take the lines of these cells out of the file, so that they are run anew."""
    keys = [{name: str(value) for name, value in cell.items()} for cell in cells]
    lines = read(path)
    kept = [line for line in lines if not any(key.items() <= line.items() for key in keys)]
    if len(kept) < len(lines):
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, fieldnames=list(lines[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(kept)


def read(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def summary(lines: list[dict[str, str]], x: str, y: str, **where: Any) -> list[tuple[float, float, float]]:
    """x, the mean of y, and its standard error, over the lines that match."""
    groups: dict[float, list[float]] = {}
    for line in lines:
        if all(line[name] == str(value) for name, value in where.items()):
            groups.setdefault(float(line[x]), []).append(float(line[y]))
    return [(at, *mean_and_error(values)) for at, values in sorted(groups.items())]
