"""Answers on the ECU endpoint of a node that has no seat for an ECU: each message is refused, with the fix.

It is a thread of the bridge that sleeps until somebody writes, so that a run nobody connects to pays nothing for it. A
node with a driver of kind `ecu` has the lane itself in its place, in a process of its own (bridge/ecu/server.py).
"""

from __future__ import annotations

import os
import re
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

import zmq

from bridge.protocol.audit import Audit
from bridge.protocol.connections import SOMEBODY, sender
from bridge.protocol.ecu_wire import refusal, unpack
from bridge.protocol.operations import Refused

REMEMBERED = 64  # ECUs that are written down already: one that goes on writing is one line in the audit log


class EcuRejector:
    """Answers every message at `socket` with a refusal that names the fix. `publish` is where states can be read."""

    def __init__(self, socket: zmq.Socket[bytes], publish: str, audit: Audit, tick: Callable[[], int]) -> None:
        self._socket, self._publish, self._audit, self._tick = socket, publish, audit, tick
        self._known: deque[bytes] = deque(maxlen=REMEMBERED)
        self._bell = os.eventfd(0, os.EFD_NONBLOCK)
        self._thread = threading.Thread(target=self._work, name="ecu rejector", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Before the audit log is closed."""
        os.eventfd_write(self._bell, 1)
        if self._thread.ident:
            self._thread.join(2.0)
        self._socket.close(0)
        os.close(self._bell)

    def _work(self) -> None:
        poller = zmq.Poller()
        poller.register(self._socket, zmq.POLLIN)
        poller.register(self._bell, zmq.POLLIN)
        while self._bell not in dict(poller.poll()):
            frames = self._socket.recv_multipart(copy=False)
            self._turn_away(frames[0].bytes, frames[1:])

    def _turn_away(self, identity: bytes, frames: list[zmq.Frame]) -> None:
        seq = None
        try:
            if len(frames) != 1:
                raise Refused("malformed", "a message is one frame")
            message = unpack(frames[0].buffer)
            seq = message.get("seq") if type(message.get("seq")) is int else None
            error = Refused("refused", no_seat(message.get("ecu"), self._publish))
        except Refused as wrong:
            error = wrong
        except Exception as wrong:  # whatever a message may bring about, the next ECU must be told too
            error = Refused("malformed", f"it can not be read: {type(wrong).__name__}")
        if identity not in self._known:
            self._known.append(identity)
            self._audit.refused(sender(frames[-1]) if frames else SOMEBODY, error.reason, str(error), self._tick())
        try:
            self._socket.send_multipart([identity, refusal(error.reason, str(error), seq)], zmq.NOBLOCK)
        except zmq.ZMQError:  # it has gone, or does not read
            return


def no_seat(wanted: Any, publish: str) -> str:
    """What an ECU is told: the lines that its node's config lacks."""
    name = wanted if isinstance(wanted, str) and re.fullmatch(r"[a-z][a-z0-9_]{0,39}", wanted) else "ecu"
    return (
        f"this node has no seat for an ECU: its config has no driver of kind ecu. Add\n"
        f'[drivers.{name}]\nkind = "ecu"\ninputs = ["torque"]\n'
        f'and from = "{name}.torque" to one of its [signals.inputs], and start the node again. '
        f"To read its states only, subscribe at {publish}"
    )
