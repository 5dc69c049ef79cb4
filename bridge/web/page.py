"""One connected page: what it was sent, what it has drawn, what it requests.

A frame of state is sent when at most one is not yet drawn, and it is the newest there is: so a page that draws slowly
gets fewer frames, never older ones. Texts wait in a queue with an end; what does not fit is counted and dropped.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from websockets.asyncio.server import ServerConnection

from bridge.protocol.operations import NodeError, Refused, Role, check
from bridge.web.feed import CAB
from bridge.web.frames import STATE_HEAD, FrameKind, PageGround
from bridge.web.rows import head_of
from bridge.web.words import as_json, from_json

if TYPE_CHECKING:
    from bridge.web.server import WebServer

MOST_TEXTS = 256  # that wait for a page
MOST_ASKED = 8  # operations of one page under way
MOST_WATCHED = 32  # signals in its plots
MOST_IN_A_SECOND = 400  # messages of one page
MOST_NONSENSE = 20  # refused messages after which a page is sent away
UNDRAWN = 2  # frames that may be under way
LATEST_EVERY = 6  # frames
NOT_FOR_PAGES = ("hello", "losses")


class Page:
    """One connection to the stream."""

    def __init__(self, server: WebServer, connection: ServerConnection, name: str) -> None:
        self.server, self.connection, self.name = server, connection, name
        self.wake = asyncio.Event()
        self.dropped = 0  # texts
        self.round_trip = 0.0  # [s] from a frame sent to its acknowledgement, of the last one
        self.watch: list[str] = []
        self._texts: deque[str] = deque()
        self._generation = 0
        self._frame = self._acked = 0
        self._sent_at: deque[tuple[int, float]] = deque(maxlen=UNDRAWN)
        self._asked: set[asyncio.Task[None]] = set()
        self._second, self._in_second, self._nonsense = 0.0, 0, 0
        self._words: NDArray[np.int64] = np.zeros(0, np.int64)
        self._begin()
        self._generation = 0  # not greeted yet

    def _begin(self) -> None:
        """It knows nothing yet; frames of the run before are nobody's to draw, so none of them is waited for."""
        feed = self.server.feed
        self._acked = self._frame
        self._sent_at.clear()
        self._generation = feed.generation
        self._tick = -1
        self._sent = 0  # frames since the hello
        self._rows_seen = feed.rows.count if feed.rows else 0
        self._grounds = [PageGround(k, grid) for k, grid in enumerate(feed.grids)]
        self._props_seen = np.zeros(len(feed.props.names), np.int64)
        self._arrows_seen = 0

    @property
    def role(self) -> Role:
        """The lower of what pages may do and what the server itself may do at the node."""
        return min(self.server.role, self.server.feed.role)

    # -- to the page ------------------------------------------------------------------------------------------------

    def say(self, text: str) -> None:
        """A text for it, as soon as it can take it."""
        if len(self._texts) >= MOST_TEXTS:
            self._texts.popleft()
            self.dropped += 1
        self._texts.append(text)
        self.wake.set()

    async def send_all(self) -> None:
        """Send what there is, whenever there is something; until cancelled or the page is gone."""
        send = self.connection.send
        while True:
            await self.wake.wait()
            self.wake.clear()
            feed = self.server.feed
            if self._generation != feed.generation:
                self._begin()
                self._greet()
            while self._texts:
                await send(self._texts.popleft())
            if self._generation == feed.generation and self._frame - self._acked < UNDRAWN:
                for frame in self._frames():
                    await send(frame)

    def _greet(self) -> None:
        """All that a page must know before its first frame; texts of the run before are left out."""
        feed = self.server.feed
        self._texts.clear()
        hello = {**feed.hello, "role": self.role.name.lower()}
        for text in (as_json(hello), feed.scene, feed.link_text(), *feed.latest.values(), *feed.events):
            self.say(text)
        self.say(self.server.cab_text(self))
        self._find_words()

    def _frames(self) -> list[bytes]:
        """The newest state and what has changed beside it; nothing if the page has it already."""
        feed = self.server.feed
        rows = feed.rows
        if rows is None or rows.newest is None or not self._generation:
            return []
        row = rows.newest
        state, flags, tick, late, took = head_of(row)
        frames = [frame for ground in self._grounds if (frame := ground.frame())]
        if moved := feed.props.frame(self._props_seen):
            frames.append(moved)
        if feed.arrows_number != self._arrows_seen:
            self._arrows_seen = feed.arrows_number
            frames.append(feed.arrows)
        if tick == self._tick and not frames:
            return []
        t = rows.time(row)
        samples = rows.samples(self._words, self._rows_seen, t)
        self._rows_seen, self._tick = rows.count, tick
        with np.errstate(over="ignore", invalid="ignore"):
            poses = row.view(np.float64)[rows.schema.at_poses :].astype("<f4")
            full = self._sent % LATEST_EVERY == 0
            latest = row.view(np.float64)[rows.words].astype("<f4") if full else poses[:0]
        self._frame = (self._frame + 1) % 2**32
        self._sent += 1
        now = time.monotonic()
        self._sent_at.append((self._frame, now))
        head = STATE_HEAD.pack(
            *(
                FrameKind.STATE,
                state,
                len(self._words),
                self._frame,
                tick,
                t,
                feed.age(now),
                now,
                late,
                took,
                len(latest),
                flags,
            ),
            len(samples),
        )
        frames.append(head + poses.tobytes() + latest.tobytes() + samples.astype("<f4").tobytes())
        return frames

    # -- from the page ----------------------------------------------------------------------------------------------

    async def hear_all(self) -> None:
        """Until it goes."""
        async for message in self.connection:
            try:
                self._hear(message)
            except Refused as error:
                self.server.refuse(error.reason, self.name, str(error))
                self._nonsense += error.reason in ("malformed", "flood")
                if self._nonsense >= MOST_NONSENSE:
                    await self.connection.close(1008, "too much that makes no sense")

    def _hear(self, message: str | bytes) -> None:
        now = time.monotonic()
        if now - self._second >= 1.0:
            self._second, self._in_second = now, 0
        self._in_second += 1
        if self._in_second > MOST_IN_A_SECOND:
            raise Refused("flood", f"more than {MOST_IN_A_SECOND} messages in a second")
        if not isinstance(message, str):
            raise Refused("malformed", "a page sends text")
        given = from_json(message)
        if "ack" in given:
            self._acknowledge(given["ack"], now)
        elif "op" in given:
            self._ask(given)
        elif "cab" in given:
            self._drive(given["cab"])
        elif "watch" in given:
            self._choose(given["watch"])
        elif "clock" in given:
            self._tell_time(given["clock"], now)
        else:
            raise Refused("malformed", "a message has ack, op, cab, watch or clock")

    def _tell_time(self, theirs: Any, now: float) -> None:
        """Our clock beside theirs: from a few such answers a page knows how far the two are apart."""
        if type(theirs) not in (int, float) or not math.isfinite(theirs):
            raise Refused("malformed", "clock must be a number")
        self.say(as_json({"type": "clock", "page": theirs, "server": now}))

    def _acknowledge(self, frame: Any, now: float) -> None:
        if type(frame) is not int or not 0 < frame <= self._frame:
            raise Refused("malformed", f"ack must be a frame from 1 to {self._frame}")
        if frame <= self._acked:
            return  # of the run before: it was drawn before the page had heard of this one
        self._acked = frame
        while self._sent_at and self._sent_at[0][0] <= frame:
            self.round_trip = now - self._sent_at.popleft()[1]
        self.wake.set()

    def _choose(self, names: Any) -> None:
        if not isinstance(names, list) or len(names) > MOST_WATCHED or not all(isinstance(n, str) for n in names):
            raise Refused("malformed", f"watch must be a list of up to {MOST_WATCHED} signals")
        self.watch = names
        self._find_words()
        if self.server.feed.rows:
            self._rows_seen = self.server.feed.rows.count
        self.server.count_watchers()

    def _find_words(self) -> None:
        """Where the signals of its plots stand in a row; those that this run has not got are left out."""
        rows = self.server.feed.rows
        watching = [name for name in self.watch if rows and name in rows.names]
        self._words = rows.find(watching) if rows else np.zeros(0, np.int64)
        self.say(as_json({"type": "watching", "signals": watching}))

    def _drive(self, given: Any) -> None:
        try:
            self.server.cab.drive(self, self.name, self.role, given)
        except Refused as error:
            self.say(self.server.cab_text(self, str(error)))
            raise

    def _ask(self, given: dict[str, Any]) -> None:
        """Begin to do what it asks for; the answer comes when it comes."""
        ident = given.get("id")
        if not isinstance(ident, (int, str)) or isinstance(ident, bool) or len(str(ident)) > 64:
            raise Refused("malformed", "id must be a whole number or a short text")
        try:
            operations = self.server.feed.operations
            allowed = {k: o for k, o in operations.items() if k not in NOT_FOR_PAGES}
            operation, fields = check({k: v for k, v in given.items() if k != "id"}, allowed)
            if self.role < operation.role:
                needed, mine = operation.role.name.lower(), self.role.name.lower()
                raise Refused("unauthorised", f"{operation.name} is for {needed}, this page may only {mine}")
            if len(self._asked) >= MOST_ASKED:
                raise Refused("refused", f"{len(self._asked)} requests are waiting already: try again")
            if operation.name == "seat" and fields["ecu"] == CAB:
                self.server.cab.vacate(self)
        except Refused as error:
            self.say(as_json({"type": "answer", "id": ident, "ok": False, "reason": error.reason, "why": str(error)}))
            raise
        task = asyncio.create_task(self._do(ident, operation.name, fields))
        self._asked.add(task)
        task.add_done_callback(self._asked.discard)

    async def _do(self, ident: Any, op: str, fields: dict[str, Any]) -> None:
        try:
            result = await self.server.feed.ask(op, **fields)
            answer: dict[str, Any] = {"ok": True, "result": result}
        except NodeError as error:
            answer = {"ok": False, "reason": error.reason, "why": str(error)}
        self.server.note(self, op, fields, answer)
        self.say(as_json({"type": "answer", "id": ident, **answer}))
