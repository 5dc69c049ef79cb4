"""Reading a table of options: each key is checked, each error names the key, the value and what is allowed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from drivers.base import OptionError, refuse_unknown

T = TypeVar("T")


class Options:
    """One table. `name` is its path below `drivers.`: `gauge`, `gauge.receive`."""

    def __init__(self, name: str, given: Any, known: tuple[str, ...] = ()) -> None:
        """`known` are the keys that it may have; none given means that somebody else has looked at them."""
        if not isinstance(given, Mapping):
            raise OptionError(f"drivers.{name} = {given!r}: must be a table with the keys {', '.join(known)}")
        if known:
            refuse_unknown(name, given, known)
        self.name = name
        self.given = given

    def wrong(self, key: str, allowed: str) -> OptionError:
        """The complaint about a key."""
        return OptionError(f"drivers.{self.name}.{key} = {self.given.get(key)!r}: {allowed}")

    def has(self, key: str) -> bool:
        return key in self.given

    def number(self, key: str, default: float, low: float, high: float) -> float:
        value = self.given.get(key, default)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
            raise self.wrong(key, f"must be a number from {low:g} to {high:g}")
        return float(value)

    def whole(self, key: str, default: int, low: int, high: int) -> int:
        value = self.given.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise self.wrong(key, f"must be a whole number from {low} to {high}")
        return value

    def flag(self, key: str, default: bool) -> bool:
        value = self.given.get(key, default)
        if not isinstance(value, bool):
            raise self.wrong(key, "must be true or false")
        return value

    def text(self, key: str, default: str) -> str:
        value = self.given.get(key, default)
        if not isinstance(value, str):
            raise self.wrong(key, "must be text")
        return value

    def choice(self, key: str, default: str, table: Mapping[str, T]) -> T:
        value = self.given.get(key, default)
        if not isinstance(value, str) or value not in table:
            raise self.wrong(key, f"must be one of {', '.join(table)}")
        return table[value]

    def octets(self, key: str, default: bytes = b"") -> bytes:
        """Bytes: text such as "\\r\\n" or "$", or a list of numbers such as [0xAA, 0x55]."""
        value = self.given.get(key, default)
        if isinstance(value, bytes):
            return value
        try:
            return value.encode("latin-1") if isinstance(value, str) else _listed(value)
        except (TypeError, ValueError) as error:
            raise self.wrong(key, 'must be text such as "\\r\\n" or a list of bytes such as [0xAA, 0x55]') from error


def _listed(value: Any) -> bytes:
    if not isinstance(value, (list, tuple)) or any(isinstance(n, bool) for n in value):
        raise TypeError("no list of bytes")
    return bytes(value)
