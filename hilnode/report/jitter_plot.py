"""One plot of a run's timing: how late ticks woke, when, and how much of the period was left."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hilnode.report.jitter import JitterReport, Stats, headline, own_cost, stepped, wake_latency
from hilnode.shared.blackbox import has, held_against
from hilnode.shared.row import Flag
from hilnode.shared.timinglog import TimingLog

INK, GREY, RED = "#22303c", "#8794a0", "#c8382e"
BLUE, PALE_BLUE = "#2a6fb0", "#a9cbea"
BANDS = (("wake latency", "#8fbbe3"), ("own cost", "#f0c36d"), ("plant step", "#8cc5a2"))

ENVELOPE_COLUMNS = 900  # about the pixels across the time series
ENVELOPE_TICKS = 10  # at least, in one column
BUDGET_COLUMNS = 450
BUDGET_TICKS = 100  # fewer have no 99th percentile
HEADROOM = 1.3  # periods shown in the budget; what lies above is marked at the edge
FLOOR_US = 0.1  # a logarithmic axis has no zero

LABEL = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 1.0}  # a label stays readable over a line

STYLE = {
    "font.size": 10,
    "text.color": INK,
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e6eaee",
    "grid.linewidth": 0.8,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "legend.fontsize": 9,
}


class PlotUnavailable(RuntimeError):
    """matplotlib is not installed."""


class Columns(NamedTuple):
    """A run cut into columns of equal duration. Lost ticks leave empty ones, which are drawn as gaps."""

    seconds: NDArray[np.float64]  # middle of each column
    filled: NDArray[np.int64]  # columns that hold ticks
    first: NDArray[np.int64]  # index of the first tick in each of those

    def spread(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Put one value per filled column in its place among all; NaN elsewhere."""
        out = np.full(len(self.seconds), np.nan)
        out[self.filled] = values
        return out

    def lowest(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the lowest number of each column."""
        return self.spread(np.fmin.reduceat(values, self.first))

    def highest(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the highest number of each column."""
        return self.spread(np.fmax.reduceat(values, self.first))

    def percentile(self, values: NDArray[np.float64], percent: float) -> NDArray[np.float64]:
        """Return a percentile of the numbers in each column."""
        numbers = (part[~np.isnan(part)] for part in np.split(values, self.first[1:]))
        return self.spread(np.array([np.percentile(part, percent) if len(part) else np.nan for part in numbers]))


def cut_columns(log: TimingLog, most: int, ticks: int) -> Columns:
    """Cut a log that is not empty into at most `most` columns of about `ticks` ticks or more."""
    begin = int(log.deadline.min())
    span = max(int(log.deadline.max()) - begin, 1)
    count = max(1, min(most, len(log) // ticks))
    place = np.maximum.accumulate(np.minimum((log.deadline - begin) * count // span, count - 1))
    filled, first = np.unique(place, return_index=True)
    return Columns((np.arange(count) + 0.5) * span / count / 1e9, filled, first.astype(np.int64))


def draw(log: TimingLog, report: JitterReport, path: str | Path) -> None:
    """Draw the run into `path`; its suffix names the format (png, svg, pdf)."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine
    except ImportError as why:
        raise PlotUnavailable("drawing needs matplotlib, which is not installed: pip install hilnode[plot]") from why
    with matplotlib.rc_context(STYLE):
        layout = ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.12, hspace=0.05, wspace=0.04)
        figure = Figure(figsize=(13, 8.2), dpi=120, facecolor="white", layout=layout)
        figure.suptitle(headline(report), x=0.012, ha="left", fontsize=13, fontweight="bold")
        if report.count:
            rooms = [["histogram", "series"], ["budget", "budget"]]
            panels: dict[str, Any] = figure.subplot_mosaic(rooms, width_ratios=(2, 3))
            _histogram(panels["histogram"], log, report)
            _series(panels["series"], log)
            _budget(panels["budget"], log, report)
        figure.savefig(path)


def _plain_ticks(axis: Any) -> None:
    """Write 10 and 1,000 instead of powers of ten: engineers read microseconds, not exponents."""
    axis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")


def _histogram(panel: Any, log: TimingLog, report: JitterReport) -> None:
    panel.set(title="Wake latency, how often", xlabel="wake latency [µs]", ylabel="ticks", xscale="log", yscale="log")
    values = np.maximum(wake_latency(log)[~has(log, Flag.CATCH_UP)] / 1e3, FLOOR_US)
    if report.wake is None:
        return
    low, high = float(values.min()) / 1.2, float(values.max()) * 1.2
    bins = np.geomspace(low, high, 80)
    counts, _ = np.histogram(values, bins)
    panel.stairs(np.maximum(counts, 0.5), bins, baseline=0.5, fill=True, color=PALE_BLUE)
    panel.stairs(np.maximum(counts, 0.5), bins, baseline=0.5, color=BLUE, linewidth=1.0)
    panel.set_xlim(low / 1.1, high * 1.1)
    panel.set_ylim(0.5, float(counts.max()) * 60)
    _plain_ticks(panel.xaxis)
    _plain_ticks(panel.yaxis)
    _mark_tail(panel, report.wake)


def _mark_tail(panel: Any, wake: Stats) -> None:
    """Mark the percentiles, each label on its own line so that close ones do not cover each other."""
    marks = (("p50", wake.p50), ("p99", wake.p99), ("p99.9", wake.p999), ("max", wake.max))
    low, high = panel.get_xlim()
    for line, (name, ns) in enumerate(marks):
        us = max(ns / 1e3, FLOOR_US)
        top = 0.97 - 0.065 * line
        color = RED if name == "max" else INK
        right_half = us > (low * high) ** 0.5
        panel.axvline(us, ymax=top, color=color, linewidth=1.0, linestyle=(0, (3, 2)))
        panel.annotate(
            f"{name}  {us:,.1f} µs",
            (us, top),
            xycoords=("data", "axes fraction"),
            xytext=(-5 if right_half else 5, 0),
            textcoords="offset points",
            ha="right" if right_half else "left",
            va="top",
            fontsize=9,
            color=color,
            bbox=LABEL,
        )


def _series(panel: Any, log: TimingLog) -> None:
    panel.set(title="Wake latency over time", xlabel="time since the first tick [s]", ylabel="wake latency [µs]")
    late = np.maximum(wake_latency(log) / 1e3, FLOOR_US)
    late[has(log, Flag.CATCH_UP)] = np.nan
    cut = cut_columns(log, ENVELOPE_COLUMNS, ENVELOPE_TICKS)
    low, high = cut.lowest(late), cut.highest(late)
    panel.fill_between(cut.seconds, low, high, step="mid", color=PALE_BLUE, linewidth=0, label="lowest to highest")
    panel.plot(cut.seconds, high, color=BLUE, linewidth=0.7, drawstyle="steps-mid")
    panel.plot(cut.seconds, cut.percentile(late, 50), color=INK, linewidth=1.1, drawstyle="steps-mid", label="median")
    overruns = held_against(log)
    if overruns.any():
        when = (log.deadline[overruns] - log.deadline.min()) / 1e9
        panel.plot(when, np.maximum(wake_latency(log)[overruns] / 1e3, FLOOR_US), "v", color=RED, ms=5, label="overrun")
    panel.set_yscale("log")
    _plain_ticks(panel.yaxis)
    panel.margins(x=0.01)
    bottom, top = panel.get_ylim()
    panel.set_ylim(bottom, top * 3)
    panel.legend(loc="upper right", ncols=3)


def _budget(panel: Any, log: TimingLog, report: JitterReport) -> None:
    """Stack the medians of the parts, and lay the tail of their sum over them: the white above it is headroom."""
    used = (log.done - log.deadline) / 1e3
    cut = cut_columns(log, BUDGET_COLUMNS, BUDGET_TICKS)
    step = np.where(stepped(log), (log.end - log.start) / 1e3, 0.0)
    parts = [cut.percentile(part, 50) for part in (wake_latency(log) / 1e3, own_cost(log) / 1e3, step)]
    names, colors = [f"{name}, median" for name, _ in BANDS], [color for _, color in BANDS]
    panel.set(title=_headroom(used, report), xlabel="time since the first tick [s]", ylabel="time after deadline [µs]")
    panel.stackplot(cut.seconds, parts, step="mid", colors=colors, labels=names)
    highest = cut.highest(used)
    tail = cut.percentile(used, 99)
    panel.plot(cut.seconds, tail, color=INK, linewidth=1.2, drawstyle="steps-mid", label="sum, p99")
    panel.plot(cut.seconds, highest, color=RED, linewidth=0.9, drawstyle="steps-mid", label="sum, max")
    if report.period_ns:
        _mark_period(panel, report.period_ns / 1e3, cut.seconds, highest)
    panel.margins(x=0.005)
    panel.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    panel.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=6)


def _headroom(used: NDArray[np.float64], report: JitterReport) -> str:
    """Say how much of the period even a bad tick leaves."""
    if not report.period_ns:
        return "Where the period goes"
    left = 1 - float(np.percentile(used, 99.9)) * 1e3 / report.period_ns
    free = f"999 of 1,000 ticks leave at least {left:.0%} free" if left >= 0 else "more than 1 tick in 1,000 overruns"
    return f"Where the period goes: {free}"


def _mark_period(panel: Any, period: float, seconds: NDArray[np.float64], highest: NDArray[np.float64]) -> None:
    """Draw the next deadline, and mark at the upper edge what lies beyond it."""
    panel.axhline(period, color=INK, linewidth=1.2, linestyle=(0, (5, 3)))
    panel.set_ylim(0, HEADROOM * period)
    panel.annotate(
        f"next deadline, {period:,.0f} µs",
        (0, period),
        xycoords=("axes fraction", "data"),
        xytext=(6, 4),
        textcoords="offset points",
        fontsize=9,
        bbox=LABEL,
    )
    above = highest > HEADROOM * period
    edge = np.full(int(above.sum()), 0.97 * HEADROOM * period)
    panel.plot(seconds[above], edge, "^", color=RED, markersize=6, label="beyond the scale" if above.any() else None)
