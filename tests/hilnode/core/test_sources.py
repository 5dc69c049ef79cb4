"""The digest that names a cache: it must change with every file a kernel can depend on, and with no other."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numba
import pytest

from hilnode.core import jit
from hilnode.core.sources import EVERYWHERE, PACKAGES, Sources

TREE = {
    "hilnode/__init__.py": "",
    "hilnode/core/jit.py": "def kernel(f): return f\n",
    "hilnode/core/struct.py": "def viewer(r): return r\n",
    "hilnode/core/limits.py": "SLOTS = 32\n",
    "hilnode/cli/main.py": "from hilnode.tick.loop import run\nprint('cold')\n",
    "hilnode/report.py": "import hilnode.core.limits\n",
    "hilnode/tick/__init__.py": "",
    "hilnode/tick/loop.py": (
        "from hilnode.core.jit import kernel\nfrom hilnode.tick.codes import A\n\n@kernel\ndef run(): return A\n"
    ),
    "hilnode/tick/codes.py": "from hilnode.core.limits import SLOTS\nA = SLOTS\n",
    "plant/__init__.py": "",
    "plant/pendulum.py": (
        "from plant.rods import (\n    mass,\n    length,\n)\n@step_function\ndef step(): return mass\n"
    ),
    "plant/rods/__init__.py": "from plant.rods.uniform import mass, length\n",
    "plant/rods/uniform.py": "mass = length = 1.0\n",
    "plant/notes.py": "TEXT = 'nothing compiled here'\n",
    "drivers/__init__.py": "",
    "drivers/udp/driver.py": "import socket\n",
    "bridge/__init__.py": "",
    "bridge/pack.py": "from bridge import words\n@kernel\ndef pack(): return words.N\n",
    "bridge/words.py": "N = 3\n",
}
HOT = [
    "hilnode/core/jit.py",
    "hilnode/core/limits.py",
    "hilnode/tick/codes.py",
    "hilnode/tick/loop.py",
    "plant/pendulum.py",
    "plant/rods/__init__.py",
    "plant/rods/uniform.py",
    "bridge/pack.py",
    "bridge/words.py",
]
COLD = ["hilnode/cli/main.py", "hilnode/report.py", "plant/notes.py", "drivers/udp/driver.py"]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A small checkout."""
    for name, text in TREE.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def digest(tree: Path) -> str:
    return Sources(tree).digest_of_all()


def test_kernel_files_and_all_they_import_are_found(tree):
    sources = Sources(tree)
    reached = sources.reached_from(set(sources.with_kernels()))
    found = {path.relative_to(tree).as_posix() for path in reached}
    assert set(HOT) <= found
    assert not found & set(COLD)


@pytest.mark.parametrize("name", HOT)
def test_digest_changes_with_a_file_that_kernels_need(tree, name):
    before = digest(tree)
    with (tree / name).open("a") as file:
        file.write("# \n")
    assert digest(tree) != before


@pytest.mark.parametrize("name", COLD)
def test_digest_stays_when_a_cold_file_changes(tree, name):
    before = digest(tree)
    with (tree / name).open("a") as file:
        file.write("# \n")
    assert digest(tree) == before


def test_digest_stays_when_only_the_time_of_a_file_changes(tree):
    before = digest(tree)
    os.utime(tree / "hilnode/core/limits.py", (1e9, 1e9))
    assert digest(tree) == before


def test_digest_changes_with_a_new_kernel_file(tree):
    before = digest(tree)
    (tree / "plant/tire.py").write_text("@inline\ndef slip(): return 0\n")
    assert digest(tree) != before


def test_digest_changes_with_the_compiler(tree, monkeypatch):
    before = digest(tree)
    monkeypatch.setattr(numba, "__version__", "99.0")
    assert digest(tree) != before


def test_a_text_that_only_names_a_decorator_is_cold(tree):
    before = digest(tree)
    (tree / "hilnode/doc.py").write_text('TEXT = "write @kernel above it"\n')
    assert digest(tree) == before


