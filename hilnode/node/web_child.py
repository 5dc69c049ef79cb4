"""Spec of the web server process, and the description of ECU channels that the bridge gives to clients."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hilnode.node.ports import PortBusy, PortRefused, check_free
from hilnode.shared.row import signal_table

if TYPE_CHECKING:
    from hilnode.node.node import Node


def ecu_lane(node: Node) -> dict[str, Any]:
    """Where ECUs connect, and the channels of each with the time after which their values are stale [ms], and the
    kind of driver that stands in for it."""
    return {
        "endpoint": node.config.bridge.ecu if node.ecus else "",
        "ecus": {
            name: {
                "channels": [
                    {**table, "default": float(signal.default)}
                    for table, signal in zip(signal_table(ecu.inputs), ecu.inputs, strict=True)
                ],
                "stale_ms": min(
                    (m.stale_ns * 1e-6 for m in node.wiring.inputs if m.source and m.source[0] == name), default=0.0
                ),
                "moves": _moves(node, name, len(ecu.inputs)),
                "stand_in": node.stand_ins.get(name, ""),
            }
            for name, ecu in node.ecus.items()
        },
    }


def _moves(node: Node, driver: str, channels: int) -> list[str]:
    """The input of the plant that each channel moves, number for number; nothing where it is not that plain."""
    plain = {m.source: m.signal.name for m in node.wiring.inputs if m.scale == 1.0 and m.offset == 0.0}
    return [plain.get((driver, k), "") for k in range(channels)]


def web_spec(node: Node) -> dict[str, Any]:
    """The first line for `bridge.web.server`."""
    w, b = node.config.web, node.config.bridge
    return {
        "node": node.config.node.name,
        "cpu": node.cpu,
        "directory": str(node.directory.resolve()) if node.directory else "",
        "endpoint": b.commands,
        "key": str(Path(w.key).resolve()) if w.key else "",
        "address": w.address,
        "token": w.token or "",
        "role": w.role,
    }


def why_not(node: Node) -> str:
    """Why there is no web server, in one line; nothing if there can be one."""
    w, b = node.config.web, node.config.bridge
    if b.keys and not w.key:
        return "bridge.keys: no page in the browser without web.key: make one with hilnode keys new web --role operate"
    if not importlib.util.find_spec("websockets"):
        return "the page in the browser needs the package websockets: pip install 'hilnode[web]'"
    try:
        check_free("web.address", w.address.replace("http://", "tcp://"))
    except (PortBusy, PortRefused) as error:
        return f"{error}; the node runs without its page in the browser"
    return ""
