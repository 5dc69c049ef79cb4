"""The monitor's screen: key bindings, and ten redraws per second.

    ┌ who, state, time, is it heard ──────────────────┐
    │ values: name, value, unit, limits, last minute   │
    │ timing histogram          │ drivers, bridge      │
    │ events                                           │
    └ keys ────────────────────────────────────────────┘

Letters filter; commands lie on function keys, so that nobody arms a machine while typing a name. F9 trips from
everywhere, dialogs included, and never asks.
"""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal

from bridge.monitor import panels
from bridge.monitor.dialogs import AskValue, Sure
from bridge.monitor.follower import Follower
from bridge.monitor.model import PICTURES, Model
from bridge.monitor.panels import Panel
from bridge.monitor.table import ValueTable
from bridge.protocol.keys import ClientKey
from bridge.protocol.operations import NodeError
from bridge.protocol.threads import die_with_terminal

SLOW = 5  # pictures to one of the panels that need not hurry
COMMANDS = ("do", "run_it", "force", "release")  # actions that change something, except the trip


class Monitor(App[None]):
    """`hilnode monitor`."""

    TITLE = "hilnode monitor"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    Screen { layout: vertical; }
    #headline, #keys { height: 1; }
    #middle { height: 7; }
    #timing { width: 40; }
    #devices { width: 1fr; }
    #events { height: 4; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f2", "do('arm')"),
        Binding("f3", "run_it"),
        Binding("f4", "do('pause')"),
        Binding("f5", "do('resume')"),
        Binding("f6", "do('clear')"),
        Binding("f9,ctrl+t", "trip", priority=True),
        Binding("enter", "force"),
        Binding("delete", "release"),
        Binding("escape", "show_all"),
        Binding("up", "move(-1)"),
        Binding("down", "move(1)"),
        Binding("pageup", "page(-1)"),
        Binding("pagedown", "page(1)"),
        Binding("home", "move(-1000000)"),
        Binding("end", "move(1000000)"),
        Binding("ctrl+q,ctrl+c", "quit", priority=True),
    ]

    def __init__(self, endpoint: str, key: ClientKey | None = None) -> None:
        super().__init__()
        self.model = Model()
        self.follower = Follower(endpoint, key, self.model)
        self._pictures = 0
        self._following: asyncio.Task[None] | None = None

    def compose(self) -> ComposeResult:
        self.table = ValueTable(self.model)
        self._headline = Panel(self.model, panels.headline, id="headline")
        self._timing = Panel(self.model, panels.timing, id="timing")
        self._devices = Panel(self.model, panels.devices, id="devices")
        self._events = Panel(self.model, panels.happenings, id="events")
        self._keys = Panel(self.model, panels.keys, id="keys")
        yield self._headline
        yield self.table
        yield Horizontal(self._timing, self._devices, id="middle")
        yield self._events
        yield self._keys

    def on_mount(self) -> None:
        self._following = asyncio.create_task(self.follower.follow())
        self.set_interval(1.0 / PICTURES, self._draw)

    async def on_unmount(self) -> None:
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)

    def on_resize(self, event: events.Resize) -> None:
        """A high window has room for more events."""
        self._events.styles.height = max(4, event.size.height // 5)

    def _draw(self) -> None:
        self.follower.look()
        self._pictures += 1
        self.table.renew()
        self._headline.refresh()
        if self._pictures % SLOW == 1:
            for panel in (self._timing, self._devices, self._events, self._keys):
                panel.refresh()

    # -- the table ------------------------------------------------------------------------------------------------

    def on_key(self, event: events.Key) -> None:
        """Letters, digits, dots and underscores filter the names."""
        if len(self.screen_stack) > 1:
            return
        if event.key == "backspace":
            self._filter(self.model.filter[:-1])
        elif event.character and (event.character.isalnum() or event.character in "._"):
            self._filter(self.model.filter + event.character.lower())

    def _filter(self, text: str) -> None:
        self.model.filter = text
        self.table.renew()

    def action_show_all(self) -> None:
        self._filter("")

    def action_move(self, by: int) -> None:
        self.table.move(by)

    def action_page(self, direction: int) -> None:
        self.table.move(direction * self.table.page)

    # -- commands ---------------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Who may only watch has no commands, except the trip: if it is refused, they must hear that."""
        return self.model.may_operate or action not in COMMANDS

    def action_do(self, op: str) -> None:
        self._command(op)

    def action_trip(self) -> None:
        self._command("trip")

    def action_run_it(self) -> None:
        name = self.model.about.get("node", "it")

        def answered(yes: bool | None) -> None:
            if yes:
                self._command("run")

        self.push_screen(Sure(f"Run {name}? Its devices get live values."), answered)

    def action_force(self) -> None:
        line = self.table.chosen
        if line is None:
            return

        def answered(value: float | None) -> None:
            if value is not None:
                self._command("force", name=line.signal.name, value=value)

        self.push_screen(AskValue(line.signal, line.value), answered)

    def action_release(self) -> None:
        if line := self.table.chosen:
            self._command("release", name=line.signal.name)

    def _command(self, op: str, **fields: Any) -> None:
        """Give a command without holding up the screen; what became of it is shown."""

        async def give() -> None:
            what = " ".join([op, *(f"{v:g}" if isinstance(v, float) else str(v) for v in fields.values())])
            try:
                tick = await self.follower.command(op, **fields)
            except NodeError as error:
                self.notify(f"{what}: {error}", severity="error", timeout=8, markup=False)
            else:
                self.notify(f"{what}: done at tick {tick}", timeout=3, markup=False)

        self.run_worker(give(), group="commands")


def watch(endpoint: str, key: ClientKey | None = None) -> None:
    """Show the node until the user leaves, or the terminal is gone."""
    die_with_terminal()
    Monitor(endpoint, key).run()
