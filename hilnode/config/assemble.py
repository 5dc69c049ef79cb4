"""Assembles the arrays of the loop from a resolved config, a plant and its mailboxes. Everything is allocated here."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hilnode.config.config import Config
from hilnode.config.wiring import NEVER, CommandMap, FaultMap, InputMap, SignalMap, StimulusMap
from hilnode.core.limits import HISTORY, SLOTS
from hilnode.shared.codes import COMMAND_WIDTH, EVENT_WIDTH, SLOT_PARAMS, Pace, Policy, Stale
from hilnode.shared.lockfree.mailbox import Mailbox
from hilnode.shared.lockfree.ring import Ring
from hilnode.shared.row import Schema
from hilnode.tick import faults, layout, stimulus
from hilnode.tick.slots import attach

if TYPE_CHECKING:
    from plant.abi import Plant

PACES = {"real-time": Pace.REAL_TIME, "free": Pace.FREE, "lockstep": Pace.LOCKSTEP}
POLICIES = {"skip": Policy.SKIP, "catch-up": Policy.CATCH_UP, "slip": Policy.SLIP, "halt": Policy.HALT}
STALES = {"hold": Stale.HOLD, "default": Stale.DEFAULT, "ramp": Stale.RAMP, "trip": Stale.TRIP}
ACTIONS = {"log": 0, "trip": 1, "set": 2}
TABLE_ROOM = 100_000  # points kept free for tables that are loaded while running


@dataclass(frozen=True)
class Buffers:
    """The shared memory that the loop reads and writes."""

    control: int  # address
    rows: Ring
    events: Ring
    command_rings: Sequence[Ring]
    inboxes: Mapping[str, Mailbox]  # by driver
    outboxes: Mapping[str, Mailbox]


def assemble(
    config: Config, wiring: SignalMap, schema: Schema, plant: Plant, buffers: Buffers, *, last_tick: int = 0
) -> layout.Tick:
    """The loop's one argument. The caller keeps plant and buffers alive as long as it is used."""
    row = np.zeros(schema.words, np.int64)
    values = row.view(np.float64)
    n_in, n_out, n_cmd = len(schema.inputs), len(schema.outputs), len(schema.commands)
    live = np.zeros(len(layout.L), np.int64)
    live[layout.L.PERIOD] = round(config.node.period_ns / config.node.speed)
    command_rings = [[r.view.base, r.view.capacity, 0, 0] for r in buffers.command_rings]
    return layout.Tick(
        setup=_setup(config, buffers, last_tick),
        live=layout.Live(live, np.zeros(1)),
        row=row,
        seen=np.zeros(n_in + n_out + n_cmd),
        inputs=_inputs(wiring.inputs, config, schema, values, buffers.inboxes),
        stimuli=_stimuli(wiring.stimuli, n_in),
        faults=_faults(wiring.faults, n_in + n_out + n_cmd),
        forces=layout.Forces(_ints(n_in + n_out + n_cmd), np.zeros(n_in + n_out + n_cmd)),
        plant=_plant(plant, wiring, values[schema.at_outputs : schema.at_commands], values[schema.at_poses :]),
        outputs=_outputs(wiring.commands, config, values[schema.at_commands : schema.at_poses], buffers.outboxes),
        alarms=_alarms(wiring, config, n_in + n_out),
        rows=buffers.rows.view,
        events=buffers.events.view,
        command_rings=np.array(command_rings, np.int64).reshape(-1, 4),
        command=_ints(COMMAND_WIDTH),
        event=_ints(EVENT_WIDTH),
    )


def _setup(config: Config, buffers: Buffers, last_tick: int) -> layout.Setup:
    n = config.node
    bumpless_ticks = config.safety.bumpless_ms * 1e6 / n.period_ns
    return layout.Setup(
        dt_ns=n.period_ns,
        pace=int(PACES[n.pace]),
        policy=int(POLICIES[n.overrun]),
        catch_up_limit=n.catch_up_limit,
        max_overruns=n.max_overruns,
        warmup_ns=int(n.warmup_ms * 1e6),
        spin_ns=int(n.spin_us * 1e3),
        last_tick=last_tick,
        bumpless=1.0 / bumpless_ticks if bumpless_ticks > 1 else 1.0,
        control=buffers.control,
        dt=n.period_ns * 1e-9,
    )


