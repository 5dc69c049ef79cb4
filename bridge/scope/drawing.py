"""Draws a shot as lines of text: one lane per unit, a time axis, the trigger, two cursors and their readings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from rich.text import Text

from bridge.scope.braille import EMPTY, Canvas
from bridge.scope.capture import Shot
from bridge.scope.save import lanes, title

COLORS = ("cyan", "yellow", "green", "magenta", "red", "blue", "white")
MARGIN = 11  # columns left of the lanes, for their scales
LEAST_LANE = 2  # rows
TRIGGER, CURSOR = "┊", "│"


@dataclass(frozen=True)
class View:
    """Which rows are shown, and where the cursors stand; all are indices into the shot."""

    first: int
    last: int
    cursors: tuple[int, int] | None = None
    active: int = 0

    @classmethod
    def whole(cls, shot: Shot) -> View:
        return cls(0, max(0, len(shot.recording) - 1))


def draw(shot: Shot, width: int, height: int, view: View | None = None) -> list[Text]:
    """At most `height` lines, as far as every lane can have its least height."""
    if len(shot.recording) < 2:
        return [Text("no rows yet")]
    view = view or View.whole(shot)
    groups = lanes(shot)
    color = {name: COLORS[k % len(COLORS)] for k, name in enumerate(shot.recording)}
    columns = max(10, width - MARGIN)
    room = height - 2 - len(color) - (1 if view.cursors else 0)
    rows = max(LEAST_LANE, room // len(groups))
    marks = _marks(shot, view, columns)
    text = [Text(title(shot), style="bold")]
    for unit, names in groups.items():
        text += _lane(shot, view, unit, names, columns, rows, marks)
    text.append(_time_axis(shot, view, columns))
    text += [_reading(shot, view, name, color[name]) for name in shot.recording]
    if view.cursors:
        text.append(_between(shot, view.cursors))
    return text


def scale(low: float, high: float) -> tuple[float, float]:
    """Ends of an axis that has these values on it; a flat line lies in the middle."""
    if not low < high:
        spread = 0.5 * abs(low) or 0.5
        return low - spread, low + spread
    return low, high


def seconds(value: float, span: float) -> str:
    """A time in a unit that suits the whole picture."""
    for factor, unit in ((1.0, "s"), (1e3, "ms")):
        if span * factor >= 2.0:
            return f"{value * factor:.4g} {unit}"
    return f"{value * 1e6:.4g} us"


def _place(shot: Shot, view: View, index: int, columns: int) -> int:
    """The column of a row."""
    at = shot.seconds
    begin, end = float(at[view.first]), float(at[view.last])
    return round((float(at[index]) - begin) / max(end - begin, 1e-12) * (columns - 1))


def _marks(shot: Shot, view: View, columns: int) -> dict[int, tuple[str, str]]:
    """Columns with a line through them: its character and its style."""
    marks = {}
    if shot.trigger and view.first <= shot.at <= view.last:
        marks[_place(shot, view, shot.at, columns)] = (TRIGGER, "dim")
    for k, cursor in enumerate(view.cursors or ()):
        if view.first <= cursor <= view.last:
            marks[_place(shot, view, cursor, columns)] = (CURSOR, "bold" if k == view.active else "dim")
    return marks


def _lane(
    shot: Shot, view: View, unit: str, names: list[str], columns: int, rows: int, marks: dict[int, tuple[str, str]]
) -> list[Text]:
    part = slice(view.first, view.last + 1)
    values = {name: shot.recording[name][part] for name in names}
    known = np.concatenate([v[np.isfinite(v)] for v in values.values()])
    low, high = scale(float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
    at = shot.seconds[part]
    x = (at - at[0]) / max(float(at[-1] - at[0]), 1e-12)
    canvas, order = Canvas(columns, rows), list(shot.recording)
    for name, v in values.items():
        canvas.curve(x, (v - low) / (high - low), order.index(name) % len(COLORS))
    scales = [""] * rows
    scales[0], scales[-1] = f"{high:.4g} {unit}", f"{low:.4g}"
    return [_line(f"{s[: MARGIN - 1]:>{MARGIN - 1}} ", c, canvas.color[r].tolist(), marks)
            for r, (s, c) in enumerate(zip(scales, canvas.lines(), strict=True))]  # fmt: skip


def _line(label: str, characters: str, colors: list[int], marks: dict[int, tuple[str, str]]) -> Text:
    text = Text(label, style="dim")
    for column, (character, color) in enumerate(zip(characters, colors, strict=True)):
        if ord(character) == EMPTY:
            text.append(*marks.get(column, (" ", "")))
        else:
            text.append(character, f"{COLORS[color]} not dim")
    return text


def _time_axis(shot: Shot, view: View, columns: int) -> Text:
    at = shot.seconds
    begin, end = float(at[view.first]), float(at[view.last])
    left, right = seconds(begin, end - begin), seconds(end, end - begin)
    line = list(f"{left}{right:>{max(0, columns - len(left))}}")
    zero = _place(shot, view, shot.at, columns)
    if shot.trigger and len(left) < zero < columns - len(right) - 1:
        line[zero] = "0"
    return Text(" " * MARGIN + "".join(line), style="dim")


def _reading(shot: Shot, view: View, name: str, color: str) -> Text:
    values = shot.recording[name]
    text = Text("━━ ", style=color).append(name, "not dim default").append(f" [{shot.units[name]}]", "dim default")
    if view.cursors:
        a, b = (float(values[k]) for k in view.cursors)
        return text.append(f"  A {a:.6g}  B {b:.6g}  B-A {b - a:.6g}", "default")
    part = values[view.first : view.last + 1]
    return text.append(f"  least {np.fmin.reduce(part):.6g}  greatest {np.fmax.reduce(part):.6g}", "default")


def _between(shot: Shot, cursors: tuple[int, int]) -> Text:
    a, b = (float(shot.seconds[k]) for k in cursors)
    dt = b - a
    text = f"A {a:.6g} s  B {b:.6g} s  dt {dt:.6g} s"
    return Text(text + (f"  1/dt {1 / abs(dt):.5g} Hz" if dt else ""))
