"""The audience: who subscribes, what each of them missed, and that none of them costs more than its share of memory.

    send ---> XPUB ===> subscriber          ZeroMQ keeps HIGH_WATER messages for a slow one; what comes then it loses
                  \\==> subscriber

An XPUB socket is a PUB socket that tells who subscribes to what, over which connection. The kernel tells of each
connection how many bytes the other end has acknowledged, and whether some are under way. So it is known here, for each
subscriber and whatever program it is:

    sent - acknowledged            [bytes] what waits for it, or is lost
    the same while it is idle      [bytes] what it has lost

ZeroMQ says once that a message does not fit (XPUB_NODROP): then the queue of one who was sent HIGH_WATER messages since
it was idle, and has not taken most of them, is full, and stays so until it has taken half of them. While it takes
nothing, all that is sent is lost.
When it is full again, what it has lost meanwhile is estimated from the bytes; when it is idle again it follows from
them: as a number of messages it is right to the last one where they are of one size.

The bound on messages is none on bytes: large ones of a stalled subscriber could fill the memory. Who has more than
MOST_BYTES waiting is cut off, and so is who is no longer let in. A client that lives connects again by itself.
"""

from __future__ import annotations

import fcntl
import socket as sockets
import struct
import termios
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import zmq

from bridge.connections import Connections, Refusal, address

HIGH_WATER = 10_000  # messages kept for a slow subscriber
MOST_BYTES = 32_000_000  # and bytes, beside the largest message there was
MOST_TOPICS = 100  # of one subscriber; with more it counts as one to everything
MOST_KEPT = 100  # subscribers that have gone, whose losses are still told
MOST_READ = 1000  # subscriptions taken in one look
LOOK_AFTER = HIGH_WATER // 4  # messages
STILL = 1.0  # [s] without an acknowledgement, and nothing in the kernel: ZeroMQ has nothing more for it
FULL = 0.4  # of its bytes: a queue that ZeroMQ takes for full has at least as many, as it hears late of what has left
MOVED = 0.25  # of its queue: one that has taken so much is no longer stalled (ZeroMQ: half of it)
UNKNOWN = "unknown"
_ACKED = slice(120, 128)  # tcpi_bytes_acked in the kernel's tcp_info
_CURVE = 33  # [bytes] that encryption adds to a frame


@dataclass
class Sent:
    """What went out under one topic."""

    messages: int = 0
    bytes: int = 0  # on the wire


class Mark(NamedTuple):
    """What had been sent to a subscriber, and acknowledged by it, at one moment."""

    messages: int
    bytes: int
    acked: int
    mean: float = 0.0  # [bytes] of a message

    @property
    def open(self) -> int:
        """[bytes] sent and not acknowledged."""
        return self.bytes - self.acked


@dataclass
class Listener:
    """One connection that subscribes."""

    name: str
    user: str
    handle: sockets.socket
    topics: set[bytes] = field(default_factory=set)
    acked: int = 0  # [bytes] when it subscribed for the first time
    bytes_then: dict[bytes, int] = field(default_factory=dict)  # of a topic that had been sent when it subscribed to it
    messages_then: dict[bytes, int] = field(default_factory=dict)  # of a topic that had been sent when it was idle
    before: int = 0  # [bytes] sent to it under topics that it has left since
    full: Mark | None = None  # when its queue was full the last time
    sizes: float = 0.0  # [bytes] of a message on average, since its queue was full for the first time
    moved: tuple[int, float] = (0, 0.0)  # [bytes] acknowledged at the last look at which that was news, and when [s]
    idle: int | None = None  # what was open when it was seen idle just before
    dropped: int = 0  # messages lost until it was idle
    dropped_bytes: int = 0
    lost: int = 0  # messages lost since then, until its queue was full the last time
    lost_bytes: int = 0
    losing: int = 0  # and since its queue was full the last time
    cut: bool = False

    @property
    def lost_in_all(self) -> int:
        """Messages."""
        return self.dropped + self.lost + self.losing

    def wants(self, topic: bytes) -> bool:
        return len(self.topics) > MOST_TOPICS or any(topic.startswith(t) for t in self.topics)


