"""A subscription that is polled: each call returns all messages that have arrived since the last one.

Being woken for each of a thousand messages a second costs more than reading them: a screen, which shows ten pictures a
second, takes what has come since the last one.
"""

from __future__ import annotations

from collections.abc import Sequence

import zmq

from bridge.client.link import identify
from bridge.protocol.keys import ClientKey

MOST_WAITING = 100_000  # messages kept while nobody reads them


class Subscription:
    """Some topics of one node. One thread at a time."""

    def __init__(self, publish: str, topics: Sequence[str], key: ClientKey | None = None) -> None:
        self._context = zmq.Context()
        self._socket = identify(self._context.socket(zmq.SUB), key)
        self._socket.setsockopt(zmq.RCVHWM, MOST_WAITING)
        for topic in topics:
            self._socket.subscribe(topic.encode())
        self._socket.connect(publish)

    def take(self, wait: float = 0.0) -> list[tuple[str, bytes]]:
        """Topic and body of what has come; if nothing has, wait for it for so long [s]."""
        taken: list[tuple[str, bytes]] = []
        if wait and not self._socket.poll(round(1e3 * wait)):
            return taken
        while len(taken) < MOST_WAITING:
            try:
                frames = self._socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                break
            if len(frames) == 2:
                taken.append((frames[0].decode(errors="replace"), frames[1]))
        return taken

    def close(self) -> None:
        self._socket.close(0)
        self._context.term()
