"""A make-believe DAQ card and its tasks, as NI-DAQmx would have them: what tools/ni_server.py serves."""

from __future__ import annotations

import bisect
import itertools
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from nidaqmx.constants import AngleUnits, EncoderType, OverwriteMode

Signal = Callable[[float], float]
"""Of the time [s] since the card was made."""

TEXTS = {
    -200220: "Device identifier is invalid.",
    -201003: "Device cannot be accessed.  Possible causes:\n\nDevice is no longer present in the system.",
    -200088: "Task specified is invalid or does not exist.",
    -50103: "The specified resource is reserved. The operation could not be completed as specified.",
    -200279: "The application is not able to keep up with the hardware acquisition.",
    -200284: "Some or all of the samples requested have not yet been acquired.",
    -200170: "Physical channel specified does not exist on this device.",
    -200452: "Specified property is not supported by the device or is not applicable to the task.",
    -200077: "Requested value is not a supported value for this property.",
    -200561: "Attempted writing analog data that is too large or too small.",
    -200846: "Write cannot be performed when the auto start input to DAQmx Write is false and task is not running.",
    -88709: "The specified operation cannot be performed because a task has been aborted or a device has been removed.",
}
BITS = 16
HIGHEST = 10.0  # [V] the range of the converters, both ways
OVERWRITE = 0x1211  # the attribute that lets unread samples be overwritten


class Refused(Exception):
    """An error of NI-DAQmx, by its number."""

    def __init__(self, code: int, more: str = "") -> None:
        super().__init__(TEXTS.get(code, "An error.") + more + f"\n\nStatus Code: {code}")
        self.code = code


class Card:
    """A multifunction card: 8 analogue inputs, 4 outputs, two ports of 8 lines, 4 counters."""

    def __init__(self, name: str = "Dev1", serial: int = 0x01A2B3C4, product: str = "PCIe-6363") -> None:
        self.name, self.serial, self.product = name, serial, product
        self.born = time.monotonic()
        self.present = True
        self.outside: dict[str, Signal] = {}
        """What is connected to an input: volts, high from 0.5 up, or pulses since the beginning, of the time."""
        self.external_clock = 0.0  # [Hz] of what is connected to PFI terminals
        self.written: dict[str, list[tuple[float, float]]] = {}
        self.resets = 0
        self.terminals = {
            *(f"ai{k}" for k in range(8)),
            *(f"ao{k}" for k in range(4)),
            *(f"ctr{k}" for k in range(4)),
            *(f"port{p}/line{k}" for p in range(2) for k in range(8)),
        }

    def now(self) -> float:
        return time.monotonic() - self.born

    def drive(self, terminal: str, value: float) -> None:
        """Put a value on an output, from now on."""
        history = self.written.setdefault(terminal, [])
        history.append((self.now(), value))
        del history[:-5000]

    def output(self, terminal: str, at: float = math.inf) -> float:
        """What an output had at a time."""
        history = self.written.get(terminal, [])
        place = bisect.bisect_right(history, at, key=lambda entry: entry[0])
        return history[place - 1][1] if place else 0.0

    def input(self, terminal: str, at: float) -> float:
        """What an input sees at a time: what is outside, else what the wire brings."""
        if terminal in self.outside:
            return self.outside[terminal](at)
        return self.output(terminal.replace("ai", "ao").replace("port1", "port0"), at)

    def reset(self) -> None:
        self.resets += 1
        for terminal in list(self.written):
            self.drive(terminal, 0.0)


@dataclass
class Channel:
    """A terminal as a task uses it."""

    card: Card
    terminal: str
    sort: str
    low: float = -HIGHEST
    high: float = HIGHEST
    settings: Any = None

    def convert(self, at: float) -> float:
        """Volts as the converter gives them: within the range, in steps of its bits."""
        step = (self.high - self.low) / 2**BITS
        return round(min(max(self.card.input(self.terminal, at), self.low), self.high) / step) * step

    def position(self, at: float) -> float:
        """Of an encoder: whole steps, as fine as the decoding makes them."""
        fine = {EncoderType.X_1.value: 1, EncoderType.X_2.value: 2, EncoderType.X_4.value: 4}
        steps = fine[self.settings.decoding_type_raw]
        pulses = math.floor(self.card.input(self.terminal, at) * steps) / steps
        if self.sort == "linear":
            return pulses * self.settings.dist_per_pulse
        turn = 2 * math.pi if self.settings.units_raw == AngleUnits.RADIANS.value else 360.0
        return pulses / self.settings.pulses_per_rev * turn

    def pulses(self, at: float) -> int:
        return math.floor(self.card.input(self.terminal, at))

    def frequency(self, at: float) -> float:
        """Of the last whole period, whatever came after it."""
        last = self.pulses(at)
        return 1.0 / (self._reached(last, at) - self._reached(last - 1, at))

    def _reached(self, pulses: int, latest: float) -> float:
        """When a rising count got so far, by bisection."""
        early, late = 0.0, latest
        for _ in range(60):
            middle = 0.5 * (early + late)
            early, late = (early, middle) if self.card.input(self.terminal, middle) >= pulses else (middle, late)
        return late