class Audience:
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
        self._socket, self._is_welcome, self._refused = socket, is_welcome, refused
        self._envelope = _CURVE if keyed else 0
        self._sent: dict[bytes, Sent] = {}
        self._largest = self._unlooked = 0
        self._listeners: dict[int, Listener] = {}
        self._gone: OrderedDict[str, int] = OrderedDict()
        socket.setsockopt(zmq.XPUB_VERBOSER, 1)  # each subscription is told, also one that somebody else has too
        socket.setsockopt(zmq.XPUB_NODROP, 1)

    def send(self, frames: list[bytes]) -> None:
        """A topic and a body, to all who want it; nobody is waited for."""
        self._unlooked += 1
        if self._unlooked >= LOOK_AFTER:  # a node that runs as fast as it can
            self.look()
        elif int(self._socket.getsockopt(zmq.EVENTS)) & zmq.POLLIN:
            self._hear_all()  # so that what is counted for a subscriber begins with what it gets
        sent = self._sent.get(frames[0]) or self._sent.setdefault(frames[0], Sent())
        size = sum(_on_wire(len(frame) + self._envelope) for frame in frames)
        sent.messages += 1
        sent.bytes += size
        self._largest = max(self._largest, size)
        try:
            self._socket.send_multipart(frames, zmq.NOBLOCK)
        except zmq.Again:  # somebody's queue is full: the others get it, and it is counted
            self._socket.setsockopt(zmq.XPUB_NODROP, 0)
            self._socket.send_multipart(frames, zmq.NOBLOCK)
            self._socket.setsockopt(zmq.XPUB_NODROP, 1)
            self._note_full(frames[0], size)

    def dropped(self) -> dict[str, int]:
        """Messages that did not fit, by subscriber; those who lost none are left out."""
        now = {a.name: a.lost_in_all for a in self._listeners.values() if a.lost_in_all}
        return {**self._gone, **now}

    def _note_full(self, topic: bytes, size: int) -> None:
        """The message of this topic and size did not fit: whose queue that must be."""
        found = False
        for listener in self._listeners.values():
            mark = self._mark(listener)
            if listener.wants(topic) and mark.messages >= HIGH_WATER and mark.open >= FULL * HIGH_WATER * mark.mean:
                found = True
                full, before = listener.full, Mark(mark.messages - 1, mark.bytes - size, mark.acked)
                if full is None:
                    listener.full, listener.sizes = before, float(size)
                elif mark.acked - full.acked >= MOVED * full.open:  # it took some, and is full again
                    lost = max(0, before.open - full.open)
                    listener.lost += round(lost / listener.sizes)
                    listener.lost_bytes += lost
                    listener.losing = 0
                    listener.full = before._replace(bytes=before.bytes - lost)
        if not found:
            self._gone[UNKNOWN] = self._gone.get(UNKNOWN, 0) + 1

    # -- who is there -------------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Take note of who came and went, and of what each has taken; a few times a second."""
        self._unlooked = 0
        for descriptor in self.connections.look():
            if listener := self._listeners.pop(descriptor, None):
                self._keep(listener)
        self._hear_all()
        for listener in self._listeners.values():
            self._measure(listener)

    def _hear_all(self) -> None:
        for _ in range(MOST_READ):
            try:
                frame = self._socket.recv(zmq.NOBLOCK, copy=False)
            except zmq.Again:
                return
            self._hear(frame)

    def _hear(self, frame: zmq.Frame) -> None:
        """A subscription, or its end."""
        said = frame.bytes
        try:
            descriptor, user = int(frame.get(zmq.SRCFD)), _user(frame)
        except zmq.ZMQError:  # the end of the subscriptions of one who has gone
            return
        if said[:1] not in (b"\x00", b"\x01"):
            self._refused("malformed", address(self.connections.know(descriptor)), "a subscriber can not send")
            return
        listener = self._listeners.get(descriptor)
        if listener is None:
            handle = self.connections.know(descriptor)
            if handle is None:
                return
            name = f"{user}@{address(handle)}" if user else address(handle)
            listener = self._listeners[descriptor] = Listener(name, user, handle, acked=_acked(handle))
        had = {topic for topic in self._sent if listener.wants(topic)}
        (listener.topics.add if said[0] else listener.topics.discard)(said[1:])
        for topic, sent in self._sent.items():
            wants = listener.wants(topic)
            if wants and topic not in had:
                listener.bytes_then[topic], listener.messages_then[topic] = sent.bytes, sent.messages
            elif topic in had and not wants:
                listener.before += sent.bytes - listener.bytes_then.get(topic, 0)

    def _measure(self, listener: Listener) -> None:
        mark = self._mark(listener)
        full = listener.full
        if full and mark.messages > full.messages:
            listener.sizes = (mark.bytes - full.bytes) / (mark.messages - full.messages)
        if full and mark.acked - full.acked < MOVED * full.open:  # it takes nothing: nothing more fits
            listener.losing = mark.messages - full.messages
        waiting = min(mark.open, full.open) if full else mark.open
        if _queued(listener.handle) == 0 and (full or mark.open <= 0 or _stands(listener, mark.acked)):
            self._note_idle(listener, mark)
        elif waiting > MOST_BYTES + self._largest:
            self._cut(listener, "refused", f"more than {MOST_BYTES / 1e6:g} MB waited for it")
        else:
            listener.idle = None
        if not self._is_welcome(listener.user):
            self._cut(listener, "unauthorised", "it is no longer let in")

    def _note_idle(self, listener: Listener, mark: Mark) -> None:
        """Nothing is under way to it. One whose queue was full must be seen so twice: ZeroMQ may just be filling up."""
        lost = mark.open + listener.lost_bytes
        if listener.full and listener.idle is None:
            listener.idle = lost
            return
        if listener.full and listener.idle is not None:
            lost = min(lost, listener.idle)
            listener.dropped += max(1, round(lost / listener.sizes))
            listener.dropped_bytes += lost
            listener.lost = listener.lost_bytes = listener.losing = 0
        listener.messages_then = {topic: sent.messages for topic, sent in self._sent.items()}
        listener.full = listener.idle = None

    def _mark(self, listener: Listener) -> Mark:
        """Messages sent to it since it was idle; bytes that were sent and not lost, and those that it acknowledged."""
        messages, size, since = 0, listener.before - listener.dropped_bytes - listener.lost_bytes, 0.0
        for topic, sent in self._sent.items():
            if listener.wants(topic):
                number = sent.messages - listener.messages_then.get(topic, 0)
                messages += number
                since += number * sent.bytes / sent.messages
                size += sent.bytes - listener.bytes_then.get(topic, 0)
        return Mark(messages, size, _acked(listener.handle) - listener.acked, since / max(1, messages))

    def _cut(self, listener: Listener, reason: str, why: str) -> None:
        if listener.cut:
            return
        listener.cut = True
        self._refused(reason, listener.name, f"its subscription was ended: {why}")
        try:
            listener.handle.shutdown(sockets.SHUT_RDWR)
        except OSError:  # it has gone by itself
            return

    def _keep(self, listener: Listener) -> None:
        if listener.lost_in_all:
            self._gone[listener.name] = listener.lost_in_all
            if len(self._gone) > MOST_KEPT:
                self._gone.popitem(last=False)

    def close(self) -> None:
        self.connections.close()
        self._socket.close()