def _channels(maps: Sequence[InputMap] | Sequence[CommandMap], dt: float) -> layout.Channels:
    def column(name: str) -> NDArray[np.float64]:
        return np.array([getattr(m, name) for m in maps], float)

    cut_off = column("filter_hz")
    return layout.Channels(
        scale=column("scale"),
        offset=column("offset"),
        low=column("low"),
        high=column("high"),
        slew=column("rate_limit") * dt,
        alpha=-np.expm1(-2 * math.pi * cut_off * dt),  # an infinite cut-off gives 1: no low pass
        last=np.zeros(len(maps)),
        primed=_ints(len(maps)),
    )


def _inputs(
    maps: Sequence[InputMap], config: Config, schema: Schema, values: NDArray[np.float64], boxes: Mapping[str, Mailbox]
) -> layout.Inputs:
    sizes = [box.channels for box in boxes.values()]
    at = dict(zip(boxes, np.cumsum([0, *sizes]).tolist(), strict=False))
    total = sum(sizes)
    default = np.array([m.default for m in maps], float)
    return layout.Inputs(
        box_base=np.array([b.view.base for b in boxes.values()], np.int64),
        box_channels=np.array(sizes, np.int64),
        box_at=np.array(list(at.values()), np.int64),
        box_seen=_ints(len(sizes)),
        raw=np.zeros(total),
        stamp=_ints(total),
        spare_raw=np.zeros(max([1, *sizes])),
        spare_stamp=_ints(max([1, *sizes])),
        source=np.array([at[m.source[0]] + m.source[1] if m.source else -1 for m in maps], np.int64),
        default=default,
        limit_ns=np.array([m.stale_ns for m in maps], np.int64),
        policy=np.array([STALES[m.stale] for m in maps], np.int64),
        ramp_ns=np.array([max(1, m.ramp_ns) for m in maps], np.int64),
        good=default.copy(),
        good_at=_ints(len(maps)),
        heard=_ints(len(maps)),
        is_stale=np.array([m.source is not None for m in maps], np.int64),  # until the first letter
        is_invalid=_ints(len(maps)),
        channels=_channels(maps, config.node.period_ns * 1e-9),
        value=values[schema.at_inputs : schema.at_ages],
        age=values[schema.at_ages : schema.at_outputs],
    )


def _outputs(
    maps: Sequence[CommandMap], config: Config, value: NDArray[np.float64], boxes: Mapping[str, Mailbox]
) -> layout.Outputs:
    at = {name: next(i for i, m in enumerate(maps) if m.driver == name) for name in boxes}
    return layout.Outputs(
        source=np.array([m.source for m in maps], np.int64),
        safe=np.array([m.safe for m in maps], float),
        held_by=np.full(len(maps), -1, np.int64),
        held_at=np.zeros(len(maps)),
        channels=_channels(maps, config.node.period_ns * 1e-9),
        base=np.zeros(len(maps)),
        value=value,
        stamp=_ints(len(maps)),
        box_base=np.array([b.view.base for b in boxes.values()], np.int64),
        box_channels=np.array([b.channels for b in boxes.values()], np.int64),
        box_at=np.array(list(at.values()), np.int64),
    )


def _plant(plant: Plant, wiring: SignalMap, output: NDArray[np.float64], pose: NDArray[np.float64]) -> layout.Plant:
    def column(name: str) -> NDArray[np.int64]:
        return np.array([getattr(task, name) for task in plant.tasks], np.int64)

    hits = plant.collisions
    return layout.Plant(
        task=column("address"),
        self=column("self_address"),
        every=column("every"),
        phase=column("phase"),
        reset=np.array(plant.reset, np.int64),
        param=np.array(wiring.parameters, float),
        output=output,
        pose=pose,
        hits=hits.count if hits else _ints(1),
        hit_body=hits.body if hits else np.zeros((1, 2), np.int64),
        hit_point=hits.point if hits else np.zeros((1, 3)),
        hit_impulse=hits.impulse if hits else np.zeros(1),
        hit_least=hits.least if hits else 0.0,
        hits_told=hits.count.copy() if hits else _ints(1),
    )


