"""How large the house is, and where: lines a folder, long functions, long signatures, the busiest module.

    python benchmarks/tree.py                              this checkout
    python benchmarks/tree.py ../before                    another one and this one, side by side
    python benchmarks/tree.py ../before --quick 183 184    with the seconds that the quick tests took in each

Lines are those of .py files under ``src``, all of them. A function's length is from its ``def`` to its last
line, decorators and docstring included. Parameters count ``self`` and ``cls`` out. Pairs of places that
repeat each other are counted where a command ``duplicates`` is installed, whose first word is their number.
"""

import argparse
import ast
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MANY_PARAMETERS = 8
"""Functions with more than so many parameters are listed."""
SHOWN = 10

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class House:
    """One checkout, read once."""

    root: Path
    texts: dict[str, str]
    trees: dict[str, ast.Module]

    @classmethod
    def at(cls, root: Path) -> "House":
        source = root / "src" / "sidelight"
        if not source.is_dir():
            sys.exit(f"{root} holds no src/sidelight: name the folder of a checkout.")
        texts = {
            path.relative_to(source).as_posix(): path.read_text(encoding="utf-8")
            for path in sorted(source.rglob("*.py"))
        }
        return cls(root, texts, {name: ast.parse(text) for name, text in texts.items()})

    @property
    def lines(self) -> dict[str, int]:
        return {name: len(text.splitlines()) for name, text in self.texts.items()}

    @property
    def functions(self) -> list[tuple[str, str, Function]]:
        """File, name and node of every function."""
        return [(file, name, node) for file, tree in self.trees.items() for name, node in functions_of(tree)]

    @property
    def longest(self) -> list[str]:
        found = sorted(((length(node), file, name) for file, name, node in self.functions), reverse=True)
        return [f"{number} {file}: {name}" for number, file, name in found[:SHOWN]]

    @property
    def crowded(self) -> list[str]:
        found = [(parameters(node), file, name) for file, name, node in self.functions]
        many = sorted((one for one in found if one[0] > MANY_PARAMETERS), reverse=True)
        return [f"{number} {file}: {name}" for number, file, name in many]

    @property
    def folders(self) -> dict[str, tuple[int, int]]:
        """Lines and files of each folder."""
        found: dict[str, tuple[int, int]] = {}
        for name, number in self.lines.items():
            folder = str(Path(name).parent)
            lines, files = found.get(folder, (0, 0))
            found[folder] = lines + number, files + 1
        return found

    @property
    def busiest(self) -> str:
        """The module that imports most others of sidelight."""
        name, found = max(
            ((name, imported(tree)) for name, tree in self.trees.items()), key=lambda one: len(one[1])
        )
        return f"{len(found)} {name}"

    @property
    def wanted(self) -> str:
        """The module that most others import."""
        times = Counter(name for tree in self.trees.values() for name in imported(tree))
        name, number = times.most_common(1)[0]
        return f"{number} {name.removeprefix('sidelight.')}"

    @property
    def pairs(self) -> str:
        """How many pairs of places repeat each other, in all folders."""
        command = shutil.which("duplicates")
        if command is None:
            return "not counted"
        # As long as it takes: what is not compared in time would not be counted.
        asked = [command, "--repo", str(self.root), "--seconds", "600"]
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
        return done.stdout.split()[0] if done.stdout else "not counted"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("others", nargs="*", type=Path, help="other checkouts, shown before this one")
    parser.add_argument("--quick", nargs="+", type=float, default=[], help="seconds of the quick tests")
    asked = parser.parse_args()
    houses = [House.at(root) for root in (*asked.others, Path(__file__).resolve().parents[1])]
    show("lines in src", [f"{sum(house.lines.values()):,}" for house in houses])
    show("files", [f"{len(house.lines):,}" for house in houses])
    show("functions", [f"{len(house.functions):,}" for house in houses])
    for folder in sorted({folder for house in houses for folder in house.folders}):
        each = [house.folders.get(folder, (0, 0)) for house in houses]
        show(f"{folder}: lines (files)", [f"{lines:,} ({files})" for lines, files in each])
    show("repeated places, in pairs", [house.pairs for house in houses])
    show("quick tests, seconds", [f"{seconds:g}" for seconds in asked.quick])
    show("imports of the busiest module", [house.busiest for house in houses])
    show("imports of the most wanted module", [house.wanted for house in houses])
    show(f"more than {MANY_PARAMETERS} parameters", [str(len(house.crowded)) for house in houses])
    for house in houses:
        print(f"\n{house.root.resolve().name}: functions with more than {MANY_PARAMETERS} parameters")
        print("\n".join(house.crowded))
        print(f"\n{house.root.resolve().name}: the longest functions")
        print("\n".join(house.longest))


def show(label: str, values: list[str]) -> None:
    if values:
        print(f"{label:36}" + "".join(f"{value:>40}" for value in values))


def functions_of(tree: ast.AST, outer: str = "") -> Iterator[tuple[str, Function]]:
    """Every function with its name in full, those of classes and of other functions too."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Function | ast.ClassDef):
            name = f"{outer}{node.name}"
            if isinstance(node, Function):
                yield name, node
            yield from functions_of(node, f"{name}.")
        else:
            yield from functions_of(node, outer)


def length(node: Function) -> int:
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return (node.end_lineno or node.lineno) - first + 1


def parameters(node: Function) -> int:
    given = node.args
    named = [*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))]
    return sum(one.arg not in ("self", "cls") for one in named)


def imported(tree: ast.Module) -> set[str]:
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module == "sidelight":
            found |= {f"sidelight.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return {name for name in found if name.startswith("sidelight.")}


if __name__ == "__main__":
    main()
