"""Wiring: matches a config with the signals of the plant and the devices; names become indices, units numbers.

The plant's and the devices' signals are plain arguments, so that nothing here imports either; the tick needs
nothing else than the `SignalMap`.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hilnode.config.config import Config
from hilnode.config.tables.fault import (
    BiasFault,
    DelayFault,
    DropFault,
    Fault,
    NoiseFault,
    QuantiseFault,
    StuckFault,
)
from hilnode.config.tables.signals import InputTable, MappingTable, OutputTable
from hilnode.config.tables.stimulus import CsvStimulus, Stimulus
from hilnode.core import units
from hilnode.core.limits import HISTORY, SLOTS
from hilnode.core.problems import MOST, ConfigError, Loc, Problem, number, printable, sentence, shown
from hilnode.core.signals import Signal, nearest
from hilnode.core.toml_source import read_text

CSV_LIMIT = 64_000_000
"""Bytes of a stimulus file: about an hour at 1 kHz."""

LONGEST_DELAY = HISTORY - 1
"""Ticks of a delay fault."""

NEVER = 2**63 - 1
"""A time in nanoseconds that does not come."""


@dataclass(frozen=True, slots=True)
class InputMap:
    """A plant input: value = scale * raw + offset, kept within limits and watched for age."""

    signal: Signal
    source: tuple[str, int] | None  # driver and index of its channel
    scale: float  # unit conversion included, as in offset
    offset: float
    low: float
    high: float
    rate_limit: float  # per second; inf = none
    filter_hz: float  # inf = none
    stale_ns: int
    stale: str
    ramp_ns: int
    default: float


@dataclass(frozen=True, slots=True)
class CommandMap:
    """A device channel that is driven.

    `signal` is named driver.channel and has the channel's unit and range; `unit` in the file labels a channel that
    has none, and else only says what the plant's value is converted into.
    """

    signal: Signal
    driver: str
    channel: int  # index among the driver's output channels
    source: int  # index in [plant inputs, plant outputs]
    scale: float
    offset: float
    low: float
    high: float
    rate_limit: float
    filter_hz: float
    safe: float


@dataclass(frozen=True, slots=True)
class StimulusMap:
    """A made-up signal on a plant input; a CSV brings its points."""

    signal: int  # index among the plant inputs
    spec: Stimulus
    from_ns: int
    to_ns: int
    times: tuple[float, ...] = ()  # [s]
    values: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class FaultMap:
    """A fault on a signal of [inputs, outputs, commands]."""

    signal: int
    kind: str
    from_ns: int
    to_ns: int
    amount: float  # bias, sigma, probability, step or stuck value; nan = stuck where it was
    ticks: int  # of delay
    seed: int


@dataclass(frozen=True, slots=True)
class AlarmMap:
    """An alarm on a signal of [inputs, outputs, commands], as is `target`, the command it sets."""

    name: str
    signal: int
    low: float  # alarm when below low or above high
    high: float
    for_ns: int
    action: str
    target: int | None
    value: float


@dataclass(frozen=True, slots=True)
class SignalMap:
    """All a node needs to wire plant and devices: indices and numbers, no names left to look up."""

    inputs: tuple[InputMap, ...]  # one for each plant input, in the plant's order
    outputs: tuple[Signal, ...]
    commands: tuple[CommandMap, ...]  # driver by driver
    stimuli: tuple[StimulusMap, ...]
    faults: tuple[FaultMap, ...]
    alarms: tuple[AlarmMap, ...]
    parameters: tuple[float, ...]  # one for each plant parameter, in the plant's order

    @property
    def signals(self) -> tuple[Signal, ...]:
        """Inputs, outputs and commands: the index space of faults and alarms."""
        return (*(i.signal for i in self.inputs), *self.outputs, *(c.signal for c in self.commands))


def resolve(
    config: Config,
    *,
    plant_inputs: Sequence[Signal],
    plant_outputs: Sequence[Signal],
    plant_parameters: Sequence[Signal],
    device_inputs: Mapping[str, Sequence[Signal]],
    device_outputs: Mapping[str, Sequence[Signal]],
) -> SignalMap:
    """Check every name, unit and range against what exists, and turn names into indices.

    The devices' channels are given by driver name; a channel's own name has no driver in it (`x`, not `stick.x`).
    """
    work = _Resolver(config, plant_inputs, plant_outputs)
    parameters = work.parameters(plant_parameters)
    inputs = work.inputs(device_inputs)
    commands = work.commands(device_outputs, (*plant_inputs, *plant_outputs))
    done = SignalMap(
        inputs, tuple(plant_outputs), commands, work.stimuli(), work.faults(), work.alarms(commands), parameters
    )
    if work.problems:
        found = sorted(work.problems, key=lambda p: (p.where_file != config.source.file, p.line or 0))
        raise ConfigError(found[:MOST], max(0, len(found) - MOST))
    return done


def _ns(seconds: float | None) -> int:
    return NEVER if seconds is None else round(seconds * 1e9)


def _span(low: float, high: float) -> str:
    return f"[{number(low)}, {number(high)}]"


Devices = Mapping[str, Sequence[Signal]]


class _Resolver:
    """Goes through the tables of a configuration and gathers problems on the way."""

    def __init__(self, config: Config, inputs: Sequence[Signal], outputs: Sequence[Signal]) -> None:
        self.config = config
        self.source = config.source
        self.plant_inputs = inputs
        self.plant_names = [s.name for s in (*inputs, *outputs)]
        self.all_names = self.plant_names  # and the commands, once they are known
        self.problems: list[Problem] = []

    def problem(self, loc: Loc, message: str, hint: str = "") -> None:
        self.problems.append(self.source.problem(loc, message, sentence(hint)))

    def index(self, loc: Loc, name: str, known: Sequence[str], what: str) -> int | None:
        """Where a name stands in a list; an unknown one is a problem."""
        if name in known:
            return known.index(name)
        self.problem(loc, f"there is no {what} called {name!r}", self.elsewhere(name, what) or nearest(name, known))
        return None

    def elsewhere(self, name: str, what: str) -> str:
        """A hint for a name that exists, but not where it was used."""
        if name in self.plant_names:
            side = "input" if self.plant_names.index(name) < len(self.plant_inputs) else "output"
            return f"that is an {side} of the plant"
        if name in self.all_names:
            return "that is a command to a device"
        if "command" in what and name.partition(".")[0] in self.config.drivers:
            return f'a device channel is a signal once something drives it: write [signals.outputs."{name}"]'
        return ""

    def within(self, loc: Loc, what: str, value: float, low: float, high: float) -> None:
        if not low <= value <= high:
            self.problem(loc, f"{what} {number(value)} lies outside the range {_span(low, high)}")

    def below_nyquist(self, loc: Loc, frequency_hz: float) -> None:
        half = self.config.node.rate_hz / 2
        if frequency_hz >= half:
            self.problem(loc, f"must be below {number(half)} Hz, half of node.rate_hz")

    def parameters(self, known: Sequence[Signal]) -> tuple[float, ...]:
        values = [s.default for s in known]
        names = [s.name for s in known]
        for name, value in self.config.plant.parameters.items():
            loc = ("plant", "parameters", name)
            index = self.index(loc, name, names, "parameter of the plant")
            if index is not None:
                self.within(loc, "the value", value, known[index].low, known[index].high)
                values[index] = value
        return tuple(values)

    def channel(self, loc: Loc, name: str, devices: Devices, what: str) -> tuple[str, int, Signal] | None:
        """The driver, the index and the signal behind `driver.channel`."""
        driver, _, channel = name.partition(".")
        if driver not in self.config.drivers:
            known = list(self.config.drivers)
            hint = nearest(driver, known) if known else f"add a table [drivers.{driver}]"
            self.problem(loc, f"there is no driver {driver!r}", hint)
            return None
        names = [s.name for s in devices.get(driver, ())]
        if channel not in names:
            hint = nearest(name, [f"{driver}.{n}" for n in names])
            self.problem(loc, f"driver {driver!r} has no {what} channel {channel!r}", hint)
            return None
        return driver, names.index(channel), devices[driver][names.index(channel)]

    def scaling(
        self, loc: Loc, table: MappingTable, from_unit: str, to_unit: str, plant_unit: str
    ) -> tuple[float, float]:
        """Scale and offset with the unit conversion folded in. A plain number has none to convert: scale gives it."""
        unit_scale, unit_offset = 1.0, 0.0
        if not {from_unit, to_unit} & {"", "1"}:
            try:
                unit_scale, unit_offset = units.conversion(from_unit, to_unit)
            except units.UnitError as error:
                hint = f'if scale and offset make up for it, write unit = "{plant_unit}"'
                self.problem((*loc, "unit") if table.unit else loc, str(error), hint)
        return table.scale * unit_scale, table.scale * unit_offset + table.offset

    def limits(self, loc: Loc, table: MappingTable, signal: Signal) -> tuple[float, float]:
        """The clamp, which may narrow the signal's range but not widen it."""
        low, high = table.clamp or (signal.low, signal.high)
        if low < signal.low or high > signal.high:
            span = _span(signal.low, signal.high)
            self.problem((*loc, "clamp"), f"reaches beyond the range {span} of {signal.name!r}")
        return low, high

    def filter_hz(self, loc: Loc, table: MappingTable) -> float:
        if table.filter_hz is None:
            return math.inf
        self.below_nyquist((*loc, "filter_hz"), table.filter_hz)
        return table.filter_hz

    def inputs(self, devices: Devices) -> tuple[InputMap, ...]:
        tables = self.config.signals.inputs
        known = [s.name for s in self.plant_inputs]
        for name in tables:
            self.index(("signals", "inputs", name), name, known, "input of the plant")
        return tuple(self.input(s, tables.get(s.name, InputTable()), devices) for s in self.plant_inputs)

    def input(self, signal: Signal, table: InputTable, devices: Devices) -> InputMap:
        loc: Loc = ("signals", "inputs", signal.name)
        source, scale, offset = None, 1.0, 0.0
        if table.source and (found := self.channel((*loc, "from"), table.source, devices, "input")):
            source = found[:2]
            scale, offset = self.scaling(loc, table, table.unit or found[2].unit, signal.unit, signal.unit)
        low, high = self.limits(loc, table, signal)
        default = signal.default if table.default is None else table.default
        self.within(loc if table.default is None else (*loc, "default"), "the default", default, low, high)
        return InputMap(
            signal=signal,
            source=source,
            scale=scale,
            offset=offset,
            low=low,
            high=high,
            rate_limit=table.rate_limit or math.inf,
            filter_hz=self.filter_hz(loc, table),
            stale_ns=_ns(table.stale_ms / 1e3),
            stale=table.stale,
            ramp_ns=_ns(table.ramp_ms / 1e3),
            default=default,
        )

    def commands(self, devices: Devices, plant: Sequence[Signal]) -> tuple[CommandMap, ...]:
        found = [self.command(name, table, devices, plant) for name, table in self.config.signals.outputs.items()]
        order = list(self.config.drivers)
        # one driver's commands stand together: they travel in one mailbox
        made = tuple(sorted((c for c in found if c is not None), key=lambda c: order.index(c.driver)))
        self.all_names = [*self.plant_names, *(c.signal.name for c in made)]
        return made

    def command(self, name: str, table: OutputTable, devices: Devices, plant: Sequence[Signal]) -> CommandMap | None:
        loc: Loc = ("signals", "outputs", name)
        found = self.channel(loc, name, devices, "output")
        source = self.index((*loc, "from"), table.source, self.plant_names, "signal of the plant")
        if name in self.plant_names:
            self.problem(loc, "a signal of the plant has the same name", "give the driver another name")
        if found is None or source is None:
            return None
        driver, place, channel = found
        plant_unit = plant[source].unit
        scale, offset = self.scaling(loc, table, plant_unit, table.unit or channel.unit, plant_unit)
        low, high = self.limits(loc, table, replace(channel, name=name))
        safe = channel.safe if table.safe is None else table.safe
        self.within(loc if table.safe is None else (*loc, "safe"), "the safe value", safe, low, high)
        at_rest = min(max(safe, low), high)
        return CommandMap(
            signal=Signal(name, channel.unit or table.unit or "", at_rest, low, high, at_rest, channel.doc),
            driver=driver,
            channel=place,
            source=source,
            scale=scale,
            offset=offset,
            low=low,
            high=high,
            rate_limit=table.rate_limit or math.inf,
            filter_hz=self.filter_hz(loc, table),
            safe=at_rest,
        )

    def room(self, loc: Loc, count: int) -> None:
        if count > SLOTS:
            self.problem(loc, f"there are {count}; the tick has room for {SLOTS} at once")

    def stimuli(self) -> tuple[StimulusMap, ...]:
        self.room(("signals", "stimulus"), len(self.config.signals.stimulus))
        known = [s.name for s in self.plant_inputs]
        made = []
        for i, spec in enumerate(self.config.signals.stimulus):
            loc: Loc = ("signals", "stimulus", i)
            index = self.index((*loc, "signal"), spec.signal, known, "input of the plant")
            for key in ("frequency_hz", "f0_hz", "f1_hz"):
                self.below_nyquist((*loc, key), getattr(spec, key, 0.0))
            points = self.csv(loc, spec) if isinstance(spec, CsvStimulus) else ((), ())
            if index is not None:
                made.append(stimulus_map(index, spec, *points))
        return tuple(made)

    def csv(self, loc: Loc, spec: CsvStimulus) -> tuple[tuple[float, ...], tuple[float, ...]]:
        try:
            return read_points(self.source.folder / spec.file, spec)
        except ConfigError as error:
            here = self.source.problem((*loc, "file"), "")
            hint = f"It is named in {here.where_file}" + (f":{here.line}." if here.line else ".")
            self.problems += [replace(p, hint=f"{p.hint} {hint}".strip()) for p in error.problems]
            return (), ()

    def faults(self) -> tuple[FaultMap, ...]:
        self.room(("signals", "faults"), len(self.config.signals.faults))
        made = []
        for i, spec in enumerate(self.config.signals.faults):
            loc: Loc = ("signals", "faults", i)
            index = self.index((*loc, "signal"), spec.signal, self.all_names, "input, output or command")
            if isinstance(spec, DelayFault):
                ticks = _delay_ticks(spec, self.config.node.period_ns)
                if not 1 <= ticks <= LONGEST_DELAY:
                    what = f"is {ticks} ticks at {number(self.config.node.rate_hz)} Hz"
                    self.problem((*loc, "ms"), f"{what}; a delay is 1 to {LONGEST_DELAY} ticks")
            if index is not None:
                made.append(fault_map(index, spec, self.config.node.period_ns))
        return tuple(made)

    def alarms(self, commands: Sequence[CommandMap]) -> tuple[AlarmMap, ...]:
        made: list[AlarmMap] = []
        for i, table in enumerate(self.config.safety.alarms):
            loc: Loc = ("safety", "alarms", i)
            index = self.index((*loc, "signal"), table.signal, self.all_names, "input, output or command")
            target = None
            if table.target is not None and table.value is not None:
                place = self.index((*loc, "set"), table.target, [c.signal.name for c in commands], "command")
                if place is not None:
                    self.within((*loc, "value"), "the value", table.value, commands[place].low, commands[place].high)
                    target = len(self.plant_names) + place
            if table.label in (a.name for a in made):
                self.problem(loc, f"two alarms are called {table.label!r}", "give one of them another name")
            if index is not None:
                low, high = table.limits
                value = math.nan if table.value is None else table.value
                made.append(
                    AlarmMap(table.label, index, low, high, _ns(table.for_ms / 1e3), table.action, target, value)
                )
        return tuple(made)


