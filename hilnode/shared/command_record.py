"""Orders: a command as it stands in its lane, in plain words and as bytes.

The tick answers a command by an event that has the command's number and the tick, but not what was asked for; that
stands in the lane. Together they tell what happened when, which is what a recording needs to run the plant again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hilnode.events import ANSWERS, Happening
from hilnode.lockfree.ring import Ring
from hilnode.tick.layout import COMMAND_WIDTH, Answer, Event, Op

KEPT = 4096  # orders that wait for their answer; one that never comes is forgotten in the end


@dataclass(frozen=True)
class Order:
    """What was asked for: `index` and `params` mean what `Op` says."""

    op: Op
    index: int
    ident: int
    params: tuple[float, ...]

    @classmethod
    def of(cls, words: NDArray[np.int64]) -> Self:
        """The order in one row of a lane."""
        op, index, ident = (int(w) for w in words[:3])
        return cls(Op(op), index, ident, tuple(words[3:].view(np.float64).tolist()))

    @classmethod
    def from_hex(cls, text: str) -> Self:
        """The order again, every bit of it, from what `hex` gave."""
        return cls.of(np.frombuffer(bytes.fromhex(text), "<i8"))

    def hex(self) -> str:
        words = np.zeros(COMMAND_WIDTH, "<i8")
        words[:3] = self.op, self.index, self.ident
        words[3:] = np.array(self.params, "<f8").view("<i8")
        return words.tobytes().hex()


class OrderBook:
    """Finds the order that an answer belongs to, by reading the lanes of a node beside its tick."""

    def __init__(self, lanes: Sequence[Ring], signals: Sequence[str], parameters: Sequence[str]) -> None:
        """`signals` and `parameters` are names, in the order of a row's signals and of the plant's parameters."""
        self._readers = [lane.reader(first=0) for lane in lanes]
        self._signals, self._parameters = signals, parameters
        self._open: OrderedDict[int, Order] = OrderedDict()

    def look(self) -> None:
        """Read the lanes. Do it after the events were read: an order stands in its lane before it is answered."""
        for reader in self._readers:
            while len(rows := reader.read()):
                for words in rows:
                    order = Order.of(words)
                    self._open[order.ident] = order
        while len(self._open) > KEPT:
            self._open.popitem(last=False)

    def describe(self, happening: Happening) -> dict[str, Any]:
        """What a recording keeps of an event: its own fields and, of an answer, the order."""
        told = happening.as_dict()
        if told["value"] is None:
            del told["value"]
        if happening.code != Event.COMMAND:
            return told
        order = self._open.pop(happening.ident, None)
        if order is None:
            return told | {"op": "unknown", "what": f"a command that was overwritten: {_answer(happening)}"}
        return told | {"op": order.op.name.lower(), "order": order.hex(), "what": self._sentence(order, happening)}

    def _sentence(self, order: Order, happening: Happening) -> str:
        words = order.op.name.lower()
        if order.op == Op.PARAMETER and 0 <= order.index < len(self._parameters):
            words += f" {self._parameters[order.index]} = {order.params[0]:g}"
        elif order.op in (Op.FORCE, Op.RELEASE) and 0 <= order.index < len(self._signals):
            words += f" {self._signals[order.index]}"
            words += f" = {order.params[0]:g}" if order.op == Op.FORCE else ""
        elif order.op in (Op.STEP, Op.SPEED):
            words += f" {order.params[0]:g}"
        elif order.op in (Op.STIMULUS, Op.FAULT):
            signal = int(order.params[0])
            words += f" slot {order.index}" + (f" on {self._signals[signal]}" if order.params[1] else ": taken away")
        return f"{words}: {_answer(happening)}"


def _answer(happening: Happening) -> str:
    return ANSWERS[Answer(happening.index)]