SPELLINGS = {
    "attribute decorator": "from hilnode import jit\nimport plant.extra\n@jit.kernel\ndef f(): return plant.extra.X\n",
    "call instead of decorator": "from plant.extra import X\ndef f(): return X\ng = kernel(f)\n",
    "over two lines": "from plant \\\n    import extra\n@kernel\ndef f(): return extra.X\n",
}
KNOWN = {
    "plain": "from plant.extra import X\n@kernel\ndef f(): return X\n",
    "renamed": "import plant.extra as e\n@kernel\ndef f(): return e.X\n",
    "from the package": "from plant import notes, extra\n@kernel\ndef f(): return extra.X\n",
    "late": "@kernel\ndef f(): return 0\ndef g():\n    from plant.extra import X\n",
    "with arguments": "from plant.extra import X\n@numba.njit(nogil=True)\ndef f(): return X\n",
}


def notices(tree: Path, text: str) -> bool:
    """Whether the digest follows a file that a kernel spelt like `text` imports."""
    (tree / "plant/extra.py").write_text("X = 1\n")
    (tree / "plant/user.py").write_text(text)
    before = digest(tree)
    (tree / "plant/extra.py").write_text("X = 2\n")
    return digest(tree) != before


@pytest.mark.parametrize("how", KNOWN)
def test_import_is_followed(tree, how):
    assert notices(tree, KNOWN[how])


@pytest.mark.parametrize("how", SPELLINGS)
def test_import_in_another_spelling_is_followed(tree, how):
    assert notices(tree, SPELLINGS[how])


MAKERS = {
    "kernel",
    "inline",
    "intrinsic",
    "step_function",
    "njit",
    "jit",
    "cfunc",
    "overload",
    "vectorize",
    "guvectorize",
}


def named(node: ast.expr) -> str:
    """The last name of `a`, `m.a`, `a(...)` and `m.a(...)`."""
    node = node.func if isinstance(node, ast.Call) else node
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


@cache
def lazy_homes(package: Path) -> dict[str, str]:
    """Public names of a package to their modules, from the table that is used at run time."""
    for node in ast.walk(ast.parse(package.read_text("utf-8"))) if package.is_file() else ():
        if isinstance(node, ast.Call) and named(node) == "lazy_names":
            return {name: module for module, names in ast.literal_eval(node.args[1]).items() for name in names.split()}
    return {}


def imported(top: Path, path: Path, tree: ast.Module) -> set[Path]:
    """Files below `top` that a module may import, whatever the spelling; of a lazy package those of the names asked."""
    found: set[Path] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            here = path.relative_to(top).with_suffix("").parts[: -node.level] if node.level else ()
            base = ".".join([*here, *([node.module] if node.module else [])])
            homes = lazy_homes(top.joinpath(*base.split("."), "__init__.py"))
            modules = [homes.get(alias.name, f"{base}.{alias.name}") for alias in node.names]
            modules += [] if homes else [base]
        else:
            continue
        for module in modules:
            place = top.joinpath(*module.split("."))
            found |= {f for f in (place.with_suffix(".py"), place / "__init__.py") if f.is_file()}
    return found


def test_nothing_of_this_very_tree_is_missed():
    """The same question asked of the syntax tree instead of by pattern."""
    top = jit.SOURCES.top
    files = {path for package in PACKAGES for path in (top / package).rglob("*.py")}
    parsed = {path: ast.parse(path.read_text("utf-8")) for path in files}
    hot = [
        path
        for path, tree in parsed.items()
        if any(
            named(d) in MAKERS
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef)
            for d in node.decorator_list
        )
    ]
    found: set[Path] = set()
    while hot:
        path = hot.pop()
        if path not in found and path in parsed:
            found.add(path)
            hot += imported(top, path, parsed[path])
    missed = found - Sources(top).reached_from(set(Sources(top).with_kernels()))
    assert len(found) > 15
    assert missed == set()


LAZY = """
if TYPE_CHECKING:
    from plant.rods.uniform import mass as mass
    from plant.notes import TEXT as TEXT
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__, {"plant.rods.uniform": "mass", "plant.notes": "TEXT"})
"""


