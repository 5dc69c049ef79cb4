"""Public names of a package, each imported on first use: `from plant import World` loads no solver."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(package: str, modules: Mapping[str, str]) -> tuple[Callable[[str], Any], list[str]]:
    """`__getattr__` (PEP 562) and `__all__` of a package whose public names live in `modules`: module -> its names."""
    home = {name: module for module, names in modules.items() for name in names.split()}

    def find(name: str) -> Any:
        if name not in home:
            raise AttributeError(
                f"module {package!r} has no attribute {name!r}; public names: {', '.join(sorted(home))}"
            )
        return getattr(import_module(home[name]), name)

    return find, sorted(home)
