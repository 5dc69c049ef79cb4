"""The web server: one port for the page and its stream. Run by the node as a child process, or by `hilnode view`."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from bridge.protocol.audit import Audit
from bridge.protocol.keys import ClientKey, KeyFileError, read_client_key
from bridge.protocol.operations import Role
from bridge.web.cab import Cab
from bridge.web.feed import Feed
from bridge.web.files import STATIC, Files, plain
from bridge.web.gate import Gate
from bridge.web.page import Page
from bridge.web.words import as_json
from hilnode.shared.control import Control, Word
from hilnode.shared.realtime import keep_off

LARGEST = 64 * 1024  # [bytes] of a message from a page
MOST_PAGES = 50
TELL_EVERY = 1.0  # [s] between two messages about the server itself
NO_TOKEN = 4401  # close code: a page asks for the token then
LOOK_EVERY = 0.1  # [s] whether the node is still there


class AddressTaken(RuntimeError):
    """The address cannot be had; the message says why and what to do."""


@dataclass(frozen=True)
class Options:
    """What a server is told: where to listen, which node to show, and what its pages may do."""

    address: str = "http://127.0.0.1:8080"
    endpoint: str = "tcp://127.0.0.1:9873"
    key: ClientKey | None = None
    token: str = ""
    role: Role = Role.OPERATE
    audit: Path | None = None
    static: Path = STATIC


class WebServer:
    """Serves the pages of one node."""

    def __init__(self, options: Options) -> None:
        parts = urlsplit(options.address)
        self.host, self.port = parts.hostname or "127.0.0.1", parts.port or 8080
        self.options, self.role = options, options.role
        self.feed = Feed(options.endpoint, options.key, self._say_to_all, self._wake_all)
        self.cab = Cab(self.feed, self._tell_cab, self._note_cab)
        self.gate = Gate(self.host, options.token, Files(options.static))
        self.audit = Audit(options.audit, lambda line: print(line, flush=True))
        self.pages: set[Page] = set()

    # -- pages ------------------------------------------------------------------------------------------------------

    def _say_to_all(self, text: str) -> None:
        for page in self.pages:
            page.say(text)

    def _wake_all(self) -> None:
        for page in self.pages:
            page.wake.set()

    def cab_text(self, page: Page, why: str = "") -> str:
        """Who holds the controls, in the eyes of a page."""
        holder = self.cab.holder
        if holder is None or (holder is page and not self.cab.ready and not self.cab.trouble):
            who = "nobody"
        else:
            who = "you" if holder is page else f"somebody else: {self.cab.name}"
        return as_json({"type": "cab", "holder": who, "why": why or (self.cab.trouble if holder is page else "")})

    def _tell_cab(self) -> None:
        for page in self.pages:
            page.say(self.cab_text(page))

    def _note_cab(self, page: Page, what: str) -> None:
        """Who drove, and until when, is written down."""
        self.audit.done(f"page {page.name}", page.role.name.lower(), {"op": "cab"}, what, self._tick)

    def count_watchers(self) -> None:
        """Rows are kept only while somebody plots."""
        self.feed.pages = len(self.pages)
        self.feed.watchers = sum(bool(page.watch) for page in self.pages)

    def refuse(self, reason: str, who: str, why: str) -> None:
        """Count it and write it down."""
        self.gate.refused[reason] += 1
        self.audit.refused(f"page {who}", reason, why, self._tick)

    def note(self, page: Page, op: str, fields: dict[str, Any], answer: dict[str, Any]) -> None:
        """Write down what a page had done, unless it only looked."""
        if self.feed.operations[op].role > Role.WATCH:
            outcome = "done" if answer["ok"] else str(answer["why"])
            who, role = f"page {page.name}", page.role.name.lower()
            self.audit.done(who, role, {"op": op, **fields}, outcome, self._tick)

    @property
    def _tick(self) -> int:
        rows = self.feed.rows
        return int(rows.newest[0]) if rows and rows.newest is not None else 0

    async def _attend(self, connection: ServerConnection) -> None:
        """One page from its first message to its last."""
        who = str(connection.remote_address[0])
        if connection.request is None or not self.gate.has_token(connection.request.path):
            self.audit.refused(f"page {who}", "token", "missing or wrong", self._tick)
            await connection.close(NO_TOKEN, "the token is missing or wrong")
            return
        page = Page(self, connection, who)
        self.pages.add(page)
        self.count_watchers()
        if not self.feed.up:
            page.say(self.feed.link_text())
        page.wake.set()
        sending = asyncio.create_task(page.send_all())
        try:
            await page.hear_all()
        except ConnectionClosed as error:
            if error.sent is not None and error.sent.code == 1009:
                self.refuse("oversized", page.name, f"a message has at most {LARGEST} bytes")
            elif error.sent is not None and error.sent.code in (1002, 1007):
                self.refuse("malformed", page.name, error.sent.reason)
        finally:
            self.cab.release(page, "the page has gone")
            self.pages.discard(page)
            self.count_watchers()
            sending.cancel()
            with contextlib.suppress(asyncio.CancelledError, ConnectionClosed):
                await sending

    def _look(self, _connection: ServerConnection, request: Request) -> Response | None:
        before = self.gate.refused.total()
        answer = self.gate.look(request)
        if self.gate.refused.total() > before:
            self.audit.refused("page", "refused", f"{request.path[:100]}", self._tick)
        if answer is None and len(self.pages) >= MOST_PAGES:
            self.gate.refused["pages"] += 1
            return plain(503, f"{MOST_PAGES} pages are open already")
        return answer

    # -- the loop ---------------------------------------------------------------------------------------------------

    async def _look_around(self) -> None:
        """What has time: the seat at the controls, and what pages are told of the server itself."""
        loop = asyncio.get_running_loop()
        told = loop.time()
        while True:
            await asyncio.sleep(LOOK_EVERY)
            self.cab.look()
            if loop.time() - told >= TELL_EVERY:
                told = loop.time()
                self._tell_counts()

    def _tell_counts(self) -> None:
        refused = dict(self.gate.refused)
        for page in self.pages:
            trip = round(1e3 * page.round_trip, 1)
            words = {"pages": len(self.pages), "refused": refused, "round_trip_ms": trip, "dropped": page.dropped}
            page.say(as_json({"type": "web", **words}))

    async def work(self, ready: Callable[[], None], ended: Callable[[], bool]) -> None:
        """Serve until `ended`, which is asked now and then; `ready` is called once the address is open."""
        tasks: list[asyncio.Task[None]] = []
        try:
            async with serve(
                self._attend,
                self.host,
                self.port,
                process_request=self._look,
                compression=None,
                max_size=LARGEST,
                max_queue=64,
                server_header=None,
                ping_interval=5,
                ping_timeout=10,
                close_timeout=1,
            ):
                tasks += [asyncio.create_task(self.feed.work()), asyncio.create_task(self._look_around())]
                ready()
                while not ended() and not any(task.done() for task in tasks):
                    await asyncio.sleep(LOOK_EVERY)
        except OSError as error:
            if tasks:
                raise
            why = os.strerror(error.errno) if error.errno else str(error)
            raise AddressTaken(f"{self.options.address}: {why}; choose another address or port") from error
        finally:
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
            self.cab.close()
            self.audit.close(self._tick)
        for result in results:
            if isinstance(result, Exception):
                raise result


def options_of(spec: dict[str, Any]) -> Options:
    """From the node's first line."""
    return Options(
        address=spec["address"],
        endpoint=spec["endpoint"],
        key=read_client_key(Path(spec["key"])) if spec["key"] else None,
        token=spec["token"],
        role=Role[spec["role"].upper()],
        audit=Path(spec["directory"]) / "audit.jsonl" if spec["directory"] else None,
    )


def main() -> int:
    """Entry point of the node's child: one line of JSON on standard input, then serve until the node ends."""
    spec = json.loads(sys.stdin.readline())
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)
    keep_off(spec["cpu"])
    logging.getLogger("websockets").setLevel(logging.CRITICAL)  # failed handshakes are counted, not logged
    control = Control.attach(spec["node"])
    node = control[Word.PID]

    def ended() -> bool:
        return control[Word.CLOSING] == 1 or os.getppid() != node

    async def serve_pages() -> None:
        try:
            server = WebServer(options_of(spec))
            await server.work(lambda: print(f"the page is at {spec['address']}", flush=True), ended)
        except (AddressTaken, KeyFileError) as error:
            print(f"no page in the browser: {error}", flush=True)
            while not ended():  # one that ended would be started again
                await asyncio.sleep(LOOK_EVERY)

    asyncio.run(serve_pages())
    return 0


if __name__ == "__main__":
    sys.exit(main())
