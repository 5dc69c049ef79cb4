"""The table of signal values. Only visible lines are rendered: a node may have hundreds of signals."""

from __future__ import annotations

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from textual.widget import Widget

from bridge.monitor.history import limits, number, sparkline
from bridge.monitor.model import PICTURES, Line, Model

PLAIN, DIM, HEAD = Style(), Style(dim=True), Style(bold=True)
CURVE, FORCED, STALE = Style(color="cyan"), Style(color="yellow", bold=True), Style(color="red", bold=True)
CHOSEN = Style(color="black", bgcolor="cyan", dim=False)
VALUE, UNIT, LIMITS, MARK = 11, 7, 15, 2
LEAST_CURVE, MOST_CURVE = 10, 60


class ValueTable(Widget):
    """Name, value, unit, limits and the last minute of each signal, one of which is chosen."""

    DEFAULT_CSS = "ValueTable { height: 1fr; }"

    def __init__(self, model: Model) -> None:
        super().__init__()
        self._model = model
        self._lines: list[Line] = []
        self._chosen = 0
        self._top = 0
        self._name_width, self._curve_width = 10, 0
        self._curves: dict[int, str] = {}  # by signal; each is drawn anew once a second, when it moves by a character
        self._age = 0
        self._under = PLAIN

    @property
    def chosen(self) -> Line | None:
        """The line that commands are about."""
        return self._lines[self._chosen] if self._lines else None

    def renew(self) -> None:
        """Draw the newest values."""
        self._lines = self._model.lines()
        self._age = (self._age + 1) % PICTURES
        widths = self._widths()
        if self._age == 0 or widths != (self._name_width, self._curve_width):
            self._curves.clear()
        self._name_width, self._curve_width = widths
        self._under = self.rich_style
        self.move(0)

    def move(self, by: int) -> None:
        """Choose another line; it stays in sight."""
        self._chosen = max(0, min(self._chosen + by, len(self._lines) - 1))
        self._top = max(min(self._top, self._chosen), self._chosen - self.page + 1, 0)
        self.refresh()

    @property
    def page(self) -> int:
        """Lines that have room below the heading."""
        return max(1, self.size.height - 1)

    def render_line(self, y: int) -> Strip:
        """One line of the screen."""
        width = self.size.width
        if y == 0:
            return self._strip(self._heading(), width)
        k = self._top + y - 1
        if k >= len(self._lines):
            said = "no signal has that in its name: Esc shows all" if self._model.filter and not self._lines else ""
            return self._strip([(said if y == 1 else "", DIM)], width)
        return self._strip(self._cells(self._lines[k]), width, CHOSEN if k == self._chosen else PLAIN)

    def _widths(self) -> tuple[int, int]:
        """Of the names and of the curves."""
        rest = self.size.width - MARK - VALUE - UNIT - LIMITS - 5
        longest = max((len(line.signal.name) for line in self._lines), default=10)
        name = max(10, min(longest, rest - LEAST_CURVE))
        return name, max(0, min(rest - name, MOST_CURVE))

    def _curve(self, signal: int) -> str:
        if signal not in self._curves:
            self._curves[signal] = sparkline(self._model.history(signal), self._curve_width)
        return self._curves[signal]

    def _heading(self) -> list[tuple[str, Style]]:
        name, curve = self._name_width, self._curve_width
        shown = f"signal: {self._model.filter}_" if self._model.filter else "signal (type to filter)"
        minute = "last minute" if curve >= 11 else "1 min"
        text = f"{'':{MARK}}{shown:<{name}} {'value':>{VALUE}} {'unit':<{UNIT}} {'limits':<{LIMITS}} {minute}"
        return [(text, HEAD)]

    def _cells(self, line: Line) -> list[tuple[str, Style]]:
        name, s = self._name_width, line.signal
        mark, style = ("F ", FORCED) if line.forced else ("S ", STALE) if line.stale else ("  ", PLAIN)
        return [
            (mark, style),
            (f"{_cut(s.name, name):<{name}} ", PLAIN),
            (f"{number(line.value):>{VALUE}} ", style if mark.strip() else HEAD),
            (f"{_cut(s.unit, UNIT):<{UNIT}} ", DIM),
            (f"{_cut(limits(s.low, s.high), LIMITS):<{LIMITS}} ", DIM),
            (self._curve(line.index), CURVE),
        ]

    def _strip(self, cells: list[tuple[str, Style]], width: int, over: Style = PLAIN) -> Strip:
        under = self._under
        return Strip([Segment(text, under + style + over) for text, style in cells]).adjust_cell_length(
            width, under + over
        )


def _cut(text: str, width: int) -> str:
    """The end of a name tells more than its beginning."""
    return text if len(text) <= width else "…" + text[len(text) - width + 1 :]
