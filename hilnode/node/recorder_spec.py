"""Spec of the row recorder: names of the rings, meaning of words and codes, and metadata of the run.

Everything in `about` goes into the file, so that a run can be read, replayed and run again with nothing else at hand.
"""

from __future__ import annotations

import time
from datetime import datetime
from typing import TYPE_CHECKING, Any

from hilnode import __version__
from hilnode.node.build_info import made_by
from plant.abi import Status

if TYPE_CHECKING:
    from hilnode.node.node import Node


def recorder_spec(node: Node) -> dict[str, Any]:
    """The first line for `bridge.record.row_recorder`."""
    c = node.config
    return {
        "node": c.node.name,
        "cpu": node.cpu,
        "directory": str(node.directory),
        "schema": node.schema.as_dict(),
        "command_rings": [f"{c.node.name}.commands"],
        "parameters": [s.name for s in node.plant.parameters],
        "alarms": [a.name for a in node.wiring.alarms],
        "drivers": list(node.drivers),
        "status": {code: node.plant.explain(code) for code in {*Status, *node.plant.status}},
        "chunk_s": c.log.record_chunk_s,
        "min_free_mb": c.log.record_min_free_mb,
        "about": _about(node),
    }


def _about(node: Node) -> dict[str, Any]:
    parameters = zip(node.plant.parameters, node.wiring.parameters, strict=True)
    return {
        "version": __version__,
        "node": node.config.node.name,
        "started": datetime.now().astimezone().isoformat(timespec="seconds"),
        "clock_offset_ns": time.time_ns() - time.monotonic_ns(),  # from the times of rows to the time of day
        "made_by": made_by(),
        "config": node.config.model_dump(mode="json", by_alias=True),
        "parameters": {s.name: value for s, value in parameters},  # at the start
        "tasks": [task.name for task in node.extra_tasks],
        "scene": list(node.plant.scene),
        "sights": node.display_layout,
        "first_event": node.events.next,  # those before are of the dry run
    }
