"""Which files a compiled kernel depends on: a digest of a source file together with all that it imports.

numba's disc cache notices a change in the file a function lives in, but not a change in a function that it calls from
*another* file: a cached caller would go on running the old callee. So the cache of each file's kernels lies in a
directory named by this digest (see `hilnode.core.jit`). Change one character in a file and everything that can call
into it is compiled anew at the next start, and nothing else is.

Imports are found by pattern, not by importing: those inside functions and of type checkers count too, which errs on the
safe side. A package of lazy names (`hilnode.core.lazy`) stands for the modules of the names that are asked of it alone:
`from plant import step_function` does not depend on the solver.
"""

from __future__ import annotations

import hashlib
import platform
import re
import sys
from pathlib import Path

import llvmlite
import numba

PACKAGES = ("hilnode", "plant", "drivers", "bridge")
"""Packages whose files may hold kernels; all stand side by side, in a checkout as in an install."""

EVERYWHERE = ("hilnode/core/jit.py", "hilnode/core/struct.py")
"""What has a part in every kernel, imported or not: how it is compiled, and how it reads a struct that it is given."""

_MAKES_KERNELS = re.compile(
    r"^\s*(?:@|\w+\s*=\s*)(?:\w+\.)*(?:kernel|inline|intrinsic|step_function|njit|cfunc|overload)\b", re.MULTILINE
)
_ROOMS = "|".join(PACKAGES)
_IMPORTS = re.compile(
    rf"^\s*(?:from|import)\s+((?:{_ROOMS})\b[\w.]*)(?:[\s\\]+import\s+(\([^)]*\)|[^\n]+))?", re.MULTILINE
)


_LAZY = "lazy_names("


def _names(listed: str) -> list[str]:
    """What `from ... import` asks for: of `(a as b,  # why` and `c)` it is `a` and `c`."""
    return re.findall(r"(?:^|,)\s*(\w+)", re.sub(r"#[^\n]*|[()\\]", " ", listed))


class Sources:
    """The source files of one checkout or install; each is read once."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self._texts: dict[Path, str | None] = {}
        self._imports: dict[Path, list[Path]] = {}
        self._digests: dict[Path, str] = {}

    def digest(self, path: Path) -> str:
        """Twelve hex digits that change whenever a kernel compiled from this file could."""
        if path not in self._digests:
            self._digests[path] = self._digest_of({path, *(self.top / name for name in EVERYWHERE)})
        return self._digests[path]

    def digest_of_all(self) -> str:
        """The same for the kernels of all files together."""
        return self._digest_of(set(self.with_kernels()))

    def with_kernels(self) -> list[Path]:
        """Files that define kernels."""
        files = (path for package in PACKAGES for path in (self.top / package).rglob("*.py"))
        return sorted(path for path in files if _MAKES_KERNELS.search(self._text(path) or ""))

    def reached_from(self, paths: set[Path]) -> set[Path]:
        """These files and all that they import, directly or not."""
        todo, found = list(paths), set[Path]()
        while todo:
            path = todo.pop()
            if path not in found and self._text(path) is not None:
                found.add(path)
                todo += self._imported_by(path)
        return found

    def _digest_of(self, paths: set[Path]) -> str:
        h = hashlib.sha256()
        for path in sorted(self.reached_from(paths)):
            h.update(f"{path}\n{self._text(path)}\n".encode())
        h.update(f"{numba.__version__} {llvmlite.__version__} {sys.version} {platform.machine()}".encode())
        return h.hexdigest()[:12]

    def _imported_by(self, path: Path) -> list[Path]:
        if path not in self._imports:
            found = self._imports[path] = []
            for module, listed in _IMPORTS.findall(self._text(path) or ""):
                place, names = self.top.joinpath(*module.split(".")), _names(listed)
                lazy = self._lazy_names(place / "__init__.py")
                modules = [place / f"{name}.py" for name in names]
                if lazy and names and all(self._text(m) is not None or m.stem in lazy for m in modules):
                    found += [m if self._text(m) is not None else lazy[m.stem] for m in modules]
                else:
                    found += [place.with_suffix(".py"), place / "__init__.py", *modules]
        return self._imports[path]

    def _lazy_names(self, package: Path) -> dict[str, Path]:
        """The files of a package's lazy public names, as far as they have one of their own; else nothing."""
        text = self._text(package) or ""
        if _LAZY not in text:
            return {}
        homes = {
            name: self.top.joinpath(*module.split(".")).with_suffix(".py")
            for module, listed in _IMPORTS.findall(text)
            for name in _names(listed)
        }
        return {name: home for name, home in homes.items() if self._text(home) is not None}

    def _text(self, path: Path) -> str | None:
        """Nothing for a file that is not there: a name after `import` need not be a module."""
        if path not in self._texts:
            try:
                self._texts[path] = path.read_text("utf-8")
            except (OSError, UnicodeDecodeError):
                self._texts[path] = None
        return self._texts[path]
