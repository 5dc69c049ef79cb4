"""The commands of a node as methods, shared by the blocking and the asyncio client.

All answer with a whole number: the tick at which it took effect, if nothing else is said.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

AnswerT = TypeVar("AnswerT")
"""`int`, or an awaitable of one."""


class NodeCommands(Generic[AnswerT]):
    """Needs `_number(op, **fields)`, which sends a request."""

    def _number(self, op: str, **fields: Any) -> AnswerT:
        raise NotImplementedError(f"{type(self).__name__} cannot send {op}")

    def arm(self) -> AnswerT:
        return self._number("arm")

    def run(self) -> AnswerT:
        """armed -> running: devices leave their safe values."""
        return self._number("run")

    def pause(self) -> AnswerT:
        return self._number("pause")

    def resume(self) -> AnswerT:
        return self._number("resume")

    def step(self, count: int = 1) -> AnswerT:
        """Grant plant steps while paused or in lockstep: the step that will be reached."""
        return self._number("step", count=count)

    def trip(self) -> AnswerT:
        """Devices to their safe values, now."""
        return self._number("trip")

    def clear(self) -> AnswerT:
        return self._number("clear")

    def disarm(self) -> AnswerT:
        return self._number("disarm")

    def reset(self) -> AnswerT:
        """The plant to its initial state; not while running."""
        return self._number("reset")

    def stop(self) -> AnswerT:
        """End the run."""
        return self._number("stop")

    def set_speed(self, speed: float) -> AnswerT:
        """Simulated seconds per second: 0.1 is slow motion."""
        return self._number("speed", value=float(speed))

    def set(self, name: str, value: float) -> AnswerT:
        """A plant parameter within its limits; an input is forced until it is released."""
        return self._number("set", name=name, value=float(value))

    def force(self, name: str, value: float) -> AnswerT:
        """Impose a value on an input, output or command until it is released."""
        return self._number("force", name=name, value=float(value))

    def release(self, name: str | None = None) -> AnswerT:
        """Give a forced signal back, or all of them."""
        return self._number("release", name=name)

    def inject(self, signal: str, kind: str, *, to_s: float | None = None, **parameters: float) -> AnswerT:
        """Make a signal go wrong, as in [[signals.faults]]: the slot, for `heal`."""
        return self._number("inject", signal=signal, kind=kind, to_s=to_s, **parameters)

    def heal(self, slot: int) -> AnswerT:
        return self._number("heal", slot=slot)

    def stimulate(self, signal: str, kind: str, *, to_s: float | None = None, **parameters: float) -> AnswerT:
        """Drive an input by a wave, as in [[signals.stimulus]]: the slot, for `calm`."""
        return self._number("stimulate", signal=signal, kind=kind, to_s=to_s, **parameters)

    def calm(self, slot: int) -> AnswerT:
        return self._number("calm", slot=slot)

    def play(self) -> AnswerT:
        """A replay: go on from where it stands."""
        return self._number("play")

    def seek(self, seconds: float) -> AnswerT:
        """A replay: go to this moment since the first row."""
        return self._number("seek", to=float(seconds))

    def swap(self, driver: str, to: str) -> AnswerT:
        """Put a driver's `"twin"` or its `"real"` device in."""
        return self._number("swap", driver=driver, to=to)

    def seat(self, ecu: str, to: str) -> AnswerT:
        """The same for a driver of kind `ecu`; the role operate is enough."""
        return self._number("seat", ecu=ecu, to=to)
