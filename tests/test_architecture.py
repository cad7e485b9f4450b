"""Imports point one way, and only the doors look at private data and draw noise.

Every rule is a function from source code to what breaks it, and a planted case of each is caught.
"""

import ast
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent / "src" / "sidelight"

# Each room may import from the rooms before it, and from itself. An import inside a function counts too.
FLOW = [
    "sources", "errors", "_check", "_extras", "_faults", "_interrupt", "_files", "_foreign", "_html",
    "_memory", "privacy", "data", "example", "testing", "queries", "select", "measurement", "mean_errors",
    "progress", "curator",
    "trees", "models", "fit", "public", "uncertainty",
    "mechanisms", "releases",
    "statistics", "evaluation", "audit", "reports", "studio",
    "cli", "__main__",
]  # fmt: skip
RANK = {room: rank for rank, room in enumerate(FLOW)}
# The same for the rooms within data/; the files beside them may use any.
DATA_RANK = {room: rank for rank, room in enumerate(["columns", "engines", "reading", "drafting"])}

# The doors: pay, write, look, draw. Nobody else sees what is exact and private.
DOORS = {
    "curator/door.py",
    "curator/curator.py",
    "statistics/curator.py",
    "evaluation/screening_curator.py",
    "statistics/discovery_curator.py",
}
# Who may draw: a sampler is called by the draw that is made of it, a draw by the doors.
DRAWS = {
    "sidelight.privacy.noise.discrete_gaussian": {"measurement.py"},
    "sidelight.privacy.noise.discrete_laplace": {"measurement.py"},
    "sidelight.measurement.gaussian": DOORS,
    "sidelight.measurement.gaussians": DOORS,
    "sidelight.measurement.laplace": DOORS,
    "sidelight.select.exponential.exponential": DOORS,
    "sidelight.select.exponential.exponentials": DOORS | {"select/exponential.py"},
    "sidelight.select.permute_and_flip.permute_and_flip": DOORS,
    "sidelight.statistics.quantile.exponential_quantile": DOORS,
}
# Who turns a source that may be private into something that can be counted, and why.
READERS = {
    "data/table.py": "the reader itself",
    "data/misfits.py": "tells the holder of a table what does not fit its schema",
    "data/drafting/draft.py": "drafts a schema from a public table",
    "data/drafting/public_sample.py": "draws some records of a public table",
    "data/people.py": "sees how many records people have in a public table",
    "releases/release.py": "reads its own synthetic records",
    "releases/run.py": "hands the private table to the curator",
    "releases/compared.py": "reads the exact table beside a release, for its holder",
    "releases/public_data.py": "reads public data",
    "releases/public_table.py": "reads a public table",
    "statistics/columns.py": "the reader of columns",
    "statistics/grouped_mean.py": "hands private columns to the curator",
    "statistics/discovery.py": "reads labels of a public table",
    "statistics/searched.py": "hands private columns to the curator of discovery",
    "evaluation/screening.py": "hands the private table to its curator, or compares for its holder",
    "cli/demo.py": "made-up people",
    "audit/neighbours.py": "made-up people",
    "audit/people.py": "made-up people",
    "cli/ledger.py": "tells a ledger the marks of its table",
    "cli/_groups.py": "hands private columns to the library",
}
READS = {
    "sidelight.data.table.Table.read",
    "sidelight.data.reading.read.open_source",
    "sidelight.data.reading.read.open_table",
    "sidelight.statistics.columns.read_columns",
}
# Between the doors and what may be published: these rooms meet tables, and every one of them is public.
WITHOUT_PRIVATE_TABLES = (
    "queries", "select", "measurement", "mean_errors", "progress", "trees", "models", "fit", "public",
    "uncertainty", "mechanisms",
)  # fmt: skip
PUBLIC_NAMES = {"public", "other"}
PUBLIC_TABLES = {
    "models/support.py": "the records of a public table, or of a sample from a model",
    "public/source.py": "public records",
}
# Who may have a table digested, and why. The digests go to a ledger or a journal, under its key.
MARKERS = {
    "releases/run.py": "the ledger and the journal of a run recognise its tables",
    "releases/public_data.py": "the journal recognises public data",
    "evaluation/screening.py": "the ledger recognises the screened table",
    "cli/ledger.py": "a ledger is told that its table was corrected",
    "cli/_groups.py": "the ledger recognises the table of a mean or a quantile",
    "statistics/discovery.py": "the ledger recognises the table of a discovery",
}
DIGESTS = {"sidelight.data.fingerprint.marks_of", "sidelight.data.fingerprint.marks_of_source"}
TOLD_MARKS = {"for_table", "has_other_schema", "is_same_table", "rebind"}
# Where doors, groups and tables keep what is exact.
EXACT = {"_table", "_counts", "_values", "_codes", "_engine"}
LOOKS = {"count", "count_many", "codes", "distinct", "decode", "to_frame"}

