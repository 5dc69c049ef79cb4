"""Trigger conditions of a scope.

A trigger is a line of text:

    pendulum.elbow.angle > 0.5            level: the first row in which it is so (also <, >=, <=, ==, !=)
    pendulum.elbow.angle rising 0.5       edge: the first row above, after one that was not
    pendulum.elbow.angle falling 0.5      edge: the first row below, after one that was not
    state == tripped                      the state of the node
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass

from hilnode.shared.row import State

COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "=": operator.eq,
    "!=": operator.ne,
}
EDGES = {"rising": operator.gt, "falling": operator.lt}
STATE = "state"
"""The one name that is no signal."""

_FORM = re.compile(r"\s*([\w.]+)\s*(>=|<=|==|!=|=|>|<|\brising\b|\bfalling\b)\s*(\S+)\s*")


class TriggerError(ValueError):
    """A trigger that cannot be read; the message shows one that can."""


@dataclass(frozen=True)
class Trigger:
    """`signal` compared with `level`; an edge needs a row before in which it was not so."""

    signal: str
    how: str
    level: float

    @classmethod
    def parse(cls, text: str) -> Trigger:
        found = _FORM.fullmatch(text)
        if not found:
            raise TriggerError(
                f"trigger {text!r}: write 'SIGNAL > 0.5' (or <, >=, <=, ==, !=), 'SIGNAL rising 0.5', "
                "'SIGNAL falling 0.5' or 'state == tripped'"
            )
        name, how, level = found.groups()
        return cls(name, how, _state(text, how, level) if name == STATE else _number(text, level))

    @property
    def is_edge(self) -> bool:
        return self.how in EDGES

    def fires(self, value: float, before: float | None) -> bool:
        """Whether this row is the one; `before` is the value in the row before it, None if there was none."""
        if not self.is_edge:
            return COMPARE[self.how](value, self.level)
        beyond = EDGES[self.how]
        return before is not None and beyond(value, self.level) and not beyond(before, self.level)

    def __str__(self) -> str:
        level = State(int(self.level)).name.lower() if self.signal == STATE else f"{self.level:g}"
        return f"{self.signal} {self.how} {level}"


def _number(text: str, level: str) -> float:
    try:
        return float(level)
    except ValueError as error:
        raise TriggerError(f"trigger {text!r}: {level!r} is not a number") from error


def _state(text: str, how: str, level: str) -> float:
    if how not in ("==", "=", "!="):
        raise TriggerError(f"trigger {text!r}: a state is compared with == or !=")
    if level.upper() not in State.__members__:
        raise TriggerError(f"trigger {text!r}: the states are {', '.join(s.name.lower() for s in State)}")
    return float(State[level.upper()])
