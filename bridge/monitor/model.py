"""The monitor's model of a node, built from received messages. It draws nothing and uses no sockets."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgpack

from bridge.monitor.histogram import Histogram
from bridge.monitor.history import History
from hilnode.core.signals import Signal
from hilnode.shared.row import Flag, Schema

TOPICS = ("state", "timing", "event", "driver", "bridge", "schema")
PICTURES = 10  # per second: more than one `state` between two of them is passed over
WINDOW = 60  # [s] of sparklines and of the histogram
SILENCE = 1.5  # [s] without a message, from which on it is said
MOST_EVENTS = 200


@dataclass(frozen=True)
class Line:
    """One signal, as the table shows it."""

    index: int
    signal: Signal
    value: float
    forced: bool
    stale: bool


class Model:
    """One node at a time. `hear` takes messages, `told` the answer to `status`."""

    def __init__(self) -> None:
        self.about: dict[str, Any] = {}  # the answer to hello
        self.trouble = "connecting"  # why there is no connection; empty while there is one
        self.state: dict[str, Any] = {}  # the last message of the topic
        self.timing: dict[str, Any] = {}
        self.drivers: dict[str, dict[str, Any]] = {}
        self.bridge: dict[str, Any] = {}
        self.events: deque[tuple[int, str, str]] = deque(maxlen=MOST_EVENTS)  # tick, kind, sentence
        self.forced: dict[str, float] = {}
        self.stale: set[str] = set()
        self.overruns = 0
        self.lost = 0  # messages that never came
        self.heard_at = -math.inf
        self.filter = ""
        self._sampled = 0
        self._schema = ""
        self._seen: dict[str, int] = {}  # last sequence number by topic
        self.describe("", Schema(1, (), (), (), ()))

    def describe(self, name: str, schema: Schema) -> None:
        """These are the signals; what was known of others is forgotten."""
        if name == self._schema and name:
            return
        self._schema, self.signals = name, schema.signals
        self._names = [s.name for s in schema.signals]
        self._values = [math.nan] * len(self._names)
        self._history = History(len(self._names), PICTURES * WINDOW)
        self.wake = Histogram(WINDOW)

    def hear(self, messages: Iterable[tuple[str, bytes]], now: float) -> None:
        """What has come since the last picture, and when [s]."""
        states: list[bytes] = []
        for topic, body in messages:
            self.heard_at = now
            if topic == "state":
                states.append(body)
            elif topic in TOPICS:
                message = msgpack.unpackb(body)
                self._follow(topic, message["seq"], 1)
                getattr(self, f"_hear_{topic}")(message)
        if states:
            self._hear_state(msgpack.unpackb(states[-1]), len(states))
        self._remember(now)

    def _remember(self, now: float) -> None:
        """A sample for each tenth of a second that has passed: the curves keep their time when the screen does not."""
        moment = math.floor(now * PICTURES)
        sample = [math.nan] * len(self._names) if self.silence(now) else self._values
        for _ in range(min(moment - self._sampled, PICTURES * WINDOW) if self._sampled else 1):
            self._history.put(sample)
        self._sampled = moment

    def _follow(self, topic: str, seq: int, count: int) -> None:
        """Count what is missing between the last message of a topic and these; a new bridge begins at 0."""
        last = self._seen.get(topic)
        if last is not None and seq > last:
            self.lost += max(0, seq - last - count)
        self._seen[topic] = seq

    def _hear_state(self, message: dict[str, Any], count: int) -> None:
        self._follow("state", message["seq"], count)
        self.state = message
        signals = message["signals"]
        self._values = [signals.get(name, math.nan) for name in self._names]

    def _hear_timing(self, message: dict[str, Any]) -> None:
        self.timing = message
        self.wake.put(message.get("wake_counts", ()))

    def _hear_event(self, message: dict[str, Any]) -> None:
        if (message["event"], message["index"]) != ("command", 0):  # done: who asked has been told
            self.events.append((message["tick"], message["event"], message["what"]))

    def _hear_driver(self, message: dict[str, Any]) -> None:
        self.drivers = message["drivers"]

    def _hear_bridge(self, message: dict[str, Any]) -> None:
        self.bridge = message

    def _hear_schema(self, message: dict[str, Any]) -> None:
        if message["schema"] != self._schema:
            self.describe(message["schema"], Schema.from_dict(message["layout"]))

    def told(self, status: dict[str, Any]) -> None:
        """The answer to `status`, which a node of an earlier version gives without some of it."""
        self.forced, self.stale = status.get("forced", {}), set(status.get("stale", ()))
        self.overruns = status["overruns"]

    # -- what is shown ------------------------------------------------------------------------------------------------

    def lines(self) -> list[Line]:
        """The signals whose names have the filter in them."""
        return [
            Line(k, s, self._values[k], s.name in self.forced, s.name in self.stale)
            for k, s in enumerate(self.signals)
            if self.filter in s.name
        ]

    def history(self, index: int) -> Any:
        """The last minute of a signal."""
        return self._history.of(index)

    def silence(self, now: float) -> float:
        """Seconds since the last message, where that is worth saying, else 0."""
        passed = now - self.heard_at
        return passed if math.isfinite(passed) and passed > SILENCE else 0.0

    @property
    def paused(self) -> bool:
        """Whether somebody made it stand; before it runs and after a trip it stands anyway."""
        return self.state.get("state") == "running" and bool(self.state["flags"] & Flag.PAUSED)

    @property
    def may_operate(self) -> bool:
        """Whether the node will take commands from here."""
        return self.about.get("role") in ("operate", "admin")
