"""Specs of the helper processes: all that each must know of its node, sent as a first line of JSON.

The row recorder's stands in recorder_spec.py, the web server's in web_child.py.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drivers.ecu import Ecu
from hilnode import __version__
from hilnode.node.web_child import ecu_lane
from hilnode.shared.codes import Command
from hilnode.shared.row import signal_table
from hilnode.tick.layout import L

if TYPE_CHECKING:
    from hilnode.node.node import Node


def watchdog_spec(node: Node) -> dict[str, Any]:
    """Which devices to make safe, and when."""
    c = node.config
    devices = [
        {
            "kind": c.drivers[n].kind,
            "name": n,
            "options": real.options,
            "safe": node.safe_values(n).tolist(),
            "record": k,
        }
        for k, (n, (real, _)) in enumerate(node.pairs.items())
        if real.external and real.outputs  # those of twins too: the device may be put in later
    ]
    return {
        "node": c.node.name,
        "limit_ms": c.safety.watchdog_ms,
        "priority": c.node.priority,
        "cpu": node.cpu,
        "log": str(node.directory / "events.jsonl") if node.directory else "",
        "drivers": devices,
    }


def timing_recorder_spec(node: Node) -> dict[str, Any]:
    """Where the timing log goes, and what its head says."""
    c = node.config
    return {
        "node": c.node.name,
        "cpu": node.cpu,
        "schema": node.schema.hash,
        "directory": str(node.directory),
        "blackbox_seconds": c.log.blackbox_seconds,
        "blackbox_first": c.log.blackbox_first,
        "meta": {
            "node": c.node.name,
            "period_ns": int(node.tick.live.i[L.PERIOD]),
            "dt_ns": c.node.period_ns,
            "rate_hz": c.node.rate_hz,
            "plant": c.plant.kind,
            "version": __version__,
        },
    }


def bridge_spec(node: Node) -> dict[str, Any]:
    """What is published, where, and to whom."""
    b = node.config.bridge
    return {
        "node": node.config.node.name,
        "cpu": node.cpu,
        "schema": node.schema.as_dict(),
        "parameters": signal_table(node.plant.parameters),
        "run": f"{os.getpid()}-{node.began_ns}",
        "scene": list(node.plant.scene),
        "display": node.display_layout,
        "ecu_lane": ecu_lane(node),
        "ecus": list(node.ecus),
        "ecu": "" if node.ecus else node.lane_address,  # the bridge's own to answer at
        "version": __version__,
        "directory": str(node.directory.resolve()) if node.directory else "",
        "publish": b.publish,
        "commands": b.commands,
        "keys": str(Path(b.keys).resolve()) if b.keys else "",
        "role": b.role,
        "metrics": b.metrics or "",
        "state_hz": b.state_hz,
        "raw": b.raw,
    }


def ecu_spec(node: Node) -> dict[str, Any]:
    """The ECUs of this node and their endpoint."""
    c, b = node.config, bridge_spec(node)
    kept = ("node", "cpu", "schema", "version", "directory", "keys", "role")
    return {
        **{key: b[key] for key in kept},
        "ecu": c.bridge.ecu,
        "pace": c.node.pace,
        "grants": f"{c.node.name}.grants",
        "step_op": int(Command.STEP),
        "ecus": [_ecu(node, name, ecu) for name, ecu in node.ecus.items()],
    }


def _ecu(node: Node, name: str, ecu: Ecu) -> dict[str, Any]:
    """What the lane has to know of one ECU: its channels, and where in a row their values are."""
    commands = [(k, m.channel) for k, m in enumerate(node.wiring.commands) if m.driver == name]
    period = node.config.drivers[name].period_ms * 1e6
    return {
        "name": name,
        "inputs": [s.name for s in ecu.inputs],
        "outputs": [s.name for s in ecu.outputs],
        "commands": [k for k, _ in commands],
        "mapped": [channel for _, channel in commands],
        "safe": node.safe_values(name).tolist(),
        "record": list(node.drivers).index(name),
        "silent_ns": ecu.silent_ns,
        "every": max(1, round(period / node.config.node.period_ns)),
    }
