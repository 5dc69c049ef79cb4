"""A twin: simulates the device behind a driver of any kind, so that a whole config runs without hardware.

It has the channels of the real driver, whose options are checked as ever; nothing is opened. `twin = true` in a
driver's table puts it in: inputs stand at their defaults, and one with the name of an output says what was written
there. `twin = { force = "20 * sin(2 * pi * t)", angle = 0.5, speed = "ref - 0.1" }` says more: numbers, or formulas
of the time `t` [s] and of the outputs (a dot in a name is written as `_`).
"""

from __future__ import annotations

import ast
import math
import time
from collections.abc import Mapping
from types import CodeType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drivers.base import Driver, OptionError
from hilnode.core.signals import nearest

PERIOD = 0.001  # [s] between two readings
FUNCTIONS = {
    name: getattr(math, name)
    for name in ("sin", "cos", "tan", "asin", "acos", "atan", "atan2", "exp", "log", "sqrt", "floor", "fmod")
} | {"abs": abs, "min": min, "max": max}
CONSTANTS = {"pi": math.pi}
ALLOWED = (
    ast.Expression, ast.BinOp, ast.UnaryOp, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Mod, ast.Pow, ast.USub, ast.UAdd,
    ast.Compare, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.IfExp, ast.Name, ast.Load, ast.Constant, ast.Call,
)  # fmt: skip


class Twin(Driver):
    """Stands in for `real`."""

    kind = "twin"
    external = False

    def __init__(self, real: Driver, given: Any) -> None:
        super().__init__(real.name, real.options)
        self.inputs, self.outputs = real.inputs, real.outputs
        if given is not True and not isinstance(given, Mapping):
            raise OptionError(
                f"drivers.{self.name}.twin = {given!r}: must be true, false or a table of channel = number or formula"
            )
        formulas: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
        known = [s.name for s in self.inputs]
        for key in formulas:
            if key not in known:
                raise OptionError(f"drivers.{self.name}.twin.{key}: is no input of this driver: {nearest(key, known)}")
        self._names = {s.name.replace(".", "_"): k for k, s in enumerate(self.outputs)}
        self._written = np.array([s.safe for s in self.outputs], float)
        self._formulas = [self._formula(s.name, formulas.get(s.name), s.default) for s in self.inputs]
        self._began = self._due = 0.0

    def open(self) -> None:
        self._began = self._began or time.monotonic()

    def read(self, values: NDArray[np.float64], stamps: NDArray[np.int64]) -> int:
        early = time.monotonic()
        self._due = max(self._due + PERIOD, early)  # on a grid: a sleep that was late does not make the next one late
        time.sleep(self._due - early)
        now = time.monotonic_ns()
        values[:] = self._answers(now * 1e-9 - self._began)
        stamps[:] = now
        return True

    def write(self, values: NDArray[np.float64]) -> None:
        self._written[:] = values

    def _answers(self, t: float) -> list[float]:
        written = self._written.tolist()
        names = {name: written[k] for name, k in self._names.items()} | {"t": t}
        return [f if isinstance(f, float) else _evaluate(f, names) for f in self._formulas]

    def _formula(self, channel: str, given: Any, default: float) -> float | CodeType:
        """A number as it is, text as a compiled formula, nothing as an echo or the default."""
        where = f"drivers.{self.name}.twin.{channel}"
        if given is None:
            given = channel.replace(".", "_") if channel.replace(".", "_") in self._names else default
        if isinstance(given, (int, float)) and not isinstance(given, bool):
            return float(given)
        if not isinstance(given, str):
            raise OptionError(f"{where} = {given!r}: must be a number or a formula")
        try:
            tree = ast.parse(given, mode="eval")
            known = {"t", *self._names, *FUNCTIONS, *CONSTANTS}
            for node in ast.walk(tree):
                _check(node, known)
            return compile(tree, where, "eval")
        except (SyntaxError, ValueError, OverflowError, RecursionError) as error:
            raise OptionError(f"{where} = {given!r}: {error}") from error


def _check(node: ast.AST, known: set[str]) -> None:
    """Arithmetic and nothing else: a formula is no program."""
    if not isinstance(node, ALLOWED):
        raise ValueError(f"{type(node).__name__} has no place in a formula: it is made of numbers, t, outputs, + - * /")
    if isinstance(node, ast.Name) and node.id not in known:
        raise ValueError(f"{node.id!r} is not known: {nearest(node.id, sorted(known))}")
    if isinstance(node, ast.Constant):
        if isinstance(node.value, bool) or not isinstance(node.value, (int, float)):
            raise ValueError(f"{node.value!r} is no number")
        node.value = float(node.value)  # powers of whole numbers have no end
    if isinstance(node, ast.Call) and getattr(node.func, "id", "t") in known - FUNCTIONS.keys():
        raise ValueError(f"only these can be called: {', '.join(FUNCTIONS)}")


def _evaluate(code: CodeType, names: dict[str, float]) -> float:
    """The formula's value; NaN where it has none, which the tick flags like that of any device."""
    try:
        return float(eval(code, {"__builtins__": {}, **FUNCTIONS, **CONSTANTS}, names))
    except (ArithmeticError, ValueError, TypeError):
        return math.nan
