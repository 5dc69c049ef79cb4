"""Rows of a node for the pages: the newest one, and the last seconds of the signals that are plotted.

A node sends a thousand rows a second and a page draws sixty: so a row stays the bytes that it came as, and only what is
shown is ever looked at.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Container, Sequence
from typing import Any

import msgpack
import numpy as np
from numpy.typing import NDArray

from hilnode.shared.row import POSE, Col, Flag, Schema, State

KEPT_S = 3.0  # [s] of rows that are kept for plots
MOST_KEPT = 20_000  # rows, however fast they come
SAMPLES = ((8, 1000), (16, 500), (10_000, 250))
"""Samples a second that a page gets, by how many signals it plots."""

_STATES = {s.name.lower(): int(s) for s in State}


class OtherLayout(ValueError):
    """A row that was not made with the layout we know: the node was started anew with another config."""


class Rows:
    """Takes messages of the topics `raw` or `state`, gives rows and samples."""

    def __init__(self, layout: dict[str, Any], schema_hash: str) -> None:
        self.schema = Schema.from_dict(layout)
        s = self.schema
        self.words = np.array([*range(s.at_inputs, s.at_ages), *range(s.at_outputs, s.at_poses)], np.int64)
        self._numbers = {x.name: int(w) for x, w in zip(s.signals, self.words, strict=True)}
        self._hash = schema_hash
        self._size = 8 * s.words
        packed = msgpack.packb({"schema": schema_hash, "row": bytes(self._size)})
        self._mark: bytes = packed[1 : len(packed) - self._size]  # what stands before the words
        self.newest: NDArray[np.int64] | None = None
        self.count = 0  # rows taken
        self._blocks: deque[tuple[int, NDArray[np.int64]]] = deque()  # number of the first row, and rows
        self._kept = 0
        self.per_second = 1e9 / s.dt_ns

    @property
    def names(self) -> Container[str]:
        """Of all signals."""
        return self._numbers.keys()

    def find(self, names: Sequence[str]) -> NDArray[np.int64]:
        """Where signals stand in a row; KeyError names one that is not there."""
        return np.array([self._numbers[name] for name in names], np.int64)

    # -- in ---------------------------------------------------------------------------------------------------------

    def take_raw(self, bodies: Sequence[bytes], *, keep: bool) -> None:
        """Messages of the topic `raw`, in their order; `keep` all of them for plots, or only the newest."""
        if not keep:
            self._forget()
            bodies = bodies[-1:]
        parts = [self._row(body) for body in bodies]
        self._add(np.frombuffer(b"".join(parts), "<i8").reshape(len(parts), -1), keep=keep)

    def take_states(self, bodies: Sequence[bytes], *, keep: bool) -> None:
        """The same from the topic `state`, of a node that publishes no raw rows."""
        if not keep:
            self._forget()
            bodies = bodies[-1:]
        self._add(np.array([self._of_state(msgpack.unpackb(body)) for body in bodies]), keep=keep)

    def _add(self, rows: NDArray[np.int64], *, keep: bool) -> None:
        self.newest = rows[-1]
        if keep:
            self._blocks.append((self.count, rows))
            self._kept += len(rows)
            most = min(MOST_KEPT, math.ceil(KEPT_S * self.per_second))
            while self._kept - len(self._blocks[0][1]) > most:
                self._kept -= len(self._blocks.popleft()[1])
        self.count += len(rows)

    def _forget(self) -> None:
        self._blocks.clear()
        self._kept = 0

    def _row(self, body: bytes) -> bytes:
        end = len(body) - self._size
        if end >= len(self._mark) and body[end - len(self._mark) : end] == self._mark:
            return body[end:]
        message = msgpack.unpackb(body)  # with fields that we do not know, or of another layout
        if message["schema"] != self._hash:
            raise OtherLayout(f"a row of schema {message['schema']}, not {self._hash}")
        return bytes(message["row"])

    def _of_state(self, m: dict[str, Any]) -> NDArray[np.int64]:
        s = self.schema
        row = np.zeros(s.words, np.int64)
        values = row.view(np.float64)
        wake = round(m["timestamp"] * 1e9)
        row[[Col.TICK, Col.STEP, Col.WAKE, Col.FLAGS, Col.STATUS, Col.MISSED]] = (
            *(m["tick"], m["step"], wake, m["flags"], m["status"], m["missed"]),
        )
        row[Col.STATE] = _STATES[m["state"]]
        row[Col.DEADLINE] = wake - round(m["wake_us"] * 1e3)
        row[Col.START], row[Col.END] = wake, wake + round(m["step_us"] * 1e3)
        try:
            values[self.words] = [m["signals"][x.name] for x in s.signals]
            poses = [[*m["bodies"][b]["p"], *m["bodies"][b]["q"]] for b in s.bodies]
        except KeyError as error:
            raise OtherLayout(f"a state without {error}") from error
        values[s.at_poses :] = np.array(poses, float).reshape(POSE * len(s.bodies))
        return row

    # -- out --------------------------------------------------------------------------------------------------------

    def time(self, row: NDArray[np.int64]) -> float:
        """Simulated time of a row [s]."""
        return float(row[Col.STEP] * self.schema.dt_ns * 1e-9)

    def samples(self, words: NDArray[np.int64], since: int, t: float) -> NDArray[np.float32]:
        """Rows from number `since` on, as [n, 1 + signals]: time minus `t` [s], then the signals at `words`."""
        blocks = [rows[max(0, since - first) :] for first, rows in self._blocks if first + len(rows) > since]
        made = np.zeros((0, 1 + len(words)), np.float32)
        if not blocks or not len(words):
            return made
        rows = np.concatenate(blocks)
        limit = next(samples for most, samples in SAMPLES if len(words) <= most)
        rows = rows[rows[:, Col.TICK] % max(1, math.ceil(self.per_second / limit)) == 0]
        made = np.empty((len(rows), 1 + len(words)), np.float32)
        made[:, 0] = rows[:, Col.STEP] * self.schema.dt_ns * 1e-9 - t
        with np.errstate(over="ignore", invalid="ignore"):
            made[:, 1:] = rows.view(np.float64)[:, words]
        return made


def head_of(row: NDArray[np.int64]) -> tuple[int, int, int, float, float]:
    """State, flags, tick, and how late it woke and how long it took [us]."""
    words = row[: Col.MISSED + 1].tolist()
    late = (words[Col.WAKE] - words[Col.DEADLINE]) * 1e-3
    took = (words[Col.END] - words[Col.START]) * 1e-3
    return words[Col.STATE], words[Col.FLAGS] & (2 * max(Flag) - 1), words[Col.TICK], late, took
