"""What a person or a program may ask of a running node, by name and with limits checked.

Each answer is the tick it took effect at.
"""

from __future__ import annotations

from hilnode.events import Happening
from hilnode.lane import Lane
from hilnode.row import Schema
from hilnode.signals import Signal, nearest
from hilnode.tick.layout import Cause, Op


class Operate:
    """The commands of a node. `CommandRefused` says why the tick said no."""

    def __init__(self, lane: Lane, schema: Schema, parameters: tuple[Signal, ...]) -> None:
        self._lane = lane
        self._signals = schema.signals
        self._parameters = parameters

    def hear(self, happening: Happening) -> None:
        """Give every event to this: answers to commands are among them."""
        self._lane.hear(happening)

    def ask_start(self) -> None:
        """Arm and run, without waiting for the answers."""
        self._lane.send(Op.ARM)
        self._lane.send(Op.RUN)

    def ask_trip(self, cause: Cause) -> None:
        """Trip, without waiting for the answer."""
        self._lane.send(Op.TRIP, cause)

    def arm(self) -> int:
        """configured or cleared -> armed. The tick at which it happened, as with all commands."""
        return self._lane.ask(Op.ARM).tick

    def run(self) -> int:
        """armed -> running: devices leave their safe values. Refused while an input that would trip is stale."""
        return self._lane.ask(Op.RUN).tick

    def pause(self) -> int:
        return self._lane.ask(Op.PAUSE).tick

    def resume(self) -> int:
        return self._lane.ask(Op.RESUME).tick

    def step(self, count: int = 1) -> int:
        """Grant plant steps while paused or in lockstep; returns the plant step reached after them."""
        return int(self._lane.ask(Op.STEP, 0, [float(count)]).value)

    def trip(self) -> int:
        return self._lane.ask(Op.TRIP, Cause.OPERATOR).tick

    def clear(self) -> int:
        """tripped -> cleared."""
        return self._lane.ask(Op.CLEAR).tick

    def disarm(self) -> int:
        return self._lane.ask(Op.DISARM).tick

    def reset(self) -> int:
        """Plant back to its initial state; not while running."""
        return self._lane.ask(Op.RESET).tick

    def set_speed(self, speed: float) -> int:
        """Wall-clock speed: 0.1 is slow motion."""
        return self._lane.ask(Op.SPEED, 0, [speed]).tick

    def force(self, name: str, value: float) -> int:
        """Impose a value on an input, output or command until it is released."""
        index = _find("signal", name, self._signals, value)
        return self._lane.ask(Op.FORCE, index, [value]).tick

    def release(self, name: str | None = None) -> int:
        """Give a forced signal back, or all of them."""
        return self._lane.ask(Op.RELEASE, -1 if name is None else _find("signal", name, self._signals)).tick

    def set_parameter(self, name: str, value: float) -> int:
        """A plant parameter, within its limits, at the tick's edge."""
        index = _find("plant parameter", name, self._parameters, value)
        return self._lane.ask(Op.PARAMETER, index, [value]).tick


def _find(what: str, name: str, signals: tuple[Signal, ...], value: float | None = None) -> int:
    """Index of the signal `name`; refuses an unknown name and a value outside its range."""
    names = [s.name for s in signals]
    if name not in names:
        raise KeyError(f"no {what} {name!r}: {nearest(name, names)}")
    index = names.index(name)
    s = signals[index]
    if value is not None and not s.low <= value <= s.high:
        raise ValueError(f"{name} = {value:g}: outside its range [{s.low:g}, {s.high:g}] {s.unit}")
    return index
