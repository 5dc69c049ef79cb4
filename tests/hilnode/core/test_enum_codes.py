"""Codes stand once: none is copied under its name, none is compared with as a bare number."""

from __future__ import annotations

import ast
import operator
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[3]
SOURCES = [f for room in ("hilnode", "plant", "drivers", "bridge") for f in sorted((TOP / room).rglob("*.py"))]
ENUMS = {"IntEnum", "IntFlag", "Enum", "Flag"}
SUMS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.LShift: operator.lshift}


def number(node: ast.expr) -> int | None:
    """The value of an expression of literal whole numbers: `5`, `-1`, `1 << 4`, `int(5)`."""
    match node:
        case ast.Constant(value=int() as value) if type(value) is int:
            return value
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            value = number(operand)
            return None if value is None else -value
        case ast.BinOp(left=left, op=op, right=right) if type(op) in SUMS:
            a, b = number(left), number(right)
            return None if a is None or b is None else SUMS[type(op)](a, b)
        case ast.Call(func=ast.Name(id="int"), args=[only], keywords=[]):
            return number(only)
    return None


def assigned(statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """Names that a statement gives values, one by one: `A = 1`, `A: int = 1`, `A, B = 1, 2`, `[A, B] = [1, 2]`."""
    if isinstance(statement, ast.AnnAssign) and statement.value:
        targets, value = [statement.target], statement.value
    elif isinstance(statement, ast.Assign):
        targets, value = statement.targets, statement.value
    else:
        return
    for target in targets:
        pairs = [(target, value)]
        if (
            isinstance(target, ast.Tuple | ast.List)
            and isinstance(value, ast.Tuple | ast.List)
            and len(target.elts) == len(value.elts)
        ):
            pairs = list(zip(target.elts, value.elts, strict=True))
        yield from ((name.id, given) for name, given in pairs if isinstance(name, ast.Name))


def is_enum(node: ast.AST) -> bool:
    """`class Kind(IntEnum)`, `class Kind(enum.IntEnum)`."""
    return isinstance(node, ast.ClassDef) and any(ast.unparse(b).rpartition(".")[2] in ENUMS for b in node.bases)


def members(enum: ast.ClassDef) -> Iterator[tuple[str, int]]:
    """Members of an enum with their numbers; `auto()` counts on."""
    last = 0
    for statement in enum.body:
        for name, given in assigned(statement):
            value = last + 1 if ast.unparse(given) in ("auto()", "enum.auto()") else number(given)
            if value is not None:
                last = value
                yield name, value


def copies(trees: dict[str, ast.Module]) -> list[str]:
    """Names of a module, class or function that have the name and the number of a member of some enum."""
    known = defaultdict(set)
    for tree in trees.values():
        for enum in filter(is_enum, ast.walk(tree)):
            for name, value in members(enum):
                known[name].add(value)
    found = []
    for place, tree in trees.items():
        own = {id(s) for e in ast.walk(tree) if isinstance(e, ast.ClassDef) and is_enum(e) for s in e.body}
        for statement in ast.walk(tree):
            if isinstance(statement, ast.stmt) and id(statement) not in own:
                given = ((name, number(value)) for name, value in assigned(statement))
                found += [f"{place}: {name} = {value}" for name, value in given if value in known.get(name, ())]
    return found


CODED = {"kind", "law", "turning", "stepper", "solver"}
"""Fields of structs that hold a member of an enum."""


def compared(tree: ast.Module) -> list[str]:
    """Comparisons of such a field with a literal number, as `joint.kind[k] == 5`."""

    def field(node: ast.expr) -> str:
        node = node.value if isinstance(node, ast.Subscript) else node
        return node.attr if isinstance(node, ast.Attribute) else ""

    return [
        ast.unparse(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare)
        and any(field(side) in CODED for side in (node.left, *node.comparators))
        and any(number(side) is not None for side in (node.left, *node.comparators))
    ]


def test_no_code_is_compared_with_a_number() -> None:
    assert {str(f): found for f in SOURCES if (found := compared(ast.parse(f.read_text("utf-8"))))} == {}


def test_a_comparison_with_a_number_is_found() -> None:
    assert len(compared(ast.parse("a.kind[k] == 5\n5 != a.law\na.kind[k] == CONTACT\na.size[k] == 5\n"))) == 2


def test_no_module_copies_a_code() -> None:
    trees = {f.relative_to(TOP).as_posix(): ast.parse(f.read_text("utf-8")) for f in SOURCES}
    assert len(trees) > 400
    assert copies(trees) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("RED = 1\n", ["b: RED = 1"]),
        ("RED, BLUE = 1, 2\n", ["b: RED = 1", "b: BLUE = 2"]),
        ("[RED, BLUE] = [1, 2]\n", ["b: RED = 1", "b: BLUE = 2"]),
        ("RED: int = 1\n", ["b: RED = 1"]),
        ("RED = int(1)\n", ["b: RED = 1"]),
        ("BLUE = 1 + 1\n", ["b: BLUE = 2"]),
        ("BIT = 1 << 4\n", ["b: BIT = 16"]),
        ("FIRST, SECOND = 1, 2\n", ["b: FIRST = 1", "b: SECOND = 2"]),
        ("class A:\n    RED = 1\n", ["b: RED = 1"]),
        ("def f():\n    RED = 1\n", ["b: RED = 1"]),
        ("RED = 7\n", []),
        ("RED = int(Colour.RED)\n", []),
    ],
)
def test_a_copy_is_found(text: str, found: list[str]) -> None:
    enums = """
class Colour(IntEnum):
    RED = 1
    BLUE = 2

class Flags(enum.IntFlag):
    BIT = 1 << 4

class Counted(Enum):
    FIRST = auto()
    SECOND = auto()
"""
    assert copies({"a": ast.parse(enums), "b": ast.parse(text)}) == found
