"""The real loop on a test bench: no thread, no helper process, no privilege; rows, events and answers when it is over.

    bench = Bench(config(wire_in("u.0", "dev.in.0")), pass_through(), last_tick=100)
    bench.letter("dev", [2.0])
    bench.start()                          # arm and run, in tick 0
    refused = bench.at(50, Command.ARM)         # any command at the edge of any tick
    assert bench.run() == Exit.ENDED
    assert bench.rows["y.0"][60] == 2.0 and bench.answers[refused].index == Answer.WRONG_STATE

Everything is put together as in `hilnode/node/node.py`. The loop takes a fixed number of commands per ring and tick, so
a ring that is filled up with commands that do nothing delivers each one at exactly the tick it was meant for.
"""

from __future__ import annotations

import ctypes
import itertools
import json
import os
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from drivers import registry as driver_kinds
from hilnode.config.assemble import Buffers, assemble
from hilnode.config.config import Config, load, overlay
from hilnode.config.wiring import resolve
from hilnode.core.struct import Struct
from hilnode.shared.codes import COMMAND_WIDTH, EVENT_WIDTH, Command, Event
from hilnode.shared.command_ring import CommandRing
from hilnode.shared.control import Control, Word
from hilnode.shared.events import EventDecoder, Happening
from hilnode.shared.lockfree.mailbox import Mailbox
from hilnode.shared.lockfree.ring import LINE, Ring
from hilnode.shared.row import POSE, Col, Flag, Schema
from hilnode.tick.commands import MOST
from hilnode.tick.layout import Exit, L
from hilnode.tick.loop import run
from plant import registry as plant_kinds
from plant.abi import Plant, Task

MS = 1_000_000  # [ns]
NOTHING = 1000  # an op that no tick knows: it is answered and changes nothing
_STEP = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 2, *[ctypes.c_void_p] * 4)
_numbers = itertools.count()


