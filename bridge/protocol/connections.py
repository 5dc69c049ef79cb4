"""Connections of a bound socket: which have closed and which were refused, from ZeroMQ's socket monitor.

ZeroMQ's socket monitor tells of each connection that is accepted, fails its handshake or ends, by the number of its
descriptor. That number is a label here and nothing else: the descriptor belongs to ZeroMQ's thread, which may have
closed it, and the number may be another file's by the time the report is read. Two things therefore stay unknown: the
address of a peer that fails its handshake, and whether a connection was ended by its peer or by ZeroMQ (a message
beyond `MAXMSGSIZE`). Who sent a message is in that message's metadata (`sender`).

The monitor must be read as long as it is on: ZeroMQ waits for its reader.
"""

from __future__ import annotations

from collections.abc import Callable

import zmq
from zmq.utils.monitor import recv_monitor_message

SOMEBODY = "somebody"
"""A peer of which ZeroMQ tells neither key nor address."""

MOST_REPORTS = 10_000  # read in one look

Refusal = Callable[[str, str, str], None]
"""Takes a reason of `bridge.protocol.operations`, who it was and a sentence."""


class Connections:
    """The connections of one bound socket."""

    def __init__(self, socket: zmq.Socket[bytes], refused: Refusal, *, keyed: bool) -> None:
        self._socket, self._refused, self._keyed = socket, refused, keyed
        self._open: dict[int, bool] = {}  # by number; one that was accepted before the monitor was on is not in it
        self._failures = [zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL]
        if keyed:  # a client without a key may see that it does not fit, and close, before the handshake is over here
            self._failures.append(zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL)
        self.monitor = socket.get_monitor_socket(sum(self._failures, zmq.EVENT_ACCEPTED | zmq.EVENT_DISCONNECTED))
        self._failed = False  # the connection that is closed next failed its handshake

    @property
    def count(self) -> int:
        """Connections that are open."""
        return sum(self._open.values())

    def look(self) -> list[int]:
        """Read the reports since the last look: numbers of the connections that have closed."""
        closed: list[int] = []
        for _ in range(MOST_REPORTS):
            if not self.monitor.poll(0):
                break
            try:
                report = recv_monitor_message(self.monitor, zmq.NOBLOCK)
                self._note(report["event"], report["value"], closed)
            except Exception as error:  # what is known about one peer must not end the service of all others
                self._refused("malformed", SOMEBODY, f"a report of ZeroMQ can not be read: {error!r}")
        return closed

    def is_closed(self, number: int) -> bool:
        """Whether the connection with this number has closed and no other has the number; right after a look.

        The report of a connection comes before its first message: both are written by the same thread of ZeroMQ.
        """
        return self._open.get(number) is False

    def forget(self) -> None:
        """All were ended by unbinding the socket, of which there are no reports."""
        self.look()
        self._open.clear()

    def _note(self, event: int, number: int, closed: list[int]) -> None:
        if event == zmq.EVENT_ACCEPTED:
            self._open[number] = True
        elif event in self._failures:
            self._failed = True
        elif event == zmq.EVENT_DISCONNECTED:
            self._open[number] = False
            closed.append(number)
            self._note_failure()

    def _note_failure(self) -> None:
        failed, self._failed = self._failed, False
        if failed and self._keyed:
            self._refused("unauthenticated", SOMEBODY, "no key, or one that was made for another node")
        elif failed:
            self._refused("malformed", SOMEBODY, "it greets as if there were keys here, or speaks something else")

    def close(self) -> None:
        """Before the socket is closed."""
        self._socket.disable_monitor()
        self.monitor.close(0)


def sender(frame: zmq.Frame) -> str:
    """Who sent it: the name of the key, or the address where there are no keys."""
    for key in ("User-Id", "Peer-Address"):
        try:
            if name := frame.get(key):
                return str(name)
        except zmq.ZMQError:
            continue
    return SOMEBODY
