"""A real machine for the tests of the page: `hilnode run` with a shipped config, with ports and a name of its own."""

from __future__ import annotations

import base64
import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
from browser import Browser, Page
from support import HILNODE, SHM, children, free_port, is_alive, started, wait_for

from bridge import Node
from bridge.client.subscription import Subscription
from bridge.protocol.operations import NodeError
from bridge.protocol.rows import RowReader, schema_of
from bridge.protocol.terrain import UNIT, GridReader
from hilnode.shared.row import Col

CONFIGS = Path(__file__).resolve().parent.parent.parent / "configs"
PORTS = {"bridge.publish": "tcp", "bridge.commands": "tcp", "bridge.ecu": "tcp", "web.address": "http"}
STARTS_WITHIN = 900.0  # [s] the plant may have to be compiled first


class RealNode:
    """One machine; it can be ended and started again at the same ports."""

    def __init__(self, folder: Path, name: str, config: str) -> None:
        self.name, self.pid, self._folder, self._config = name, 0, folder, CONFIGS / config
        self._at = {key: f"{kind}://127.0.0.1:{free_port()}" for key, kind in PORTS.items()}
        self._running = contextlib.ExitStack()
        self._runs = 0

    @property
    def url(self) -> str:
        return self._at["web.address"]

    def start(self) -> None:
        self._runs += 1
        keys = self._at | {"node.name": self.name, "node.max_overruns": "0", "safety.watchdog": "false"}
        command = [*HILNODE, "run", str(self._config), "--quiet", "--out", str(self._folder / f"run{self._runs}")]
        command += [word for key, value in keys.items() for word in ("--set", f"{key}={value}")]
        process = self._running.enter_context(started(command))
        self.pid = process.pid

        def answers() -> bool:
            assert process.poll() is None, f"the node has ended: {process.communicate()}"
            with contextlib.suppress(NodeError), Node(self._at["bridge.commands"], timeout=1.0) as node:
                return bool(node.status()["state"] == "running")
            return False

        wait_for(answers, "a running machine", STARTS_WITHIN)

    def stop(self) -> None:
        """Kill it, as if the PC had lost its power, helpers and all."""
        helpers = [
            pid for module in ("bridge.publish.server", "bridge.web.server") for pid in children(self.pid, module)
        ]
        self._running.close()
        wait_for(lambda: not any(map(is_alive, helpers)), "the end of the helpers")

    def helper(self, module: str) -> int:
        """Pid of a helper process."""
        return wait_for(lambda: children(self.pid, module), f"the process {module}")[0]

    def ask(self, op: str, **fields: Any) -> dict[str, Any]:
        with Node(self._at["bridge.commands"]) as node:
            return node.ask(op, **fields)

    def ground(self) -> dict[str, np.ndarray]:
        """All heights above the corner of each grid [0.1 mm]."""
        return ground_at(self._at["bridge.commands"])

    def published(self) -> dict[str, Any]:
        """The next message of the topic `state`."""
        line = Subscription(self._at["bridge.publish"], ["state"])
        try:
            return dict(msgpack.unpackb(wait_for(lambda: line.take(0.1), "a state")[-1][1]))
        finally:
            line.close()

    def value(self, signal: str) -> float:
        return float(self.published()["signals"][signal])

    @contextlib.contextmanager
    def watched(self, signal: str) -> Iterator[Watched]:
        """Every value of an input from here on."""
        with Node(self._at["bridge.commands"]) as node:
            reader = RowReader(schema_of(node.ask("schema")))
        line = Subscription(self._at["bridge.publish"], ["raw"])
        try:
            yield Watched(line, reader, signal)
        finally:
            line.close()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """The plant stands still meanwhile, and all that it shows has been told."""
        self.ask("pause")
        time.sleep(0.5)
        yield
        self.ask("resume")


def ground_at(commands: str) -> dict[str, np.ndarray]:
    """All heights above the corner of each grid [0.1 mm], asked over the command socket."""
    with Node(commands) as node:
        found = {}
        for about in node.ask("terrain")["grids"]:
            grid, first = GridReader(about), 0
            while first is not None:
                answer = node.ask("terrain", grid=about["name"], first=first)
                grid.take(answer)
                first = answer["next"]
            assert grid.is_whole
            found[about["name"]] = np.rint(grid.heights / UNIT).astype(np.int64)
        return found


def drawn_ground(page: Page, grid: str) -> np.ndarray:
    """The same of what a page has drawn, one height after another."""
    return np.frombuffer(base64.b64decode(page.run(f"hilnode.terrainUnits('{grid}')")), "<i4")


class Watched:
    """One input of the plant, row by row: when its tick woke [s, CLOCK_MONOTONIC], its value, its age [s]."""

    def __init__(self, line: Subscription, reader: RowReader, signal: str) -> None:
        self._line, self._reader = line, reader
        self._value = reader.column(signal)
        self._age = self._value - reader.schema.at_inputs + reader.schema.at_ages
        self._rows: list[tuple[float, float, float]] = []

    def look(self) -> np.ndarray:
        """All rows so far."""
        for _, body in self._line.take(0.05):
            if (row := self._reader.take(body)) is not None:
                values = row.view(float)
                self._rows.append((row[Col.WAKE] * 1e-9, values[self._value], values[self._age]))
        return np.array(self._rows).reshape(-1, 3)

    def until(self, level: float, seconds: float = 30.0) -> None:
        """Wait until it is exactly so much."""
        wait_for(lambda: (rows := self.look()).size and rows[-1, 1] == level, f"{level:g}", seconds)


@contextlib.contextmanager
def real_node(folder: Path, config: str) -> Iterator[RealNode]:
    """A machine that runs; it is gone at the end."""
    name = f"t{os.getpid()}-web-{config.partition('.')[0]}"
    node = RealNode(folder, name, config)
    try:
        node.start()
        yield node
    finally:
        node.stop()
        for path in SHM.glob(f"hilnode.{name}*"):
            path.unlink(missing_ok=True)


def opened(browser: Browser, node: RealNode, path: str = "/", before: str = "") -> Page:
    page = browser.open(node.url + path, before=before)
    page.wait("window.hilnode?.frame > 2", 120)
    return page


def complaints(page: Page) -> list[str]:
    return page.console + page.run("window.hilnode.errors")


def strangers(page: Page, node: RealNode) -> list[str]:
    """Requests that went anywhere but to the server itself."""
    home = node.url.removeprefix("http")
    assert page.requests
    return [url for url in page.requests if not url.startswith(("http" + home, "ws" + home, "data:", "blob:"))]


def kill(pid: int) -> None:
    """End a process as nobody can refuse."""
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not is_alive(pid), f"the end of process {pid}")
