"""A command ring: Python sends commands to the tick and waits for their answers."""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Sequence

import numpy as np

from hilnode.shared.codes import COMMAND_WIDTH, PARAMS, Answer, Command, Event
from hilnode.shared.events import ANSWERS, Happening
from hilnode.shared.lockfree.ring import Ring

CAPACITY = 1024  # commands that may wait; the tick takes 16 per tick
MOST_AT_ONCE = 256  # of one session: others must find room too

CommandWords = tuple[Command, int, Sequence[float]]
"""A command: what, which one, and its parameters."""


class CommandRefused(RuntimeError):
    """The tick said no; `answer` and `detail` say why."""

    def __init__(self, op: Command, answer: Answer, detail: float) -> None:
        super().__init__(f"{op.name.lower()}: {ANSWERS[answer]}")
        self.op, self.answer, self.detail = op, answer, detail


class CommandRing:
    """One source of commands. Its methods may be called from any thread; this object is the ring's one writer."""

    def __init__(self, name: str) -> None:
        self.ring = Ring.create(name, capacity=CAPACITY, width=COMMAND_WIDTH)
        self._lock = threading.Lock()
        self._ids = itertools.count((os.getpid() << 32) + 1)
        self._row = np.zeros(COMMAND_WIDTH, np.int64)
        self._waiting: dict[int, tuple[threading.Event, list[Happening]]] = {}

    def send(self, op: Command, index: int = 0, params: Sequence[float] = ()) -> None:
        """Put a command into the ring and do not wait for what becomes of it."""
        with self._lock:
            self._push(op, index, params)

    def ask(self, op: Command, index: int = 0, params: Sequence[float] = (), *, timeout: float = 2.0) -> Happening:
        """Send a command and wait for its answer: the event, with the tick at which it took effect.

        Raises CommandRefused if the tick says no and TimeoutError if it says nothing. Needs somebody to feed `hear`.
        """
        return self.ask_all([(op, index, params)], timeout=timeout)[0]

    def ask_all(self, commands: Sequence[CommandWords], *, timeout: float = 2.0) -> list[Happening]:
        """Send commands one right behind the other and wait for all answers; the first that is none is raised."""
        answers: list[Happening] = []
        for first in range(0, len(commands), MOST_AT_ONCE):
            answers += self._ask_some(commands[first : first + MOST_AT_ONCE], timeout)
        return answers

    def _ask_some(self, commands: Sequence[CommandWords], timeout: float) -> list[Happening]:
        asked: list[tuple[Command, int, threading.Event, list[Happening]]] = []
        with self._lock:
            for op, index, params in commands:
                done: threading.Event = threading.Event()
                heard: list[Happening] = []
                asked.append((op, self._push(op, index, params, (done, heard)), done, heard))
        until = time.monotonic() + timeout
        for _, _, done, _ in asked:
            done.wait(max(0.0, until - time.monotonic()))
        with self._lock:
            for _, ident, _, _ in asked:
                del self._waiting[ident]
        for op, _, done, heard in asked:
            if not done.is_set():
                raise TimeoutError(f"{op.name.lower()}: no answer from the tick within {timeout:g} s")
            answer = Answer(heard[0].index)
            if answer != Answer.DONE:
                raise CommandRefused(op, answer, heard[0].value)
        return [heard[0] for _, _, _, heard in asked]

    def _push(
        self,
        op: Command,
        index: int,
        params: Sequence[float],
        waiting: tuple[threading.Event, list[Happening]] | None = None,
    ) -> int:
        if len(params) > PARAMS:
            raise ValueError(f"{op.name}: at most {PARAMS} parameters, got {len(params)}")
        ident = next(self._ids)
        if waiting:
            self._waiting[ident] = waiting
        self._row[:] = 0
        self._row[:3] = op, index, ident
        self._row[3 : 3 + len(params)] = np.array(params, float).view(np.int64)
        self.ring.push(self._row)
        return ident

    def hear(self, happening: Happening) -> None:
        """Give every event to this; it picks out the answers to its own commands."""
        if happening.code != Event.COMMAND:
            return
        with self._lock:
            waiting = self._waiting.get(happening.ident)
        if waiting:
            waiting[1].append(happening)
            waiting[0].set()

    def close(self) -> None:
        self.ring.close()