# What people call by keyword: one keyword for each thing that they decide (docs/design.md). So do commands.
FRONT_DOORS = {
    "releases/run.py:release",
    "releases/plan.py:of",
    "releases/plan.py:plan",
    "releases/synthesizer.py:__init__",
    "evaluation/rehearsal.py:rehearse",
}


def modules(root: Path = SOURCE) -> list[Path]:
    return sorted(path for path in root.rglob("*.py") if path != root / "__init__.py")


def name_of(path: Path, root: Path = SOURCE) -> str:
    return path.relative_to(root).as_posix()


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


# What a module's names stand for -------------------------------------------------------------------


def imports(tree: ast.Module, name: str) -> dict[str, str]:
    """What each imported name stands for, in full; relative imports and aliases too."""
    package = ["sidelight", *Path(name).with_suffix("").parts[:-1]]
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found[alias.asname or alias.name.split(".")[0]] = (
                    alias.name if alias.asname else alias.name.split(".")[0]
                )
                found[f"import {alias.name}"] = alias.name
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                found[alias.asname or alias.name] = f"{module}.{alias.name}"
    return found


def reached(tree: ast.Module, name: str) -> set[str]:
    """Every sidelight module or name that is imported, at the top, in a function or by a string."""
    found = set(imports(tree, name).values())
    if "importlib" in found or "importlib.import_module" in found:
        found |= {
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " not in node.value
        }
    return {dotted for dotted in found if dotted.startswith("sidelight.")}


def in_full(node: ast.AST, known: dict[str, str]) -> str | None:
    """``noise.discrete_gaussian`` as ``sidelight.privacy.noise.discrete_gaussian``; None if it is no name."""
    if isinstance(node, ast.Name):
        return known.get(node.id, node.id)
    if isinstance(node, ast.Attribute):
        inner = in_full(node.value, known)
        return None if inner is None else f"{inner}.{node.attr}"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "getattr":
        owner, attr = node.args[:2]
        inner = in_full(owner, known)
        return f"{inner}.{attr.value}" if inner and isinstance(attr, ast.Constant) else None
    return None


def used(tree: ast.Module, name: str) -> set[str]:
    """Every name that is imported or used, in full."""
    known = imports(tree, name)
    found = {dotted for node in ast.walk(tree) if (dotted := in_full(node, known)) is not None}
    return found | set(known.values())


# The rules: each yields what breaks it ---------------------------------------------------------------


def points_down(tree: ast.Module, name: str) -> Iterator[str]:
    """Imports of rooms further on; rooms without a rank."""
    here = Path(name).parts[0].removesuffix(".py")
    if here not in RANK:
        yield f"{here} has no rank in FLOW"
        return
    for dotted in sorted(reached(tree, name)):
        there = dotted.split(".")[1]
        if there not in RANK:
            yield f"{dotted} is in a room without a rank"
        elif RANK[there] > RANK[here]:
            yield f"{here} imports {dotted}"
        elif here == there == "data":
            within, other = Path(name).parts[1], dotted.split(".")[2]
            if DATA_RANK.get(other, -1) > DATA_RANK.get(within, len(DATA_RANK)):
                yield f"data/{within} imports {dotted}"


def draws(tree: ast.Module, name: str) -> Iterator[str]:
    """Samplers and draws that are reached from where they may not be; by any name, or all at once."""
    for dotted in sorted(used(tree, name)):
        allowed = DRAWS.get(dotted)
        home = dotted.removeprefix("sidelight.").rsplit(".", 1)[0].replace(".", "/") + ".py"
        if allowed is not None and name not in allowed and name != home:
            yield f"{dotted} is drawn from"
        if dotted.startswith("sidelight.") and dotted.endswith(".*"):
            yield f"{dotted}: a star hides what is drawn"
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "words":
            may = name in DOORS or name.startswith(("privacy/", "select/", "testing.py"))
            if not may:
                yield f"line {node.lineno}: raw random words are drawn"


