"""The digest that names the cache: it must change with every file a kernel can depend on, and with no other."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import numba
import numpy as np
import pytest

from hilnode import jit

TREE = {
    "hilnode/__init__.py": "",
    "hilnode/jit.py": "def kernel(f): return f\n",
    "hilnode/limits.py": "SLOTS = 32\n",
    "hilnode/cli.py": "from hilnode.tick.loop import run\nprint('cold')\n",
    "hilnode/report.py": "import hilnode.limits\n",
    "hilnode/tick/__init__.py": "",
    "hilnode/tick/loop.py": (
        "from hilnode.jit import kernel\nfrom hilnode.tick.codes import A\n\n@kernel\ndef run(): return A\n"
    ),
    "hilnode/tick/codes.py": "from hilnode.limits import SLOTS\nA = SLOTS\n",
    "plant/__init__.py": "",
    "plant/pendulum.py": (
        "from plant.rods import (\n    mass,\n    length,\n)\n@step_function\ndef step(): return mass\n"
    ),
    "plant/rods/__init__.py": "from plant.rods.uniform import mass, length\n",
    "plant/rods/uniform.py": "mass = length = 1.0\n",
    "plant/notes.py": "TEXT = 'nothing compiled here'\n",
    "drivers/__init__.py": "",
    "drivers/udp.py": "import socket\n",
    "bridge/__init__.py": "",
    "bridge/pack.py": "from bridge import words\n@kernel\ndef pack(): return words.N\n",
    "bridge/words.py": "N = 3\n",
}
HOT = [
    "hilnode/jit.py",
    "hilnode/limits.py",
    "hilnode/tick/codes.py",
    "hilnode/tick/loop.py",
    "plant/pendulum.py",
    "plant/rods/__init__.py",
    "plant/rods/uniform.py",
    "bridge/pack.py",
    "bridge/words.py",
]
COLD = ["hilnode/cli.py", "hilnode/report.py", "plant/notes.py", "drivers/udp.py"]


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small checkout, with `hilnode.jit` believing that it lies there."""
    for name, text in TREE.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(jit, "__file__", str(tmp_path / "hilnode" / "jit.py"))
    return tmp_path


def test_kernel_files_and_all_they_import_are_found(tree):
    found = {path.relative_to(tree).as_posix() for path in jit._kernel_sources()}
    assert set(HOT) <= found
    assert not found & set(COLD)


@pytest.mark.parametrize("name", HOT)
def test_digest_changes_with_a_file_that_kernels_need(tree, name):
    before = jit._digest()
    with (tree / name).open("a") as file:
        file.write("# \n")
    assert jit._digest() != before


@pytest.mark.parametrize("name", COLD)
def test_digest_stays_when_a_cold_file_changes(tree, name):
    before = jit._digest()
    with (tree / name).open("a") as file:
        file.write("# \n")
    assert jit._digest() == before


def test_digest_stays_when_only_the_time_of_a_file_changes(tree):
    before = jit._digest()
    os.utime(tree / "hilnode/limits.py", (1e9, 1e9))
    assert jit._digest() == before


def test_digest_changes_with_a_new_kernel_file(tree):
    before = jit._digest()
    (tree / "plant/tire.py").write_text("@inline\ndef slip(): return 0\n")
    assert jit._digest() != before


def test_digest_changes_with_the_compiler(tree, monkeypatch):
    before = jit._digest()
    monkeypatch.setattr(numba, "__version__", "99.0")
    assert jit._digest() != before


def test_a_text_that_only_names_a_decorator_is_cold(tree):
    before = jit._digest()
    (tree / "hilnode/doc.py").write_text('TEXT = "write @kernel above it"\n')
    assert jit._digest() == before


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
    before = jit._digest()
    (tree / "plant/extra.py").write_text("X = 2\n")
    return jit._digest() != before


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


def imported(top: Path, path: Path, tree: ast.Module) -> set[Path]:
    """Files below `top` that a module may import, whatever the spelling."""
    found: set[Path] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            here = path.relative_to(top).with_suffix("").parts[: -node.level] if node.level else ()
            base = ".".join([*here, *([node.module] if node.module else [])])
            modules = [base, *(f"{base}.{alias.name}" for alias in node.names)]
        else:
            continue
        for module in modules:
            place = top.joinpath(*module.split("."))
            found |= {f for f in (place.with_suffix(".py"), place / "__init__.py") if f.is_file()}
    return found


def test_nothing_of_this_very_tree_is_missed():
    """The same question asked of the syntax tree instead of by pattern."""
    top = Path(jit.__file__).resolve().parent.parent
    files = {path for package in jit.PACKAGES for path in (top / package).rglob("*.py")}
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
    missed = found - set(jit._kernel_sources())
    assert len(found) > 15
    assert missed == set()


def test_cache_directory_is_named_by_the_digest_and_old_ones_go(tree, monkeypatch):
    home = tree / "cache"
    monkeypatch.setenv("HILNODE_CACHE", str(home))
    monkeypatch.setattr(numba.config, "CACHE_DIR", numba.config.CACHE_DIR)
    made = []
    for k in range(jit.KEEP + 3):
        (tree / "hilnode/limits.py").write_text(f"SLOTS = {k}\n")
        made.append(jit._open_cache())
        os.utime(made[-1], (1e9 + k, 1e9 + k))
        assert str(made[-1]) == numba.config.CACHE_DIR
    assert made[-1].name == jit._digest()
    assert sorted(home.iterdir()) == sorted(made[-jit.KEEP - 1 :])


def test_kernel_runs_without_the_gil_and_divides_like_c():
    @jit.kernel
    def divide(a, b):
        return a / b

    assert divide(1.0, 0.0) == np.inf
    assert np.isnan(divide(0.0, 0.0))
    assert divide.targetoptions["nogil"]
    assert "fastmath" not in divide.targetoptions or not divide.targetoptions["fastmath"]


def test_warm_up_says_what_it_compiles_once(tmp_path, monkeypatch):
    monkeypatch.setattr(jit, "CACHE", tmp_path)
    said: list[str] = []
    calls: list[str] = []
    jobs = [("the tick", lambda: calls.append("tick")), ("the plant", lambda: calls.append("plant"))]
    assert not jit.is_warm("node")
    jit.warm_up("node", jobs, said.append)
    assert calls == ["tick", "plant"]
    assert len(said) == 3
    assert "the tick (1/2" in said[0]
    assert jit.is_warm("node")
    assert not jit.is_warm("plant")
    said.clear()
    jit.warm_up("node", jobs, said.append)
    assert (calls, said) == (["tick", "plant"] * 2, [])
