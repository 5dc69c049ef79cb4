"""A driver's health record: words in shared memory that its threads write and others read.

    word 0 ..      counters and states: `H`
    then           text for people: the driver's name, its kind, its last trouble
    then           two histograms of periods: between frames read, and between writes

One record for each driver of a node, in the segment `NODE.health`. It says of itself who it is about, so that the
publisher, the watchdog and `hilnode drivers` need nothing else; and this file needs no compiler, so that they load
quickly. Every word is written whole. A text that is read while it changes may be half of each: it is for people.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilnode.shared.lockfree.segment import Segment

HEALTH_KIND = 4  # of the segment that holds one record for each driver


class Health(IntEnum):
    """How a driver is doing."""

    CONNECTING = 0
    UP = 1
    DEGRADED = 2  # open, but the last frame was bad
    DOWN = 3


class H(IntEnum):
    """Words of a record."""

    STATE = 0
    FRAMES = 1  # taken, however many of them a read brought
    WRITES = 2
    ERRORS = 3  # frames refused, tries to open that failed, devices lost
    RECONNECTS = 4
    LAST_READ = 5  # [ns] when a frame came, or the device was known to have nothing new to say
    LAST_WRITE = 6  # [ns]
    SENDING = 7  # 1 from before the writer asks whether live values are allowed until its write is done
    TWIN = 8  # 1 while the twin plays the device
    REAL = 9  # 1 from before the real device is opened until it has been left at its safe values
    PERIOD = 10  # how often it is to be written [ns]
    SWAPS = 11  # times that the real device and its twin took each other's place
    IN_READ = 12  # since when the driver's read has not returned [ns]; 0: it is not in there
    IN_WRITE = 13  # the same for its write


HANGS_NS = 1_000_000_000  # a read or write that takes longer than this hangs: ten times what the contract allows
LOST_NS = 5_000_000_000  # and this long without returning, it has lost its device

WORD = 8  # [bytes]
FINE = 16  # buckets to a doubling: a bucket is 6 % wide at most
BUCKETS = 21 * FINE  # up to 2^24 us = 16.8 s; the last one takes what is longer
_FIELDS = {"name": 8, "kind": 8, "trouble": 32}  # [words]
_AT: dict[str, int] = {}
_end = FINE
for _key, _words in _FIELDS.items():
    _AT[_key], _end = _end, _end + _words
READS = slice(_end, _end + BUCKETS)
WRITES = slice(_end + BUCKETS, _end + 2 * BUCKETS)
HEALTH_WORDS = WRITES.stop


def bucket(ns: int) -> int:
    """The bucket of a time [ns]: microseconds below 16, then 16 buckets for each doubling."""
    us = ns // 1000
    if us < FINE:
        return us if us > 0 else 0
    octave = us.bit_length() - 5
    return min(FINE * octave + (us >> octave), BUCKETS - 1)


def lower_edge(number: int) -> float:
    """Where a bucket begins [us]."""
    if number < FINE:
        return float(number)
    octave = number // FINE - 1
    return float((number - FINE * octave) << octave)


def percentile(counts: NDArray[np.int64], percent: float) -> float:
    """The time below which `percent` of them lie [us], to within a bucket; NaN where nothing was counted."""
    total = int(counts.sum())
    if total == 0:
        return float("nan")
    reached = np.cumsum(counts)
    wanted = percent / 100 * total
    number = min(int(np.searchsorted(reached, wanted)), BUCKETS - 1)
    inside = (wanted - (int(reached[number]) - int(counts[number]))) / max(int(counts[number]), 1)
    low, high = lower_edge(number), lower_edge(number + 1)
    return low + min(max(inside, 0.0), 1.0) * (high - low)


def put_text(record: NDArray[np.int64], key: str, text: str) -> None:
    """Write one of the texts of a record, cut to its room."""
    room = WORD * _FIELDS[key]
    data = text.encode()[:room].ljust(room, b"\0")
    record[_AT[key] : _AT[key] + _FIELDS[key]] = np.frombuffer(data, np.int64)


def get_text(record: NDArray[np.int64], key: str) -> str:
    """One of the texts of a record."""
    data = record[_AT[key] : _AT[key] + _FIELDS[key]].tobytes()
    return data.rstrip(b"\0").decode(errors="ignore")


@dataclass(frozen=True, slots=True)
class Report:
    """A record in words and numbers, at one moment. Periods are in microseconds, of reads where there are any."""

    name: str
    kind: str
    state: str
    twin: bool
    frames: int
    writes: int
    errors: int
    reconnects: int
    swaps: int
    age_s: float  # since the last frame read or, for a driver that only writes, written; infinite: never
    period_p50_us: float
    period_p99_us: float
    periods_us: list[list[float]]  # [from, how many] of each bucket of the histogram that is not empty
    trouble: str

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def state_of(record: NDArray[np.int64], now: int) -> tuple[Health, str]:
    """The health at `now` [ns], and a sentence if the driver hangs: its thread cannot say so itself."""
    state = Health(int(record[H.STATE]))
    calls = [(int(record[word]), call) for word, call in ((H.IN_READ, "read"), (H.IN_WRITE, "write"))]
    waited, call = max((now - began, call) if began else (0, call) for began, call in calls)
    if waited < HANGS_NS or state == Health.DOWN:
        return state, ""
    worse = Health.DOWN if waited >= LOST_NS else Health.DEGRADED
    return worse, f"its {call} has not returned for {waited * 1e-9:.0f} s: the device hangs, or the node stands still"


def filled(counts: NDArray[np.int64]) -> list[list[float]]:
    """The buckets that are not empty: where each begins [us], and its count."""
    return [[lower_edge(int(k)), int(counts[k])] for k in np.flatnonzero(counts)]


def report(record: NDArray[np.int64], since: NDArray[np.int64] | None = None) -> Report:
    """What a record says; periods of the time since an earlier copy of it, if one is given."""
    now = time.monotonic_ns()
    reads = bool(record[H.FRAMES])
    last = int(record[H.LAST_READ] if reads else record[H.LAST_WRITE])
    which = READS if reads else WRITES
    counts = record[which] if since is None else record[which] - since[which]
    state, hangs = state_of(record, now)
    return Report(
        name=get_text(record, "name"),
        kind=get_text(record, "kind"),
        state=state.name.lower(),
        twin=bool(record[H.TWIN]),
        frames=int(record[H.FRAMES]),
        writes=int(record[H.WRITES]),
        errors=int(record[H.ERRORS]),
        reconnects=int(record[H.RECONNECTS]),
        swaps=int(record[H.SWAPS]),
        age_s=(now - last) * 1e-9 if last else float("inf"),
        period_p50_us=percentile(counts, 50),
        period_p99_us=percentile(counts, 99),
        periods_us=filled(counts),
        trouble=hangs or get_text(record, "trouble"),
    )


class Records:
    """The health segment of a node, as those see it who did not make it."""

    def __init__(self, node: str) -> None:
        self._segment = Segment.attach(f"{node}.health", kind=HEALTH_KIND)
        self.table = self._segment.words.reshape(-1, HEALTH_WORDS)

    def reports(self, since: NDArray[np.int64] | None = None) -> list[Report]:
        """One for each driver; a node without drivers has an empty record, which is left out."""
        found = [report(r, None if since is None else since[k]) for k, r in enumerate(self.table)]
        return [r for r in found if r.name]

    def close(self) -> None:
        self._segment.close()
