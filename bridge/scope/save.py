"""Saves a shot: values as CSV, a plot by matplotlib."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from bridge.scope.capture import Shot

COLORS = ("#2a6fb0", "#c8382e", "#3f8f5b", "#b8860b", "#7a4fa3", "#22303c")


class PlotUnavailable(RuntimeError):
    """matplotlib is not installed."""


def lanes(shot: Shot) -> dict[str, list[str]]:
    """Signals that can share an axis: those of one unit."""
    found: dict[str, list[str]] = {}
    for name in shot.recording:
        found.setdefault(shot.units[name], []).append(name)
    return found


def save_csv(shot: Shot, path: Path) -> None:
    """One line per row: tick, simulated time, time since the trigger, then the signals; each number to its last bit."""
    r = shot.recording
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["tick", "t", "since_trigger", *r])
        columns = [r.tick.tolist(), r.t.tolist(), shot.seconds.tolist(), *(r[name].tolist() for name in r)]
        writer.writerows(zip(*columns, strict=True))


def check_picture(path: Path) -> None:
    """ValueError if no such picture can be made, PlotUnavailable if none can."""
    kinds = _new_figure().canvas.get_supported_filetypes()
    if path.suffix[1:].lower() not in kinds:
        raise ValueError(f"{path}: a picture can be {', '.join(sorted(kinds))}; write {path.stem}.png")


def _new_figure(**options: Any) -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError as why:
        raise PlotUnavailable("drawing needs matplotlib, which is not installed: pip install hilnode[plot]") from why
    return Figure(**options)


def save_png(shot: Shot, path: Path) -> None:
    """One panel per unit; the suffix names the format (png, svg, pdf)."""
    groups = lanes(shot)
    figure = _new_figure(figsize=(11, 1.2 + 2.6 * len(groups)), dpi=110, facecolor="white", layout="constrained")
    panels = figure.subplots(len(groups), 1, sharex=True, squeeze=False)[:, 0]
    color = iter(COLORS * (1 + len(shot.units)))
    for panel, (unit, names) in zip(panels, groups.items(), strict=True):
        for name in names:
            panel.plot(shot.seconds, shot.recording[name], color=next(color), linewidth=1.0, label=name)
        panel.set_ylabel(f"[{unit}]" if unit else "")
        panel.grid(color="#e6eaee")
        panel.margins(x=0)
        panel.spines[["top", "right"]].set_visible(False)
        if shot.trigger:
            panel.axvline(0.0, color="#8794a0", linewidth=1.0, linestyle=(0, (3, 2)))
        panel.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=4, frameon=False, fontsize=9, borderpad=0)
    panels[-1].set_xlabel("time since the trigger [s]" if shot.trigger else "time [s]")
    figure.suptitle(title(shot), x=0.01, ha="left", fontsize=11)
    figure.savefig(path)


def title(shot: Shot) -> str:
    """What was caught, in one line."""
    r = shot.recording
    what = f"{shot.trigger} at tick {r.tick[shot.at]}, " if shot.trigger else ""
    rows = f"{len(r)} rows from t = {r.t[0]:.3f} s" if len(r) else "no rows"
    return what + rows + (f", {r.lost} lost" if r.lost else "")
