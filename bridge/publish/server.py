"""The bridge process: publishes rows and takes commands. If it dies it is restarted; the tick does not notice."""

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

from bridge.ecu.rejector import EcuRejector
from bridge.protocol.audit import Audit
from bridge.protocol.endpoints import BridgeError, bound
from bridge.protocol.keys import KeyFileError, Keyring
from bridge.protocol.operations import VERSION, Role
from bridge.protocol.threads import die_together
from bridge.protocol.zap_authenticator import ZapAuthenticator
from bridge.publish.commands import CommandServer
from bridge.publish.metrics import MetricsServer
from bridge.publish.publisher import Publisher
from bridge.publish.subscribers import Subscribers
from hilnode.core.signals import nearest
from hilnode.shared.control import Word
from hilnode.shared.local_rpc import call, is_open
from hilnode.shared.realtime import keep_off

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
    """Everything of one node's bridge. `spec` comes from the node: see hilnode/node/child_specs.py."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.context = zmq.Context()
        self._ending = threading.Event()
        self._node: str = spec["node"]
        self.keyring = Keyring(Path(spec["keys"])) if spec["keys"] else None
        self.authenticator = ZapAuthenticator(self.context, self.keyring) if self.keyring else None
        self.publisher = Publisher(spec, self._subscribers(spec))
        self._audit = Audit(Path(spec["directory"]) / "audit.jsonl" if spec["directory"] else None, say)
        self.rejector = self._ecu_rejector(spec)
        self.commands = self._command_server(spec)
        self.metrics = self._metrics_server(spec)

    def _subscribers(self, spec: dict[str, Any]) -> Subscribers:
        socket = bound(self.context, self.keyring, zmq.XPUB, "bridge.publish", spec["publish"])
        authenticator = self.authenticator
        return Subscribers(
            socket,
            keyed=authenticator is not None,
            is_welcome=lambda user: authenticator is None or authenticator.guest(user) is not None,
            refused=lambda reason, who, why: self.commands.note_refusal(reason, who, why),
        )

    def _command_server(self, spec: dict[str, Any]) -> CommandServer:
        authenticator, node = self.authenticator, spec["node"]
        server = CommandServer(
            bound(self.context, self.keyring, zmq.ROUTER, "bridge.commands", spec["commands"]),
            ask=lambda method, given: call(node, method, **given),
            local={
                "schema": self.publisher.describe,
                "scene": lambda: {"shapes": spec["scene"]},
                "rate": self.publisher.rates.set,
                "terrain": self.publisher.display.terrain,
                "props": self.publisher.display.props,
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
            role_of=(lambda who: g.role if (g := authenticator.guest(who)) else None) if authenticator else None,
            anybody=Role[spec["role"].upper()],
        )
        if authenticator:
            authenticator.on_refusal = server.note_refusal
        return server

    def _ecu_rejector(self, spec: dict[str, Any]) -> EcuRejector | None:
        """Who answers ECUs where the node has no seat for them; nobody needs it, so its address may be taken."""
        if not spec["ecu"]:
            return None
        try:
            socket = bound(self.context, self.keyring, zmq.ROUTER, "bridge.ecu", spec["ecu"])
        except BridgeError as error:
            say(f"{error}; ECUs are not answered there")
            return None
        return EcuRejector(socket, spec["publish"], self._audit, lambda: self.publisher.control[Word.TICK])

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
        if self.rejector:
            self.rejector.start()
        try:
            self.publisher.work(lambda: {"commands": self.commands.counts.as_dict(), "losses": self.commands.losses()})
        finally:
            self._ending.set()
            hearing.join(1.0)
            opening.join()
            if self.rejector:
                self.rejector.close()
            self.commands.close()
            self.publisher.close()
            if self.metrics:
                self.metrics.close()
            if self.authenticator:
                self.authenticator.close()

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
