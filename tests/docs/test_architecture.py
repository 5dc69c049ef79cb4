"""ARCHITECTURE.md and CONTRIBUTING.md name what is there: every path, every room, every function of the walk."""

from __future__ import annotations

import ast
import re
import subprocess
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
from doc_blocks import PAGES, TOP, blocks_of, prose_of

PACKAGES = ("hilnode", "plant", "drivers", "bridge")
FOLDERS = (*PACKAGES, "configs", "tests", "tools", "docs")
ARCHITECTURE, CONTRIBUTING = TOP / "ARCHITECTURE.md", TOP / "CONTRIBUTING.md"
MOVED = TOP / "docs" / "moved.md"
PLACE = re.compile(rf"`(?:\./)?((?:{'|'.join(FOLDERS)})/[\w./*-]*)(?:::\w+)?`")
FILE = re.compile(r"`(?:\w+/)*(\w+\.(?:py|js|md|toml|json|h))`")
MODULE = re.compile(rf"`((?:{'|'.join(PACKAGES)})(?:\.\w+)+)`")
PUBLIC = ("plant", "drivers", "bridge", "hilnode.core", "hilnode.config", "hilnode.node", "hilnode.shared")
"""Rooms that documentation may import from."""
ROWS_MOVED = 291
"""Modules that the regrouping has moved: the past does not change, so no row may go."""


@pytest.mark.parametrize("page", [ARCHITECTURE, CONTRIBUTING], ids=lambda page: page.stem)
def test_every_path_is_there(page: Path) -> None:
    named = PLACE.findall(page.read_text("utf-8"))
    assert len(named) > 30
    assert [place for place in named if not list(TOP.glob(place.rstrip("/")))] == []
    here = subprocess.run(["git", "ls-files"], cwd=TOP, capture_output=True, text=True, check=True).stdout
    files = {Path(line).name for line in here.splitlines()}
    assert [file for file in FILE.findall(page.read_text("utf-8")) if file not in files] == []
    for name in MODULE.findall(page.read_text("utf-8")):
        room, _, last = name.rpartition(".")
        place = TOP / name.replace(".", "/")
        assert place.is_dir() or place.with_suffix(".py").exists() or hasattr(import_module(room), last), name


def test_every_name_of_a_recipe_is_there() -> None:
    """A single word in backquotes that looks like a name stands somewhere in the sources."""
    named = set(re.findall(r"`([A-Za-z_]\w+)`", CONTRIBUTING.read_text("utf-8")))
    assert len(named) > 50
    listed = subprocess.run(["git", "ls-files"], cwd=TOP, capture_output=True, text=True, check=True).stdout
    kinds = (".py", ".js", ".toml", ".ini", ".css", "Makefile")
    sources = [TOP / f for f in listed.split() if f.endswith(kinds)]
    known = set(re.findall(r"\w+", " ".join(f.read_text("utf-8") for f in sources if "static" not in f.parts)))
    assert sorted(named - known) == []


def test_no_room_is_left_out() -> None:
    text = ARCHITECTURE.read_text("utf-8")
    rooms = [
        folder.relative_to(TOP).as_posix()
        for package in PACKAGES
        for folder in (TOP / package).iterdir()
        if (folder / "__init__.py").exists()
    ]
    assert len(rooms) > 30
    assert [room for room in rooms if not re.search(rf"\b{room}\b", text)] == []
    assert [folder for folder in FOLDERS if not re.search(rf"`{folder}[/`]", text)] == []


def test_every_folder_of_code_is_a_package() -> None:
    """One without `__init__.py` would be seen neither by the check of imports nor by the test above."""
    folders = {f.parent for package in PACKAGES for f in (TOP / package).rglob("*.py") if "node_modules" not in f.parts}
    assert len(folders) > 40
    assert [f.relative_to(TOP).as_posix() for f in folders if not (f / "__init__.py").exists()] == []


def test_architecture_is_one_page() -> None:
    assert len(ARCHITECTURE.read_text("utf-8").splitlines()) <= 250


def test_the_walk_of_a_value_goes_through_functions_that_exist() -> None:
    hops = re.findall(r"^\| \d+ \| `([\w/.]+\.py)` \| `(\w+)` \|", ARCHITECTURE.read_text("utf-8"), re.MULTILINE)
    assert len(hops) >= 10
    for file, name in hops:
        tree = ast.parse((TOP / file).read_text("utf-8"))
        known = {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)}
        assert name in known, f"{file} has no {name}"


def test_few_files_at_a_root_and_none_too_long() -> None:
    count = {p: len([f for f in (TOP / p).glob("*.py") if f.name != "__init__.py"]) for p in PACKAGES}
    assert count == {"plant": 6, "hilnode": 0, "drivers": 12, "bridge": 0}
    files = [f for folder in (*PACKAGES, "tools") for f in (TOP / folder).rglob("*.py")]
    assert [f.name for f in files if len(f.read_text("utf-8").splitlines()) > 500] == []


def test_every_module_moved_to_where_the_page_says() -> None:
    rows = re.findall(r"^\| `([\w.]+)` \| `([\w.]+)` \|", MOVED.read_text("utf-8"), re.MULTILINE)
    assert len(rows) == len(dict(rows)) == ROWS_MOVED
    for old, new in rows:
        place = TOP / new.replace(".", "/")
        assert place.with_suffix(".py").exists() or (place / "__init__.py").exists(), f"{old} -> {new}"


def test_every_name_moved_to_where_the_page_says() -> None:
    """On the right of a row: `A`, `B` of `room.module`; or `from room import A, B`."""
    seen = 0
    for cell in re.findall(r"^\|[^|]+\| (.+) \|$", MOVED.read_text("utf-8"), re.MULTILINE):
        named = [(module, names) for names, module in re.findall(r"((?:`\w+`, )*`\w+`) of `([\w.]+)`", cell)]
        named += re.findall(r"from ([\w.]+) import ([\w, ]+)", cell)
        for module, names in named:
            for name in re.findall(r"\w+", names):
                seen += 1
                assert hasattr(import_module(module), name) or find_spec(f"{module}.{name}"), f"{module} has no {name}"
    assert seen > 60


def test_documentation_imports_from_the_rooms_only() -> None:
    seen = 0
    for page in PAGES:
        for block in blocks_of(page):
            if not block.info.startswith("python"):
                continue
            for node in ast.walk(ast.parse(block.text)):
                if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in PACKAGES:
                    seen += 1
                    assert node.module in PUBLIC, f"{block.place}: from {node.module} import ..."
    assert seen > 10


@pytest.mark.parametrize("room", [r for r in PUBLIC if r != "hilnode.shared"])
def test_public_names_are_those_listed(room: str) -> None:
    module = import_module(room)
    typed = {  # what mypy is told beside the names that are looked up at run time
        alias.name: node.module
        for block in ast.walk(ast.parse(Path(str(module.__file__)).read_text("utf-8")))
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }
    assert sorted(typed) == module.__all__
    for name, home in typed.items():
        assert getattr(module, name) is getattr(import_module(home), name)
    assert set(module.__all__) <= set(dir(module))
    with pytest.raises(AttributeError, match=f"'{room}' has no attribute 'nothing' \\(public names: "):
        module.nothing  # noqa: B018
    name = max(module.__all__, key=len)
    with pytest.raises(AttributeError, match=f"did you mean '{name}'"):
        getattr(module, name + "x")
    assert f"`{room}`" in prose_of(ARCHITECTURE) or room.replace(".", "/") in prose_of(ARCHITECTURE)