class Bench:
    """One run of the loop: prepare, `run` once, look."""

    def __init__(
        self, toml: str = "", plant: Plant | None = None, *, last_tick: int = 100, keep: int | None = None
    ) -> None:
        self.config = _load(toml)
        c = self.config
        self.plant = plant or plant_kinds.create(c.plant.kind, c.node.period_ns * 1e-9, c.plant.options)
        self.last_tick = last_tick
        self.answers: dict[int, Happening] = {}
        self.events: list[Happening] = []
        self.seconds = 0.0  # wall time of the run
        self._keep = keep or last_tick or 10_000
        self._due: dict[int, list[tuple[int, int, int, Sequence[float]]]] = {}
        self._idents = itertools.count(1)
        self._callbacks: list[Any] = []
        self._wire()

    def _wire(self) -> None:
        c, name = self.config, self.config.node.name
        drivers = {n: driver_kinds.create(d.kind, n, d.options) for n, d in c.drivers.items()}
        self.wiring = resolve(
            c,
            plant_inputs=self.plant.inputs,
            plant_outputs=self.plant.outputs,
            plant_parameters=self.plant.parameters,
            device_inputs={n: d.inputs for n, d in drivers.items()},
            device_outputs={n: d.outputs for n, d in drivers.items()},
        )
        commands = tuple(m.signal for m in self.wiring.commands)
        self.schema = Schema(c.node.period_ns, self.plant.inputs, self.plant.outputs, commands, self.plant.bodies)
        self.control = Control.create(name)
        self.inboxes = {n: Mailbox.create(f"{name}.in.{n}", channels=len(d.inputs)) for n, d in drivers.items()}
        driven = {n: sum(m.driver == n for m in self.wiring.commands) for n in drivers}
        self.outboxes = {n: Mailbox.create(f"{name}.out.{n}", channels=k) for n, k in driven.items() if k}
        self.commands = CommandRing(f"{name}.commands")
        self._rows = Ring.create(
            f"{name}.rows", capacity=max(64, self._keep + 1), width=self.schema.words, schema=self.schema.hash
        )
        self._open: list[Any] = [
            self.control,
            *self.inboxes.values(),
            *self.outboxes.values(),
            self.commands,
            self._rows,
        ]

    # -- what shall happen ------------------------------------------------------------------------------------------

    def index(self, signal: str) -> int:
        """Index of a signal among inputs, outputs and commands."""
        return [s.name for s in self.schema.signals].index(signal)

    def at(self, tick: int, op: int, index: int | str = 0, params: Sequence[float] = ()) -> int:
        """A command at the edge of `tick`; returns the id under which `answers` has its answer."""
        ident = next(self._idents)
        number = self.index(index) if isinstance(index, str) else index
        self._due.setdefault(tick, []).append((int(op), number, ident, params))
        assert len(self._due[tick]) <= MOST, f"the loop takes {MOST} commands per tick"
        return ident

    def start(self, tick: int = 0) -> None:
        """Arm and run."""
        self.at(tick, Command.ARM)
        self.at(tick, Command.RUN)

    def letter(self, driver: str, values: Sequence[float], *, age_s: float = 0.0, stamp: int | None = None) -> int:
        """Deliver what a device has measured `age_s` ago, or at `stamp` [ns]; the time it was measured."""
        if stamp is None:
            stamp = time.monotonic_ns() - round(age_s * 1e9)
        self.inboxes[driver].put(np.array(values, float), stamp)
        return stamp

    def on_step(self, call: Callable[[int], int | None], *, every: int = 1, phase: int = 0) -> None:
        """Call `call(n)` after the plant in plant step n, or in some of them; what it returns is a status."""

        def step(_self: int, n: int, *_: Any) -> int:
            return call(n) or 0

        callback = _STEP(step)
        address = ctypes.cast(callback, ctypes.c_void_p).value
        assert address is not None
        self._callbacks.append(callback)
        self.plant = replace(self.plant, tasks=(*self.plant.tasks, Task("script", address, 0, every, phase)))

    # -- the run ----------------------------------------------------------------------------------------------------

    def run(self, *, stop_after_s: float | None = None) -> Exit:
        """Run the loop to its end in this very thread; ask it to stop after so long, if it should not end by itself."""
        commands = self._commands()
        name = self.config.node.name
        events = Ring.create(f"{name}.events", capacity=4096 + len(commands), width=EVENT_WIDTH)
        schedule = Ring.create(f"{name}.schedule", capacity=16 + len(commands), width=COMMAND_WIDTH)
        self._open += [events, schedule]
        rings = [self.commands.ring, schedule]
        buffers = Buffers(self.control.segment.address, self._rows, events, rings, self.inboxes, self.outboxes)
        self.tick = assemble(self.config, self.wiring, self.schema, self.plant, buffers, last_tick=self.last_tick)
        record = Struct(self.tick)
        self._dry_run(record)
        reader = events.reader()
        schedule.segment.words[LINE : LINE + commands.size] = commands.ravel()
        schedule.segment.words[0] = len(commands)
        stopper = threading.Timer(stop_after_s or 0.0, self.control.__setitem__, (Word.STOP, 1))
        if stop_after_s is not None:
            stopper.start()
        began = time.perf_counter()
        reason = Exit(run(record.address))
        self.seconds = time.perf_counter() - began
        stopper.cancel()
        self._hear(reader)
        self.rows = self._read_rows()
        return reason

    def _commands(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Every command of the run, with as many idle ones between them as it takes."""
        commands = np.zeros((MOST * (max(self._due, default=-1) + 1), COMMAND_WIDTH), np.int64)
        commands[:, 0] = NOTHING
        for tick, due in self._due.items():
            for k, (op, index, ident, params) in enumerate(due):
                row = commands[MOST * tick + k]
                row[:3] = op, index, ident
                row[3 : 3 + len(params)] = np.array(params, float).view(np.int64)
        return commands

    def _dry_run(self, record: Struct) -> None:
        """As the node does before it starts: leaves the devices at their safe values."""
        live = self.tick.live.i.copy()
        self.control[Word.STOP] = 1
        run(record.address)
        self.tick.live.i[:] = live
        self.control[Word.STOP] = self.control[Word.HEARTBEAT] = self.control[Word.STATE] = 0

    def _hear(self, reader: Any) -> None:
        decoder = EventDecoder(self.schema, [a.name for a in self.wiring.alarms], self.plant.explain)
        while len(words := reader.read()):
            heard = [decoder.decode(w) for w in words]
            self.events += [h for h in heard if h.code != Event.COMMAND]
            self.answers |= {h.ident: h for h in heard if h.code == Event.COMMAND and h.ident}
        assert reader.lost == 0

    def _read_rows(self) -> np.ndarray[Any, Any]:
        """Columns by name: `tick`, `wake`, ..., every signal, `age:<input>`, and `poses` [bodies, 7]."""
        s = self.schema
        fields: list[Any] = [(c.name.lower(), np.int64) for c in Col]
        fields += [(x.name, float) for x in s.inputs]
        fields += [(f"age:{x.name}", float) for x in s.inputs]
        fields += [(x.name, float) for x in (*s.outputs, *s.commands)]
        fields += [("poses", float, (len(s.bodies), POSE))] if s.bodies else []
        kept = min(len(self._rows), self._keep)
        words = self._rows.reader(first=len(self._rows) - kept, batch=max(1, kept)).read().copy()
        assert len(words) == kept
        return words.view(np.dtype(fields))[:, 0]

    # -- afterwards -------------------------------------------------------------------------------------------------

    def flagged(self, flag: Flag) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """By row: whether it carries the flag."""
        return (self.rows["flags"] & int(flag)) != 0

    def heard(self, code: Event) -> list[Happening]:
        """All events of a kind, in order."""
        return [h for h in self.events if h.code == code]

    def live(self, word: L) -> int:
        """A word of the loop's own memory, now."""
        return int(self.tick.live.i[word])

    def close(self) -> None:
        for thing in self._open:
            thing.close()


def config(*tables: str, node: str = 'pace = "free"', bumpless_ms: float = 0.0, channels: int = 1) -> str:
    """A config as fast as possible, with a device `dev` of so many channels each way; `tables` are more TOML."""
    head = f"""
        [node]
        {node}
        [safety]
        bumpless_ms = {bumpless_ms}
        [drivers.dev]
        kind = "loopback"
        channels = {channels}
    """
    return "\n".join([head, *tables])


def stimulus(kind: str, signal: str = "u.0", **keys: object) -> str:
    """The table of one stimulus."""
    return _table("signals.stimulus", {"kind": kind, "signal": signal, **keys})


def fault(kind: str, signal: str, **keys: object) -> str:
    """The table of one fault."""
    return _table("signals.faults", {"kind": kind, "signal": signal, **keys})


def alarm(signal: str, **keys: object) -> str:
    """The table of one alarm."""
    return _table("safety.alarms", {"signal": signal, **keys})


def wire_in(signal: str = "u.0", source: str = "dev.in.0", **keys: object) -> str:
    """The table of an input that comes from a device; without a source it has only the other keys."""
    return _table(f'signals.inputs."{signal}"', {**({"from": source} if source else {}), **keys}, one=True)


def wire_out(channel: str = "dev.out.0", source: str = "y.0", **keys: object) -> str:
    """The table of a command."""
    return _table(f'signals.outputs."{channel}"', {"from": source, **keys}, one=True)


def _table(name: str, keys: dict[str, object], *, one: bool = False) -> str:
    lines = [f"[{name}]" if one else f"[[{name}]]"]
    return "\n".join([*lines, *(f"{k} = {json.dumps(v)}" for k, v in keys.items()), ""])


def _load(toml: str) -> Config:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.toml"
        path.write_text(toml)
        return overlay(load(path), **{"node.name": f"tick-{os.getpid()}-{next(_numbers)}"})
