"""KEY=VALUE on the command line: a value is written as in TOML, and text needs no quotes."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from typing import Any


class NoSetting(ValueError):
    """Something else than KEY=VALUE."""


def parse_settings(given: Iterable[str], example: str) -> dict[str, Any]:
    """The pairs; NoSetting names the one that is none, with an example of how to write it."""
    settings: dict[str, Any] = {}
    for text in given:
        key, mark, value = text.partition("=")
        if not mark or not key.strip():
            raise NoSetting(f"{text!r}: write KEY=VALUE, such as {example}")
        try:
            settings[key.strip()] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            settings[key.strip()] = value
    return settings