@pytest.mark.parametrize(
    ("asked", "needs_notes"),
    [
        ("from plant import mass", False),
        ("from plant import (\n    mass,  # TEXT\n)", False),
        ("from plant import mass as m, TEXT", True),
        ("from plant import mass, nothing", True),  # not known: whatever the package has
        ("import plant", True),
    ],
)
def test_of_a_lazy_package_what_is_asked_for_is_followed(tree: Path, asked: str, needs_notes: bool) -> None:
    (tree / "plant/__init__.py").write_text(LAZY)
    (tree / "plant/user.py").write_text(f"{asked}\n@kernel\ndef f(): return mass\n")

    def moved(name: str) -> bool:
        before = Sources(tree).digest(tree / "plant/user.py")
        with (tree / name).open("a") as file:
            file.write("# \n")
        return Sources(tree).digest(tree / "plant/user.py") != before

    assert moved("plant/rods/uniform.py")
    assert moved("plant/notes.py") == needs_notes


def test_a_lazy_name_that_lives_in_a_package_is_followed(tree: Path) -> None:
    """`plant.rods` is a folder: there is no plant/rods.py that could stand for the name."""
    (tree / "plant/__init__.py").write_text(LAZY.replace("plant.rods.uniform", "plant.rods"))
    (tree / "plant/user.py").write_text("from plant import mass\n@kernel\ndef f(): return mass\n")
    reached = Sources(tree).reached_from({tree / "plant/user.py"})
    assert tree / "plant/rods/uniform.py" in reached


def test_a_plant_of_ones_own_does_not_hang_on_the_engine(tmp_path: Path) -> None:
    """As docs/write-a-plant.md tells: an edit of the engine must not compile it anew."""
    plant = tmp_path / "mine.py"
    plant.write_text("from hilnode.core import Signal, kernel\nfrom plant import OK, Plant, Task, step_function\n")
    assert len(jit.SOURCES.reached_from({plant})) < 10


def test_the_digest_of_a_file_follows_what_it_reaches_and_nothing_else(tree):
    def digests() -> dict[str, str]:
        sources = Sources(tree)
        return {p.relative_to(tree).as_posix(): sources.digest(p) for p in sources.with_kernels()}

    def moved(name: str) -> set[str]:
        before = digests()
        with (tree / name).open("a") as file:
            file.write("# \n")
        return {path for path, digest in digests().items() if digest != before[path]}

    assert moved("plant/rods/uniform.py") == {"plant/pendulum.py"}
    assert moved("hilnode/core/limits.py") == {"hilnode/tick/loop.py"}
    assert moved("bridge/words.py") == {"bridge/pack.py"}
    assert moved("plant/notes.py") == set()
    assert moved("hilnode/core/struct.py") == {"plant/pendulum.py", "hilnode/tick/loop.py", "bridge/pack.py"}


def names_in(code: CodeType) -> set[str]:
    """Names that a function and those within it may look up."""
    return set(code.co_names).union(*(names_in(c) for c in code.co_consts if isinstance(c, CodeType)), set())


def used_by(function: FunctionType) -> Iterator[Any]:
    """What a kernel finds by name, in its module, in modules it names, and in what it closes over."""
    names = names_in(function.__code__)
    for name in names:
        value = function.__globals__.get(name)
        yield value
        if isinstance(value, ModuleType):
            yield from (getattr(value, n, None) for n in names)
    for cell in function.__closure__ or ():
        yield cell.cell_contents


def home_of(value: Any) -> str:
    """The module that a kernel, an intrinsic, a class or a function comes from."""
    value = getattr(value, "py_func", None) or getattr(value, "_defn", None) or value
    return getattr(value, "__module__", None) or ""


def test_whatever_a_kernel_calls_is_in_the_digest_of_its_file():
    """Asked of the functions themselves: an import that no pattern sees would show up here."""
    top, checked = jit.SOURCES.top, 0
    for path in jit.SOURCES.with_kernels():
        module = import_module(".".join(path.relative_to(top).with_suffix("").parts))
        reached = jit.SOURCES.reached_from({path, *(top / name for name in EVERYWHERE)})
        for kernel in vars(module).values():
            function = getattr(kernel, "py_func", None)
            if function is None or function.__module__ != module.__name__:
                continue
            for value in used_by(function):
                home = home_of(value)
                if home.split(".")[0] in PACKAGES:
                    checked += 1
                    assert Path(str(import_module(home).__file__)).resolve() in reached, f"{home} in {path}"
    assert checked > 1000
