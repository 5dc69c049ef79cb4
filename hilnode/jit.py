"""The one way a kernel is compiled: GIL-free, cached on disc, never stale.

numba's disc cache notices a change in the file a function lives in, but not a change in a function that it
calls from *another* file: a cached caller would go on running the old callee. So the cache directory
is named by a digest over every source file that a kernel can depend on, the versions of numba, llvmlite and
Python, and the CPU. Change one character in any of them and the next start compiles into a new, empty directory.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import Any

import llvmlite
import numba

PACKAGES = ("hilnode", "plant", "drivers", "bridge")
"""Packages whose files may hold kernels; all stand side by side, in a checkout as in an install."""

KEEP = 3
"""Older digest directories kept, so that switching between two checkouts does not recompile each time."""

_MAKES_KERNELS = re.compile(
    r"^\s*(?:@|\w+\s*=\s*)(?:\w+\.)*(?:kernel|inline|intrinsic|step_function|njit|cfunc|overload)\b", re.MULTILINE
)
_ROOMS = "|".join(PACKAGES)
_IMPORTS = re.compile(
    rf"^\s*(?:from|import)\s+((?:{_ROOMS})\b[\w.]*)(?:[\s\\]+import\s+(\([^)]*\)|[^\n]+))?", re.MULTILINE
)


def _kernel_sources() -> list[Path]:
    """Every file that a compiled kernel can depend on: those that define kernels and all that these import.

    Editing a file outside this set (the CLI, a report) leaves the cache alone.
    """
    top = Path(__file__).resolve().parent.parent
    texts = {path: path.read_text("utf-8") for package in PACKAGES for path in (top / package).rglob("*.py")}
    todo = [path for path, text in texts.items() if _MAKES_KERNELS.search(text)]
    found: set[Path] = set()
    while todo:
        path = todo.pop()
        if path in found or path not in texts:
            continue
        found.add(path)
        for module, names in _IMPORTS.findall(texts[path]):
            place = top.joinpath(*module.split("."))
            todo += [place.with_suffix(".py"), place / "__init__.py"]
            todo += [place / f"{name}.py" for name in re.findall(r"\w+", names)]
    return sorted(found)


def _digest() -> str:
    """Twelve hex digits that change whenever a compiled kernel could."""
    h = hashlib.sha256()
    for path in _kernel_sources():
        h.update(str(path).encode())
        h.update(path.read_bytes())
    h.update(f"{numba.__version__} {llvmlite.__version__} {sys.version} {platform.machine()}".encode())
    return h.hexdigest()[:12]


def _cache_home() -> Path:
    """`HILNODE_CACHE`, else the user's cache folder, else a private folder in the temporary one."""
    if given := os.environ.get("HILNODE_CACHE"):
        return Path(given)
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    if (os.path.isdir(home) and os.access(home, os.W_OK)) or os.access(os.path.dirname(home), os.W_OK):
        return Path(home) / "hilnode"
    return Path(f"/tmp/hilnode-cache-{os.getuid()}")


def _open_cache() -> Path:
    """Point numba at this source's own directory and drop the oldest of the others."""
    home = _cache_home()
    mine = home / _digest()
    mine.mkdir(parents=True, exist_ok=True)
    os.utime(mine)
    others = sorted((d for d in home.iterdir() if d.is_dir() and d != mine), key=lambda d: d.stat().st_mtime)
    for old in others[: max(0, len(others) - KEEP)]:
        shutil.rmtree(old, ignore_errors=True)
    numba.config.CACHE_DIR = str(mine)
    return mine


CACHE = _open_cache()


def kernel(function: Callable[..., Any]) -> Any:
    """Compile `function` as hot code.

    No GIL, IEEE arithmetic in a fixed order (no fastmath, so the same inputs give the same bits), division by
    zero gives inf as in C instead of raising, and the machine code is kept on disc.
    """
    return numba.njit(nogil=True, cache=True, error_model="numpy")(function)


def inline(function: Callable[..., Any]) -> Any:
    """As `kernel`, for small fixed-size algebra: the body is pasted into each caller by LLVM."""
    return numba.njit(nogil=True, cache=True, error_model="numpy", forceinline=True)(function)


def exported(signature: Any) -> Callable[[Callable[..., Any]], Any]:
    """As `kernel`, for a function with a C signature that is called through its `.address`."""
    compiled = numba.cfunc(signature, nopython=True, cache=True, error_model="numpy")

    def export(function: Callable[..., Any]) -> Any:
        with patience(function.__name__.strip("_")):
            return compiled(function)

    return export


@contextmanager
def patience(what: str, after: float = 2.0) -> Iterator[None]:
    """Tell whoever waits for a compilation, on stderr, what takes so long: nothing if it was in the cache."""
    began = time.perf_counter()
    notice = Timer(after, lambda: print(f"compiling {what} for this machine, once ...", file=sys.stderr, flush=True))
    notice.daemon = True
    notice.start()
    try:
        yield
    finally:
        notice.cancel()
        notice.join()
    if (took := time.perf_counter() - began) > after:
        print(f"compiled {what} in {took:.0f} s", file=sys.stderr, flush=True)


def is_warm(what: str) -> bool:
    """Whether `what` has been compiled from this very source before: then a start takes a second, not half a minute."""
    return (CACHE / f"{what}.warm").exists()


def warm_up(what: str, jobs: Sequence[tuple[str, Callable[[], Any]]], say: Callable[[str], None]) -> None:
    """Run each `(name, call)`, which compiles what it calls.

    When nothing of `what` is in the cache yet, `say` gets a line before each job, so that nobody looks at a silent
    screen.
    """
    cold = not is_warm(what)
    began = time.perf_counter()
    for i, (name, call) in enumerate(jobs, 1):
        if cold:
            say(f"compiling {name} ({i}/{len(jobs)}, {time.perf_counter() - began:.0f} s so far)")
        call()
    if cold:
        say(f"compiled in {time.perf_counter() - began:.0f} s; from now on it is taken from {CACHE}")
        (CACHE / f"{what}.warm").touch()
