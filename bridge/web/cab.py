"""The operator's controls: one page at a time acts as the ECU `cab` of the node; its silence works as a deadman.

What a page sends goes to the node's ECU lane at once and only then: nothing is repeated, held or made up here. When the
page stops (closed, out of sight, cut off), so do the messages, and the driver's own policy for stale inputs acts.

The seat is taken by asking for it and in no other way. A page that was silent for too long has lost it, and whatever it
sends then is refused until it asks again. An input that was under way for longer than the stale time is thrown away:
a line that was stuck delivers all that was held up at once, and none of it is what the operator wants now. How long one
was under way is seen by the page's own clock, against the quickest one since the seat was taken.

Where something stands in for the page, such as a virtual operator, the node is asked to put the page in first, and the
seat is the page's when that is done. Who lets go leaves the machine to its stale policy: the stand-in comes back only
when somebody asks for it (the operation `seat`), and not while a page holds the controls.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Callable
from typing import Any

import msgpack
import zmq

from bridge.client.link import beside, identify
from bridge.protocol.ecu_wire import VERSION
from bridge.protocol.operations import NodeError, Refused, Role
from bridge.web.feed import CAB, Feed

SILENT_S = 1.0  # [s] after which a page that holds the controls has lost them
STALE_S = 0.2  # [s] that an input may be under way, where the node says nothing
DRIFT = 1e-4  # [s/s] that two clocks may run apart
MOST_UNSENT = 10  # messages that wait for a lane that does not read: older ones would come as a surprise


class Cab:
    """The seat. `tell` is called whenever its state changes; `note` with a page and what became of its hold on it."""

    def __init__(self, feed: Feed, tell: Callable[[], None], note: Callable[[Any, str], None]) -> None:
        self._feed, self._tell, self._note = feed, tell, note
        self.holder: object | None = None  # a page
        self.name = ""  # its address, for the others
        self.ready = False  # whether what the holder sends is what the node takes
        self.trouble = ""
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._socket: zmq.Socket[bytes] | None = None
        self._seq = self._page_seq = 0
        self._heard = 0.0
        self._quickest, self._measured = math.inf, 0.0  # [s] our clock minus theirs, at the least; when that was
        self.dropped = 0  # inputs that came too late
        self._relief: asyncio.Task[None] | None = None
        self._taken = 0  # the tick since which the holder is in

    def drive(self, page: object, name: str, role: Role, given: Any) -> None:
        """What a page does with the controls: take them, move them, let go. Refused says why not."""
        if given is None:
            self.release(page, "let go")
            return
        self._check_seat(role)
        if given == "take":
            self._take(page, name)
            return
        seq, at, values = self._checked(given)
        if self.holder is not page:
            who = "the controls were not taken" if self.holder is None else f"{self.name} holds the controls"
            raise Refused("refused", who)
        if seq <= self._page_seq:
            raise Refused("replayed", f"cab.seq must be above {self._page_seq}")
        now = time.monotonic()
        if self._is_silent(now):  # what comes now may be young, and held up by the same line
            self._free_seat()
            raise Refused("refused", "the controls were lost, as nothing was heard of this page")
        self._page_seq = seq
        if self._late(now, at):
            self.dropped += 1
            return
        self._heard = now
        self._send(values)

    def _late(self, now: float, at: float) -> bool:
        """Whether an input that was made at `at` [s, the page's clock] was under way for too long."""
        apart = now - at
        self._quickest = min(apart, self._quickest + DRIFT * (now - self._measured))
        self._measured = now
        return apart - self._quickest > (1e-3 * float(self._feed.hello.get("stale_ms", 0.0)) or STALE_S)

    def _check_seat(self, role: Role) -> None:
        if role < Role.OPERATE:
            raise Refused("unauthorised", "holding the controls is for operate, this page may only watch")
        if not self._feed.channels or not self._feed.lane["endpoint"] or not self._feed.up:
            raise Refused("refused", f"the node has no driver {CAB} of kind ecu, or is not there")

    def _checked(self, given: Any) -> tuple[int, float, list[float]]:
        count = len(self._feed.channels)
        seq, at, values = (given.get(k) for k in ("seq", "at", "values")) if isinstance(given, dict) else (None,) * 3
        if type(seq) is not int or not 0 <= seq < 2**53:
            raise Refused("malformed", "cab.seq must be a whole number from 0 on")
        if at is None or not _is_number(at):
            raise Refused("malformed", "cab.at must be when it was made [s, the page's clock]")
        if not isinstance(values, list) or len(values) != count or not all(_is_number(x) for x in values):
            raise Refused("malformed", f"cab.values must be {count} finite numbers")
        return seq, float(at), [float(x) for x in values]

    def _take(self, page: object, name: str) -> None:
        if self.holder is not None and self.holder is not page:
            raise Refused("refused", f"{self.name} holds the controls")
        if self.holder is page:
            return
        self.holder, self.name, self.trouble = page, name, ""
        self._seq, self._page_seq, self._quickest = 0, -1, math.inf
        self._heard = self._measured = time.monotonic()
        socket = identify(self._context.socket(zmq.DEALER), self._feed.key)
        socket.setsockopt(zmq.SNDHWM, MOST_UNSENT)
        socket.setsockopt(zmq.RCVHWM, 100)
        socket.connect(beside(self._feed.endpoint, self._feed.lane["endpoint"]))
        self._socket = socket
        if self._feed.stand_in:
            self._relief = asyncio.create_task(self._relieve(page))
        else:
            self._seated(page, 0)

    async def _relieve(self, page: object) -> None:
        """Have the node put the page in the place of who stands in for it."""
        try:
            answer = await self._feed.ask("seat", ecu=CAB, to="real")
        except NodeError as error:
            if self.holder is page:
                self.trouble = str(error)
                self._tell()
                self.release(page, f"not taken: {error}")
            return
        if self.holder is page:
            self._seated(page, int(answer["answer"]))

    def _seated(self, page: object, tick: int) -> None:
        self.ready, self._taken = True, tick
        self._note(page, "taken")
        self._tell()

    def vacate(self, page: object) -> None:
        """Before a stand-in comes back at the wish of this page: let go; Refused if another page holds the controls."""
        if self.holder is not None and self.holder is not page:
            raise Refused("refused", f"{self.name} holds the controls")
        self.release(page, "let go")

    def _send(self, values: list[float]) -> None:
        assert self._socket is not None
        message = {"v": VERSION, "ecu": CAB, "seq": self._seq, "t": time.monotonic(), "values": values}
        self._seq += 1
        with contextlib.suppress(zmq.Again):  # nobody reads there: the driver sees that it is silent
            self._socket.send(msgpack.packb(message), zmq.NOBLOCK)

    def release(self, page: object, why: str) -> None:
        """Let go, if this page holds the controls; the lane sees that the connection is closed."""
        if self.holder is not page or self.holder is None:
            return
        self.holder, self.name, self.ready = None, "", False
        if self._socket is not None:
            self._socket.close(0)
            self._socket = None
        self._note(page, why)
        self._tell()

    def look(self) -> None:
        """Now and then: hear what the lane says, and free the seat of a page that has fallen silent."""
        if self._socket is None:
            return
        refusal = self._drain(self._socket)
        if refusal and refusal != self.trouble:
            self.trouble = refusal
            self._tell()
        if self._is_silent(time.monotonic()):
            self._free_seat()
        elif not self._feed.up:
            self.release(self.holder, "the node is gone")
        elif self.ready and self._feed.stand_in and self._feed.stand_in_since(self._taken):
            self.release(self.holder, f"the {self._feed.stand_in} was put in")

    def _is_silent(self, now: float) -> bool:
        return now - self._heard > SILENT_S

    def _free_seat(self) -> None:
        """Of a page that has been silent for too long, whoever notices it first."""
        self.release(self.holder, f"silent for {SILENT_S:g} s")

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
            self.release(self.holder, "the server ended")
        if self._relief is not None:
            self._relief.cancel()
        self._context.term()


def _is_number(x: Any) -> bool:
    return type(x) in (int, float) and abs(x) < 1e300 and math.isfinite(x)
