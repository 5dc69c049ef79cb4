"""Methods of a node that other processes may call. Local RPC serves these; the bridge passes requests on to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from hilnode.core.signals import UnknownName, nearest
from hilnode.shared.control import Word
from hilnode.tick.layout import L

if TYPE_CHECKING:
    from hilnode.node.node import Node


def rpc_methods(node: Node) -> dict[str, Callable[..., Any]]:
    """Each answers with something that JSON can carry, most with the tick at which it took effect."""
    return {
        "arm": node.arm,
        "run": node.run,
        "pause": node.pause,
        "resume": node.resume,
        "step": node.step,
        "trip": node.trip,
        "clear": node.clear,
        "disarm": node.disarm,
        "reset": node.reset,
        "speed": lambda value: node.set_speed(value),
        "force": node.force,
        "release": node.release,
        "set": lambda name, value: set_value(node, name, value),
        "inject": node.inject,
        "heal": node.heal,
        "stimulate": node.stimulate,
        "calm": node.calm,
        "swap": node.swap,
        "session": lambda **tables: load_session(node, **tables),
        "stop": lambda: stop(node),
        "status": lambda: status(node),
    }


def set_value(node: Node, name: str, value: float) -> int:
    """A plant parameter within its limits; an input is forced until it is released."""
    parameters = [s.name for s in node.plant.parameters]
    if name in parameters:
        return node.set_parameter(name, value)
    inputs = [s.name for s in node.schema.inputs]
    if name in inputs:
        return node.force(name, value)
    raise UnknownName(f"no plant parameter or input {name!r}: {nearest(name, [*parameters, *inputs])}")


def load_session(
    node: Node,
    parameters: Mapping[str, float] | None = None,
    forces: Mapping[str, float] | None = None,
    faults: list[dict[str, Any]] | None = None,
    stimuli: list[dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """Everything of a session, or nothing: what is wrong is named before anything is done."""
    tick, slots = node.load(parameters or {}, forces or {}, faults or (), stimuli or ())
    return {"answer": tick, **slots}


def stop(node: Node) -> int:
    """Ask for the end; the last tick comes a moment later."""
    node.request_stop()
    return node.control[Word.TICK]


def status(node: Node) -> dict[str, Any]:
    """How it stands, for somebody who has just come."""
    t = node.timing()
    return {
        "state": node.state.name.lower(),
        "tick": node.control[Word.TICK],
        "step": node.steps,
        "paused": bool(node.tick.live.i[L.PAUSED]),
        "speed": node.config.node.period_ns / max(1, node.control[Word.PERIOD]),
        "overruns": node.control[Word.OVERRUNS],
        "wake_p99_us": t.wake_p99,
        "step_p99_us": t.step_p99,
        "drivers": {
            name: {"state": health.name.lower(), "trouble": trouble}
            for name, (health, trouble) in node.driver_states().items()
        },
        "untold": node.untold_events,
        "forced": forced(node),
        "parameters": {s.name: float(x) for s, x in zip(node.plant.parameters, node.tick.plant.param, strict=False)},
        "stale": stale(node),
        "alarms": alarms(node),
    }


def forced(node: Node) -> dict[str, float]:
    """Signals that have a value imposed by hand, and which."""
    on, value = node.tick.forces.on, node.tick.forces.value
    return {s.name: float(value[k]) for k, s in enumerate(node.schema.signals) if on[k]}


def alarms(node: Node) -> list[dict[str, Any]]:
    """Alarms that are on now: number, name, and the value that the signal has."""
    a, table = node.tick.alarms, node.wiring.alarms
    seen = node.tick.seen
    return [
        {"index": k, "name": table[k].name, "value": float(seen[a.signal[k]])} for k in range(len(table)) if a.active[k]
    ]


def stale(node: Node) -> list[str]:
    """Inputs that are older than allowed; one that a stimulus makes is never old."""
    n = node.tick.inputs
    return [s.name for i, s in enumerate(node.schema.inputs) if n.is_stale[i] and n.age[i] > 0.0]
