"""Commands as recorded: a command from its ring, as a sentence and as bytes.

The tick answers a command by an event that has the command's number and the tick, but not what was asked for; that
stands in the ring. Together they tell what happened when, which is what a recording needs to run the plant again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hilnode.shared.codes import COMMAND_WIDTH, Answer, Command, Event
from hilnode.shared.events import ANSWERS, Happening
from hilnode.shared.lockfree.ring import Ring

KEPT = 4096  # commands that wait for their answer; one that never comes is forgotten in the end


@dataclass(frozen=True)
class CommandRow:
    """What was asked for: `index` and `params` mean what `Command` says."""

    op: Command
    index: int
    ident: int
    params: tuple[float, ...]

    @classmethod
    def of(cls, words: NDArray[np.int64]) -> Self:
        """The command in one row of a ring."""
        op, index, ident = (int(w) for w in words[:3])
        return cls(Command(op), index, ident, tuple(words[3:].view(np.float64).tolist()))

    @classmethod
    def from_hex(cls, text: str) -> Self:
        """The command again, every bit of it, from what `hex` gave."""
        return cls.of(np.frombuffer(bytes.fromhex(text), "<i8"))

    def hex(self) -> str:
        words = np.zeros(COMMAND_WIDTH, "<i8")
        words[:3] = self.op, self.index, self.ident
        words[3:] = np.array(self.params, "<f8").view("<i8")
        return words.tobytes().hex()


class CommandBook:
    """Finds the command that an answer belongs to, by reading the command rings of a node beside its tick."""

    def __init__(self, rings: Sequence[Ring], signals: Sequence[str], parameters: Sequence[str]) -> None:
        """`signals` and `parameters` are names, in the order of a row's signals and of the plant's parameters."""
        self._readers = [ring.reader(first=0) for ring in rings]
        self._signals, self._parameters = signals, parameters
        self._open: OrderedDict[int, CommandRow] = OrderedDict()

    def look(self) -> None:
        """Read the rings. Do it after the events were read: a command stands in its ring before it is answered."""
        for reader in self._readers:
            while len(rows := reader.read()):
                for words in rows:
                    command = CommandRow.of(words)
                    self._open[command.ident] = command
        while len(self._open) > KEPT:
            self._open.popitem(last=False)

    def describe(self, happening: Happening) -> dict[str, Any]:
        """What a recording keeps of an event: its own fields and, of an answer, the command."""
        told = happening.as_dict()
        if told["value"] is None:
            del told["value"]
        if happening.code != Event.COMMAND:
            return told
        command = self._open.pop(happening.ident, None)
        if command is None:
            return told | {"op": "unknown", "what": f"a command that was overwritten: {_answer(happening)}"}
        return told | {
            "op": command.op.name.lower(),
            "order": command.hex(),
            "what": self._sentence(command, happening),
        }

    def _sentence(self, command: CommandRow, happening: Happening) -> str:
        words = command.op.name.lower()
        if command.op == Command.PARAMETER and 0 <= command.index < len(self._parameters):
            words += f" {self._parameters[command.index]} = {command.params[0]:g}"
        elif command.op in (Command.FORCE, Command.RELEASE) and 0 <= command.index < len(self._signals):
            words += f" {self._signals[command.index]}"
            words += f" = {command.params[0]:g}" if command.op == Command.FORCE else ""
        elif command.op in (Command.STEP, Command.SPEED):
            words += f" {command.params[0]:g}"
        elif command.op in (Command.STIMULUS, Command.FAULT):
            signal = int(command.params[0])
            words += f" slot {command.index}" + (
                f" on {self._signals[signal]}" if command.params[1] else ": taken away"
            )
        return f"{words}: {_answer(happening)}"


def _answer(happening: Happening) -> str:
    return ANSWERS[Answer(happening.index)]
