"""Parameter tables of machines in separate files, beside the source or beside a config.

Cold code. A plant knows no files but the one that comes with it; others are read with the config that names them.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from typing import Any


class FileTable(dict[str, Any]):
    """A table that knows the file it was read from, for messages."""

    def __init__(self, file: str, table: Mapping[str, Any]) -> None:
        super().__init__(table)
        self.file = file


def read_beside(source: str, name: str) -> FileTable:
    """The table in a TOML file that comes with a module; `source` is the module's `__file__`."""
    with open(os.path.join(os.path.dirname(source), name), "rb") as stream:
        return FileTable(name, tomllib.load(stream))