def stimulus_map(
    signal: int, spec: Stimulus, times: tuple[float, ...] = (), values: tuple[float, ...] = ()
) -> StimulusMap:
    """A checked stimulus on the input of this index."""
    return StimulusMap(signal, spec, _ns(spec.from_s), _ns(spec.to_s), times, values)


def fault_map(signal: int, spec: Fault, period_ns: int) -> FaultMap:
    """A checked fault on the signal of this index."""
    ticks = _delay_ticks(spec, period_ns) if isinstance(spec, DelayFault) else 0
    seed = getattr(spec, "seed", 0)
    return FaultMap(signal, spec.kind, _ns(spec.from_s), _ns(spec.to_s), _amount(spec), ticks, seed)


def _delay_ticks(spec: DelayFault, period_ns: int) -> int:
    return round(spec.ms * 1e6 / period_ns)


def _amount(spec: Fault) -> float:
    match spec:
        case StuckFault():
            return math.nan if spec.value is None else spec.value
        case BiasFault():
            return spec.value
        case NoiseFault():
            return spec.sigma
        case DropFault():
            return spec.probability
        case QuantiseFault():
            return spec.step
        case _:
            return 0.0


def read_points(path: Path, spec: CsvStimulus) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Times and values of a stimulus file; a ConfigError names its line."""
    file = printable(str(path))
    reader = csv.reader(read_text(path, CSV_LIMIT).split("\n"), skipinitialspace=True)

    def refuse(key: str, message: str, hint: str = "", value: str = "") -> ConfigError:
        return ConfigError([Problem(file, key, reader.line_num or None, message, sentence(hint), value)])

    try:
        heading = [h.strip() for h in next(reader, [])]
        columns = (spec.time_column, spec.value_column)
        for key in columns:
            if key not in heading:
                raise refuse("", f"there is no column {key!r} in the first line", nearest(key, heading))
        places = [heading.index(key) for key in columns]
        points: list[list[float]] = []
        for row in reader:
            if not any(cell.strip() for cell in row):
                continue
            point = []
            for key, place in zip(columns, places, strict=True):
                cell = row[place] if place < len(row) else ""
                try:
                    point.append(float(cell))
                except ValueError as error:
                    raise refuse(key, "must be a number", "", shown(cell)) from error
                if not math.isfinite(point[-1]):
                    raise refuse(key, "must be a finite number", "", shown(cell))
            if points and point[0] <= points[-1][0]:
                raise refuse(
                    columns[0], f"must be later than {number(points[-1][0])} in the row before", "", shown(point[0])
                )
            points.append(point)
    except csv.Error as error:
        raise refuse("", f"is not a CSV file ({error})") from error
    if len(points) < 1 + spec.repeat:
        raise refuse("", "has too few rows", "two to repeat, one otherwise, below the heading")
    return tuple(p[0] for p in points), tuple(p[1] for p in points)
