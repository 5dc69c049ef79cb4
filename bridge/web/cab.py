"""The operator's controls: one page at a time is the ECU `cab` of the node, and its silence is the deadman.

What a page sends goes to the node's ECU lane at once and only then: nothing is repeated, held or made up here. When the
page stops (closed, out of sight, cut off), so do the messages, and the driver's own policy for stale inputs acts.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable
from typing import Any

import msgpack
import zmq

from bridge.ecu_wire import VERSION
from bridge.link import beside, identify
from bridge.requests import Refused, Role
from bridge.web.feed import CAB, Feed

SILENT_S = 1.0  # [s] after which a page that holds the controls has lost them
MOST_UNSENT = 10  # messages that wait for a lane that does not read: older ones would come as a surprise


class Cab:
    """The seat. `tell` is called whenever somebody takes it or gives it up."""

    def __init__(self, feed: Feed, tell: Callable[[], None]) -> None:
        self._feed, self._tell = feed, tell
        self.holder: object | None = None  # a page
        self.name = ""  # its address, for the others
        self.trouble = ""
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._socket: zmq.Socket[bytes] | None = None
        self._seq = self._page_seq = 0
        self._heard = 0.0

    def drive(self, page: object, name: str, role: Role, given: Any) -> None:
        """Inputs of a page; Refused says why they are not used."""
        if given is None:
            self.release(page)
            return
        seq, values = self._checked(role, given)
        if self.holder is not None and self.holder is not page:
            raise Refused("refused", f"{self.name} holds the controls")
        if self.holder is None:
            self._take(page, name)
        elif seq <= self._page_seq:
            raise Refused("replayed", f"cab.seq must be above {self._page_seq}")
        self._page_seq, self._heard = seq, time.monotonic()
        self._send(values)

    def _checked(self, role: Role, given: Any) -> tuple[int, list[float]]:
        if role < Role.OPERATE:
            raise Refused("unauthorised", "holding the controls is for operate, this page may only watch")
        count = len(self._feed.channels)
        if not count or not self._feed.lane["endpoint"] or not self._feed.up:
            raise Refused("refused", f"the node has no driver {CAB} of kind ecu, or is not there")
        seq, values = (given.get("seq"), given.get("values")) if isinstance(given, dict) else (None, None)
        if type(seq) is not int or not 0 <= seq < 2**53:
            raise Refused("malformed", "cab.seq must be a whole number from 0 on")
        if not isinstance(values, list) or len(values) != count or not all(_is_number(x) for x in values):
            raise Refused("malformed", f"cab.values must be {count} finite numbers")
        return seq, [float(x) for x in values]

    def _take(self, page: object, name: str) -> None:
        self.holder, self.name, self.trouble = page, name, ""
        self._seq = 0
        socket = identify(self._context.socket(zmq.DEALER), self._feed.key)
        socket.setsockopt(zmq.SNDHWM, MOST_UNSENT)
        socket.setsockopt(zmq.RCVHWM, 100)
        socket.connect(beside(self._feed.endpoint, self._feed.lane["endpoint"]))
        self._socket = socket
        self._tell()

    def _send(self, values: list[float]) -> None:
        assert self._socket is not None
        message = {"v": VERSION, "ecu": CAB, "seq": self._seq, "t": time.monotonic(), "values": values}
        self._seq += 1
        with contextlib.suppress(zmq.Again):  # nobody reads there: the driver sees that it is silent
            self._socket.send(msgpack.packb(message), zmq.NOBLOCK)

    def release(self, page: object) -> None:
        """Let go, if this page holds the controls; the lane sees that the connection is closed."""
        if self.holder is not page or self.holder is None:
            return
        self.holder, self.name = None, ""
        if self._socket is not None:
            self._socket.close(0)
            self._socket = None
        self._tell()

    def look(self) -> None:
        """Now and then: hear what the lane says, and free the seat of a page that has fallen silent."""
        if self._socket is None:
            return
        refusal = self._drain(self._socket)
        if refusal and refusal != self.trouble:
            self.trouble = refusal
            self._tell()
        if time.monotonic() - self._heard > SILENT_S or not self._feed.up:
            self.release(self.holder)

    def _drain(self, socket: zmq.Socket[bytes]) -> str:
        """Throw away the states that the lane sends; the last refusal, if there is one."""
        refusal = ""
        for _ in range(1000):
            try:
                body = socket.recv(zmq.NOBLOCK)
            except zmq.Again:
                break
            if b"\xa5error" in body:  # the key of a refusal: no need to read a thousand states a second
                refusal = str(msgpack.unpackb(body).get("error", ""))
        return refusal

    def close(self) -> None:
        if self.holder is not None:
            self.release(self.holder)
        self._context.term()


def _is_number(x: Any) -> bool:
    return type(x) in (int, float) and abs(x) < 1e300 and math.isfinite(x)
