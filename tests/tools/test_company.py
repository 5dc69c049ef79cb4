"""Who runs beside whom: the files that are named exist, and none that bears company judges a time."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from company import LONGEST, PATIENT, bears_company, rank_of

TOP = Path(__file__).resolve().parents[2]
TOO_LATE = re.compile(r"assert .*(?:monotonic|perf_counter)(?:_ns)?\(\) - \w+\)? *(?:\* *\S+ )?<")


def judges_of_times(text: str) -> list[str]:
    """Tests that fail if something took too long, but for those marked to run otherwise."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            marks = " ".join(map(ast.unparse, node.decorator_list))
            if TOO_LATE.search(ast.unparse(node)) and not re.search(r"mark\.(alone|timing|slow)\b", marks):
                found.append(node.name)
    return found


@pytest.mark.parametrize("file", sorted({*PATIENT, *LONGEST}))
def test_a_file_that_is_named_exists_and_bears_company(file: str) -> None:
    assert (TOP / file).exists()
    assert bears_company(f"{file}::test_it")


@pytest.mark.parametrize("file", sorted(PATIENT))
def test_none_of_them_judges_a_time(file: str) -> None:
    assert judges_of_times((TOP / file).read_text()) == []


@pytest.mark.parametrize(
    ("line", "judges"),
    [
        ("assert time.monotonic() - began < 1.0", True),
        ("assert 0.1 < time.perf_counter() - began < 2.0", True),
        ("assert (time.monotonic_ns() - began) * 1e-9 < 0.15", True),
        ("assert time.monotonic() - began > 0.2", False),
        ("assert time.monotonic() < until", False),
    ],
)
def test_a_judge_of_times_is_seen(line: str, judges: bool) -> None:
    test = f"def test_it():\n    {line}\n"
    assert judges_of_times(test) == (["test_it"] if judges else [])
    assert judges_of_times(f"@pytest.mark.alone\n{test}") == []


def test_whatever_runs_a_node_is_alone_unless_it_is_named() -> None:
    assert not bears_company("tests/hilnode/node/test_watchdog.py::test_kill_9")
    assert bears_company("tests/plant/constraint/test_joints.py::test_it")


def test_the_longest_begin_first() -> None:
    assert (
        rank_of(f"{LONGEST[0]}::test_it")
        < rank_of(f"{LONGEST[1]}::test_it")
        < rank_of("tests/plant/constraint/test_joints.py")
    )
