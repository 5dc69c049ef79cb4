"""How kernels are compiled and kept."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from hilnode.core import jit


def test_no_more_than_a_few_versions_are_kept(tmp_path):
    made = []
    for k in range(jit.KEEP + 3):
        made.append(jit._newest(tmp_path, f"digest{k}"))
        os.utime(made[-1], (1e9 + k, 1e9 + k))
    assert sorted(tmp_path.iterdir()) == sorted(made[-jit.KEEP - 1 :])


CALLEE = """
from typing import NamedTuple
import numpy as np
from hilnode.core.jit import kernel
from hilnode.core.struct import F1, Struct, viewer

class Inner(NamedTuple):
    {fields}

class Outer(NamedTuple):
    inner: Inner
    size: int

view = viewer(Outer)

@kernel
def weigh(x):
    return {weight} * x
"""
CALLER = """
import sys
import numpy as np
from hilnode.core.jit import kernel
from plant.reader import first, first_by_value
from plant.callee import Inner, Outer, Struct, view, weigh

@kernel
def read(address):
    return weigh(first(view(address)))

inner = Inner(left=np.array([3.0]), right=np.array([5.0]))
print(read(Struct(Outer(inner, 1)).address), first_by_value(inner))
"""
READER = """
from hilnode.core.jit import kernel

@kernel
def first(outer):
    return outer.inner.left[0]

@kernel
def first_by_value(inner):
    return inner.left[0]
"""


def run_in(tree: Path, fields: str, weight: float) -> list[str]:
    """What the caller prints in a copy of the package with this callee; everything cached in one place."""
    (tree / "plant" / "callee.py").write_text(CALLEE.format(fields="\n    ".join(fields.split(";")), weight=weight))
    done = subprocess.run(
        [sys.executable, "-m", "plant.caller"],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree), "HILNODE_CACHE": str(tree / "cache")},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


def test_a_cached_kernel_is_never_stale(tmp_path):
    """A change in a file that is called, and of the layout of a record that is only passed through."""
    (tmp_path / "hilnode" / "core").mkdir(parents=True)
    (tmp_path / "plant").mkdir()
    for name in ("__init__", "core/__init__", "core/jit", "core/lazy", "core/sources", "core/struct"):
        (tmp_path / "hilnode" / f"{name}.py").write_text((jit.SOURCES.top / "hilnode" / f"{name}.py").read_text())
    (tmp_path / "plant" / "__init__.py").write_text("")
    (tmp_path / "plant" / "caller.py").write_text(CALLER)
    (tmp_path / "plant" / "reader.py").write_text(READER)
    assert run_in(tmp_path, "left: F1;right: F1", 2.0) == ["6.0", "3.0"]
    assert run_in(tmp_path, "left: F1;right: F1", 10.0) == ["30.0", "3.0"]
    assert run_in(tmp_path, "right: F1;left: F1", 10.0) == ["30.0", "3.0"]
    reader = tmp_path / "cache" / "plant.reader"
    assert len(list(reader.iterdir())) == 1  # its own file has not changed, so its kernels keep their place


def test_kernel_runs_without_the_gil_and_divides_like_c():
    @jit.kernel
    def divide(a, b):
        return a / b

    assert divide(1.0, 0.0) == np.inf
    assert np.isnan(divide(0.0, 0.0))
    assert divide.targetoptions["nogil"]
    assert "fastmath" not in divide.targetoptions or not divide.targetoptions["fastmath"]


def test_warm_up_says_what_it_compiles_once(tmp_path, monkeypatch):
    monkeypatch.setattr(jit, "_marks", lambda: tmp_path)
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
