"""Codes stand once: no module repeats a member of an enum as a number of its own."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[3]
SOURCES = [f for room in ("hilnode", "plant", "drivers", "bridge") for f in sorted((TOP / room).rglob("*.py"))]
ENUMS = {"IntEnum", "IntFlag", "Enum", "Flag"}


def number(node: ast.expr) -> int | None:
    """The value of a literal whole number."""
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None


def assigned(statement: ast.stmt) -> Iterator[tuple[str, int]]:
    """Names that a statement gives literal whole numbers: `A = 1`, `A: int = 1`, `A, B = 1, 2`."""
    if isinstance(statement, ast.AnnAssign) and statement.value:
        targets, value = [statement.target], statement.value
    elif isinstance(statement, ast.Assign):
        targets, value = statement.targets, statement.value
    else:
        return
    for target in targets:
        pairs = [(target, value)]
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            pairs = list(zip(target.elts, value.elts, strict=True))
        for name, given in pairs:
            if isinstance(name, ast.Name) and (found := number(given)) is not None:
                yield name.id, found


def members(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Members of the enums of a module, with their numbers."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and any(isinstance(b, ast.Name) and b.id in ENUMS for b in node.bases):
            for statement in node.body:
                yield from assigned(statement)


def copies(trees: dict[str, ast.Module]) -> list[str]:
    """Constants at the top of a module that have the name and the number of a member of some enum."""
    known = defaultdict(set)
    for tree in trees.values():
        for name, value in members(tree):
            known[name].add(value)
    return [
        f"{place}: {name} = {value}"
        for place, tree in trees.items()
        for statement in tree.body
        for name, value in assigned(statement)
        if value in known.get(name, ())
    ]


def test_no_module_copies_a_code() -> None:
    trees = {f.relative_to(TOP).as_posix(): ast.parse(f.read_text("utf-8")) for f in SOURCES}
    assert len(trees) > 400
    assert copies(trees) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("RED = 1\n", ["b: RED = 1"]),
        ("RED, BLUE = 1, 2\n", ["b: RED = 1", "b: BLUE = 2"]),
        ("RED: int = 1\n", ["b: RED = 1"]),
        ("RED = 7\n", []),
        ("RED = int(Colour.RED)\n", []),
    ],
)
def test_a_copy_is_found(text: str, found: list[str]) -> None:
    enum = "class Colour(IntEnum):\n    RED = 1\n    BLUE = 2\n"
    assert copies({"a": ast.parse(enum), "b": ast.parse(text)}) == found