def _stimuli(maps: Sequence[StimulusMap], n_in: int) -> layout.Stimuli:
    points = sum(len(m.times) for m in maps) + TABLE_ROOM
    made = layout.Stimuli(
        head=np.full(n_in, -1, np.int64),
        following=np.full(SLOTS, -1, np.int64),
        kind=_ints(SLOTS),
        p=np.zeros((SLOTS, SLOT_PARAMS)),
        seed=np.zeros(SLOTS, np.uint64),
        table_time=np.zeros(points),
        table_value=np.zeros(points),
    )
    first = 0
    for slot, m in enumerate(maps):
        kind, params = wave_params(m, first)
        made.kind[slot] = kind
        made.p[slot, : len(params)] = params
        made.seed[slot] = getattr(m.spec, "seed", 0)
        made.table_time[first : first + len(m.times)] = m.times
        made.table_value[first : first + len(m.times)] = m.values
        first += len(m.times)
    _chain(made.head, made.following, [m.signal for m in maps])
    return made


def wave_params(m: StimulusMap, first: int) -> tuple[int, list[float]]:
    """Kind and parameters of a stimulus as stimulus.py takes them; a table begins at point `first`."""
    s = m.spec
    match s.kind:
        case "constant":
            own = [s.value]
        case "ramp":
            own = [s.start, s.slope, math.inf if s.stop is None else s.stop]
        case "step":
            own = [s.before, s.after, s.at_s]
        case "sine":
            own = [s.amplitude, s.frequency_hz, s.offset, s.phase_rad]
        case "square":
            own = [s.amplitude, s.frequency_hz, s.offset, s.duty]
        case "chirp":
            own = [s.amplitude, s.f0_hz, s.f1_hz, s.seconds, s.offset]
        case "noise":
            own = [s.sigma, s.mean]
        case "csv":
            own = [float(first), float(len(m.times)), float(s.repeat)]
    name = "TABLE" if s.kind == "csv" else s.kind.upper()
    return int(stimulus.Wave[name]), [*_span(m.from_ns, m.to_ns), *own]


def _faults(maps: Sequence[FaultMap], signals: int) -> layout.Faults:
    made = layout.Faults(
        head=np.full(signals, -1, np.int64),
        following=np.full(SLOTS, -1, np.int64),
        kind=_ints(SLOTS),
        p=np.zeros((SLOTS, SLOT_PARAMS)),
        seed=np.zeros(SLOTS, np.uint64),
        held=np.zeros(SLOTS),
        age=_ints(SLOTS),
        history=np.zeros((SLOTS, HISTORY)),
    )
    for slot, m in enumerate(maps):
        kind, params = fault_params(m)
        made.kind[slot] = kind
        made.p[slot, : len(params)] = params
        made.seed[slot] = m.seed
    _chain(made.head, made.following, [m.signal for m in maps])
    return made


def _chain(head: NDArray[np.int64], following: NDArray[np.int64], signals: list[int]) -> None:
    """Slots of each signal in the order of the file, which is the order they count in."""
    for slot in reversed(range(len(signals))):
        attach(head, following, slot, signals[slot])


def fault_params(m: FaultMap) -> tuple[int, list[float]]:
    """Kind and parameters of a fault as faults.py takes them."""
    own = float(m.ticks) if m.kind == "delay" else m.amount
    return int(faults.Kind[m.kind.upper()]), [*_span(m.from_ns, m.to_ns), own]


def _alarms(wiring: SignalMap, config: Config, commands_at: int) -> layout.Alarms:
    a = wiring.alarms
    period = config.node.period_ns
    return layout.Alarms(
        signal=np.array([x.signal for x in a], np.int64),
        low=np.array([x.low for x in a], float),
        high=np.array([x.high for x in a], float),
        need=np.array([math.ceil(x.for_ns / period) for x in a], np.int64),
        count=_ints(len(a)),
        active=_ints(len(a)),
        credit=_ints(len(a)),
        told_at=_ints(len(a)),
        action=np.array([ACTIONS[x.action] for x in a], np.int64),
        target=np.array([-1 if x.target is None else x.target - commands_at for x in a], np.int64),
        value=np.array([x.value for x in a], float),
    )


def _span(from_ns: int, to_ns: int) -> tuple[float, float]:
    """Begin and end [ns]; a time that never comes is infinite."""
    return float(from_ns), math.inf if to_ns == NEVER else float(to_ns)


def _ints(n: int) -> NDArray[np.int64]:
    return np.zeros(n, np.int64)
