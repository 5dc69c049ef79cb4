"""A player: the rows of a recording that are due now, at any speed, forwards or backwards, with seeking.

It knows neither sockets nor sleep: `take(now)` gives the rows that lie between the last call and this one. The cursor
stands between two rows, so that turning round sends no row twice in one direction. If the caller can not keep up, the
playing gets slower and no row is left out.
"""

from __future__ import annotations

import functools
import threading
from collections import defaultdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridge.record.run_file import Run
from hilnode.shared.row import Col

FASTEST = 1000.0
MOST = 500  # rows in one go, so that commands are heard in between

Due = list[tuple[NDArray[np.int64], list[dict[str, Any]]]]
"""Rows in the order in which they are to be sent, each with what happened in its tick."""


class Player:
    """Plays one run. Its methods may be called from any thread."""

    def __init__(self, run: Run, *, speed: float = 1.0, start_s: float | None = None, loop: bool = False) -> None:
        self.playing = True
        self.ended = False  # stands at the end (or, backwards, at the beginning)
        self.tick = 0  # of the row sent last
        self.run, self.loop = run, loop
        self.duration_s = run.duration_s
        self._lock = threading.Lock()
        self._show = False  # the row at the cursor, though it stands
        self._check_speed(speed)
        self.speed = speed
        self._events_of = functools.lru_cache(2)(self._sorted_events)
        self._anchor = 0  # when it was at `_position` [ns]
        if start_s is not None and start_s > self.duration_s:
            raise ValueError(f"--from {start_s:g}: the recording lasts {self.duration_s:.3f} s")
        self._place(self.duration_s if start_s is None and speed < 0 else start_s or 0.0)

    # -- what it can be told ----------------------------------------------------------------------------------------

    def play(self, now: int) -> int:
        """Go on; at the end, begin anew."""
        with self._lock:
            if self.ended:
                self._place(0.0 if self.speed > 0 else self.duration_s)
            self.playing, self.ended, self._anchor = True, False, now
            return self.tick

    def pause(self, now: int) -> int:
        with self._lock:
            self._position, self._anchor = self._now_at(now), now
            self.playing = False
            return self.tick

    def set_speed(self, speed: float, now: int) -> int:
        """Takes effect at once; a negative one plays backwards."""
        self._check_speed(speed)
        with self._lock:
            self._position, self._anchor = self._now_at(now), now
            self.speed, self.ended = speed, False
            return self.tick

    def seek(self, seconds: float, now: int) -> int:
        """Go to this moment; the row there is shown even while it stands."""
        if not 0 <= seconds <= self.duration_s:
            raise ValueError(f"seek.to = {seconds:g}: the recording lasts from 0 to {self.duration_s:.3f} s")
        with self._lock:
            self._anchor, self.ended, self._show = now, False, True
            self._place(seconds)
            return self.tick

    @staticmethod
    def _check_speed(speed: float) -> None:
        if not 0.001 <= abs(speed) <= FASTEST:
            raise ValueError(f"speed = {speed:g}: must lie between 0.001 and {FASTEST:g}, or the same backwards")

    @property
    def position_s(self) -> float:
        """Where the cursor stands, in seconds since the first row."""
        return (self._position - self.run.origin_ns) * 1e-9

    # -- what it gives ----------------------------------------------------------------------------------------------

    def start(self, now: int) -> None:
        """Let the time run from here."""
        self._anchor = now

    def take(self, now: int) -> Due:
        """What has become due; at most `MOST` rows."""
        with self._lock:
            if self._show:
                self._show = False
                return self._row_at_cursor()
            if not self.playing or self.ended:
                return []
            self._position, self._anchor = self._now_at(now), now
            due = self._forwards() if self.speed > 0 else self._backwards()
            if due:
                self.tick = int(due[-1][0][Col.TICK])
            if len(due) == MOST:  # behind: the time waits for us
                self._position = int(due[-1][0][Col.WAKE])
            elif self._at_the_end():
                self._end()
            return due

    def _now_at(self, now: int) -> int:
        if not self.playing or self.ended:
            return self._position
        return self._position + round(self.speed * (now - self._anchor))

    def _place(self, seconds: float) -> None:
        self._position = self.run.origin_ns + round(seconds * 1e9)
        self._chunk = min(self.run.chunk_at(self._position), len(self.run.chunks) - 1)
        rows = self.run.chunk(self._chunk).rows
        wakes = rows[:, Col.WAKE]
        self._index = int((wakes < self._position).sum() if self.speed > 0 else (wakes <= self._position).sum())

    def _forwards(self) -> Due:
        due: Due = []
        while len(due) < MOST:
            rows = self.run.chunk(self._chunk).rows
            if self._index >= len(rows):
                if self._chunk + 1 >= len(self.run.chunks):
                    break
                self._chunk, self._index = self._chunk + 1, 0
                continue
            if rows[self._index, Col.WAKE] > self._position:
                break
            due.append(self._with_events(self._chunk, self._index))
            self._index += 1
        return due

    def _backwards(self) -> Due:
        due: Due = []
        while len(due) < MOST:
            if self._index == 0:
                if self._chunk == 0:
                    break
                self._chunk -= 1
                self._index = len(self.run.chunk(self._chunk).rows)
                continue
            if self.run.chunk(self._chunk).rows[self._index - 1, Col.WAKE] < self._position:
                break
            self._index -= 1
            due.append(self._with_events(self._chunk, self._index))
        return due

    def _row_at_cursor(self) -> Due:
        rows = self.run.chunk(self._chunk).rows
        if not len(rows):
            return []
        due = [self._with_events(self._chunk, min(self._index, len(rows) - 1))]
        self.tick = int(due[0][0][Col.TICK])
        return due

    def _with_events(self, chunk: int, index: int) -> tuple[NDArray[np.int64], list[dict[str, Any]]]:
        return self.run.chunk(chunk).rows[index], self._events_of(chunk).get(index, [])

    def _sorted_events(self, chunk: int) -> dict[int, list[dict[str, Any]]]:
        """Events of a chunk by the row they belong to; those of a row that was lost go with the next one."""
        content = self.run.chunk(chunk)
        places: dict[int, list[dict[str, Any]]] = defaultdict(list)
        ticks = content.rows[:, Col.TICK]
        for event in content.events:
            places[min(int(np.searchsorted(ticks, event["tick"])), len(ticks) - 1)].append(event)
        return dict(places)

    def _at_the_end(self) -> bool:
        if self.speed > 0:
            return self._chunk == len(self.run.chunks) - 1 and self._index >= len(self.run.chunk(self._chunk).rows)
        return self._chunk == 0 and self._index == 0

    def _end(self) -> None:
        if self.loop:
            self._place(0.0 if self.speed > 0 else self.duration_s)
        else:
            self.ended = True
            self._position = self.run.origin_ns + (round(self.duration_s * 1e9) if self.speed > 0 else 0)
