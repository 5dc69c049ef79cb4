"""`hilnode calibrate`: show a HID device's axes, ask for them to be moved, and save rest positions and ranges."""

from __future__ import annotations

import select
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from drivers.base import OptionError
from drivers.hid.calibration import Axis, Measurement, write_calibration
from drivers.hid.channels import load_calibration
from drivers.hid.device import HidDevice
from drivers.hid.find import KEYS as ADDRESS
from drivers.hid.find import Address, Handle
from drivers.options import Options

WIDTH = 40
REFRESH = 0.05  # [s]
STEPS = (
    ("Let go of everything: sticks in the middle, feet off the pedals", True),
    ("Move every axis to both of its ends, a few times, slowly", False),
    ("Let go again", True),
)


class NothingToCalibrate(Exception):
    """The device has no axis, or did not say anything."""


class Session:
    """One device being measured."""

    def __init__(self, name: str, options: Mapping[str, Any], file: Path | None = None) -> None:
        """`options` are those of the driver; only its address and its channels count.

        `file` will be written; if it is there, what cannot be measured is taken from it.
        """
        where = {key: options[key] for key in ADDRESS if key in options}
        handle = Handle(Address.of(Options(name, where)))
        try:
            self.label = handle.label
            self.vendor, self.product = handle.entry.get("vendor_id", 0), handle.entry.get("product_id", 0)
            self.measurement = Measurement(handle.descriptor, name, options.get("channels"), _earlier(name, file))
        finally:
            handle.close()
        if not self.measurement.axes:
            raise NothingToCalibrate(f"{self.label} has no axis to calibrate; its buttons need none")
        self.driver = HidDevice(name, {**where, "channels": self.measurement.raw_channels, "ask": False})
        self.values = np.zeros(len(self.measurement.axes))
        self.stamps = np.zeros(len(self.measurement.axes), np.int64)

    def step(self, resting: bool, ended: Callable[[], bool], show: Callable[[], None]) -> None:
        """Read and note until `ended`; `show` is called a few times a second."""
        due = 0.0
        while not ended():
            if self.driver.read(self.values, self.stamps) and self.stamps.all():
                self.measurement.see(self.values.tolist(), resting=resting)
            if time.monotonic() >= due:
                due = time.monotonic() + REFRESH
                show()

    def bars(self, task: str) -> RenderableType:
        """What is to do, and every axis as a bar: where it is, and how far it has been."""
        axes = self.measurement.axes.items()
        longest = max(len(name) for name in self.measurement.axes)
        rows = [
            Text(f"{name:>{longest}} ") + _bar(axis, raw) for (name, axis), raw in zip(axes, self.values, strict=True)
        ]
        return Group(Text(task, style="bold"), *rows)


def _earlier(name: str, file: Path | None) -> Mapping[str, Mapping[str, Any]] | None:
    """The channels of the file that will be replaced, if there is one that can be read."""
    try:
        return load_calibration(name, str(file)).channels if file is not None else None
    except OptionError:
        return None


def _bar(axis: Axis, raw: float) -> Text:
    def place(value: float) -> int:
        share = (value - axis.low) / (axis.high - axis.low) if axis.high > axis.low else 0.0
        return round(min(max(share, 0.0), 1.0) * (WIDTH - 1))

    if axis.most < axis.least:
        return Text("·" * WIDTH + "  nothing heard yet", style="dim")
    cells = ["─" if place(axis.least) <= k <= place(axis.most) else "·" for k in range(WIDTH)]
    cells[place(raw)] = "█"
    return Text("".join(cells), style="green" if axis.moved else "") + Text(f"  {raw:g}")


def run(name: str, options: Mapping[str, Any], file: Path, console: Console, seconds: float | None) -> None:
    """Go through the steps and write the file. Each step ends with Enter, or after `seconds`."""
    session = Session(name, options, file)
    waits = seconds is None and sys.stdin.isatty()
    session.driver.open()
    try:
        for k, (what, resting) in enumerate(STEPS):
            if k == 2:
                session.measurement.rest_again()
            hint = "then press Enter" if waits else f"for {seconds or 5.0:g} s"
            task = f"{session.label}, step {k + 1} of {len(STEPS)}: {what}, {hint}."
            ended = _entered if waits else _after(seconds or 5.0)
            _do(session, task, resting, ended, console)
    finally:
        session.driver.close()
    finish(session, name, options, file, console)


def _do(session: Session, task: str, resting: bool, ended: Callable[[], bool], console: Console) -> None:
    """One step, with bars that move where they can be shown."""
    if not console.is_terminal:
        console.print(task, markup=False, highlight=False, soft_wrap=True)
        session.step(resting, ended, lambda: None)
        return
    with Live(session.bars(task), console=console, auto_refresh=False, transient=True) as live:
        session.step(resting, ended, lambda: live.update(session.bars(task), refresh=True))


def finish(session: Session, name: str, options: Mapping[str, Any], file: Path, console: Console) -> None:
    """Write the file and say what is left to do."""
    m = session.measurement
    if len(m.unmoved()) == len(m.axes):
        raise NothingToCalibrate(f"no axis of {session.label} was moved: nothing written")
    write_calibration(file, session.label, session.vendor, session.product, m.result())
    lines = [f"{file} written: {len(m.axes) - len(m.unmoved())} axes of {session.label}"]
    if m.unmoved():
        lines.append(f"not moved, left as the device describes them: {', '.join(m.unmoved())}")
    if options.get("calibration") != str(file):
        lines += [f"Use it, in the config below [drivers.{name}]:", f'calibration = "{file}"']
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _after(seconds: float) -> Callable[[], bool]:
    until = time.monotonic() + seconds
    return lambda: time.monotonic() >= until


def _entered() -> bool:
    if not select.select([sys.stdin], [], [], 0)[0]:
        return False
    sys.stdin.readline()
    return True
