"""Joysticks as they are sold: their report descriptors, byte by byte, and how to make their reports."""

from __future__ import annotations

DUAL_ACTION_ID = 0x046D, 0xC216
DUAL_ACTION = bytes.fromhex(
    "05 01 09 04 a1 01 a1 02"
    "75 08 95 04 15 00 26 ff 00 35 00 46 ff 00 09 30 09 31 09 32 09 35 81 02"  # x, y, z, rz: 8 bits each
    "75 04 95 01 25 07 46 3b 01 65 14 09 39 81 42"  # hat: 0 to 7, clockwise from the top, else at rest
    "65 00 75 01 95 0c 25 01 45 01 05 09 19 01 29 0c 81 02"  # buttons 1 to 12
    "06 00 ff 75 01 95 10 25 01 45 01 09 01 81 02"  # 16 bits of the maker's own
    "c0 a1 02 75 08 95 07 46 ff 00 26 ff 00 09 02 91 02 c0 c0"  # an output report of 7 bytes
)
"""Logitech Dual Action, also F310 in its mode "D": 8 bytes in, 7 bytes out, no report ids."""


def dual_action(x: int = 128, y: int = 128, z: int = 128, rz: int = 128, hat: int = 8, buttons: int = 0) -> bytes:
    """Its input report; the bits of `buttons` are button 1, 2, ..."""
    return bytes((x, y, z, rz)) + (hat | buttons << 4).to_bytes(2, "little") + b"\0\0"
