"""The subscribers of one XPUB socket, and the bounds on what a slow one can cost.

    send ---> XPUB ===> subscriber          ZeroMQ keeps HIGH_WATER messages for a slow one; what comes then it loses
                  \\==> subscriber

What can be known here is little, and all of it comes from ZeroMQ:

- An XPUB socket says once that a message does not fit into some queue (XPUB_NODROP), not into whose, and then nothing
  until that queue is half empty. So overflows are counted. How many messages were lost each subscriber knows by their
  sequence numbers, and may report (operation `losses`).
- A subscription carries the name of the key it came with. ZeroMQ offers no way to end the connection of one peer. When
  a key that subscribed is taken back, the endpoint is therefore bound anew: everybody is disconnected, and who is still
  let in is back after ZeroMQ's reconnect interval, a tenth of a second as a rule.

Three bounds, from the narrowest on: HIGH_WATER messages for each subscriber; STALLED_MS after which the kernel ends the
connection of one that takes nothing at all (bridge.protocol.endpoints); and, since large messages to one that is merely
slow could still fill the memory, MOST_BYTES by which this process may grow before the endpoint is bound anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import psutil
import zmq

from bridge.protocol.connections import SOMEBODY, Connections, Refusal, sender

MOST_BYTES = 128_000_000  # by which the process may grow: HIGH_WATER rows of 12 kB
MOST_READ = 1000  # subscriptions taken in one look
BIND_TRIES = 20  # at once; ZeroMQ lets go of an address in its own thread, within a millisecond or two
BIND_PAUSE = 0.001  # [s] between them


class Subscribers:
    """Sends to whoever subscribes at one bound XPUB socket. `is_welcome` tells whether a user is still let in."""

    def __init__(
        self,
        socket: zmq.Socket[bytes],
        *,
        keyed: bool = False,
        is_welcome: Callable[[str], bool] = lambda _user: True,
        refused: Refusal = lambda _reason, _who, _why: None,
    ) -> None:
        self.connections = Connections(socket, refused, keyed=keyed)
        self._socket, self._keyed, self._is_welcome, self._refused = socket, keyed, is_welcome, refused
        self._endpoint = socket.get_string(zmq.LAST_ENDPOINT)
        self._is_bound = True
        self._users: set[str] = set()  # names of keys that subscribed since the endpoint was bound
        self.overflows = 0  # how often the queue of a subscriber ran full
        self._process = psutil.Process()
        self._least = 0  # [bytes] of this process, the lowest since the first look
        socket.setsockopt(zmq.XPUB_VERBOSE, 1)  # each subscription is told, also one that somebody else has too
        socket.setsockopt(zmq.XPUB_NODROP, 1)

    def send(self, frames: list[bytes]) -> None:
        """A topic and a body, to all who want it; nobody is waited for."""
        if int(self._socket.getsockopt(zmq.EVENTS)) & zmq.POLLIN:
            self._hear_all()  # subscriptions that nobody reads pile up
        try:
            self._socket.send_multipart(frames, zmq.NOBLOCK)
        except zmq.Again:  # somebody's queue is full: the others get it, and it is counted
            self._socket.setsockopt(zmq.XPUB_NODROP, 0)
            self._socket.send_multipart(frames, zmq.NOBLOCK)
            self._socket.setsockopt(zmq.XPUB_NODROP, 1)
            self.overflows += 1

    def look(self) -> None:
        """Take note of who came and went, and keep to the bounds; a few times a second."""
        self.connections.look()
        self._hear_all()
        if not self._is_bound:
            self._bind()
        self._end_unwelcome()
        self._keep_memory()

    def _end_unwelcome(self) -> None:
        if unwelcome := [user for user in self._users if not self._is_welcome(user)]:
            for user in unwelcome:
                self._refused("unauthorised", user, "it is no longer let in: everybody has to subscribe again")
            self._bind_anew()

    def _keep_memory(self) -> None:
        memory = self._process.memory_info()
        own = memory.rss - memory.shared
        self._least = min(self._least or own, own)
        if own - self._least > MOST_BYTES:
            waits = f"more than {MOST_BYTES / 1e6:.0f} MB wait for slow subscribers"
            self._refused("refused", SOMEBODY, f"{waits}: everybody has to subscribe again")
            self._bind_anew()
            self._least = own  # until ZeroMQ has let go of it

    def _hear_all(self) -> None:
        for _ in range(MOST_READ):
            try:
                frame = self._socket.recv(zmq.NOBLOCK, copy=False)
            except zmq.Again:
                return
            try:
                self._hear(frame)
            except Exception as error:  # what is known about one subscriber must not end what the others are sent
                self._refused("malformed", SOMEBODY, f"a subscription can not be read: {error!r}")

    def _hear(self, frame: zmq.Frame) -> None:
        """A subscription, or its end."""
        first = frame.bytes[:1]
        if first not in (b"\x00", b"\x01"):
            self._refused("malformed", sender(frame), "a subscriber can not send")
        elif first == b"\x01" and self._keyed:
            self._users.add(sender(frame))

    def _bind_anew(self) -> None:
        """End every connection. Who lives, and is let in, connects again by itself."""
        if not self._is_bound:
            return
        try:
            self._socket.unbind(self._endpoint)
        except zmq.ZMQError as error:  # nobody was disconnected: the next look finds the same, and tries again
            self._refused("refused", SOMEBODY, f"{self._endpoint} can not be unbound: {error.strerror}")
            return
        self._users.clear()
        self.connections.forget()
        self._bind()

    def _bind(self) -> None:
        """Take the endpoint again; if somebody else was quicker, the next look tries once more."""
        for _ in range(BIND_TRIES):
            try:
                self._socket.bind(self._endpoint)
            except zmq.ZMQError:
                time.sleep(BIND_PAUSE)
            else:
                self._is_bound = True
                return
        if self._is_bound:
            self._refused("refused", SOMEBODY, f"{self._endpoint} can not be bound again, and is tried on and on")
        self._is_bound = False

    def close(self) -> None:
        self.connections.close()
        self._socket.close()
