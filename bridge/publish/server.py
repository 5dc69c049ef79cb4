"""The bridge process: publishes rows and takes commands. It may die and come back; the tick does not know it exists."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import zmq

from bridge.audience import Audience
from bridge.audit import Audit
from bridge.commands import CommandServer
from bridge.doorman import Doorman
from bridge.ecu_porter import EcuPorter
from bridge.endpoints import BridgeError, bound
from bridge.keys import KeyFileError, Keyring
from bridge.metrics import MetricsServer
from bridge.publisher import Publisher
from bridge.requests import VERSION, Role
from bridge.threads import die_together
from hilnode.control import Word
from hilnode.door import call, is_open
from hilnode.realtime import keep_off
from hilnode.signals import nearest

LOOK_EVERY = 0.02  # [s] whether the node is there


def say(line: str) -> None:
    """The node tells it to people."""
    print(line, flush=True)


class Lines:
    """Lines from a pipe, without Python's own buffer: a thread that waits in that would hold up the end."""

    def __init__(self, handle: int) -> None:
        self.ended = False
        self._handle = handle
        self._rest = b""

    def wait(self, seconds: float) -> list[bytes]:
        """Whole lines that have come, after waiting for some."""
        if not select.select([self._handle], [], [], seconds)[0]:
            return []
        more = os.read(self._handle, 65536)
        self.ended = not more
        *whole, self._rest = (self._rest + more).split(b"\n")
        return whole

    def first(self) -> bytes:
        """The first line, however long it takes."""
        while not self.ended:
            if lines := self.wait(1.0):
                self._rest = b"\n".join([*lines[1:], self._rest])
                return lines[0]
        return b"{}"


class Bridge:
    """Everything of one node's bridge. `spec` comes from the node: see `Node._bridge_spec`."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.context = zmq.Context()
        self._ending = threading.Event()
        self._node: str = spec["node"]
        self.keyring = Keyring(Path(spec["keys"])) if spec["keys"] else None
        self.doorman = Doorman(self.context, self.keyring) if self.keyring else None
        self.publisher = Publisher(spec, self._audience(spec))
        self._audit = Audit(Path(spec["directory"]) / "audit.jsonl" if spec["directory"] else None, say)
        self.porter = self._ecu_porter(spec)
        self.commands = self._command_server(spec)
        self.metrics = self._metrics_server(spec)

    def _audience(self, spec: dict[str, Any]) -> Audience:
        socket = bound(self.context, self.keyring, zmq.XPUB, "bridge.publish", spec["publish"])
        doorman = self.doorman
        return Audience(
            socket,
            keyed=doorman is not None,
            is_welcome=lambda user: doorman is None or doorman.guest(user) is not None,
            refused=lambda reason, who, why: self.commands.note_refusal(reason, who, why),
        )

    def _command_server(self, spec: dict[str, Any]) -> CommandServer:
        doorman, node = self.doorman, spec["node"]
        server = CommandServer(
            bound(self.context, self.keyring, zmq.ROUTER, "bridge.commands", spec["commands"]),
            ask=lambda verb, given: call(node, verb, **given),
            local={
                "schema": self.publisher.describe,
                "scene": lambda: {"shapes": spec["scene"]},
                "rate": self.publisher.rates.set,
                "terrain": self.publisher.sights.terrain,
                "props": self.publisher.sights.props,
                "seat": lambda ecu, to: self._seat(spec["ecus"], ecu, to),
                "clock": lambda: {"time": time.monotonic(), "tick": self.publisher.control[Word.TICK]},
            },
            hello={
                "node": node,
                "protocol": VERSION,
                "version": spec["version"],
                "publish": spec["publish"],
                "schema": self.publisher.packer.hash,
                "run": spec["run"],
                "raw": spec["raw"],
            },
            tick=lambda: self.publisher.control[Word.TICK],
            audit=self._audit,
            role_of=(lambda who: g.role if (g := doorman.guest(who)) else None) if doorman else None,
            anybody=Role[spec["role"].upper()],
        )
        if doorman:
            doorman.on_refusal = server.note_refusal
        return server

    def _ecu_porter(self, spec: dict[str, Any]) -> EcuPorter | None:
        """Who answers ECUs where the node has no seat for them; nobody needs it, so its address may be taken."""
        if not spec["ecu"]:
            return None
        try:
            socket = bound(self.context, self.keyring, zmq.ROUTER, "bridge.ecu", spec["ecu"])
        except BridgeError as error:
            say(f"{error}; ECUs are not answered there")
            return None
        return EcuPorter(socket, spec["publish"], self._audit, lambda: self.publisher.control[Word.TICK])

    def _seat(self, ecus: list[str], ecu: str, to: str) -> Any:
        """A swap for those who may not swap any other device."""
        if ecu not in ecus:
            raise ValueError(f"no driver {ecu!r} of kind ecu: {nearest(ecu, ecus)}")
        return call(self._node, "swap", driver=ecu, to=to)

    def _metrics_server(self, spec: dict[str, Any]) -> MetricsServer | None:
        if not spec["metrics"]:
            return None
        host, _, port = spec["metrics"].removeprefix("tcp://").rpartition(":")

        def facts() -> dict[str, Any]:
            counted = {"commands": self.commands.counts.as_dict(), "losses": self.commands.losses()}
            return {**self.publisher.facts(), **counted}

        try:
            return MetricsServer(host.strip("[]"), int(port), spec["node"], facts)
        except OSError as error:
            raise BridgeError(f"bridge.metrics = {spec['metrics']!r}: {error.strerror}; choose another port") from error

    def work(self, lines: Lines) -> None:
        """Until the node ends or dies."""
        hearing = threading.Thread(target=self._hear_node, args=(lines,), name="events", daemon=True)
        opening = threading.Thread(target=self._open_commands, name="opening", daemon=True)
        hearing.start()
        opening.start()
        if self.porter:
            self.porter.start()
        try:
            self.publisher.work(lambda: {"commands": self.commands.counts.as_dict(), "losses": self.commands.losses()})
        finally:
            self._ending.set()
            hearing.join(1.0)
            opening.join()
            if self.porter:
                self.porter.close()
            self.commands.close()
            self.publisher.close()
            if self.metrics:
                self.metrics.close()
            if self.doorman:
                self.doorman.close()

    def _open_commands(self) -> None:
        """Nobody is greeted before the node can be asked: it still waits for its watchdog when the bridge is there."""
        while not self._ending.wait(LOOK_EVERY):
            if is_open(self._node):
                self.commands.start()
                return

    def _hear_node(self, lines: Lines) -> None:
        """Events come from the node as lines on standard input, after the first."""
        while not self._ending.is_set() and not lines.ended:
            for line in lines.wait(0.2):
                with contextlib.suppress(ValueError):
                    self.publisher.happenings.put(json.loads(line))


def main() -> int:
    """Entry point: one line of JSON on standard input, then serve."""
    lines = Lines(sys.stdin.fileno())
    spec = json.loads(lines.first())
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)
    keep_off(spec["cpu"])
    die_together()
    try:
        bridge = Bridge(spec)
    except (BridgeError, KeyFileError) as error:
        print(error, file=sys.stderr)
        return 2
    bridge.work(lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
