"""The commands that people and programs give a running node, by name and with limits checked.

Each answer is the tick it took effect at.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hilnode.config.assemble import fault_params, wave_params
from hilnode.config.config import check_fault, check_stimulus
from hilnode.config.wiring import SignalMap, fault_map, stimulus_map
from hilnode.core.limits import SLOTS
from hilnode.core.signals import Signal, UnknownName, nearest
from hilnode.shared.codes import Cause, Command
from hilnode.shared.command_ring import CommandRing, CommandWords
from hilnode.shared.control import Control, Word
from hilnode.shared.events import Happening
from hilnode.shared.row import Schema


class Operate:
    """The commands of a node. `CommandRefused` says why the tick said no."""

    def __init__(
        self, commands: CommandRing, control: Control, schema: Schema, wiring: SignalMap, parameters: tuple[Signal, ...]
    ):
        self._command_ring = commands
        self._control = control
        self._signals = schema.signals
        self._n_in = len(schema.inputs)
        self._dt_ns = schema.dt_ns
        self._parameters = parameters
        self._slots = threading.RLock()
        self._fault_slots = set(range(len(wiring.faults), SLOTS))
        self._stimulus_slots = set(range(len(wiring.stimuli), SLOTS))

    def hear(self, happening: Happening) -> None:
        """Give every event to this: answers to commands are among them."""
        self._command_ring.hear(happening)

    def ask_start(self) -> None:
        """Arm and run, without waiting for the answers."""
        self._command_ring.send(Command.ARM)
        self._command_ring.send(Command.RUN)

    def ask_trip(self, cause: Cause) -> None:
        """Trip, without waiting for the answer."""
        self._command_ring.send(Command.TRIP, cause)

    def arm(self) -> int:
        """configured or cleared -> armed. The tick at which it happened, as with all commands."""
        return self._command_ring.ask(Command.ARM).tick

    def run(self) -> int:
        """armed -> running: devices leave their safe values. Refused while an input that would trip is stale."""
        return self._command_ring.ask(Command.RUN).tick

    def pause(self) -> int:
        return self._command_ring.ask(Command.PAUSE).tick

    def resume(self) -> int:
        return self._command_ring.ask(Command.RESUME).tick

    def step(self, count: int = 1) -> int:
        """Grant plant steps while paused or in lockstep; returns the plant step reached after them."""
        return int(self._command_ring.ask(Command.STEP, 0, [float(count)]).value)

    def trip(self) -> int:
        return self._command_ring.ask(Command.TRIP, Cause.OPERATOR).tick

    def clear(self) -> int:
        """tripped -> cleared."""
        return self._command_ring.ask(Command.CLEAR).tick

    def disarm(self) -> int:
        return self._command_ring.ask(Command.DISARM).tick

    def reset(self) -> int:
        """Plant back to its initial state; not while running."""
        return self._command_ring.ask(Command.RESET).tick

    def set_speed(self, speed: float) -> int:
        """Wall-clock speed: 0.1 is slow motion."""
        return self._command_ring.ask(Command.SPEED, 0, [speed]).tick

    def force(self, name: str, value: float) -> int:
        """Impose a value on an input, output or command until it is released."""
        index = _find("signal", name, self._signals, value)
        return self._command_ring.ask(Command.FORCE, index, [value]).tick

    def inject(self, signal: str, kind: str, *, to_s: float | None = None, **parameters: float) -> int:
        """Make a signal go wrong from now on (or until simulated time `to_s`): the slot, for `heal`.

        Kinds and parameters are those of [[signals.faults]]: `node.inject("pendulum.elbow.angle", "bias", value=0.1)`.
        """
        words = self._fault({"to_s": to_s, **parameters}, signal, kind)
        return self._fill(Command.FAULT, self._fault_slots, [words])[0]

    def _fault(self, table: Mapping[str, Any], signal: str, kind: str) -> list[float]:
        """The words of a fault, behind its slot."""
        index = _find("signal", signal, self._signals)
        spec = check_fault({k: v for k, v in {"signal": signal, "kind": kind, **table}.items() if v is not None})
        code, params = fault_params(fault_map(index, spec, self._dt_ns))
        return [float(index), float(code), float(getattr(spec, "seed", 0) % 2**53), *params]

    def heal(self, slot: int) -> int:
        """Remove the injected fault in this slot."""
        return self._empty(Command.FAULT, self._fault_slots, slot)

    def stimulate(self, signal: str, kind: str, *, to_s: float | None = None, **parameters: float) -> int:
        """Drive an input from now on (or until simulated time `to_s`) by a made-up value: the slot, for `calm`.

        Kinds and parameters are those of [[signals.stimulus]], except csv, whose file is read before the start.
        """
        words = self._stimulus({"to_s": to_s, **parameters}, signal, kind)
        return self._fill(Command.STIMULUS, self._stimulus_slots, [words])[0]

    def _stimulus(self, table: Mapping[str, Any], signal: str, kind: str) -> list[float]:
        """The words of a stimulus, behind its slot."""
        index = _find("input", signal, self._signals[: self._n_in])
        whole = {"signal": signal, "kind": kind, "from_s": self.steps * self._dt_ns * 1e-9, **table}
        spec = check_stimulus({k: v for k, v in whole.items() if v is not None})
        if spec.kind == "csv":
            raise ValueError("a csv stimulus is read before the start: write it into the config")
        code, params = wave_params(stimulus_map(index, spec), 0)
        return [float(index), float(code), float(getattr(spec, "seed", 0) % 2**53), *params]

    def calm(self, slot: int) -> int:
        """Remove the stimulus in this slot."""
        return self._empty(Command.STIMULUS, self._stimulus_slots, slot)

    def load(
        self,
        parameters: Mapping[str, float],
        forces: Mapping[str, float],
        faults: Sequence[Mapping[str, Any]],
        stimuli: Sequence[Mapping[str, Any]],
    ) -> tuple[int, dict[str, list[int]]]:
        """Everything at once: the tick at which the last of it took effect, and the slots of faults and stimuli.

        All of it is checked before any of it is asked for. Then it goes to the tick in one go, which takes sixteen
        commands at a time: a small session takes effect in a single tick.
        """
        commands: list[CommandWords] = [
            (Command.PARAMETER, _find("plant parameter", name, self._parameters, value), [value])
            for name, value in parameters.items()
        ]
        commands += [(Command.FORCE, _find("signal", name, self._signals, x), [x]) for name, x in forces.items()]
        made = {
            Command.FAULT: [_checked("faults", k, self._fault, table) for k, table in enumerate(faults)],
            Command.STIMULUS: [_checked("stimuli", k, self._stimulus, table) for k, table in enumerate(stimuli)],
        }
        with self._slots:
            free = {Command.FAULT: self._fault_slots, Command.STIMULUS: self._stimulus_slots}
            given = {op: _first(free[op], len(words)) for op, words in made.items()}
            for op, words in made.items():
                commands += [(op, slot, w) for slot, w in zip(given[op], words, strict=True)]
            answers = self._command_ring.ask_all(commands)
            for op, slots in given.items():
                free[op].difference_update(slots)
        tick = answers[-1].tick if answers else self._control[Word.TICK]
        return tick, {"faults": given[Command.FAULT], "stimuli": given[Command.STIMULUS]}

    def _fill(self, op: Command, slots: set[int], words: Sequence[list[float]]) -> list[int]:
        with self._slots:  # two who ask at the same time must not get the same one
            given = _first(slots, len(words))
            self._command_ring.ask_all([(op, slot, w) for slot, w in zip(given, words, strict=True)])
            slots.difference_update(given)
        return given

    def _empty(self, op: Command, slots: set[int], slot: int) -> int:
        with self._slots:
            if slot in slots or not 0 <= slot < SLOTS:
                raise KeyError(f"slot {slot} is not in use")
            tick = self._command_ring.ask(op, slot).tick
            slots.add(slot)
        return tick

    def advance(self, count: int = 1, *, timeout: float = 2.0) -> None:
        """Lockstep or paused: grant plant steps and return when they are done, as quickly as the tick does them."""
        goal = self.steps + count
        self._command_ring.send(Command.STEP, 0, [float(count)])
        until = time.monotonic() + timeout
        while self.steps < goal:
            if time.monotonic() > until:
                raise TimeoutError(f"step {self.steps} of {goal} after {timeout:g} s: is the node running in lockstep?")
            time.sleep(20e-6)

    @property
    def steps(self) -> int:
        """Plant steps done."""
        return self._control[Word.STEP]

    def release(self, name: str | None = None) -> int:
        """Give a forced signal back, or all of them."""
        return self._command_ring.ask(
            Command.RELEASE, -1 if name is None else _find("signal", name, self._signals)
        ).tick

    def set_parameter(self, name: str, value: float) -> int:
        """A plant parameter, within its limits, at the tick's edge."""
        index = _find("plant parameter", name, self._parameters, value)
        return self._command_ring.ask(Command.PARAMETER, index, [value]).tick


