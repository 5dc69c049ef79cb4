"""Sockets that the bridge binds: CURVE where there are keys, and bounds on queues and message sizes."""

from __future__ import annotations

import zmq

from bridge.protocol.keys import Keyring
from bridge.protocol.zap_authenticator import protect

HARD_LIMIT = 4 * 1024 * 1024  # [bytes] of a message: beyond this ZeroMQ itself closes the connection
HIGH_WATER = 10_000  # messages kept for a slow subscriber
LONGEST_TOPIC = 1000  # [bytes] of a subscription: ZeroMQ's tree of them takes a hundred times as much
MOST_REQUESTS = 64  # of one client that ZeroMQ takes before they are read: they may be as large as it lets in
MOST_ANSWERS = 1000  # kept for a client that does not read them
STALLED_MS = 4000  # a subscriber that takes nothing for so long, with the kernel's buffers full, is disconnected


class BridgeError(RuntimeError):
    """An endpoint or a key that cannot be had; the message names the key of the config and the fix."""


def bound(
    context: zmq.Context[zmq.Socket[bytes]], keyring: Keyring | None, kind: int, key: str, endpoint: str
) -> zmq.Socket[bytes]:
    """An XPUB or ROUTER socket at `endpoint`; `key` is what the user wrote it to."""
    socket = context.socket(kind)
    socket.setsockopt(zmq.LINGER, 200)
    socket.setsockopt(zmq.IPV6, "[" in endpoint)
    if keyring:
        protect(socket, keyring)
    socket.setsockopt(zmq.MAXMSGSIZE, LONGEST_TOPIC if kind == zmq.XPUB else HARD_LIMIT)
    if kind == zmq.XPUB:
        socket.setsockopt(zmq.SNDHWM, HIGH_WATER)
        socket.setsockopt(zmq.TCP_MAXRT, STALLED_MS)
    else:
        socket.setsockopt(zmq.RCVHWM, MOST_REQUESTS)
        socket.setsockopt(zmq.SNDHWM, MOST_ANSWERS)
        socket.setsockopt(zmq.ROUTER_HANDOVER, 0)
    try:
        socket.bind(endpoint)
    except zmq.ZMQError as error:
        socket.close(0)
        raise BridgeError(f"{key} = {endpoint!r}: {error.strerror}; choose another address or port") from error
    return socket
