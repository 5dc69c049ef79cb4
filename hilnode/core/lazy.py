"""Public names of a package, each imported on first use: `from plant import World` loads no solver."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, modules: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` (PEP 562) and `__all__` of a package; `modules`: where its public names live.

    A package calls it where a type checker does not look: to that one, `__getattr__` would make every misspelled name
    an `Any`.
    """
    home = {name: module for module, names in modules.items() for name in names.split()}

    def find(name: str) -> Any:
        if name not in home:
            close = get_close_matches(name, home, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            known = ", ".join(sorted(home))
            raise AttributeError(f"module {package!r} has no attribute {name!r}{hint} (public names: {known})")
        return getattr(import_module(home[name]), name)

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *home})

    return find, names, sorted(home)