@cache
def doors_own_names(root: Path = SOURCE) -> set[str]:
    """What the doors keep to themselves: every underscored attribute or method of their classes."""
    found = {"_values", "_engine"}
    for door in DOORS:
        for outer in ast.walk(parsed(root / door)):
            if not isinstance(outer, ast.ClassDef):
                continue
            for node in ast.walk(outer):
                if isinstance(node, ast.FunctionDef) and node.name.startswith("_"):
                    found.add(node.name)
                elif isinstance(node, ast.Attribute) and _is_own(node) and node.attr.startswith("_"):
                    found.add(node.attr)
    return {attr for attr in found if not attr.startswith("__")}


def _is_own(node: ast.Attribute) -> bool:
    """Whether it is an attribute of the object or class itself."""
    owner = node.value
    if isinstance(owner, ast.Call) and isinstance(owner.func, ast.Name):
        return owner.func.id == "super"
    return isinstance(owner, ast.Name) and owner.id in ("self", "cls")


def reaches_in(tree: ast.Module, name: str) -> Iterator[str]:
    """Another object's attribute that a door, a group or a table keeps to itself; its name as text too."""
    own = doors_own_names()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in own and not _is_own(node):
            yield f"line {node.lineno}: .{node.attr} of another object"
        if isinstance(node, ast.Constant) and node.value in EXACT:
            yield f"line {node.lineno}: {node.value!r} as text"
        if isinstance(node, ast.Attribute) and node.attr == "__dict__" and not _is_own(node):
            yield f"line {node.lineno}: .__dict__"


def reads(tree: ast.Module, name: str) -> Iterator[str]:
    """Calls that turn a source into a table or columns."""
    known = imports(tree, name)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and in_full(node.func, known) in READS:
            yield f"line {node.lineno}: {ast.unparse(node.func)}"


def digests(tree: ast.Module, name: str) -> Iterator[str]:
    """Digests of whole tables: made elsewhere than listed, under another key, or told to somebody else."""
    known = imports(tree, name)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in ("columns_in_memory", "people_in_memory"):
            if name not in ("data/table.py", "data/fingerprint.py"):
                yield f"line {node.lineno}: the codes of a whole table"
        elif isinstance(node, ast.Call) and in_full(node.func, known) in DIGESTS:
            if name not in MARKERS:
                yield f"line {node.lineno}: {ast.unparse(node.func)}"
            if ast.unparse(node.args[-1]).split(".")[-1] != "key":
                yield f"line {node.lineno}: a digest without the key of a ledger or a journal"
    made = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and in_full(node.value.func, known) in DIGESTS
    ]
    held = {target.id for node in made for target in node.targets if isinstance(target, ast.Name)}
    told = {id(part) for node in ast.walk(tree) if _tells_a_ledger(node) for part in ast.walk(node)}
    for node in ast.walk(tree):
        is_read = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in held
        if is_read and id(node) not in told:
            yield f"line {node.lineno}: a digest is told to others"


def _tells_a_ledger(node: ast.AST) -> bool:
    """Whether marks inside are handed to a ledger, or only asked whether there are any."""
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Not)
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in TOLD_MARKS
    )


def takes_a_table(tree: ast.Module, name: str) -> Iterator[str]:
    """Parameters and fields that hold a Table and are not called public."""
    known = imports(tree, name)
    for node in ast.walk(tree):
        if isinstance(node, ast.arg) or (
            isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name | ast.Attribute)
        ):
            named = node.arg if isinstance(node, ast.arg) else ast.unparse(node.target)
            mentioned = {in_full(part, known) for part in _annotation(node.annotation)}
            if "sidelight.data.table.Table" in mentioned and named not in PUBLIC_NAMES:
                yield f"line {node.lineno}: {named}"


def _annotation(node: ast.expr | None) -> Iterator[ast.AST]:
    for part in ast.walk(node) if node is not None else ():
        yield part
        if isinstance(part, ast.Constant) and isinstance(part.value, str) and part.value.isidentifier():
            yield ast.parse(part.value, mode="eval").body


def looks_before_paying(tree: ast.Module, name: str) -> Iterator[str]:
    """Exact data of a door that are touched elsewhere than after payment.

    After payment is inside a nested function or lambda, which ``_pay_then`` calls, and in methods
    that such functions alone call. A line that is safe for another reason carries a PRIVACY comment.
    """
    for outer in tree.body:
        if isinstance(outer, ast.ClassDef) and any("Door" in ast.unparse(base) for base in outer.bases):
            yield from _unpaid(outer)


def _unpaid(door: ast.ClassDef) -> Iterator[str]:
    methods = {node.name: node for node in door.body if isinstance(node, ast.FunctionDef)}
    outside = {name: _outside_nested(node) for name, node in methods.items()}
    # Methods that are called from the open part of a public one are reached before payment.
    early = {name for name in methods if not name.startswith("_") or name in ("__init__", "_tell")}
    while True:
        called = {
            node.attr for name in early for node in outside[name] if isinstance(node, ast.Attribute)
        } & set(methods)
        if called <= early:
            break
        early |= called
    for name in sorted(early - {"__init__"}):
        forgotten = {
            node.value for node in outside[name] if isinstance(node, ast.Attribute) and node.attr == "clear"
        }
        for node in outside[name]:
            if isinstance(node, ast.Attribute) and node.attr in EXACT and node not in forgotten:
                yield f"{door.name}.{name}, line {node.lineno}: {node.attr}"


def _outside_nested(function: ast.FunctionDef) -> list[ast.AST]:
    """The nodes of a function that run when it is called: not those of functions that it defines."""
    found: list[ast.AST] = []
    open_: list[ast.AST] = list(function.body)
    while open_:
        node = open_.pop()
        found.append(node)
        if not isinstance(node, ast.FunctionDef | ast.Lambda):
            open_ += ast.iter_child_nodes(node)
    return found


def said_to_be_safe(path: Path, line: int) -> bool:
    """Whether the line, or one of the three above it, carries a PRIVACY comment."""
    lines = path.read_text(encoding="utf-8").splitlines()[max(0, line - 4) : line]
    return any("# PRIVACY:" in text for text in lines)


def broken(rule: Callable[[ast.Module, str], Iterator[str]], path: Path) -> list[str]:
    name = name_of(path)
    return [f"{name}: {what}" for what in rule(parsed(path), name)]


def is_crowded(tree: ast.Module, name: str) -> Iterator[str]:
    """Functions with more than eight parameters, by which nobody remembers what is what."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            given = node.args
            named = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
            names = {one.arg for one in named if one is not None} - {"self", "cls"}
            if len(names) > 8 and f"{name}:{node.name}" not in FRONT_DOORS:
                yield f"line {node.lineno}: {node.name} takes {len(names)}"


# The house as it stands ------------------------------------------------------------------------------


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_imports_point_up_the_flow(path):
    assert broken(points_down, path) == []


def test_every_room_of_the_flow_exists():
    rooms = {Path(name_of(path)).parts[0].removesuffix(".py") for path in modules()}

    assert set(FLOW) == rooms


def test_only_the_doors_draw():
    assert [what for path in modules() for what in broken(draws, path)] == []


def test_nobody_reaches_into_a_door_a_group_or_a_table():
    allowed = {
        "statistics/curator.py": "_values",  # a door reads the groups that it was given
        "data/table.py": "_engine",  # another table's engine, under another schema
        "data/leak_guard.py": "_engine",  # which object it is, never what it holds
    }
    for path in modules():
        found = broken(reaches_in, path)
        exempt = allowed.get(name_of(path), "nothing")
        assert [what for what in found if f".{exempt} of" not in what] == []


def test_only_those_listed_read_a_source_that_may_be_private():
    found = {name_of(path) for path in modules() if broken(reads, path)}

    assert found == set(READERS)


def test_digests_of_tables_go_to_ledgers_and_journals_alone():
    assert [what for path in modules() for what in broken(digests, path)] == []
    assert {name_of(path) for path in modules() if DIGESTS & used(parsed(path), name_of(path))} == {
        *MARKERS,
    }


def test_the_rooms_behind_the_doors_take_public_tables_alone():
    for path in modules():
        name = name_of(path)
        if Path(name).parts[0].removesuffix(".py") in WITHOUT_PRIVATE_TABLES and name not in PUBLIC_TABLES:
            assert broken(takes_a_table, path) == []


@pytest.mark.parametrize("door", sorted(DOORS))
def test_a_door_looks_after_it_was_paid(door):
    path = SOURCE / door

    found = list(looks_before_paying(parsed(path), door))

    lines = [int(what.split("line ")[1].split(":")[0]) for what in found]
    assert [what for what, line in zip(found, lines, strict=True) if not said_to_be_safe(path, line)] == []


def test_the_run_hands_the_private_table_on_and_does_not_look():
    """What ``Table.read(private, …)`` gave is the curator's; the run may ask its kind, a public n, and to
    keep k records of each person."""
    path = SOURCE / "releases" / "run.py"
    tree = parsed(path)
    held = {
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and ast.unparse(node.value).startswith("Table.read(private")
        for target in node.targets
        if isinstance(target, ast.Name)
    }

    looks = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in held
    ]

    assert held
    assert {node.attr for node in looks} & LOOKS == set()
    assert {node.attr for node in looks} <= {"kind", "records", "keeping", "kept"}


def test_only_a_rehearsal_takes_records_for_bounded_that_are_not():
    using = {
        name_of(path)
        for path in modules()
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Attribute) and node.attr == "standing_in"
    }

    assert using == {"evaluation/rehearsal.py"}


def shows_a_promise_name(path: Path) -> bool:
    """Whether a promise's raw name is used, which an older version may have taken from an address."""
    return any(
        isinstance(node, ast.Attribute)
        and node.attr == "name"
        and (getattr(node.value, "id", None) == "promise" or getattr(node.value, "attr", None) == "promise")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    )


