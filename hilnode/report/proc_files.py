"""Reads what the kernel tells in /proc and /sys, below a root folder. Nothing raises."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path


def read(path: Path) -> str | None:
    """The text of a file, or nothing if it cannot be read."""
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return None


def number(path: Path) -> int | None:
    """The whole number that a file holds, or nothing."""
    return whole(read(path) or "")


def whole(text: str) -> int | None:
    """A whole number as the kernel writes it, or nothing."""
    try:
        return int(text) if len(text) < 20 else None  # what the kernel counts fits in 64 bits
    except ValueError:
        return None


def names(folder: Path) -> list[str]:
    """What a folder holds, sorted; nothing if it cannot be read."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def cpu_text(cpus: Iterable[int]) -> str:
    """The inverse of `cpu_list`."""
    runs: list[list[int]] = []
    for c in sorted(cpus):
        if runs and c == runs[-1][1] + 1:
            runs[-1][1] = c
        else:
            runs.append([c, c])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def boot_argument(root: Path, key: str) -> str | None:
    """The value of `key=...` on the kernel's command line; the last one counts."""
    found = re.findall(rf"(?:^|\s){re.escape(key)}=(\S*)", read(root / "proc/cmdline") or "")
    return found[-1] if found else None


def self_status(root: Path, key: str) -> str:
    """A line of /proc/self/status."""
    found = re.search(rf"^{key}:[ \t]*(\S+)", read(root / "proc/self/status") or "", re.MULTILINE)
    return found[1] if found else ""


def has_capability(root: Path, bit: int) -> bool:
    """Whether this process has a capability, by its bit."""
    try:
        return bool(int(self_status(root, "CapEff"), 16) >> bit & 1)
    except ValueError:
        return False


def soft_limit(root: Path, what: str) -> str | None:
    """A soft limit of this process, as /proc/self/limits writes it."""
    found = re.search(
        rf"^{what}[ \t]+(unlimited|[0-9]{{1,20}})[ \t]", read(root / "proc/self/limits") or "", re.MULTILINE
    )
    return found[1] if found else None
