"""pytest plugin for HIL tests: the fixture `hil` starts a node from a config and returns a client of it.

    def test_the_arm_rises(hil):
        node = hil("bench.toml")
        node.arm()
        node.run()
        node.set("pendulum.shoulder.torque", 2.0)
        node.wait_until("pendulum.shoulder.angle", gt=0.2, timeout=5)

The node gets a name and ports of its own, so tests can run beside each other and beside a node that is in use; it is
stopped at the end of the test, with its devices safe. A node that fails to start fails the test with its own words.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:  # imported when a test asks for a node: pytest loads this file in every run
    from bridge.client.client import Node

STARTS_WITHIN = 300.0  # [s] the first start on a machine compiles the plant
ENDS_WITHIN = 20.0  # [s]


@pytest.fixture
def hil(tmp_path: Path) -> Iterator[Callable[..., Node]]:
    """`hil(config, **changes)`: a client of a node that runs `config`, a file or TOML text."""
    with contextlib.ExitStack() as nodes:

        def start(config: str | Path | None = None, **changes: Any) -> Node:
            return nodes.enter_context(running_node(tmp_path, config, **changes))

        yield start


@contextlib.contextmanager
def running_node(folder: Path, config: str | Path | None = None, **changes: Any) -> Iterator[Node]:
    """The same without pytest. `changes` are keys of the config, such as `**{"node.rate_hz": 500}`."""
    from bridge.protocol.operations import NodeError

    folder = Path(tempfile.mkdtemp(prefix="hil-", dir=folder))
    publish, commands, ecu = _free_ports(3)
    own = {
        "node.name": f"hil-{os.getpid()}-{secrets.token_hex(4)}",
        "node.autostart": False,
        "bridge.publish": f"tcp://127.0.0.1:{publish}",
        "bridge.commands": f"tcp://127.0.0.1:{commands}",
        "bridge.ecu": f"tcp://127.0.0.1:{ecu}",
        "web.enabled": "web.address" in changes,
    } | changes
    file = folder / "config.toml"
    if isinstance(config, str) and "\n" in config:
        file.write_text(config)
    settings = [f"--set={key}={json.dumps(value)}" for key, value in own.items()]
    source = [str(file)] if file.exists() else [str(config)] if config else []
    with (folder / "node.out").open("w+") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "hilnode.cli", "run", *source, "--quiet", "--out", str(folder / "run"), *settings],
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            with _connect(process, str(own["bridge.commands"]), folder / "node.out") as client:
                yield client
                try:
                    client.stop()
                except NodeError:  # the test may have stopped it, or its bridge
                    process.terminate()
            process.wait(ENDS_WITHIN)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()


def _connect(process: subprocess.Popen[bytes], endpoint: str, log: Path) -> Node:
    from bridge.client.client import Node
    from bridge.protocol.operations import NodeError

    until = time.monotonic() + STARTS_WITHIN
    while True:
        if process.poll() is not None:
            raise NodeError("silent", f"the node ended with code {process.returncode}:\n{log.read_text()}")
        try:
            Node(endpoint, timeout=0.5).close()
            return Node(endpoint)
        except NodeError:
            if time.monotonic() > until:
                raise


def _free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 that nobody had a moment ago, all different."""
    with contextlib.ExitStack() as open_sockets:
        probes = [open_sockets.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]
