"""How large the house is, and where: lines a folder, long functions, long signatures, the busiest module.

    python benchmarks/tree.py                        this checkout
    python benchmarks/tree.py /tmp/older             another one, such as an older commit's files

Lines are those of .py files under ``src``, all of them. A function's length is from its ``def`` to its last
line, decorators and docstring included. Parameters count ``self`` and ``cls`` out.
"""

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

MANY_PARAMETERS = 8
"""Functions with more than so many parameters are listed."""
SHOWN = 10

Function = ast.FunctionDef | ast.AsyncFunctionDef


def main() -> None:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parents[1])
    source = root / "src" / "sidelight"
    if not source.is_dir():
        sys.exit(f"{root} holds no src/sidelight: name the folder of a checkout.")
    files = {path.relative_to(source): path.read_text(encoding="utf-8") for path in source.rglob("*.py")}
    trees = {path: ast.parse(text) for path, text in files.items()}
    lines = {path: len(text.splitlines()) for path, text in files.items()}
    functions = sorted(
        ((path, name, node) for path, tree in trees.items() for name, node in functions_of(tree)),
        key=lambda found: (-length(found[2]), str(found[0])),
    )
    print(f"lines in src: {sum(lines.values()):,} in {len(lines)} files; {len(functions):,} functions")
    show_folders(lines)
    print(f"\nlongest functions\n{'lines':>7}  where")
    for path, name, node in functions[:SHOWN]:
        print(f"{length(node):7d}  {path}: {name}")
    crowded = sorted(
        (
            (parameters(node), path, name)
            for path, name, node in functions
            if parameters(node) > MANY_PARAMETERS
        ),
        key=lambda found: (-found[0], str(found[1])),
    )
    print(f"\nfunctions with more than {MANY_PARAMETERS} parameters: {len(crowded)}")
    for number, path, name in crowded:
        print(f"{number:7d}  {path}: {name}")
    show_imports(trees)


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


def show_folders(lines: dict[Path, int]) -> None:
    folders, largest = Counter(), Counter()
    for path, number in lines.items():
        folder = str(path.parent)
        folders[folder] += number
        largest[folder] = max(largest[folder], number)
    print(f"\n{'lines':>7}{'files':>7}{'longest file':>14}  folder")
    for folder in sorted(folders):
        number = sum(str(path.parent) == folder for path in lines)
        print(f"{folders[folder]:7,d}{number:7d}{largest[folder]:14d}  {folder}")


def show_imports(trees: dict[Path, ast.Module]) -> None:
    """The module that imports most, and the one that most import."""
    imports = {path: imported(tree) for path, tree in trees.items()}
    path, busiest = max(imports.items(), key=lambda found: (len(found[1]), str(found[0])))
    print(f"\nthe module that imports most: {path}, {len(busiest)} modules of sidelight")
    wanted = Counter(name for names in imports.values() for name in names)
    name, number = wanted.most_common(1)[0]
    print(f"the module that most import: {name}, {number} times")


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
