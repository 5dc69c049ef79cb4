"""A CAN bus in software, which can be taken down and removed like one with an adapter. Needs root."""

from __future__ import annotations

import subprocess
from types import TracebackType


class VirtualBus:
    """One bus, there and up when it is made; it carries classic and FD frames."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.add()

    def add(self) -> None:
        """Plug the adapter in."""
        _ip("link", "add", self.name, "type", "vcan")
        self.up()

    def up(self) -> None:
        _ip("link", "set", self.name, "up")

    def down(self) -> None:
        _ip("link", "set", self.name, "down")

    def remove(self) -> None:
        """Pull the adapter out."""
        _ip("link", "del", self.name)

    def __enter__(self) -> VirtualBus:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.remove()


def _ip(*words: str) -> None:
    """`ip` of busybox, which the lab PC always has."""
    subprocess.run(["busybox", "ip", *words], check=True, timeout=30)
