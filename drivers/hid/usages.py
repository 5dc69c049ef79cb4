"""Names of HID usages: `x`, `rz`, `brake`, `button 3`, `slider 2`, `led 1`, or any by its numbers, `0x0c:0x224`.

A number behind a name picks the second, third ... of the same usage; behind `button` and `led` it is the usage itself.
In names of channels, blanks are underscores: `button_3`.

Ref: HID Usage Tables 1.4, pages 0x01, 0x02, 0x05, 0x08, 0x09.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from drivers.hid.report import Field
from hilnode.core.signals import nearest

DESKTOP, SIMULATION, GAME, KEYBOARD, LED, BUTTON = 0x01, 0x02, 0x05, 0x07, 0x08, 0x09
HAT = DESKTOP << 16 | 0x39
FORM = 'such as "x", "rz", "button 1", "slider 2", "hat_x", "brake" or "0x0c:0x224" (page and usage)'

_PAGES = {
    DESKTOP: {
        0x30: "x", 0x31: "y", 0x32: "z", 0x33: "rx", 0x34: "ry", 0x35: "rz", 0x36: "slider", 0x37: "dial",
        0x38: "wheel", 0x3D: "start", 0x3E: "select", 0x40: "vx", 0x41: "vy", 0x42: "vz", 0x43: "vbrx", 0x44: "vbry",
        0x45: "vbrz", 0x46: "vno", 0x85: "system_main_menu", 0x90: "dpad_up", 0x91: "dpad_down", 0x92: "dpad_right",
        0x93: "dpad_left",
    },
    SIMULATION: {
        0xB0: "aileron", 0xB1: "aileron_trim", 0xB5: "collective", 0xB6: "dive_brake", 0xB8: "elevator",
        0xB9: "elevator_trim", 0xBA: "rudder", 0xBB: "throttle", 0xBE: "landing_gear", 0xBF: "toe_brake",
        0xC0: "trigger", 0xC3: "wing_flaps", 0xC4: "accelerator", 0xC5: "brake", 0xC6: "clutch", 0xC7: "shifter",
        0xC8: "steering", 0xC9: "turret", 0xCA: "barrel",
    },
    GAME: {0x24: "move_right_left", 0x26: "move_up_down"},
}  # fmt: skip
NAMES = {page << 16 | usage: name for page, names in _PAGES.items() for usage, name in names.items()}
USAGES = {name: usage for usage, name in NAMES.items()}
SWITCHES = frozenset(
    USAGES[n]
    for n in ("dpad_up", "dpad_down", "dpad_right", "dpad_left", "start", "select", "system_main_menu", "trigger")
)
"""On or off although they are not on the page of buttons."""
PEDALS = frozenset(USAGES[n] for n in ("accelerator", "brake", "clutch", "throttle", "toe_brake"))
"""These rest at one end."""

_WORDS = re.compile(r"(hat_[xy]|[a-z]+(?:_[a-z]+)*?|0x[0-9a-f]{1,4}:0x[0-9a-f]{1,4})(?:_(\d{1,4}))?")


@dataclass(frozen=True, slots=True)
class Pick:
    """One of a device's usages: which, the how manieth of that kind, and for a hat which direction of it."""

    usage: int
    nth: int = 1
    part: str = ""  # "x" or "y"

    @property
    def name(self) -> str:
        """As it is written in a config."""
        page, usage = self.usage >> 16, self.usage & 0xFFFF
        again = f"_{self.nth}" if self.nth > 1 else ""
        if self.usage == HAT:
            return f"hat_{self.part}{again}"
        if page in (BUTTON, LED):
            return f"{'button' if page == BUTTON else 'led'}_{usage}"
        return NAMES.get(self.usage, f"0x{page:02x}:0x{usage:02x}") + again

    @property
    def channel(self) -> str:
        """What the channel is called if nobody says otherwise."""
        return self.name if not self.name.startswith("0x") else "usage_" + re.sub(r":?0x", "_", self.name)[1:]

    @property
    def is_switch(self) -> bool:
        return self.usage >> 16 in (BUTTON, KEYBOARD, LED) or self.usage in SWITCHES


def pick_from(text: str) -> Pick:
    """What a config names; ValueError with a hint if there is no such usage."""
    word = "_".join(text.strip().lower().split())
    match = _WORDS.fullmatch(word)
    if not match:
        raise ValueError(f"must be a usage, {FORM}")
    name, number = match[1], int(match[2] or 1)
    if name.startswith("hat_"):
        return Pick(HAT, _counted(number), name[-1])
    if name in ("button", "led"):
        if not match[2]:
            raise ValueError(f'"{name}" needs a number, such as "{name} 1"')
        return Pick((BUTTON if name == "button" else LED) << 16 | number)
    if name.startswith("0x"):
        page, _, usage = name.partition(":")
        return Pick(int(page, 16) << 16 | int(usage, 16), _counted(number))
    if name not in USAGES:
        known = [*USAGES, "hat_x", "hat_y", "button 1", "led 1"]
        raise ValueError(f"no usage is called that: {nearest(name, known)}; others by number, such as 0x0c:0x224")
    return Pick(USAGES[name], _counted(number))


def _counted(number: int) -> int:
    if number < 1:
        raise ValueError("the first of a kind has the number 1")
    return number


def find(fields: Iterable[Field], pick: Pick, report: int | None) -> Field | None:
    """The field that carries a usage, in the order of the descriptor; in one report if the config says which."""
    left = pick.nth
    for f in fields:
        if pick.usage in f.usages and (report is None or f.report == report):
            left -= 1
            if left == 0:
                return f
    return None


def picks_of(fields: Iterable[Field]) -> list[Pick]:
    """Everything with a name that a device has, in its own order. What is relative is left out: no place, but steps."""
    seen: dict[int, int] = {}
    found: list[Pick] = []
    for f in fields:
        for usage in dict.fromkeys(f.usages):
            nth = seen[usage] = seen.get(usage, 0) + 1
            if f.is_relative:
                continue
            if usage == HAT:
                found += [Pick(usage, nth, "x"), Pick(usage, nth, "y")]
            elif (usage >> 16 == BUTTON and usage & 0xFFFF and nth == 1) or usage in NAMES:
                found.append(Pick(usage, nth))
    return found
