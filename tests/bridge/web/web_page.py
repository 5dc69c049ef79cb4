"""A page without a browser: what it does with the stream, and a server in a thread of the test."""

from __future__ import annotations

import asyncio
import contextlib
import json
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from support import free_port, wait_for
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from bridge.web.frames import ABSOLUTE, BYTE, SHORT, FrameKind
from bridge.web.server import Options, WebServer

HEAD = struct.Struct("<BBHIqdddffHHI")
FORMS = {ABSOLUTE: "<i4", SHORT: "<i2", BYTE: "<i1"}


class FakePage:
    """Connects, keeps what it is told, and acknowledges each frame unless it is told not to."""

    def __init__(self, address: str, *, query: str = "", ack: bool = True, **more: Any) -> None:
        self._opened = contextlib.ExitStack()
        url = f"{address.replace('http', 'ws')}/stream{query}"
        self.socket = self._opened.enter_context(connect(url, max_size=None, **more))
        self.ack = ack
        self.texts: list[dict[str, Any]] = []
        self.counts: Counter[int] = Counter()
        self.bytes = 0
        self.states: list[dict[str, Any]] = []
        self.grids: list[np.ndarray] = []
        self.arrows = np.zeros((0, 6), np.float32)
        self.props: dict[int, np.ndarray] = {}
        self.latest = np.zeros(0, np.float32)
        self.closed: ConnectionClosed | None = None

    @property
    def hello(self) -> dict[str, Any]:
        return self.last("hello")

    def last(self, kind: str) -> dict[str, Any]:
        """The newest text of a kind, or nothing."""
        return next((m for m in reversed(self.texts) if m["type"] == kind), {})

    def say(self, **message: Any) -> None:
        self.socket.send(json.dumps(message))

    def hear(self, seconds: float = 0.0) -> None:
        """Take what comes within so long, and at least what has come."""
        until = time.monotonic() + seconds
        while self.take_one(max(0.0, until - time.monotonic())):
            continue

    def take_one(self, seconds: float = 0.0) -> bool:
        """Take one message, if there is one within so long."""
        try:
            message = self.socket.recv(timeout=seconds)
        except TimeoutError:
            return False
        except ConnectionClosed as error:
            self.closed = error
            return False
        self.bytes += len(message)
        if isinstance(message, str):
            self._take_text(json.loads(message, parse_constant=_refuse))
        else:
            self._take_frame(message)
        return True

    def _take_text(self, message: dict[str, Any]) -> None:
        self.texts.append(message)
        if message["type"] == "hello":
            self.grids = [np.zeros((g["nx"], g["ny"]), np.int32) for g in message["grids"]]
            self.props.clear()

    def _take_frame(self, frame: bytes) -> None:
        self.counts[frame[0]] += 1
        take = {
            FrameKind.STATE: self._state,
            FrameKind.TERRAIN: self._terrain,
            FrameKind.ARROWS: self._arrows,
            FrameKind.PROPS: self._props,
        }
        take[FrameKind(frame[0])](frame)

    def _state(self, frame: bytes) -> None:
        _, state, n_watch, number, tick, t, age, sent, *more = HEAD.unpack_from(frame)
        wake_us, step_us, n_latest, flags, n_samples = more
        values = np.frombuffer(frame, "<f4", offset=HEAD.size)
        at = 7 * len(self.hello["bodies"])
        poses, rest = values[:at].reshape(-1, 7), values[at:]
        if n_latest:
            self.latest = rest[:n_latest]
        samples = rest[n_latest:].reshape(n_samples, 1 + n_watch)
        self.states.append(
            {"state": state, "frame": number, "tick": tick, "t": t, "age": age, "wake_us": wake_us, "flags": flags}
            | {"sent": sent}
            | {"step_us": step_us, "poses": poses, "samples": samples, "n_latest": n_latest}
        )
        if self.ack:
            with contextlib.suppress(ConnectionClosed):  # the next look will say so
                self.say(ack=number)

    def _terrain(self, frame: bytes) -> None:
        _, grid, count, _ = struct.unpack_from("<BBHI", frame)
        at = 8
        for _ in range(count):
            i, j, mode, nx, ny, _ = struct.unpack_from("<HHBBBB", frame, at)
            part = np.frombuffer(frame, FORMS[mode], nx * ny, at + 8).reshape(nx, ny)
            view = self.grids[grid][i : i + nx, j : j + ny]
            assert view.shape == (nx, ny)
            view[:] = part if mode == ABSOLUTE else view + part
            size = part.nbytes
            at += 8 + size + -size % 4
        assert at == len(frame)

    def _arrows(self, frame: bytes) -> None:
        (count,) = struct.unpack_from("<2xH", frame)
        self.arrows = np.frombuffer(frame, "<f4", offset=4).reshape(count, 6)

    def _props(self, frame: bytes) -> None:
        (count,) = struct.unpack_from("<2xH", frame)
        table = np.frombuffer(frame, np.dtype([("k", "<u2"), ("pad", "<u2"), ("pose", "<f4", 7)]), count, 4)
        self.props |= {int(row["k"]): row["pose"].copy() for row in table}

    def until(self, look: Callable[[], Any], what: str, seconds: float = 60.0) -> Any:
        """Hear until there is something."""

        def heard() -> Any:
            self.hear(0.01)
            return look()

        return wait_for(heard, what, seconds)

    def ask(self, op: str, **fields: Any) -> dict[str, Any]:
        """An operation and its answer."""
        ident = f"{op}-{len(self.texts)}"
        self.say(op=op, id=ident, **fields)
        answers = lambda: [m for m in self.texts if m["type"] == "answer" and m["id"] == ident]  # noqa: E731
        return dict(self.until(answers, f"the answer to {op}")[0])

    def __enter__(self) -> FakePage:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()


def _refuse(name: str) -> float:
    raise AssertionError(f"{name} is not JSON")


def placeholder(folder: Path) -> Path:
    """A page to be served in the place of the real one."""
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text("<!doctype html><title>hilnode</title>")
    (folder / "assets" / "index-1a2b.js").write_text("export const x = 1;\n" * 200)
    (folder / "favicon.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    (folder / "secret.txt").symlink_to("/etc/hostname")
    return folder


@contextlib.contextmanager
def served(endpoint: str, folder: Path, **options: Any) -> Iterator[WebServer]:
    """A server of its own, as `hilnode view` runs it, on a free port."""
    address = options.pop("address", None) or f"http://127.0.0.1:{free_port()}"
    server = WebServer(Options(address=address, endpoint=endpoint, static=folder, **options))
    ready, ending = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(server.work(ready.set, ending.is_set)), name="web server")
    thread.start()
    try:
        assert ready.wait(10)
        yield server
    finally:
        ending.set()
        thread.join(20)
        assert not thread.is_alive()
