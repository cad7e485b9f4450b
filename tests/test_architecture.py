"""Imports point one way, and only the doors look at private data and draw noise."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent / "src" / "sidelight"

# Each room may import from the rooms before it, and from itself.
FLOW = [
    ("sources",),
    ("errors", "_check", "_extras", "_files", "_foreign", "_html", "_interrupt", "_memory"),
    ("privacy",),
    ("data",),
    ("testing",),
    ("queries",),
    ("select",),
    ("measure",),
    ("progress", "journal"),
    ("door", "curator"),
    ("estimate", "generate"),  # a model knows how to sample itself
    ("mechanisms",),
    ("statistics",),
    ("evaluation",),
    ("plan", "audit"),
    ("front_door", "synthesizer"),
    ("report",),
    ("cli",),
    ("__main__",),
]
# data/schema.py states the unit, and errors are everyone's; both come before.
RANK = {room: rank for rank, rooms in enumerate(FLOW) for room in rooms}
RANK["data.domain"] = RANK["_extras"]

DRAWS = {
    "sidelight.measurement",
    "sidelight.select.exponential",
    "sidelight.select.permute_and_flip",
}
SAMPLERS = {"discrete_gaussian", "discrete_laplace"}
DOORS = {"curator.py", "statistics/curator.py", "evaluation/screening_curator.py"}


def modules() -> list[Path]:
    return sorted(path for path in SOURCE.rglob("*.py") if path.name != "__init__.py")


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in names if name.startswith("sidelight.")}


def room_of(dotted: str) -> str:
    parts = dotted.removeprefix("sidelight.").split(".")
    return "data.domain" if parts[:2] == ["data", "domain"] else parts[0]


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_up_the_flow(path):
    here = room_of("sidelight." + ".".join(path.relative_to(SOURCE).with_suffix("").parts))

    for name in imported(path):
        there = room_of(name)
        if there in RANK:
            assert RANK[there] <= RANK[here], f"{here} must not import {name}"


def test_only_the_doors_draw():
    for path in modules():
        name = str(path.relative_to(SOURCE))
        uses = imported(path) & DRAWS
        if name not in DOORS and not name.startswith(("measure/", "select/")):
            assert not uses, f"{name} draws from {uses}"


def test_only_the_draws_sample_noise():
    allowed = {"privacy/noise.py", "measurement.py"} | DOORS
    for path in modules():
        name = str(path.relative_to(SOURCE))
        tree = ast.parse(path.read_text(encoding="utf-8"))
        calls = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} & SAMPLERS
        if name not in allowed:
            assert not calls, f"{name} calls {calls}"


def test_a_planted_draw_outside_the_doors_is_seen(tmp_path):
    planted = tmp_path / "leak.py"
    planted.write_text("from sidelight.measurement import gaussian\n")

    assert imported(planted) & DRAWS


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


def test_no_module_uses_a_global_generator_or_prints():
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id != "print", path
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute):
                is_legacy = node.value.attr == "random" and node.attr in {
                    "seed",
                    "rand",
                    "randn",
                    "normal",
                    "choice",
                }
                assert not is_legacy, f"{path} uses numpy's global generator"
