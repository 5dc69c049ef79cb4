"""A web server that speaks to the page as a node's does, with a toy machine behind it: fast, and it knows exactly what
it has published.

    with FakeNode() as fake:
        open a browser at fake.url

`python tests/web/fake_node.py [port]` serves it to whoever wants to work on the page.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import mimetypes
import struct
import sys
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from toy_machine import (
    BODIES,
    CHANNELS,
    CORNER,
    GRID,
    INPUTS,
    PROPS,
    SIGNALS,
    SPACING,
    TILE,
    ToyMachine,
    scene,
)  # fmt: skip
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

STATIC = Path(__file__).parents[2] / "bridge" / "web" / "static"
PAGES = ("/", "/signals", "/timing", "/health", "/operator")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
EDGES = [1.0, *(10 ** (k / 6) for k in range(1, 31))]  # [us]
RUNNING, PAUSED_FLAG, FORCED_FLAG = 2, 16, 128
PARAMETERS = (
    {"name": "soil.cohesion", "unit": "Pa", "value": 5000.0, "low": 0.0, "high": 50000.0, "doc": "How it sticks"},
    {
        "name": "soil.friction",
        "unit": "rad",
        "value": 0.6,
        "low": 0.1,
        "high": 0.9,
        "doc": "Angle of internal friction",
    },
    {"name": "hydraulics.relief", "unit": "Pa", "value": 32e6, "low": 1e6, "high": 40e6, "doc": "Relief pressure"},
    {"name": "engine.idle", "unit": "rpm", "value": 900.0, "low": None, "high": None, "doc": ""},
)


@dataclass
class Page:
    """One connected page: what it was sent and what it has acknowledged."""

    socket: ServerConnection
    watch: list[str] = field(default_factory=list)
    frame: int = 0
    acked: int = 0
    acks: int = 0
    stamps: Any = None
    units: Any = None  # heights that it has [0.1 mm]
    samples: list[tuple[float, Any]] = field(default_factory=list)
    fresh: bool = True


class FakeNode:
    """The server, in a thread of its own."""

    def __init__(self, *, port: int = 0, role: str = "operate", replay: bool = False, token: str = "") -> None:
        self.port, self.role, self.replay, self.token = port, role, replay, token
        self.machine = ToyMachine()
        self.tick = 0
        self.paused = False
        self.speed = 1.0
        self.state = RUNNING
        self.inputs = {name: default for name, (_, _, default) in CHANNELS.items()}
        self.forced: dict[str, float] = {}
        self.pages: list[Page] = []
        self.ops: list[dict[str, Any]] = []
        self.cab: list[tuple[float, dict[str, Any]]] = []  # when it came, what it was
        self.held = False
        self.alarms: dict[int, dict[str, Any]] = {}  # that are on
        self.silent = False  # as if the line were stuck: nothing is sent
        self.requests: list[str] = []
        self.published: dict[int, Any] = {}  # poses by frame, of the last pages
        self.made: deque[float] = deque(maxlen=1000)  # when the last states were, by CLOCK_MONOTONIC [s]
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),), daemon=True)
        self._up, self._down = threading.Event(), asyncio.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> FakeNode:
        self._thread.start()
        assert self._up.wait(10), "the fake node does not come up"
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._down.set)
        self._thread.join(10)
        self._loop.close()

    def restart(self) -> None:
        """As if the node had been started anew: everything from the beginning, on the same connections."""
        asyncio.run_coroutine_threadsafe(self._restart(), self._loop).result(10)

    def hang_up(self) -> None:
        """Close every connection; pages come back by themselves."""
        asyncio.run_coroutine_threadsafe(self._hang_up(), self._loop).result(10)

    def tell(self, message: dict[str, Any]) -> None:
        asyncio.run_coroutine_threadsafe(self._tell(message), self._loop).result(10)

    # ---- HTTP

    def _answer(self, connection: ServerConnection, request: Request) -> Response | None:
        path = request.path.split("?")[0]
        self.requests.append(path)
        if path == "/stream":
            return None
        file = STATIC / ("index.html" if path in PAGES else path.lstrip("/"))
        if not file.is_file() or not file.resolve().is_relative_to(STATIC):
            return connection.respond(404, "no such file\n")
        body = file.read_bytes()
        kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        headers = Headers({"Content-Type": kind, "Content-Length": str(len(body)), "Content-Security-Policy": POLICY})
        headers["X-Content-Type-Options"] = "nosniff"
        return Response(200, "OK", headers, body)

    # ---- the stream

    async def _serve(self) -> None:
        async with serve(self._page, "127.0.0.1", self.port, process_request=self._answer) as server:
            self._server: Server = server
            self.port = next(iter(server.sockets)).getsockname()[1]
            tasks = [asyncio.create_task(work()) for work in (self._run, self._chat)]
            self._up.set()
            await self._down.wait()
            for task in tasks:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task

    async def _page(self, socket: ServerConnection) -> None:
        assert socket.request is not None
        if self.token and f"token={self.token}" not in socket.request.path:
            await socket.close(4401, "wrong token")
            return
        page = Page(socket)
        await self._greet(page)
        self.pages.append(page)
        try:
            async for text in socket:
                await self._hear(page, json.loads(text))
        except ConnectionClosed:
            pass
        finally:
            self.pages.remove(page)

    async def _greet(self, page: Page) -> None:
        signals = [{"name": n, "unit": u, "low": None, "high": None, "group": "output"} for n, u in SIGNALS]
        signals += [{"name": n, "unit": "", "low": -1.0, "high": 1.0, "group": "input"} for n in INPUTS]
        channels = [
            {"name": name, "unit": "", "low": low, "high": high, "default": default, "doc": ""}
            for name, (low, high, default) in CHANNELS.items()
        ]
        grid = {"name": "yard", "nx": GRID, "ny": GRID, "corner": CORNER, "spacing": [SPACING, SPACING]}
        hello = {
            "type": "hello", "protocol": 1, "node": "toy", "role": self.role, "replay": self.replay, "dt": 0.001,
            "state_hz": 60, "bodies": BODIES, "signals": signals, "parameters": PARAMETERS,
            "grids": [grid | {"tile": TILE, "colour": [0.55, 0.45, 0.33]}], "props": PROPS,
            "cab": None if self.replay else {"channels": channels}, "stale_ms": 200, "timing": {"edges_us": EDGES},
        }  # fmt: skip
        await page.socket.send(json.dumps(hello))
        await page.socket.send(json.dumps({"type": "scene", "shapes": scene()}))
        page.acked = page.frame  # they go on counting, and those of the run before are nobody's to draw
        page.stamps, page.units, page.fresh = np.zeros_like(self.machine.stamps), None, True

    async def _hear(self, page: Page, message: dict[str, Any]) -> None:
        if "clock" in message:
            answer = {"type": "clock", "page": message["clock"], "server": time.monotonic()}
            await page.socket.send(json.dumps(answer))
        elif "ack" in message:
            page.acked = max(page.acked, message["ack"])
            page.acks += 1
        elif "watch" in message:
            page.watch = [name for name in message["watch"] if name in self._names]
            page.samples.clear()
            await page.socket.send(json.dumps({"type": "watching", "signals": page.watch}))
        elif "cab" in message:
            await self._drive(message["cab"])
        elif "op" in message:
            self.ops.append(message)
            why, result = self._do(message)
            answer = {"ok": False, "why": why} if why else {"ok": True, "result": result}
            await page.socket.send(json.dumps({"type": "answer", "id": message["id"]} | answer))

    async def _drive(self, given: Any) -> None:
        """The seat as the server has it: taken by asking for it, and lost after a second's silence."""
        if given == "take":
            await self._seat(True)
            return
        self.cab.append((time.monotonic(), given))
        if given is None:
            self.inputs.update({name: default for name, (_, _, default) in CHANNELS.items()})
            await self._seat(False)
        elif self.held:
            self.inputs.update(zip(CHANNELS, given["values"], strict=True))
        else:
            await self._tell({"type": "cab", "holder": "nobody", "why": "the controls were not taken"})

    async def _seat(self, held: bool) -> None:
        if held != self.held:
            self.held = held
            await self._tell({"type": "cab", "holder": "you" if held else "nobody", "why": ""})

    def throw_out(self) -> None:
        """As if the page had been silent for too long."""
        asyncio.run_coroutine_threadsafe(self._seat(False), self._loop).result(10)

    @property
    def _names(self) -> list[str]:
        return [*(name for name, _ in SIGNALS), *INPUTS]

    def _do(self, message: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """Carry an operation out: why not, or its result."""
        op = message["op"]
        if op != "status" and self.role == "watch":
            return f"{op} needs the role operate", {}
        match op:
            case "pause" | "resume":
                self.paused = op == "pause"
            case "play":
                self.paused = False
            case "step":
                self.machine.advance(0.001 * message.get("count", 1))
            case "speed":
                self.speed = message["value"]
            case "seek":
                self.machine.t = message["to"]
            case "trip" | "clear" | "arm" | "run" | "disarm":
                self.state = {"trip": 3, "clear": 4, "arm": 1, "run": 2, "disarm": 0}[op]
            case "reset":
                if self.state == RUNNING:
                    return "reset: not while running: disarm first", {}
                self.machine = ToyMachine()
            case "set":
                known = next((p for p in PARAMETERS if p["name"] == message["name"]), None)
                if known is None:
                    return f"no parameter {message['name']!r}", {}
                low, high = known["low"], known["high"]
                if low is not None and not low <= message["value"] <= high:
                    return f"{known['name']}: {message['value']:g} is outside {low:g} to {high:g} {known['unit']}", {}
            case "force":
                self.forced[message["name"]] = message["value"]
            case "release":
                if message.get("name"):
                    self.forced.pop(message["name"], None)
                else:
                    self.forced.clear()
            case "status":
                now = {"forced": list(self.forced), "paused": self.paused, "speed": self.speed}
                return "", now | {"alarms": list(self.alarms.values())}
        return "", {"tick": self.tick}

    async def _run(self) -> None:
        """The machine at 60 Hz, and the newest state to each page that has drawn the one before."""
        while True:
            await asyncio.sleep(1 / 60)
            if not self.paused:
                self.tick += 17
                self.machine.advance(self.speed / 60, -self.inputs["right.y"])
            values = self.machine.values(self.inputs)
            for name, value in self.forced.items():
                values[self._names.index(name)] = value
            for page in list(self.pages):
                if page.watch and not self.paused:
                    page.samples.append((self.machine.t, values[[self._names.index(n) for n in page.watch]]))
                if page.frame - page.acked <= 1 and not self.silent:
                    with contextlib.suppress(ConnectionClosed):
                        await self._frame(page, values)

    async def _frame(self, page: Page, values: Any) -> None:
        machine = self.machine
        if (tiles := self._tiles(page)) is not None:
            await page.socket.send(tiles)
        arrows = machine.arrows()
        await page.socket.send(struct.pack("<BBH", 3, 0, len(arrows)) + arrows.tobytes())
        if page.fresh:
            props = machine.props()
            rows = b"".join(struct.pack("<HH", k, 0) + pose.tobytes() for k, pose in enumerate(props))
            await page.socket.send(struct.pack("<BBH", 4, 0, len(props)) + rows)
        page.frame += 1
        latest = values if page.fresh or page.frame % 6 == 0 else values[:0]
        samples = np.array([[t - machine.t, *row] for t, row in page.samples], np.float32)
        flags = PAUSED_FLAG * self.paused + FORCED_FLAG * bool(self.forced)
        head = struct.pack("<BBHIqdddffHHI", 1, self.state, len(page.watch), page.frame, self.tick, machine.t, 0.002,
                           time.monotonic(), 12.5, 310.0, len(latest), flags, len(samples))  # fmt: skip
        body = machine.poses.tobytes() + latest.tobytes() + samples.tobytes()
        page.samples.clear()
        page.fresh = False
        self.made.append(time.monotonic() - 0.002)
        self.published[page.frame] = machine.poses.copy()
        self.published.pop(page.frame - 500, None)
        await page.socket.send(head + body)

    def _tiles(self, page: Page) -> bytes | None:
        """What has changed in each tile against what the page has, in whole 0.1 mm: i32 at first, then i16."""
        new = np.rint(self.machine.heights * 1e4).astype(np.int32)
        full = page.units is None
        if full:
            page.units = np.zeros_like(new)
        out = []
        for i, j in zip(*np.nonzero(self.machine.stamps != page.stamps), strict=True):
            here = (slice(TILE * i, TILE * i + TILE), slice(TILE * j, TILE * j + TILE))
            change = new[here] if full else (new[here] - page.units[here]).astype("<i2")
            out.append(struct.pack("<HHBBBB", TILE * i, TILE * j, 0 if full else 1, TILE, TILE, 0) + change.tobytes())
        page.stamps, page.units = self.machine.stamps.copy(), new
        return struct.pack("<BBHI", 2, 0, len(out), 0) + b"".join(out) if out else None

    async def _chat(self) -> None:
        """What comes once a second: timing, drivers; now and then an event."""
        rng = np.random.default_rng(1)
        second = 0
        while True:
            wake = rng.lognormal(2.6, 0.45, 1000)
            wake[:2] *= rng.uniform(3, 9)
            before, after = rng.normal(4, 0.3, 1000), rng.normal(3, 0.3, 1000)
            step = rng.normal(310, 25, 1000)
            counts = np.histogram(wake, [0, *EDGES, np.inf])[0].tolist()
            spread = [dict(zip(("p50", "p99", "max"), np.percentile(x, [50, 99, 100]).tolist(), strict=True))
                      for x in (wake, before, step, after)]  # fmt: skip
            stages = dict(zip(("wake_us", "before_us", "step_us", "after_us"), spread, strict=True))
            stats = {"rows": 1000, "lost": 0, "overruns": int(second % 9 == 4), "tick": self.tick}
            await self._tell({"type": "timing", **stages, "wake_counts": counts} | stats)
            await self._tell({"type": "driver", "drivers": DRIVERS})
            if self.replay:
                replay = {"duration": 120.0, "t": self.machine.t % 120.0, "speed": self.speed, "paused": self.paused}
                await self._tell({"type": "replay"} | replay)
            event = EVENTS[second % len(EVENTS)]
            told = {"type": "event", "tick": self.tick, "timestamp": time.monotonic(), "value": None} | event
            if event["event"] == "alarm":
                self.alarms[event["index"]] = {"index": event["index"], "name": "stability", "value": event["value"]}
            elif event["event"] == "alarm_over":
                self.alarms.pop(event["index"], None)
            await self._tell(told)
            await self._tell({"type": "status"} | self._do({"op": "status"})[1])
            if event["event"] == "overrun":
                await self._tell(told | {"event": "blackbox", "index": 1} | _black_box(self.tick))
            second += 1
            await asyncio.sleep(1.0)

    async def _tell(self, message: dict[str, Any]) -> None:
        for page in list(self.pages) if not self.silent else ():
            with contextlib.suppress(ConnectionClosed):
                await page.socket.send(json.dumps(message))

    async def _restart(self) -> None:
        self.machine, self.tick = ToyMachine(), 0
        for page in list(self.pages):
            await self._greet(page)

    async def _hang_up(self) -> None:
        for page in list(self.pages):
            await page.socket.close(1012, "restarting")


def _driver(kind: str, state: str, p50: float, p99: float, **more: Any) -> dict[str, Any]:
    calm = {"twin": False, "frames": 48210, "writes": 0, "errors": 0, "reconnects": 0, "swaps": 0, "age_s": 0.004}
    return (
        calm
        | {"kind": kind, "state": state, "period_p50_us": p50, "period_p99_us": p99, "periods_us": [], "trouble": ""}
        | more
    )


def _black_box(tick: int) -> dict[str, Any]:
    """What follows an overrun: its cause and the ticks around it."""
    quiet, slow = [14.0, 310.0, 7.0, 1000.4], [14.0, 1050.0, 48.0, 1001.2]
    rows = [[tick + k, *(slow if k == 0 else quiet), ["overrun"] if k == 0 else []] for k in range(-10, 11)]
    columns = ["tick", "wake_us", "step_us", "own_us", "period_us", "flags"]
    what = "plant step took 1.05 ms of a 1 ms period: the plant is too slow here"
    return {"what": what, "black_box": {"columns": columns, "rows": rows}}


DRIVERS = {
    "cab": _driver("ecu", "up", 20000.0, 21500.0),
    "joystick": _driver("hid", "up", 8000.0, 8300.0),
    "valves": _driver("can", "degraded", 10000.0, 14800.0, errors=3, trouble="frame 0x181: 2 bytes too short"),
    "plc": _driver("modbus", "up", 50000.0, 52100.0, twin=True, writes=940),
}
EVENTS = (
    {"event": "state", "index": 2, "what": "armed -> running"},
    {"event": "alarm", "index": 3, "what": "excavator.stability is below 0.5", "value": 0.47},
    {"event": "stale", "index": 0, "what": "excavator.right.y is older than 200 ms: held at 0", "value": 0.21},
    {"event": "alarm_over", "index": 3, "what": "excavator.stability is well again"},
    {"event": "overrun", "index": 1, "what": "overrun: work ended 112 us after the next deadline, 1 missed"},
    {"event": "fresh", "index": 0, "what": "excavator.right.y is fresh again"},
    {"event": "command", "index": 0, "what": "force excavator.engine.speed to 150 by lab"},
)  # fmt: skip


if __name__ == "__main__":
    with FakeNode(port=int(sys.argv[1]) if len(sys.argv) > 1 else 8080, role="admin") as fake:
        print("a toy machine at", fake.url, flush=True)
        threading.Event().wait()
