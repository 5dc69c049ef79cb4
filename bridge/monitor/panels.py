"""The smaller panels of the screen: status, timing, devices, events, keys; each is text from the model."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from rich.text import Text
from textual.widget import Widget

from bridge.monitor.histogram import axis, bars
from bridge.monitor.model import Model

STATES = {
    "configured": "white on blue",
    "armed": "black on yellow",
    "running": "black on green",
    "tripped": "white on red",
    "cleared": "black on cyan",
    "stopped": "white on black",
}
HEALTH = {"up": "green", "degraded": "yellow", "connecting": "yellow", "down": "red"}
LOUD = {"trip": "red", "alarm": "red", "overrun": "yellow", "stale": "yellow", "invalid": "yellow", "halt": "red"}
BARS = 3  # rows of the histogram

Say = Callable[[Model, int, int], Text]
"""Text of a panel from the model, the panel's width and its height."""


class Panel(Widget):
    """A piece of the screen that `say` fills."""

    DEFAULT_CSS = "Panel { text-wrap: nowrap; text-overflow: ellipsis; }"

    def __init__(self, model: Model, say: Say, *, id: str) -> None:
        super().__init__(id=id)
        self._model, self._say = model, say

    def render(self) -> Text:
        return self._say(self._model, self.size.width, self.size.height)


def headline(model: Model, width: int, height: int) -> Text:
    """Which node, its state and its time; while it is not heard, for how long, and what it was."""
    name, state = model.about.get("node", "?"), model.state.get("state", "unknown")
    text = Text(f" {name} ", style="bold")
    if model.trouble or model.silence(time.monotonic()):
        passed = time.monotonic() - model.heard_at
        text.append(f" was {state} ", "reverse" if model.state else "dim")
        text.append(f"  no messages for {passed:.0f} s" if math.isfinite(passed) else "  no messages yet", "bold red")
        return text
    text.append(f" {state.upper()} ", STATES.get(state, "reverse"))
    if model.paused:
        text.append(" PAUSED ", "black on yellow")
    if model.state:
        text.append(f"  t {model.state['t']:.2f} s  tick {model.state['tick']}  overruns {model.overruns}")
    return text.append(f"  role {model.about.get('role', '?')}", "dim")


def timing(model: Model, width: int, height: int) -> Text:
    """The histogram of wake latencies, and numbers of the last second."""
    counts = model.wake.counts
    text = Text(f"wake latency, {model.wake.total} ticks, log\n", style="bold")
    for row in bars(counts, max(1, min(BARS, height - 4))):
        text.append(row + "\n", "green")
    text.append(axis() + "\n", "dim")
    if model.timing:
        for name, key in (("wake", "wake_us"), ("step", "step_us")):
            of = model.timing[key]
            text.append(f"{name} p50 {of['p50']:.0f} p99 {of['p99']:.0f} max {of['max']:.0f} us\n")
    return text


def devices(model: Model, width: int, height: int) -> Text:
    """How the drivers are doing, and what the bridge has counted."""
    text = Text("drivers\n", style="bold")
    room = max(0, height - 3)
    shown = list(model.drivers.items())
    hidden = len(shown) - room
    for name, d in shown[: room - 1] if hidden > 0 else shown:
        text.append(f"{name:<10} ")
        text.append(d["state"], HEALTH.get(d["state"], ""))
        text.append(" twin" if d["twin"] else "", "cyan")
        text.append(f" {d['frames'] or d['writes']} frames" + (f" {d['errors']} errors" if d["errors"] else ""))
        text.append(_periods(d))
        text.append(f" {d['trouble']}\n" if d["trouble"] else "\n", "red")
    if hidden > 0:
        text.append(f"and {hidden + 1} more: hilnode drivers\n", "dim")
    if not shown:
        text.append("none\n", "dim")
    return text.append_text(_counts(model))


def _periods(driver: dict[str, float]) -> str:
    p99 = driver.get("period_p99_us", math.nan)
    return f" p99 {p99 / 1e3:.1f} ms" if math.isfinite(p99) else ""


def _counts(model: Model) -> Text:
    commands = model.bridge.get("commands", {})
    refused = sum(count for reason, count in commands.items() if reason != "done")
    text = Text(f"requests {commands.get('done', 0)} done, {refused} refused\n", "yellow" if refused else "dim")
    lost = model.bridge.get("lost", 0) + model.lost
    told = f"lost {model.bridge.get('lost', 0)} at the bridge, {model.lost} on the way"
    return text.append(told, "yellow" if lost else "dim")


def happenings(model: Model, width: int, height: int) -> Text:
    """The last events, the newest at the bottom; above them why there is no connection, if so."""
    text = Text(model.trouble, style="bold red") if model.trouble else Text("events", style="bold")
    shown = list(model.events)[-max(1, height - 1) :]
    for tick, kind, sentence in shown:
        text.append(f"\n{tick:>9} ", "not bold default dim")
        text.append(sentence, f"not bold {LOUD.get(kind, 'default')}")
    if not shown:
        text.append("\nnone since you came", "not bold default dim")
    return text


def keys(model: Model, width: int, height: int) -> Text:
    """What can be pressed; who may only watch sees no commands."""
    text = Text(style="dim")
    if model.may_operate:
        for key, word in (("F2", "arm"), ("F3", "run"), ("F4", "pause"), ("F5", "resume"), ("F6", "clear")):
            text.append(key, "bold not dim").append(f" {word} ")
        text.append("F9 TRIP", "bold white on red not dim").append(" ")
        text.append("↵", "bold not dim").append(" force ").append("Del", "bold not dim").append(" release ")
    else:
        text.append("you may watch only ", "not dim")
        text.append("type", "bold not dim").append(" to filter ").append("Esc", "bold not dim").append(" shows all ")
    return text.append("^Q", "bold not dim").append(" quit")