def _first(slots: set[int], count: int) -> list[int]:
    if count > len(slots):
        left = f"only {len(slots)} are left" if slots else "none is left"
        raise RuntimeError(f"{count} of {SLOTS} slots are needed, {left}: take some away first")
    return sorted(slots)[:count]


def _checked(what: str, number: int, words: Callable[..., list[float]], table: Mapping[str, Any]) -> list[float]:
    """The words of one table of a session; an error names it."""
    rest = dict(table)
    signal, kind = rest.pop("signal", None), rest.pop("kind", None)
    if not isinstance(signal, str) or not isinstance(kind, str):
        raise ValueError(f"{what}[{number}] needs signal and kind")
    try:
        return words(rest, signal, kind)
    except (ValueError, LookupError) as error:
        raise ValueError(f"{what}[{number}]: {error}") from error


def _find(what: str, name: str, signals: tuple[Signal, ...], value: float | None = None) -> int:
    """Index of the signal `name`; refuses an unknown name and a value outside its range."""
    names = [s.name for s in signals]
    if name not in names:
        raise UnknownName(f"no {what} {name!r}: {nearest(name, names)}")
    index = names.index(name)
    s = signals[index]
    if value is not None and not s.low <= value <= s.high:
        raise ValueError(f"{name} = {value:g}: outside its range [{s.low:g}, {s.high:g}] {s.unit}")
    return index
