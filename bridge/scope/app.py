"""The scope's screen: recent history while it waits for the trigger, then the shot with two cursors."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widget import Widget
from textual.widgets import Static

from bridge.scope.capture import Capture, Shot, Stage
from bridge.scope.drawing import MARGIN, View, draw
from bridge.scope.save import PlotUnavailable, save_csv, save_png
from bridge.scope.source import SILENCE, ScopeError, Source, silent

LOOK_EVERY = 0.1  # [s]
LEAST_SHOWN = 10  # rows that a zoom leaves
KEYS = "←→ cursor  , . one row  Tab other  + - zoom  n new shot  s save  q quit"


class Screen(Widget):
    """What the scope draws on."""

    def __init__(self) -> None:
        super().__init__(id="scope")
        self.shot: Shot | None = None
        self.view: View | None = None

    def render(self) -> Text:
        if self.shot is None:
            return Text("no rows yet")
        return Text("\n").join(draw(self.shot, self.size.width, self.size.height, self.view))


class Scope(App[None]):
    """`hilnode scope` on a terminal."""

    TITLE = "hilnode scope"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #scope { height: 1fr; text-wrap: nowrap; text-overflow: ellipsis; }
    #stage, #help { height: 1; text-wrap: nowrap; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "column(-1)"),
        Binding("right", "column(1)"),
        Binding("comma", "row(-1)"),
        Binding("full_stop", "row(1)"),
        Binding("tab", "other", priority=True),
        Binding("plus,equals_sign", "zoom(0.5)"),
        Binding("minus", "zoom(2.0)"),
        Binding("n", "again"),
        Binding("s", "save"),
        Binding("q,ctrl+q,ctrl+c", "quit", priority=True),
    ]

    def __init__(self, source: Source, capture: Capture, folder: Path | None = None) -> None:
        super().__init__()
        self.source, self.capture = source, capture
        self._folder = folder or Path.cwd()

    def compose(self) -> ComposeResult:
        self._stage = Static("", id="stage", markup=False)
        self.drawn = Screen()
        yield Vertical(self._stage, self.drawn, Static(KEYS, id="help", markup=False))

    def on_mount(self) -> None:
        self.set_interval(LOOK_EVERY, self._look)

    def _look(self) -> None:
        if self.drawn.view is not None:  # a person looks at a shot
            return
        self._stage.update(self._fed())
        self.drawn.shot = shot = self.capture.shot()
        if self.capture.stage is Stage.DONE:
            whole = View.whole(shot)
            self.drawn.view = replace(whole, cursors=(shot.at, whole.last))
        self.drawn.refresh()

    def _fed(self) -> str:
        """Take what has come: how far the shot is, in words."""
        capture = self.capture
        try:
            self.source.feed(capture)
        except ScopeError as error:
            return str(error)
        if self.source.silence > SILENCE:
            return silent(self.source)
        waits_for = f": {capture.trigger}" if capture.stage is Stage.WAITING and capture.trigger else ""
        return capture.stage.value + waits_for

    # -- cursors ----------------------------------------------------------------------------------------------------

    def _see(self, view: View) -> None:
        self.drawn.view = view
        self.drawn.refresh()

    def _move(self, rows: int) -> None:
        view = self.drawn.view
        if view is None or view.cursors is None:
            return
        cursors = list(view.cursors)
        cursors[view.active] = max(view.first, min(cursors[view.active] + rows, view.last))
        self._see(replace(view, cursors=(cursors[0], cursors[1])))

    def action_row(self, by: int) -> None:
        self._move(by)

    def action_column(self, by: int) -> None:
        if view := self.drawn.view:
            self._move(by * max(1, (view.last - view.first) // max(1, self.drawn.size.width - MARGIN)))

    def action_other(self) -> None:
        if view := self.drawn.view:
            self._see(replace(view, active=1 - view.active))

    def action_zoom(self, factor: float) -> None:
        """Show fewer or more rows around the active cursor."""
        view, shot = self.drawn.view, self.drawn.shot
        if view is None or view.cursors is None or shot is None:
            return
        most = len(shot.recording)
        wanted = min(most, max(LEAST_SHOWN, round((view.last - view.first + 1) * factor)))
        middle = view.cursors[view.active]
        first = max(0, min(middle - wanted // 2, most - wanted))
        self._see(replace(view, first=first, last=first + wanted - 1))

    # -- shots --------------------------------------------------------------------------------------------------------

    def action_again(self) -> None:
        with contextlib.suppress(ScopeError):  # what came while a person looked at the last shot is not for this one
            self.source.feed(self.capture)
        self.capture.again()
        self.drawn.view = None

    def action_save(self) -> None:
        """Numbers and a picture, named after the trigger's tick."""
        shot = self.drawn.shot
        if shot is None or self.capture.stage is not Stage.DONE:
            self.notify("there is no shot yet", markup=False)
            return
        base = self._folder / f"scope-{shot.recording.tick[shot.at]}"
        try:
            save_csv(shot, base.with_suffix(".csv"))
            save_png(shot, base.with_suffix(".png"))
        except OSError as error:
            self.notify(f"{error.filename or base}: {error.strerror}", severity="error", markup=False)
        except PlotUnavailable as error:
            self.notify(f"{base.name}.csv; {error}", severity="warning", markup=False)
        else:
            self.notify(f"{base.name}.csv and {base.name}.png", markup=False)