def test_a_promise_is_called_by_the_name_that_may_be_shown(tmp_path):
    # Which refuses a new ledger whose name must not be shown.
    assert {str(path.relative_to(SOURCE)) for path in modules() if shows_a_promise_name(path)} == {
        "privacy/sql_ledger.py"
    }

    planted = tmp_path / "leak.py"
    planted.write_text("title = ledger.promise.name\n")
    assert shows_a_promise_name(planted)


def test_only_front_doors_and_commands_take_more_than_eight_parameters():
    for path in modules():
        if not name_of(path).startswith("cli/"):
            assert broken(is_crowded, path) == []


def test_no_module_uses_a_global_generator_or_prints():
    for path in modules():
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id != "print", path
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute):
                legacy = {"seed", "rand", "randn", "normal", "choice"}
                is_legacy = node.value.attr == "random" and node.attr in legacy
                assert not is_legacy, f"{path} uses numpy's global generator"


# Planted cases: each rule can fail -------------------------------------------------------------------

PLANTED = [
    (points_down, "models/leak.py", "def f():\n    from sidelight.releases.release import Release\n"),
    (points_down, "models/leak.py", "from ..mechanisms import base\n"),
    (points_down, "models/leak.py", "import importlib\nWHERE = 'sidelight.releases.run'\n"),
    (points_down, "data/columns/leak.py", "def f():\n    from sidelight.data.engines import base\n"),
    (points_down, "attic/leak.py", "x = 1\n"),
    (points_down, "cli/leak.py", "from sidelight.attic import x\n"),
    (draws, "mechanisms/leak.py", "from sidelight.measurement import gaussian\n"),
    (draws, "mechanisms/leak.py", "from sidelight.measurement import gaussian as measured\n"),
    (draws, "mechanisms/leak.py", "from sidelight import measurement as m\nm.laplace(1, 2, 3)\n"),
    (draws, "mechanisms/leak.py", "import sidelight.measurement\nsidelight.measurement.gaussian(1)\n"),
    (draws, "mechanisms/leak.py", "from sidelight.privacy import noise\nnoise.discrete_gaussian(1)\n"),
    (draws, "mechanisms/leak.py", "import sidelight.privacy.noise as n\ndraw = n.discrete_laplace\n"),
    (draws, "mechanisms/leak.py", "import sidelight.measurement as m\ngetattr(m, 'gaussian')(1)\n"),
    (draws, "mechanisms/leak.py", "from ..measurement import laplace\n"),
    (draws, "mechanisms/leak.py", "from sidelight.measurement import *\n"),
    (draws, "mechanisms/leak.py", "def f(curator):\n    return curator.noise.words(3)\n"),
    (reaches_in, "mechanisms/leak.py", "def f(curator):\n    return curator._table.count(('a',))\n"),
    (reaches_in, "mechanisms/leak.py", "def f(curator):\n    return curator._exact(query)\n"),
    (reaches_in, "mechanisms/leak.py", "def f(curator):\n    return getattr(curator, '_counts')\n"),
    (reaches_in, "mechanisms/leak.py", "def f(curator):\n    return vars(curator)['_table']\n"),
    (reaches_in, "mechanisms/leak.py", "def f(curator):\n    return curator.__dict__\n"),
    (reaches_in, "statistics/leak.py", "def f(group):\n    return group._values.mean()\n"),
    (reaches_in, "reports/leak.py", "def f(table):\n    return table._engine.count(())\n"),
    (reads, "mechanisms/leak.py", "from sidelight.data.table import Table as T\nT.read('people.csv', s)\n"),
    (reads, "releases/leak.py", "from sidelight.data.reading import read\nread.open_source('people.csv')\n"),
    (digests, "reports/leak.py", "def f(table):\n    return table.columns_in_memory()[0].mean()\n"),
    (digests, "reports/leak.py", "from sidelight.data.fingerprint import marks_of\nmarks_of(t, s, key)\n"),
    (digests, "releases/run.py", "from sidelight.data import fingerprint as f\nf.marks_of(t, s, '00')\n"),
    (
        digests,
        "releases/run.py",
        "from sidelight.data.fingerprint import marks_of\n"
        "def f(t, s, book, card):\n    marks = marks_of(t, s, book.key)\n    card.say(marks)\n",
    ),
    (
        takes_a_table,
        "mechanisms/leak.py",
        "from sidelight.data.table import Table\ndef f(table: Table | None): ...\n",
    ),
    (
        takes_a_table,
        "fit/leak.py",
        "from sidelight.data.table import Table\ndef f(records: 'Table'): ...\n",
    ),
    (
        takes_a_table,
        "select/leak.py",
        "from sidelight.data import table\nclass S:\n    exact: table.Table\n",
    ),
    (is_crowded, "models/leak.py", "def f(a, b, c, d, e, *, f, g, h, i): ...\n"),
    (
        looks_before_paying,
        "curator/curator.py",
        "class C(Door):\n    def total(self):\n        return self._table.records\n",
    ),
    (
        looks_before_paying,
        "curator/curator.py",
        "class C(Door):\n    def gap(self):\n        return self._gap()\n"
        "    def _gap(self):\n        return self._counts\n",
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "name", "source"), PLANTED, ids=lambda value: getattr(value, "__name__", "")
)
def test_a_planted_case_is_caught(rule, name, source):
    assert list(rule(ast.parse(source), name))


