"""The monitor's two dialogs: confirm a run, and enter a value to force."""

from __future__ import annotations

import math
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from bridge.monitor.history import limits
from hilnode.core.signals import Signal

FRAME = """
{name} {{ align: center middle; }}
{name} > Vertical {{ width: 64; max-width: 100%; height: auto; border: solid $primary; padding: 0 1; }}
"""


class Sure(ModalScreen[bool]):
    """Yes by `y`; everything else is no, so that an Enter too many does not move a machine."""

    CSS = FRAME.format(name="Sure")
    BINDINGS: ClassVar[list[BindingType]] = [Binding("y", "yes"), Binding("n,escape,enter", "no")]

    def __init__(self, question: str) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(self._question, markup=False)
            yield Static("y  yes      n, Esc  no", markup=False)

    def action_yes(self) -> None:
        self.dismiss(True)

    def action_no(self) -> None:
        self.dismiss(False)


class AskValue(ModalScreen[float | None]):
    """A value for a signal, within its limits; None if nothing is to be done."""

    CSS = FRAME.format(name="AskValue")
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave")]

    def __init__(self, signal: Signal, value: float) -> None:
        super().__init__()
        self._signal, self._value = signal, value

    def compose(self) -> ComposeResult:
        s = self._signal
        allowed = limits(s.low, s.high) or "no limits"
        with Vertical():
            yield Static(f"Force {s.name} [{s.unit}]" + (f"\n{s.doc}" if s.doc else ""), markup=False)
            yield Static(f"now {self._value:g}, limits {allowed}", markup=False)
            yield Input(placeholder="value", id="value")
            yield Static("Enter forces it until it is released, Esc leaves it", markup=False, id="hint")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        value, why = checked(event.value, self._signal)
        if why:
            self.query_one("#hint", Static).update(why)
        else:
            self.dismiss(value)

    def action_leave(self) -> None:
        self.dismiss(None)


def checked(text: str, signal: Signal) -> tuple[float, str]:
    """The number in what was typed, and what is wrong with it, if anything."""
    try:
        value = float(text.strip().replace(",", "."))
    except ValueError:
        return math.nan, f"{text.strip()!r} is not a number"
    if not math.isfinite(value) or not signal.low <= value <= signal.high:
        return value, f"{value:g} is outside {limits(signal.low, signal.high) or 'the finite numbers'} {signal.unit}"
    return value, ""