def _stands(listener: Listener, acked: int) -> bool:
    """Whether it has acknowledged nothing for a while: an empty queue of the kernel alone may mean that ZeroMQ's own
    thread has not come round yet."""
    now = time.monotonic()
    if listener.moved[0] != acked or not listener.moved[1]:
        listener.moved = acked, now
    return now - listener.moved[1] > STILL


def _on_wire(size: int) -> int:
    """[bytes] of a frame with its head (ZMTP 3)."""
    return size + (2 if size < 256 else 9)


def _queued(handle: sockets.socket) -> int:
    """[bytes] in the kernel that the other end has not acknowledged."""
    try:
        return int(struct.unpack("i", fcntl.ioctl(handle.fileno(), termios.TIOCOUTQ, bytes(4)))[0])
    except OSError:
        return 0


def _acked(handle: sockets.socket) -> int:
    """[bytes] that the other end has acknowledged since it connected."""
    try:
        told = handle.getsockopt(sockets.IPPROTO_TCP, sockets.TCP_INFO, _ACKED.stop)
    except OSError:
        return 0
    return int.from_bytes(told[_ACKED], "little") if len(told) >= _ACKED.stop else 0


def _user(frame: zmq.Frame) -> str:
    """The name of its key; nothing where there are no keys."""
    try:
        return str(frame.get("User-Id"))
    except zmq.ZMQError:
        return ""
