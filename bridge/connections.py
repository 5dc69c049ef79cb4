"""Who is connected to a bound socket, and who was turned away before a single message: from ZeroMQ's own reports.

ZeroMQ says nothing to the program about a peer without a key, with the key of another node, or with a message beyond
`MAXMSGSIZE`: it closes the connection. Its socket monitor tells of each connection that comes and goes. A second handle
on the connection, taken when it comes, shows at its end who closed it: where bytes are left that nobody read, it was
not the peer.

The monitor must be read all the time that it is on: ZeroMQ waits for its reader.
"""

from __future__ import annotations

import contextlib
import os
import socket as sockets
from collections.abc import Callable

import zmq
from zmq.utils.monitor import recv_monitor_message

SOMEBODY = "somebody"
"""Who it was, where the connection was closed before it could be looked at."""

FAMILIES = (sockets.AF_INET, sockets.AF_INET6, sockets.AF_UNIX)
"""Of ZeroMQ's connections."""

Refusal = Callable[[str, str, str], None]
"""Takes a reason of `bridge.requests`, who it was and a sentence."""


class Connections:
    """The connections of one socket. `open` has a handle of ours on each there is now, by ZeroMQ's own descriptor."""

    def __init__(self, socket: zmq.Socket[bytes], refused: Refusal, *, keyed: bool) -> None:
        self.open: dict[int, sockets.socket] = {}
        self._socket, self._refused, self._keyed = socket, refused, keyed
        self._failures = [zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL]
        if keyed:  # a client without a key may see that it does not fit, and close, before the greeting is over here
            self._failures.append(zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL)
        self.monitor = socket.get_monitor_socket(sum(self._failures, zmq.EVENT_ACCEPTED | zmq.EVENT_DISCONNECTED))
        self._failed = False  # the connection that is closed next did not get past the greeting

    def look(self) -> list[int]:
        """What has happened since the last look: the descriptors of connections that were closed."""
        closed = []
        while self.monitor.poll(0):
            report = recv_monitor_message(self.monitor, zmq.NOBLOCK)
            if report["event"] == zmq.EVENT_ACCEPTED:
                self.know(report["value"])
            elif report["event"] in self._failures:
                self._failed = True
            elif report["event"] == zmq.EVENT_DISCONNECTED:
                closed.append(report["value"])
                self._forget(report["value"])
        return closed

    def know(self, descriptor: int) -> sockets.socket | None:
        """Our own handle on a connection; None if it is closed already.

        Its number may be that of something else by then, such as the kernel's own socket by which a name is looked up.
        """
        if descriptor not in self.open:
            with contextlib.suppress(OSError):
                handle = sockets.socket(fileno=os.dup(descriptor))
                if handle.family in FAMILIES:
                    self.open[descriptor] = handle
                else:
                    handle.close()
        return self.open.get(descriptor)

    def is_closed(self, descriptor: int) -> bool:
        """Whether no connection has it any more; right after a look, and until the next one comes."""
        if descriptor in self.open:
            return False
        try:
            os.fstat(descriptor)
        except OSError:
            return True
        return False  # it is open, though there was no room for a handle of our own

    def _forget(self, descriptor: int) -> None:
        failed, self._failed = self._failed, False
        handle = self.open.pop(descriptor, None)
        who = address(handle)
        if failed and self._keyed:
            self._refused("unauthenticated", who, "no key, or one that was made for another node")
        elif failed:
            self._refused("malformed", who, "it greets as if there were keys here, or speaks something else")
        elif handle and _has_more(handle):
            self._refused("oversized", who, "a message beyond every bound, or none at all: the connection was closed")
        if handle:
            handle.close()

    def close(self) -> None:
        """Before the socket is closed."""
        self._socket.disable_monitor()
        self.monitor.close(0)
        for handle in self.open.values():
            handle.close()
        self.open.clear()


def address(handle: sockets.socket | None) -> str:
    """Of the other end."""
    if handle is None:
        return SOMEBODY
    try:
        host, port, *_ = handle.getpeername()
    except (OSError, ValueError):  # it is gone, or has no address
        return SOMEBODY
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def sender(frame: zmq.Frame) -> str:
    """Who sent it: the name of the key, or the address where there are no keys."""
    for key in ("User-Id", "Peer-Address"):
        try:
            if name := frame.get(key):
                return str(name)
        except zmq.ZMQError:
            continue
    return SOMEBODY


def _has_more(handle: sockets.socket) -> bool:
    """Whether something came that was not read."""
    try:
        return bool(handle.recv(1, sockets.MSG_PEEK | sockets.MSG_DONTWAIT))
    except OSError:
        return False
