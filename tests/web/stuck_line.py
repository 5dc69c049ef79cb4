"""A line between a browser and its server that can get stuck: nothing is closed, and later all of it arrives."""

from __future__ import annotations

import socket
import threading
from urllib.parse import urlsplit


class StuckLine:
    """A proxy on a port of its own; `hold` and `let_go` are for both ways."""

    def __init__(self, server: str) -> None:
        parts = urlsplit(server)
        self._server = (parts.hostname, parts.port)
        self._flows = threading.Event()
        self._flows.set()
        self._door = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self.url = f"http://127.0.0.1:{self._door.getsockname()[1]}"

    def hold(self) -> None:
        self._flows.clear()

    def let_go(self) -> None:
        self._flows.set()

    def __enter__(self) -> StuckLine:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._flows.set()
        for one in (self._door, *self._open):
            one.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._door.accept()
                far = socket.create_connection(self._server)
            except OSError:
                return
            self._open += [near, far]
            for way in ((near, far), (far, near)):
                threading.Thread(target=self._carry, args=way, daemon=True).start()

    def _carry(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while body := source.recv(65536):
                self._flows.wait()
                sink.sendall(body)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass
