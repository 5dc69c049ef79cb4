"""The feed: one subscription and one command connection to a node, shared by all pages; it reconnects by itself.

    greet ── subscribe ── learn (schema, scene, grids, props) ── listen ── silence, or another run ──► greet again

Each time it has learnt, `generation` counts up, and every page begins anew. While no page is open it takes no rows.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import msgpack
import zmq

from bridge.client import aio
from bridge.client.link import beside, identify, without_envelope
from bridge.protocol.keys import ClientKey
from bridge.protocol.messages import WAKE_EDGES_US
from bridge.protocol.operations import OPERATIONS, REPLAY_OPERATIONS, NodeError, Operation, Role
from bridge.protocol.terrain import GridReader
from bridge.web.frames import PropTable, arrows_frame
from bridge.web.rows import OtherLayout, Rows
from bridge.web.words import as_json

RATE = 60.0  # frames a second that a page gets at most
IDLE_RATE = 20.0  # looks a second while no page is open
ANSWERS_WITHIN = 2.0  # [s]
SILENT_S = 3.0  # [s] without a message: a living node sends several a second
GREET_EVERY = 0.5  # [s] between two tries to find the node
CLOCK_EVERY = 2.0  # [s] between two looks at the node's clock
CLOCKS_KEPT = 16
STATUS_EVERY, REPLAY_EVERY = 1.0, 0.25  # [s]
TERRAIN_EVERY = 0.3  # [s] between two tries to get tiles that are missing
EVENTS_KEPT = 100
SURELY_AFTER = 100  # ticks: what is said of drivers is collected in less time
MOST_WAITING = 50_000  # messages
CAB = "cab"
"""The driver of kind `ecu` that a page can be."""

PASSED_ON = ("event", "timing", "driver", "ecu", "bridge")
SHOWN = ("terrain", "arrows", "props")


class Feed:
    """What one node says now. `say(text)` gets every message that is for all pages; `beat()` is called after each look
    for rows, sixty times a second while there are pages."""

    def __init__(
        self, endpoint: str, key: ClientKey | None, say: Callable[[str], None], beat: Callable[[], None]
    ) -> None:
        self.endpoint, self.key, self._say, self._beat = endpoint, key, say, beat
        self.generation = 0
        self.up, self.why = False, "looking for the node"
        self.watchers = 0  # pages that plot something
        self.pages = 0
        self.about: dict[str, Any] = {}
        self.hello: dict[str, Any] = {}
        self.scene = ""  # as JSON
        self.rows: Rows | None = None
        self.arrived = 0.0  # when the newest row came [s, our clock]
        self.grids: list[GridReader] = []
        self.props = PropTable([])
        self.arrows, self.arrows_number = b"", 0
        self.events: deque[str] = deque(maxlen=EVENTS_KEPT)
        self.latest: dict[str, str] = {}  # the last message of each kind, for who comes late
        self.lane: dict[str, Any] = {"endpoint": "", "ecus": {}}
        self.drivers: dict[str, Any] = {}  # the last message of that topic
        self._node: aio.Node | None = None
        self._heard = 0.0
        self._offsets: deque[tuple[float, float]] = deque(maxlen=CLOCKS_KEPT)  # round trip, node's clock minus ours
        self._check_soon = asyncio.Event()
        self._rows_wanted = False

    # -- what pages ask ---------------------------------------------------------------------------------------------

    @property
    def is_replay(self) -> bool:
        return "replay" in self.about

    @property
    def role(self) -> Role:
        """What this server itself may do at the node."""
        return Role[str(self.about.get("role", "watch")).upper()]

    @property
    def operations(self) -> dict[str, Operation]:
        return REPLAY_OPERATIONS if self.is_replay else OPERATIONS

    @property
    def channels(self) -> list[dict[str, Any]]:
        """Of the controls that a page can hold; none if the node has no such driver."""
        return list(self.cab.get("channels", []))

    @property
    def cab(self) -> dict[str, Any]:
        """What the node says of the driver that a page can be."""
        return dict(self.lane["ecus"].get(CAB, {}))

    @property
    def stand_in(self) -> str:
        """The kind of driver that can hold the controls in a page's place, such as `operator`; empty: there is none."""
        return str(self.cab.get("stand_in", ""))

    def stand_in_since(self, tick: int) -> bool:
        """Whether it is at the controls, by word of some ticks after this one."""
        driver = self.drivers.get("drivers", {}).get(CAB, {})
        return bool(driver.get("twin")) and self.drivers["tick"] > tick + SURELY_AFTER

    def age(self, now: float) -> float:
        """Of the newest row at `now` [s, our clock]: since its tick woke, or, in a replay, since it came."""
        if self.rows is None or self.rows.newest is None:
            return 0.0
        if self.is_replay or not self._offsets:
            return now - self.arrived
        return now + min(self._offsets)[1] - float(self.rows.newest[3]) * 1e-9

    async def ask(self, op: str, **fields: Any) -> dict[str, Any]:
        """Have the node do something; NodeError says why not."""
        if self._node is None or not self.up:
            raise NodeError("silent", f"the node is not there: {self.why}")
        return without_envelope(await self._node.ask(op, **fields))

    # -- the life of the connection ---------------------------------------------------------------------------------

    async def work(self) -> None:
        """Find the node, listen, and begin again when it is gone; until cancelled."""
        while True:
            try:
                async with aio.Node(self.endpoint, key=self.key, timeout=ANSWERS_WITHIN) as node:
                    with self._subscribed(node.about) as socket:
                        await self._listen(node, socket)
            except (NodeError, OtherLayout, KeyError, ValueError) as error:
                self._down(str(error))
            finally:
                self._node = None
            await asyncio.sleep(GREET_EVERY)

    def _down(self, why: str) -> None:
        if self.up or why != self.why:
            self.up, self.why = False, why
            self._say(self.link_text())

    def link_text(self) -> str:
        """Whether the node is heard, for pages."""
        return as_json({"type": "link", "up": self.up, "why": self.why})

    async def _learn(self, node: aio.Node) -> None:
        """All that a page is told once."""
        self.about = node.about
        schema, scene = await node.ask("schema"), await node.ask("scene")
        ground, props, status = await node.ask("terrain"), await node.ask("props"), await node.ask("status")
        self.rows = Rows(schema["layout"], schema["schema"])
        self.lane = schema.get("ecu") or {"endpoint": "", "ecus": {}}
        self.grids = [GridReader(about) for about in ground["grids"]]
        self.props = PropTable(list(props["props"]))
        self.props.take(props["props"])
        self.arrows, self.arrows_number = b"", 0
        self.scene = as_json({"type": "scene", "shapes": scene["shapes"]})
        self.events.clear()
        self.latest.clear()
        self._offsets.clear()
        self.drivers = {}
        self.hello = self._hello(schema, status)
        await self._fetch_ground(node)

    def _hello(self, schema: dict[str, Any], status: dict[str, Any]) -> dict[str, Any]:
        layout, values = schema["layout"], status.get("parameters", {})
        signals = [
            {**{k: s[k] for k in ("name", "unit", "low", "high", "doc")}, "group": group}
            for group, part in (("input", "inputs"), ("output", "outputs"), ("command", "commands"))
            for s in layout[part]
        ]
        return {
            "type": "hello",
            "protocol": 1,
            "node": self.about["node"],
            "replay": self.is_replay,
            "dt": layout["dt_ns"] * 1e-9,
            "state_hz": RATE,
            "bodies": layout["bodies"],
            "signals": signals,
            "parameters": [
                {"unit": "", "low": None, "high": None, "doc": "", **p, "value": values.get(p["name"], p.get("value"))}
                for p in schema["parameters"]
            ],
            "grids": [g.about for g in self.grids],
            "props": self.props.names,
            "cab": {"channels": self.channels, "moves": self.cab.get("moves", []), "stand_in": self.stand_in}
            if self.channels
            else None,
            "stale_ms": self.cab.get("stale_ms", 0.0),
            "timing": {"edges_us": WAKE_EDGES_US.tolist()},
        }

    async def _fetch_ground(self, node: aio.Node) -> None:
        """Whole tiles of every grid that is not whole yet."""
        for grid in self.grids:
            first: int | None = 0
            while first is not None and not grid.is_whole:
                answer = await self._inquire(node, "terrain", grid=grid.about["name"], first=first)
                grid.take(answer)
                first = answer["next"]

    @contextlib.contextmanager
    def _subscribed(self, about: dict[str, Any]) -> Iterator[zmq.Socket[bytes]]:
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        socket = identify(context.socket(zmq.SUB), self.key)
        try:
            socket.setsockopt(zmq.RCVHWM, MOST_WAITING)
            for topic in (*PASSED_ON, *SHOWN):
                socket.subscribe(topic.encode())
            socket.connect(beside(self.endpoint, about["publish"]))
            yield socket
        finally:
            socket.close(0)
            context.term()

    async def _listen(self, node: aio.Node, socket: zmq.Socket[bytes]) -> None:
        """It is learnt after the first message was heard: so nothing is missed in between."""
        until = time.monotonic() + SILENT_S
        while not socket.poll(0):
            if time.monotonic() > until:
                raise NodeError("silent", f"nothing is heard from {node.about['publish']}")
            await asyncio.sleep(1.0 / RATE)
        await self._learn(node)
        self._rows_wanted = False
        self._node, self._heard = node, time.monotonic()
        self.up, self.why = True, ""
        self.generation += 1
        self._say(self.link_text())
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._take_messages(socket))
                tasks.create_task(self._watch_clock(node))
                tasks.create_task(self._watch_status(node))
                tasks.create_task(self._complete_ground(node))
        except* (NodeError, OtherLayout, KeyError, ValueError) as group:
            raise group.exceptions[0] from group

    # -- what comes in ----------------------------------------------------------------------------------------------

    async def _take_messages(self, socket: zmq.Socket[bytes]) -> None:
        topic = b"raw" if self.about.get("raw", True) else b"state"
        due = time.monotonic()
        while True:
            self._drain(socket)
            if (self.pages > 0) != self._rows_wanted:  # after the drain: rows of the last time are gone
                self._rows_wanted = self.pages > 0
                if self.rows is not None:
                    self.rows.newest = None  # the next page gets no old one
                (socket.subscribe if self._rows_wanted else socket.unsubscribe)(topic)
            self._beat()
            now = time.monotonic()
            if now - self._heard > SILENT_S:
                raise NodeError("silent", f"nothing was heard of {self.about['node']} for {SILENT_S:g} s")
            due = max(now, due + 1.0 / (RATE if self.pages else IDLE_RATE))
            await asyncio.sleep(due - now)

    def _drain(self, socket: zmq.Socket[bytes]) -> None:
        """All messages that have come; of the rows, the newest is what counts."""
        kept: list[bytes] = []
        for _ in range(MOST_WAITING):
            try:
                frames = socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                break
            if len(frames) != 2:
                continue
            if frames[0] in (b"raw", b"state"):
                kept += frames[1:] if self._rows_wanted else ()
            else:
                self._take(frames[0].decode(errors="replace"), msgpack.unpackb(frames[1]))
            self._heard = time.monotonic()
        if kept and self.rows is not None:
            take = self.rows.take_raw if self.about.get("raw", True) else self.rows.take_states
            before = self.rows.newest
            take(kept, keep=self.watchers > 0)
            self.arrived = time.monotonic()
            if (
                not self.is_replay
                and before is not None
                and self.rows.newest is not None
                and self.rows.newest[0] < before[0]
            ):
                self._check_soon.set()  # perhaps another run

    def _take(self, topic: str, message: dict[str, Any]) -> None:
        if topic == "terrain":
            for grid in self.grids:
                if grid.about["name"] == message["grid"]:
                    grid.take(message)
        elif topic == "arrows":
            self.arrows = arrows_frame(message["count"], message["at"], message["force"])
            self.arrows_number += 1
        elif topic == "props":
            self.props.take(message["props"])
        else:
            self._pass_on(topic, message)

    def _pass_on(self, kind: str, message: dict[str, Any]) -> None:
        if kind == "driver":
            self.drivers = message
        text = as_json({"type": kind, **message})
        if kind == "event":
            self.events.append(text)
        else:
            self.latest[kind] = text
        self._say(text)

    # -- what is asked now and then ---------------------------------------------------------------------------------

    async def _inquire(self, node: aio.Node, op: str, **fields: Any) -> dict[str, Any]:
        """Ask for something that changes nothing, until it is answered or nothing else is heard of the node either.

        A question that was under way to a bridge that was killed is lost; the next bridge answers it.
        """
        while True:
            try:
                return await node.ask(op, **fields)
            except NodeError as error:
                if error.reason != "silent" or time.monotonic() - self._heard > SILENT_S:
                    raise

    async def _watch_clock(self, node: aio.Node) -> None:
        """How far the clocks are apart, and whether it is still the same run."""
        run = self.about.get("run")
        while True:
            before = time.monotonic()
            answer = await self._inquire(node, "clock")
            after = time.monotonic()  # if it was asked twice, the round trip is long and nobody believes it
            if node.about.get("run") != run:
                raise NodeError("silent", "the node was started anew")
            theirs = answer["time"]
            apart = 0.0 if before <= theirs <= after else theirs - 0.5 * (before + after)  # 0: it is the same clock
            self._offsets.append((after - before, apart))
            self._check_soon.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._check_soon.wait(), CLOCK_EVERY)

    async def _watch_status(self, node: aio.Node) -> None:
        while True:
            await asyncio.sleep(REPLAY_EVERY if self.is_replay else STATUS_EVERY)
            if not self.pages:
                continue
            status = without_envelope(await self._inquire(node, "status"))
            if self.is_replay:
                told = {"t": status["time"], "paused": status["state"] == "paused"}
                self._pass_on("replay", {**{k: status[k] for k in ("duration", "speed", "tick", "missing")}, **told})
            else:
                self._pass_on("status", status)

    async def _complete_ground(self, node: aio.Node) -> None:
        while True:
            await asyncio.sleep(TERRAIN_EVERY)
            await self._fetch_ground(node)