def test_looking_after_payment_is_no_planted_case():
    source = (
        "class C(Door):\n"
        "    def measure(self, event):\n"
        "        return self._pay_then(event, lambda: self._exact())\n"
        "    def _exact(self):\n"
        "        return self._table.count(())\n"
    )

    assert list(looks_before_paying(ast.parse(source), "curator/curator.py")) == []


def test_the_tree_in_contributing_names_every_room_and_every_file_it_names_exists():
    text = (SOURCE.parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    tree = text.split("```text\nsrc/sidelight/\n")[1].split("```")[0]
    named = {line.split()[0] for line in tree.splitlines()}

    folders = {f"{name_of(path.parent)}/" for path in SOURCE.rglob("__init__.py") if path.parent != SOURCE}
    assert folders <= named
    walked = text.split("## The tree")[1].split("## What we check first")[0]
    files = {name_of(path) for path in modules()} | {path.name for path in modules()}
    for path in re.findall(r"`([a-z_/]+\.py)`", walked):
        if not path.startswith(("tests/", "benchmarks/", "docs/")):
            assert path in files, path


def test_every_file_of_ours_that_a_docstring_or_a_page_names_exists():
    repository = SOURCE.parents[1]
    ours = [
        path.as_posix()
        for room in ("src", "tests", "benchmarks", "docs")
        for path in (repository / room).rglob("*.py")
    ]
    texts = [*SOURCE.rglob("*.py"), *(repository / "docs").rglob("*.md"), repository / "CONTRIBUTING.md"]

    for text in texts:
        for named in re.findall(r"(?<![\w./])((?:[a-z_]+/)*[a-z_]+\.py)\b", text.read_text(encoding="utf-8")):
            is_ours = any(path.endswith(f"/{named}") for path in ours)
            assert is_ours or named == "make_data.py", f"{text} names {named}"
