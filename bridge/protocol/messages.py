"""The wire format: two frames, a topic and a msgpack map. See docs/wire-protocol.md

Every map has a float `timestamp` [s, CLOCK_MONOTONIC of the node], `tick` and `seq`, a counter per topic: a gap
in it is a loss. Numbers that are physical are always floats, so that a reader which guesses types from the
first message never guesses wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgpack
import numpy as np
from numpy.typing import NDArray

from hilnode.shared.health import Report
from hilnode.shared.row import POSE, Col, Flag, Schema, State

SMALL_SCENE = 65_536  # [bytes]
WAKE_EDGES_US = np.geomspace(1.0, 1e5, 31)
"""Edges of the buckets that wake latencies are counted in [us]: six to a decade, from 1 us to 100 ms."""


class Packer:
    """Turns rows of one node into messages."""

    def __init__(self, schema: Schema, node: str, scene: Sequence[dict[str, Any]] = ()) -> None:
        self._schema = schema
        self._node = node
        self.hash = f"{schema.hash:016x}"
        self._names = [x.name for x in schema.signals]
        self._seq: dict[str, int] = {}
        self._shapes: bytes = msgpack.packb("shapes") + msgpack.packb(list(scene))

    def pack(self, topic: str, timestamp: float, tick: int, body: dict[str, Any]) -> list[bytes]:
        """The two frames of a message."""
        return [topic.encode(), msgpack.packb({**self._head(topic, timestamp, tick), **body})]

    def _head(self, topic: str, timestamp: float, tick: int) -> dict[str, Any]:
        """What every message begins with."""
        seq = self._seq.get(topic, 0)
        self._seq[topic] = seq + 1
        return {"timestamp": timestamp, "tick": tick, "seq": seq}

    def raw(self, row: NDArray[np.int64]) -> list[bytes]:
        """The whole row as little-endian bytes, at full rate."""
        body = {"schema": self.hash, "row": row.tobytes()}
        return self.pack("raw", row.item(Col.WAKE) * 1e-9, row.item(Col.TICK), body)

    def state(self, row: NDArray[np.int64]) -> list[bytes]:
        """The row with names, for people and plotters."""
        s = self._schema
        values = row.view(np.float64)
        flags = int(row[Col.FLAGS])
        numbers = [*values[s.at_inputs : s.at_ages].tolist(), *values[s.at_outputs : s.at_poses].tolist()]
        poses = values[s.at_poses :].reshape(-1, POSE).tolist()
        body: dict[str, Any] = {
            "node": self._node,
            "t": float(row[Col.STEP] * s.dt_ns * 1e-9),
            "step": int(row[Col.STEP]),
            "state": State(int(row[Col.STATE])).name.lower(),
            "status": int(row[Col.STATUS]),
            "wake_us": float((row[Col.WAKE] - row[Col.DEADLINE]) * 1e-3),
            "step_us": float((row[Col.END] - row[Col.START]) * 1e-3),
            "own_us": float((row[Col.DONE] - row[Col.WAKE] - row[Col.END] + row[Col.START]) * 1e-3),
            "period_us": float(row[Col.PERIOD] * 1e-3),
            "missed": int(row[Col.MISSED]),
            "flags": flags,
            "overrun": bool(flags & Flag.OVERRUN),
            "signals": dict(zip(self._names, numbers, strict=True)),
            "bodies": {b: {"p": p[:3], "q": p[3:]} for b, p in zip(s.bodies, poses, strict=True)},
        }
        return self.pack("state", row[Col.WAKE] * 1e-9, int(row[Col.TICK]), body)

    def schema(self, timestamp: float, tick: int) -> list[bytes]:
        """What the words of a raw row mean."""
        return self.pack("schema", timestamp, tick, self.layout())

    def layout(self) -> dict[str, Any]:
        """The schema and its hash."""
        return {"schema": self.hash, "layout": self._schema.as_dict()}

    @property
    def scene_every(self) -> int:
        """How many seconds to wait from one `scene` to the next: a large one is sent more seldom."""
        return 1 if len(self._shapes) <= SMALL_SCENE else 10

    def scene(self, timestamp: float, tick: int) -> list[bytes]:
        """What the bodies look like; the shapes were packed once, a large mesh would hold up the rows."""
        head = msgpack.packb(self._head("scene", timestamp, tick))
        return [b"scene", bytes([head[0] + 1]) + head[1:] + self._shapes]  # a map with one pair more

    def event(self, happening: dict[str, Any]) -> list[bytes]:
        """Something that happened, with its tick and the time it happened at."""
        body = {k: v for k, v in happening.items() if k not in ("tick", "time_ns")}
        return self.pack("event", happening["time_ns"] * 1e-9, happening["tick"], body)

    def drivers(self, timestamp: float, tick: int, reports: Sequence[Report]) -> list[bytes]:
        """How each driver is doing, by its name."""
        return self.pack("driver", timestamp, tick, {"drivers": {r.name: _without_name(r) for r in reports}})

    def timing(self, rows: NDArray[np.int64], lost: int) -> list[bytes]:
        """Statistics of the rows since the last message of this topic."""
        return self.pack("timing", rows[-1, Col.WAKE] * 1e-9, int(rows[-1, Col.TICK]), timing_of(rows, lost))


def timing_of(rows: NDArray[np.int64], lost: int) -> dict[str, Any]:
    """How late these ticks woke, and how long each stage took: inputs, plant, outputs."""
    wake = (rows[:, Col.WAKE] - rows[:, Col.DEADLINE]) * 1e-3
    stages = {
        "wake_us": wake,
        "before_us": (rows[:, Col.START] - rows[:, Col.WAKE]) * 1e-3,
        "step_us": (rows[:, Col.END] - rows[:, Col.START]) * 1e-3,
        "after_us": (rows[:, Col.DONE] - rows[:, Col.END]) * 1e-3,
    }
    body: dict[str, Any] = {
        "rows": len(rows),
        "lost": lost,
        "overruns": int(((rows[:, Col.FLAGS] & Flag.OVERRUN) != 0).sum()),
    }
    for name, x in stages.items():
        p50, p99 = np.percentile(x, [50, 99]).tolist()
        body[name] = {"p50": p50, "p99": p99, "max": float(x.max())}
    buckets = np.searchsorted(WAKE_EDGES_US, wake, side="right")
    body["wake_counts"] = np.bincount(buckets, minlength=len(WAKE_EDGES_US) + 1).tolist()
    return body


def _without_name(report: Report) -> dict[str, Any]:
    return {key: value for key, value in report.as_dict().items() if key != "name"}