@dataclass
class Task:
    """A task, and how far its acquisition is."""

    name: str
    channels: list[Channel] = field(default_factory=list)
    rate: float = 0.0
    source: str = ""
    continuous: bool = False
    buffer: int = 0
    read_attributes: dict[int, int | float] = field(default_factory=dict)
    running: bool = False
    aborted: bool = False
    began: float = 0.0
    taken: int = 0  # samples that were read

    @property
    def card(self) -> Card:
        return self.channels[0].card

    @property
    def acquired(self) -> int:
        """Samples since the start, by the sample clock, or by the pulses of a frequency."""
        if not self.running:
            return 0
        now = self.card.now()
        if self.channels[0].sort == "frequency":
            return max(0, self.channels[0].pulses(now) - self.channels[0].pulses(self.began) - 1)
        return math.floor((now - self.began) * self.actual_rate)

    @property
    def actual_rate(self) -> float:
        """What the card makes of the wish: a whole divisor of its 100 MHz; or what comes from outside."""
        return self.card.external_clock if "PFI" in self.source else 1e8 / round(1e8 / self.rate)

    @property
    def held(self) -> set[tuple[str, str]]:
        """What nobody else may use: the one converter for analogue inputs, and each other terminal."""
        return {(c.card.name, "ai" if c.sort == "ai" else c.terminal) for c in self.channels}

    def available(self) -> int:
        ready = self.acquired - self.taken
        overwritten = self.read_attributes.get(OVERWRITE) == OverwriteMode.OVERWRITE_UNREAD_SAMPLES.value
        if self.buffer and ready > self.buffer and not overwritten:
            raise Refused(-200279)
        return ready


class State:
    """Cards and tasks: what a server has, and keeps while it cannot be reached."""

    def __init__(self, *cards: Card) -> None:
        self.cards = {card.name: card for card in cards or (Card(),)}
        self.tasks: dict[str, Task] = {}
        self.lock = threading.RLock()
        self.calls: list[str] = []
        self.faults: list[tuple[str, int]] = []
        self.silent = threading.Event()  # set: no answer for anybody
        self.numbers = itertools.count()

    def fail(self, call: str, code: int, times: int = 1) -> None:
        """Let the next calls of one name end with an error."""
        self.faults += [(call, code)] * times

    def task(self, request: Any) -> Task:
        task = self.tasks.get(request.task.name)
        if task is None:
            raise Refused(-200088)
        if task.aborted:
            raise Refused(-88709)
        if task.channels and not task.card.present:
            raise Refused(-201003)
        return task

    def card(self, name: str) -> Card:
        card = self.cards.get(name)
        if card is None or not card.present:
            raise Refused(-200220, f"\n\nDevice Specified: {name}")
        return card

    def channel(self, request: Any, physical: str, sort: str, **more: Any) -> None:
        device, _, terminal = physical.partition("/")
        card = self.card(device)
        if terminal not in card.terminals:
            raise Refused(-200170, f"\n\nPhysical Channel Name: {terminal}\nDevice: {device}")
        self.task(request).channels.append(Channel(card, terminal, sort, **more))

    def start(self, task: Task) -> None:
        if any(other.running and other is not task and other.held & task.held for other in self.tasks.values()):
            raise Refused(-50103, f"\n\nDevice: {task.card.name}")
        task.running, task.taken, task.began = True, 0, task.card.now()

    def reset(self, card: Card) -> None:
        for task in self.tasks.values():
            if task.channels and task.card is card:
                task.running, task.aborted = False, True
        card.reset()
