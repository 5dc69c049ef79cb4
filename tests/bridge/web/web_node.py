"""The digging plant in a node of its own, for the tests of the page."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from support import RemoteNode, free_port, remote_node
from web_page import FakePage

STALE_MS = 300.0
CAB = f"""
[drivers.cab]
kind = "ecu"
period_ms = 20.0
inputs = [
  {{ name = "lift", unit = "m/s", low = -10.0, high = 10.0 }},
  {{ name = "stick", low = -1.0, high = 1.0 }},
]
[signals.inputs."dig.lift"]
from = "cab.lift"
stale_ms = {STALE_MS}
[signals.inputs."dig.stick"]
from = "cab.stick"
stale_ms = {STALE_MS}
"""


@dataclass
class Digger:
    """A running node, and where it listens."""

    node: RemoteNode
    name: str
    folder: Path
    ports: dict[str, int]

    @property
    def commands(self) -> str:
        return f"tcp://127.0.0.1:{self.ports['commands']}"

    @property
    def publish(self) -> str:
        return f"tcp://127.0.0.1:{self.ports['publish']}"

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.ports['web']}"

    def start(self) -> None:
        """Set it running, if it is not."""
        if self.node.state != "RUNNING":
            self.node.ask("arm")
            self.node.ask("run")


def new_ports() -> dict[str, int]:
    return {key: free_port() for key in ("publish", "commands", "ecu", "web")}


@contextlib.contextmanager
def digging(
    folder: Path, name: str, *, ports: dict[str, int] | None = None, more: str = "", tables: str = ""
) -> Iterator[Digger]:
    """A node with the digging plant, its page and a cab; `more` are keys of its config, `tables` come at its end."""
    ports = ports or new_ports()
    ends = "".join(f'bridge.{key} = "tcp://127.0.0.1:{port}"\n' for key, port in ports.items() if key != "web") + (
        f'web.address = "http://127.0.0.1:{ports["web"]}"\n'
    )
    text = f'plant.kind = "digging_plant:create"\nlog.timing = false\n{ends}{more}{CAB}{tables}'
    folder.mkdir(exist_ok=True)
    with remote_node(folder, f"t{os.getpid()}-{name}", text) as node:
        yield Digger(node, f"t{os.getpid()}-{name}", folder, ports)


def opened(address: str, **more: object) -> FakePage:
    """A page at a server that may just be starting; it has had its hello."""
    import time

    until = time.monotonic() + 60
    while True:
        try:
            page = FakePage(address, **more)  # type: ignore[arg-type]
            break
        except OSError:
            assert time.monotonic() < until, f"nobody listens at {address}"
            time.sleep(0.05)
    page.until(lambda: page.hello, "hello")
    return page
