"""A lazy registry of kinds: from a name in a config to its factory; other packages can add kinds.

Naming one kind loads one file. Other packages add kinds through an entry-point group, and a config may also
name `module:attribute` directly.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any

from hilnode.core.signals import nearest


class KindError(ValueError):
    """A kind that is not there or does not take these options; the message says what is allowed."""


class Kinds:
    """Kinds of one sort of thing (`what`: plant, driver)."""

    def __init__(self, what: str, group: str, built_in: Mapping[str, str]) -> None:
        self.what = what
        self.group = group
        self._built_in = dict(built_in)

    def table(self) -> dict[str, str]:
        """Every kind and where it is made."""
        return {**{e.name: e.value for e in entry_points(group=self.group)}, **self._built_in}

    def load(self, kind: str) -> Any:
        """Whatever makes a thing of this kind."""
        target = self._built_in.get(kind)
        if target is None:
            table = self.table()
            target = table.get(kind, kind if ":" in kind else "")
            if not target:
                raise KindError(f"{self.what} kind {kind!r} is not known: {nearest(kind, list(table))}")
        module, _, name = target.partition(":")
        try:
            return getattr(importlib.import_module(module), name)
        except Exception as error:  # whatever somebody else's module does while it is imported
            why = f"{type(error).__name__}: {error}"
            raise KindError(f"{self.what} kind {kind!r}: cannot load {target!r} ({why})") from error
