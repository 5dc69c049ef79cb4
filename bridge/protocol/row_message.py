"""A row in ROS 2's CDR encoding, which other tools read: Foxglove, PlotJuggler, `mcap`.

CDR of a structure whose members are all 8 bytes wide is these members one after another, little endian, behind four
bytes that say so. That is the row as it stands in the ring: nothing is converted, no bit is lost, and it costs nothing.
A name in a ROS message has no dots, so `pendulum.elbow.angle` becomes `outputs.pendulum_elbow_angle`; units stand in
the comments of the definition, and the exact names in the channel's metadata.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from hilnode.core.signals import Signal
from hilnode.shared.row import Col, Schema

ENCODING = "cdr"
SCHEMA_ENCODING = "ros2msg"
SCHEMA_NAME = "hilnode/msg/Row"
PREFIX = b"\x00\x01\x00\x00"
"""CDR, little endian, no options."""

POSE_FIELDS = ("x", "y", "z", "qw", "qx", "qy", "qz")
_RULE = "=" * 80
_TIMES = (Col.DEADLINE, Col.WAKE, Col.START, Col.END, Col.DONE)


def field_names(names: Sequence[str]) -> list[str]:
    """Names as ROS allows them, all different: lower case, digits and single underscores."""
    taken: set[str] = set()
    made = []
    for name in names:
        plain = re.sub(r"_+", "_", re.sub(r"[^a-z0-9]", "_", name.lower())).strip("_")
        plain = plain if plain[:1].isalpha() else f"n_{plain}".rstrip("_")
        unique, count = plain, 2
        while unique in taken:
            unique, count = f"{plain}_{count}", count + 1
        taken.add(unique)
        made.append(unique)
    return made


def definition(schema: Schema) -> bytes:
    """The message definition of a row; members stand in the order of the words."""
    parts: dict[str, list[str]] = {}
    top = [f"int64 {c.name.lower()}{'  # [ns] monotonic clock' if c in _TIMES else ''}" for c in Col]
    groups = (
        ("inputs", schema.inputs),
        ("ages", tuple(Signal(s.name, "s") for s in schema.inputs)),
        ("outputs", schema.outputs),
        ("commands", schema.commands),
    )
    for group, signals in groups:
        if signals:  # ROS gives an empty structure a byte of its own
            top.append(f"hilnode/{group.capitalize()} {group}")
            names = field_names([s.name for s in signals])
            parts[group.capitalize()] = [
                f"float64 {name}  # {s.name} [{s.unit or '1'}]" for name, s in zip(names, signals, strict=True)
            ]
    if schema.bodies:
        top.append("hilnode/Poses poses")
        parts["Poses"] = [f"hilnode/Pose {name}" for name in field_names(schema.bodies)]
        parts["Pose"] = [f"float64 {f}" + ("  # [m]" if len(f) == 1 else "") for f in POSE_FIELDS]
    text = "\n".join(top)
    for name, lines in parts.items():
        text += f"\n{_RULE}\nMSG: hilnode/{name}\n" + "\n".join(lines)
    return (text + "\n").encode()


EVENT_SCHEMA: dict[str, Any] = {
    "title": "hilnode.Event",
    "description": "Something that happened, at the tick's edge or in it.",
    "type": "object",
    "properties": {
        "tick": {"type": "integer"},
        "time_ns": {"type": "integer", "description": "monotonic clock"},
        "event": {"type": "string"},
        "index": {"type": "integer"},
        "value": {"type": "number"},
        "what": {"type": "string", "description": "a sentence for people"},
        "op": {"type": "string", "description": "of a command: what was asked for"},
        "order": {"type": "string", "description": "of a command: its words, little endian, as hex"},
    },
}

PROGRESS_SCHEMA: dict[str, Any] = {
    "title": "hilnode.Progress",
    "description": "How far the recording is, at the end of each chunk.",
    "type": "object",
    "properties": {
        "rows": {"type": "integer", "description": "rows in the file"},
        "lost_rows": {"type": "integer", "description": "rows that were overwritten before they could be read"},
        "events": {"type": "integer"},
        "lost_events": {"type": "integer"},
        "next_tick": {"type": "integer", "description": "where a recorder that is started again goes on"},
        "next_event": {"type": "integer"},
        "what": {"type": "string", "description": "what was special about this chunk"},
    },
}


def as_bytes(table: dict[str, Any]) -> bytes:
    """Compact JSON; no infinity, which JSON has not got."""
    return json.dumps(table, separators=(",", ":"), allow_nan=False).encode()
