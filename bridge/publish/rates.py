"""Rates of the topics whose rate can be set: `state` is decimated by ticks, the others are timed by the clock.

Everybody gets the same messages, so a rate is one for all: whoever sets it is told what it came to, and everybody reads
it in the topic `bridge`.
"""

from __future__ import annotations

from collections.abc import Sequence

from hilnode.core.signals import nearest

LIMITS = {  # [Hz] slowest, fastest
    "state": (0.01, 20_000.0),  # there are no more ticks than that in a second
    "timing": (0.1, 10.0),  # a percentile of less than a hundred rows says little
    "driver": (0.1, 50.0),
    "ecu": (0.1, 50.0),
}
USUAL = {"timing": 1.0, "driver": 5.0, "ecu": 5.0}  # [Hz]


def check(hz: float, topic: str, known: Sequence[str]) -> None:
    """Raise ValueError if this can not be the rate of this topic."""
    if topic not in known:
        raise ValueError(f"rate.topic = {topic!r}: {nearest(topic, list(known))}")
    low, high = LIMITS[topic]
    if not low <= hz <= high:
        raise ValueError(f"rate.hz = {hz:g}: that of {topic} must lie between {low:g} and {high:g}")


class Rates:
    """Of one publisher. `set` may be called from any thread, the rest is for the thread that sends."""

    def __init__(self, ticks_per_second: int, state_hz: float) -> None:
        self._per_second = ticks_per_second
        self.every = self._ticks(state_hz)
        self._period = {topic: round(1e9 / hz) for topic, hz in USUAL.items()}  # [ns]
        self._due = dict.fromkeys(USUAL, 0)  # [ns]

    def _ticks(self, hz: float) -> int:
        return max(1, round(self._per_second / hz))

    def set(self, hz: float, topic: str = "state") -> dict[str, str | float]:
        """What it comes to: `state` as near as whole ticks allow. ValueError if it can not be."""
        check(hz, topic, list(LIMITS))
        if topic == "state":
            self.every = self._ticks(hz)
        else:
            self._period[topic] = round(1e9 / hz)
            self._due[topic] = 0  # whoever asks for more of it need not wait for what was planned
        return {"topic": topic, "hz": self.as_dict()[topic]}

    def is_due(self, topic: str, moment: int) -> bool:
        """Whether it is to be sent now [ns]; the next one is planned then."""
        if moment < self._due[topic]:
            return False
        self._due[topic] = moment + self._period[topic]
        return True

    def as_dict(self) -> dict[str, float]:
        """Messages per second, by topic."""
        return {"state": self._per_second / self.every, **{t: 1e9 / ns for t, ns in self._period.items()}}
