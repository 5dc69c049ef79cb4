"""The one way to compile a kernel: without the GIL, cached on disc, recompiled when its sources change.

The machine code of a file's kernels is kept in a directory of its own, named by the file and by a digest of it and of
all that it imports (`hilnode.core.sources`): an edit compiles anew what can see it, and nothing else.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from threading import Lock, Timer
from typing import Any

import numba
from numba.core.ccallback import CFunc
from numba.core.sigutils import normalize_signature

from hilnode.core.sources import Sources

KEEP = 3
"""Older versions kept of each file's kernels, so that switching between two checkouts does not recompile each time."""

SOURCES = Sources(Path(__file__).resolve().parents[2])

_placing = Lock()  # numba reads the place of its cache from a global


def _cache_home() -> Path:
    """`HILNODE_CACHE`, else the user's cache folder, else a private folder in the temporary one."""
    if given := os.environ.get("HILNODE_CACHE"):
        return Path(given)
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    if (os.path.isdir(home) and os.access(home, os.W_OK)) or os.access(os.path.dirname(home), os.W_OK):
        return Path(home) / "hilnode"
    return Path(f"/tmp/hilnode-cache-{os.getuid()}")


HOME = _cache_home()


@cache
def cache_of(file: str) -> Path:
    """Where the kernels of a source file are kept, as it is now; the oldest of its former versions are dropped."""
    path = Path(file).resolve()
    inside = path.is_relative_to(SOURCES.top)
    name = ".".join(path.relative_to(SOURCES.top).with_suffix("").parts) if inside else path.stem
    return _newest(HOME / name, SOURCES.digest(path))


def _newest(home: Path, digest: str) -> Path:
    """The directory of this digest, made if need be, and no more than KEEP others beside it."""
    mine = home / digest
    mine.mkdir(parents=True, exist_ok=True)
    os.utime(mine)
    others = sorted((d for d in home.iterdir() if d != mine), key=_age)
    for old in others[: max(0, len(others) - KEEP)]:
        shutil.rmtree(old, ignore_errors=True)
    return mine


def _age(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:  # somebody else has just dropped it
        return 0.0


def _keep(compiled: Any, function: Callable[..., Any]) -> Any:
    """Let the machine code be kept in the place of the function's file."""
    place = str(cache_of(function.__code__.co_filename))
    with _placing:
        numba.config.CACHE_DIR = place
        compiled.enable_caching()
    return compiled


def kernel(function: Callable[..., Any]) -> Any:
    """Compile `function` as hot code.

    No GIL, IEEE arithmetic in a fixed order (no fastmath, so the same inputs give the same bits), division by
    zero gives inf as in C instead of raising, and the machine code is kept on disc.
    """
    return _keep(numba.njit(nogil=True, error_model="numpy")(function), function)


def inline(function: Callable[..., Any]) -> Any:
    """As `kernel`, for small fixed-size algebra: the body is pasted into each caller by LLVM."""
    return _keep(numba.njit(nogil=True, error_model="numpy", forceinline=True)(function), function)


def exported(signature: Any) -> Callable[[Callable[..., Any]], Any]:
    """As `kernel`, for a function with a C signature that is called through its `.address`."""
    options = {"nopython": True, "error_model": "numpy"}

    def export(function: Callable[..., Any]) -> Any:
        # numba.cfunc compiles at once, before anybody could say where to keep it
        compiled = CFunc(function, normalize_signature(signature), locals={}, options=options)
        with announce_compilation(function.__name__.strip("_")):
            _keep(compiled, function).compile()
        return compiled

    return export


@contextmanager
def announce_compilation(what: str, after: float = 2.0) -> Iterator[None]:
    """Say on stderr what is being compiled if that takes more than `after` seconds: nothing if it was in the cache."""
    began = time.perf_counter()
    notice = Timer(after, lambda: _tell(f"compiling {what} for this machine, once ..."))
    notice.daemon = True
    notice.start()
    try:
        yield
    finally:
        notice.cancel()
        notice.join()
    if (took := time.perf_counter() - began) > after:
        _tell(f"compiled {what} in {took:.0f} s")


def _tell(line: str) -> None:
    with suppress(OSError):  # nobody reads it: a closed terminal, `| head`
        print(line, file=sys.stderr, flush=True)


def is_warm(what: str) -> bool:
    """Whether `what` has been compiled from this very source before: then a start takes a second, not half a minute."""
    return _mark(what).exists()


def mark_warm(what: str) -> None:
    """From now on `what` is in the cache."""
    mark = _mark(what)
    mark.parent.mkdir(parents=True, exist_ok=True)  # others may have dropped it: they have marks of their own
    mark.touch()


def _mark(what: str) -> Path:
    return _marks() / f"{what}.warm"


@cache
def _marks() -> Path:
    return _newest(HOME / "warm", SOURCES.digest_of_all())


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
        say(f"compiled in {time.perf_counter() - began:.0f} s; from now on it is taken from {HOME}")
        mark_warm(what)
