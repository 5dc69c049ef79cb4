"""The configuration of a node: one TOML file, read once, checked whole, then frozen.

    load      file -> Config      every key known, typed and in range, or a ConfigError that lists all problems
    overlay   Config -> Config    what the command line changes, under the same checks

Whether the signals it names exist is the next question: see `hilnode/wiring.py`. An empty file is valid: it runs
the default plant with no devices. `python -m hilnode.config` writes the JSON schema for editors.
"""

from __future__ import annotations

import json
import math
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    field_serializer,
    model_validator,
)
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import PydanticCustomError, core_schema

from hilnode import units
from hilnode.config_errors import (
    ADDRESS,
    CHANNEL_NAME,
    DRIVER_NAME,
    KIND_NAME,
    NODE_NAME,
    PLAIN_TEXT,
    SIGNAL_NAME,
    TOKEN,
    WEB_ADDRESS,
    ConfigError,
    Loc,
    Problem,
    explain,
    keys,
    number,
    printable,
    sentence,
)
from hilnode.limits import HISTORY
from hilnode.signals import nearest
from hilnode.tables import FileTable
from hilnode.toml_source import Source, parse_toml, read_text

__all__ = ["Config", "ConfigError", "Problem", "load", "overlay", "schema"]

FILE_LIMIT = 4_000_000
"""Bytes of a configuration; a larger file was named by mistake."""

SLOWEST_S = 1000.0
"""The longest period: a slower node is a typing error, and its nanoseconds would not fit everywhere."""

FREE_DEPTH = 16
"""Levels within a free table; enough for any options, and safe to walk recursively."""


def _refuse(message: str, *at: str | int) -> PydanticCustomError:
    """An error that is already a sentence, about the key `at` below the value being checked."""
    return PydanticCustomError("sentence", "{text}", {"text": message, "at": at})


def _says(sentence: str) -> WrapValidator:
    """Replace whatever a validator complains about by one sentence."""

    def check(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
        try:
            return handler(value)
        except ValidationError as error:
            raise _refuse(sentence) from error

    return WrapValidator(check)


def _rising(pair: tuple[float, float]) -> tuple[float, float]:
    if not pair[0] < pair[1]:
        raise _refuse("must be two numbers [low, high], the lower one first")
    return pair


def _free(table: dict[str, Any]) -> dict[str, Any]:
    """Whatever a kind of plant or driver may want, as long as it can be stored and sent: finite and not too deep."""
    todo: list[tuple[Loc, Any]] = [((), table)]
    while todo:
        loc, value = todo.pop()
        if len(loc) > FREE_DEPTH:
            raise _refuse(f"is nested more than {FREE_DEPTH} levels deep", *loc)
        if isinstance(value, float) and not math.isfinite(value):
            raise _refuse("must be a finite number, not nan or inf", *loc)
        if isinstance(value, int) and value.bit_length() > 63:
            raise _refuse("must fit into 64 bits", *loc)
        if isinstance(value, dict):
            todo += [((*loc, k), v) for k, v in value.items()]
        if isinstance(value, list):
            todo += [((*loc, i), v) for i, v in enumerate(value)]
    return table


def _port(address: str) -> str:
    if address.startswith(("tcp:", "http:")) and not 0 < int(address.rpartition(":")[2]) < 65536:
        raise _refuse("must have a port from 1 to 65535")
    return address


def _is_local(address: str) -> bool:
    """Whether only programs on this PC can reach it."""
    host = address.removeprefix("tcp://").rpartition(":")[0].strip("[]")
    return (
        not address.startswith("tcp:")
        or host in ("localhost", "::1")
        or re.fullmatch(r"127(\.\d+){3}", host) is not None
    )


NodeName = Annotated[str, Field(pattern=NODE_NAME, max_length=40)]
DriverName = Annotated[str, Field(pattern=DRIVER_NAME, max_length=40)]
KindName = Annotated[str, Field(pattern=KIND_NAME, max_length=60)]
SignalName = Annotated[str, Field(pattern=SIGNAL_NAME, max_length=200)]
ChannelName = Annotated[str, Field(pattern=CHANNEL_NAME, max_length=200)]
PlainText = Annotated[str, Field(pattern=PLAIN_TEXT, max_length=1000)]
Address = Annotated[str, Field(pattern=ADDRESS, max_length=200), AfterValidator(_port)]
WebAddress = Annotated[str, Field(pattern=WEB_ADDRESS, max_length=200), AfterValidator(_port)]
Unit = Annotated[str, AfterValidator(units.check)]
FreeTable = Annotated[dict[str, Any], AfterValidator(_free)]
Number = Annotated[float, Field(ge=-1e100, le=1e100)]
Milliseconds = Annotated[float, Field(ge=0, le=3_600_000)]
Seconds = Annotated[float, Field(ge=0, le=1e9)]
Hertz = Annotated[float, Field(gt=0, le=10_000)]
Seed = Annotated[int, Field(ge=0, le=2**63 - 1)]
Range = Annotated[
    tuple[Number, Number],
    Field(strict=False),
    AfterValidator(_rising),
    _says("must be two numbers [low, high], the lower one first"),
]
TwinSpec = Annotated[bool | FreeTable, _says("must be true, false or a table of channel = number or formula")]
Cpu = Annotated[
    Literal["auto", "none"] | Annotated[int, Field(ge=0, le=8191)],
    _says('must be "auto", "none" or the number of a CPU, counted from 0'),
]


class Table(BaseModel):
    """A table of the file: nothing unknown, nothing converted, no nan or inf, nothing changed afterwards."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class NodeTable(Table):
    """The loop itself: how fast it runs, what it does when it is late, and how it asks the system for its time."""

    name: NodeName = Field(default="bench", description="Names the shared memory and the run.")
    rate_hz: float = Field(default=1000.0, gt=0, le=20_000, description="Ticks per second of simulated time.")
    pace: Literal["real-time", "free", "lockstep"] = Field(
        default="real-time",
        description="Follow the clock, run as fast as possible, or wait for the controller at each tick.",
    )
    speed: float = Field(
        default=1.0, ge=0.01, le=100, description="Speed of real-time pace: 0.1 is slow motion, 2 is double speed."
    )
    overrun: Literal["skip", "catch-up", "slip", "halt"] = Field(
        default="skip",
        description="After a missed deadline: give up the missed ticks, run them at once, move all later deadlines, "
        "or stop.",
    )
    catch_up_limit: int = Field(default=10, ge=1, le=100_000, description="Ticks run back to back at most.")
    max_overruns: int = Field(
        default=1000, ge=0, le=2**31, description="Overruns since arming that trip the node; 0 = never."
    )
    warmup_ms: Milliseconds = Field(default=500.0, description="Overruns within it are written down but not counted.")
    priority: int = Field(default=80, ge=0, le=99, description="SCHED_FIFO priority; 0 = ordinary scheduling.")
    driver_priority: int = Field(
        default=20,
        ge=0,
        le=98,
        description="The same for the threads of drivers, on the CPUs that the tick leaves; always below `priority`.",
    )
    cpu: Cpu = Field(
        default="auto",
        description='The CPU to run on: "auto" = the last isolated one, else the last allowed; "none" = any.',
    )
    lock_memory: bool = Field(default=True, description="Keep all memory resident, so that no tick waits for a page.")
    spin_us: float = Field(default=0.0, ge=0, le=1_000_000, description="Busy-wait this long before each deadline.")
    autostart: bool = Field(default=True, description="Arm and run at once; false waits for commands.")

    @property
    def period_ns(self) -> int:
        """Simulated time per tick."""
        return round(1e9 / self.rate_hz)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.rate_hz * SLOWEST_S < 1:
            raise _refuse(f"is slower than one tick in {SLOWEST_S:.0f} s", "rate_hz")
        period_us = self.period_ns / 1000 / self.speed
        if self.spin_us >= period_us:
            raise _refuse(f"must be shorter than the period of {period_us:g} µs", "spin_us")
        return self


class PlantTable(Table):
    """The simulated machine."""

    kind: KindName = Field(default="double_pendulum", description="Which plant: a known kind, or module:attribute.")
    options: FreeTable = Field(
        default={}, description="Handed to the plant kind as it stands; parameters may name a TOML file."
    )
    parameters: dict[SignalName, Number] = Field(default={}, description="Initial values of plant parameters, by name.")


class DriverTable(Table):
    """One device. Keys other than these belong to the kind of driver and are handed to it."""

    model_config = ConfigDict(extra="allow")

    kind: KindName = Field(description="Which driver: a known kind, or module:attribute.", examples=["udp"])
    required: bool = Field(default=False, description="Refuse to arm without this device.")
    period_ms: float = Field(default=1.0, gt=0, le=60_000, description="How often the device is written.")

    twin: TwinSpec = Field(
        default=False,
        description="Do without the device: true, or a table that says what its inputs are, numbers or formulas of t; "
        "with a kind it is a driver of that kind, which stands in.",
        examples=[True],
    )

    @property
    def options(self) -> dict[str, Any]:
        """The keys that belong to the kind, and whether a twin is to stand in."""
        return dict(self.model_extra or {}) | ({"twin": self.twin} if self.twin is not False else {})

    @model_validator(mode="after")
    def _check(self) -> Self:
        _free(self.options)
        return self


class MappingTable(Table):
    """What lies between a device channel and a signal."""

    unit: Unit | None = Field(
        default=None, description="Unit at the device. Default: the channel's own.", examples=["N*m"]
    )
    scale: Number = Field(default=1.0, description="value = scale * raw + offset, after unit conversion.")
    offset: Number = Field(default=0.0, description="See scale.")
    clamp: Range | None = Field(
        default=None, description="Limits [low, high]. Default: the range.", examples=[[-5.0, 5.0]]
    )
    rate_limit: float | None = Field(
        default=None, gt=0, le=1e100, description="Largest change per second. Default: none.", examples=[100.0]
    )
    filter_hz: Hertz | None = Field(
        default=None, description="Corner of a first-order low pass, below rate_hz / 2. Default: none.", examples=[50.0]
    )


class InputTable(MappingTable):
    """A plant input and the device channel that drives it."""

    source: ChannelName | None = Field(
        default=None,
        alias="from",
        description="driver.channel. Default: none, so default value or stimulus.",
        examples=["stick.x"],
    )
    stale_ms: float = Field(default=100.0, gt=0, le=3_600_000, description="A value older than this is stale.")
    stale: Literal["hold", "default", "ramp", "trip"] = Field(
        default="default",
        description="A stale input keeps its value, jumps or ramps to its default, or trips the node.",
    )
    ramp_ms: Milliseconds = Field(default=500.0, description='Duration of stale = "ramp".')
    default: Number | None = Field(default=None, description="Default: that of the signal.", examples=[0.0])


class OutputTable(MappingTable):
    """A device channel and the signal that drives it."""

    source: SignalName = Field(
        alias="from", description="Any plant output or input.", examples=["pendulum.elbow.angle"]
    )
    safe: Number | None = Field(
        default=None,
        description="Value whenever nobody may drive the device. Default: that of the channel.",
        examples=[0.0],
    )


class TimedTable(Table):
    """Something that happens to a signal during a span of simulated time."""

    signal: SignalName = Field(description="The signal's name.", examples=["pendulum.shoulder.torque"])
    from_s: Seconds = Field(default=0.0, description="When it begins.")
    to_s: Seconds | None = Field(default=None, description="When it ends. Default: never.", examples=[10.0])

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.to_s is not None and self.to_s <= self.from_s:
            raise _refuse(f"must be later than from_s = {number(self.from_s)}", "to_s")
        return self


def _required(description: str, example: float, **limits: Any) -> Any:
    return Field(description=description, examples=[example], **limits)


class ConstantStimulus(TimedTable):
    """One value."""

    kind: Literal["constant"]
    value: Number = _required("The value.", 1.0)


class RampStimulus(TimedTable):
    """A straight line."""

    kind: Literal["ramp"]
    start: Number = Field(default=0.0, description="Value at from_s.")
    slope: Number = _required("Change per second.", 1.0)
    stop: Number | None = Field(default=None, description="Value at which it stays. Default: none.", examples=[1.0])


class StepStimulus(TimedTable):
    """A jump."""

    kind: Literal["step"]
    before: Number = Field(default=0.0, description="Value before at_s.")
    after: Number = _required("Value from at_s on.", 1.0)
    at_s: Seconds = _required("When it jumps.", 1.0)


class SineStimulus(TimedTable):
    """offset + amplitude * sin(2 pi frequency t + phase)."""

    kind: Literal["sine"]
    amplitude: Number = _required("Half of peak to peak.", 1.0)
    frequency_hz: Hertz = _required("Below rate_hz / 2.", 1.0)
    offset: Number = Field(default=0.0, description="Mean value.")
    phase_rad: Number = Field(default=0.0, description="Phase at from_s.")


class SquareStimulus(TimedTable):
    """offset + amplitude during the first part of each period, offset - amplitude during the rest."""

    kind: Literal["square"]
    amplitude: Number = _required("Half of peak to peak.", 1.0)
    frequency_hz: Hertz = _required("Below rate_hz / 2.", 1.0)
    offset: Number = Field(default=0.0, description="Middle between high and low.")
    duty: float = Field(default=0.5, gt=0, lt=1, description="High part of a period.")


class ChirpStimulus(TimedTable):
    """A sine whose frequency moves evenly from f0_hz to f1_hz."""

    kind: Literal["chirp"]
    amplitude: Number = _required("Half of peak to peak.", 1.0)
    f0_hz: Hertz = _required("Frequency at from_s, below rate_hz / 2.", 0.1)
    f1_hz: Hertz = _required("Frequency after `seconds`, below rate_hz / 2.", 10.0)
    seconds: float = _required("Duration of the sweep.", 60.0, gt=0, le=1e9)
    offset: Number = Field(default=0.0, description="Mean value.")


class NoiseStimulus(TimedTable):
    """White Gaussian noise, the same in every run."""

    kind: Literal["noise"]
    sigma: float = _required("Standard deviation.", 0.1, ge=0, le=1e100)
    mean: Number = Field(default=0.0, description="Mean value.")
    seed: Seed = Field(default=0, description="Another seed, another noise.")


class CsvStimulus(TimedTable):
    """A recorded signal: a CSV file with a heading, times in seconds, straight lines between its points."""

    kind: Literal["csv"]
    file: PlainText = Field(description="Path, relative to the configuration's folder.", examples=["torque.csv"])
    time_column: PlainText = Field(default="time", description="Heading of the times, in seconds and rising.")
    value_column: PlainText = Field(default="value", description="Heading of the values.")
    repeat: bool = Field(default=False, description="Begin again at the end; else the last value stays.")


class StuckFault(TimedTable):
    """The signal does not change."""

    kind: Literal["stuck"]
    value: Number | None = Field(default=None, description="Where it is stuck. Default: where it was.", examples=[0.0])


class OffFault(TimedTable):
    """The signal is cut off, as if unplugged."""

    kind: Literal["off"]


class BiasFault(TimedTable):
    """The signal is wrong by a constant."""

    kind: Literal["bias"]
    value: Number = _required("Added to the signal.", 0.1)


class NoiseFault(TimedTable):
    """Gaussian noise is added."""

    kind: Literal["noise"]
    sigma: float = _required("Standard deviation.", 0.1, ge=0, le=1e100)
    seed: Seed = Field(default=0, description="Another seed, another noise.")


class DelayFault(TimedTable):
    """The signal arrives late."""

    kind: Literal["delay"]
    ms: Milliseconds = _required(f"How late; at most {HISTORY - 1} ticks.", 20.0)


class DropFault(TimedTable):
    """Single ticks keep the value before them."""

    kind: Literal["drop"]
    probability: float = _required("Share of ticks dropped.", 0.1, ge=0, le=1)
    seed: Seed = Field(default=0, description="Another seed, other ticks.")


class QuantiseFault(TimedTable):
    """The signal moves in steps."""

    kind: Literal["quantise"]
    step: float = _required("Size of a step.", 0.01, gt=0, le=1e100)


Stimulus = Annotated[
    ConstantStimulus
    | RampStimulus
    | StepStimulus
    | SineStimulus
    | SquareStimulus
    | ChirpStimulus
    | NoiseStimulus
    | CsvStimulus,
    Field(discriminator="kind"),
]
Fault = Annotated[
    StuckFault | OffFault | BiasFault | NoiseFault | DelayFault | DropFault | QuantiseFault,
    Field(discriminator="kind"),
]


class SignalsTable(Table):
    """How devices, made-up signals and faults meet the plant."""

    inputs: dict[SignalName, InputTable] = Field(default={}, description="Plant inputs, by signal name.")
    outputs: dict[ChannelName, OutputTable] = Field(default={}, description="Device channels, by driver.channel.")
    stimulus: tuple[Stimulus, ...] = Field(
        default=(), strict=False, description="Signals made up here, on plant inputs."
    )
    faults: tuple[Fault, ...] = Field(default=(), strict=False, description="Faults on any input, output or command.")


class AlarmTable(Table):
    """A limit to watch: exactly one of above, below and outside."""

    name: PlainText | None = Field(
        default=None, description="Default: the signal and its limit.", examples=["elbow too far"]
    )
    signal: SignalName = Field(description="Any input, output or command.", examples=["pendulum.elbow.angle"])
    above: Number | None = Field(default=None, description="Alarm when the signal is greater.", examples=[1.0])
    below: Number | None = Field(default=None, description="Alarm when the signal is smaller.", examples=[-1.0])
    outside: Range | None = Field(default=None, description="Alarm outside [low, high].", examples=[[-1.0, 1.0]])
    for_ms: Milliseconds = Field(default=0.0, description="Alarm only after this long without a break.")
    action: Literal["log", "trip", "set"] = Field(default="log", description="Write it down, trip, or hold a command.")
    target: ChannelName | None = Field(
        default=None, alias="set", description='With action = "set": the command channel.', examples=["valve.ao0"]
    )
    value: Number | None = Field(default=None, description='With action = "set": where it is held.', examples=[0.0])

    @model_validator(mode="after")
    def _check(self) -> Self:
        if [self.above, self.below, self.outside].count(None) != 2:
            raise _refuse("needs exactly one of above, below and outside")
        if self.action == "set" and (self.target is None or self.value is None):
            raise _refuse('action = "set" needs the keys set (a driver.channel) and value')
        if self.action != "set" and (self.target is not None or self.value is not None):
            raise _refuse(f'the keys set and value need action = "set", not "{self.action}"')
        return self

    @property
    def limits(self) -> tuple[float, float]:
        """The quiet range: the alarm is outside it."""
        low, high = self.outside or (self.below, self.above)
        return (-math.inf if low is None else low, math.inf if high is None else high)

    @property
    def label(self) -> str:
        """Its name, or else the signal and its limit."""
        if self.name is not None:
            return self.name
        if self.outside is not None:
            return f"{self.signal} outside [{number(self.outside[0])}, {number(self.outside[1])}]"
        side, limit = ("above", self.above) if self.below is None else ("below", self.below)
        return f"{self.signal} {side} {number(limit or 0.0)}"


class SafetyTable(Table):
    """What keeps a device from harm when something fails."""

    watchdog_ms: float = Field(
        default=50.0, ge=10, le=10_000, description="Heartbeat older than this: outputs go safe."
    )
    watchdog: bool = Field(default=True, description="Run the watchdog process.")
    bumpless_ms: Milliseconds = Field(default=200.0, description="Outputs leave their safe values over this time.")
    on_trip: Literal["exit", "hold"] = Field(
        default="exit", description="After a trip: end the run, or stay, devices safe, until somebody clears it."
    )
    stop_deadline_ms: float = Field(default=1000.0, gt=0, le=60_000, description="A stop that takes longer is forced.")
    alarms: tuple[AlarmTable, ...] = Field(default=(), strict=False, description="Limits to watch.")


class BridgeTable(Table):
    """What leaves the PC."""

    enabled: bool = Field(default=True, description="Run the bridge process.")
    publish: Address = Field(default="tcp://127.0.0.1:9872", description="Where subscribers connect.")
    commands: Address = Field(default="tcp://127.0.0.1:9873", description="Where clients connect to give commands.")
    ecu: Address = Field(
        default="tcp://127.0.0.1:9874", description="Where ECUs connect; each needs a driver of kind ecu."
    )
    keys: PlainText | None = Field(
        default=None,
        description="Folder of keys (hilnode keys): only who has one is let in. Needed beyond loopback.",
        examples=["keys"],
    )
    role: Literal["watch", "operate", "admin"] = Field(
        default="admin", description="What clients on this PC may do where there are no keys."
    )
    metrics: Address | None = Field(
        default=None, description="Where Prometheus finds /metrics; on this PC only.", examples=["tcp://127.0.0.1:9875"]
    )
    state_hz: float = Field(default=100.0, gt=0, le=20_000, description="Rate of the readable topic.")
    raw: bool = Field(default=True, description="Publish the compact full-rate topic too.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        seen: dict[str, str] = {}
        for key in ("publish", "commands", "ecu"):
            address = getattr(self, key)
            if not self.keys and not _is_local(address):
                raise _refuse("lets other PCs in, which needs bridge.keys: make them with hilnode keys new NAME", key)
            if address in seen:
                raise _refuse(f"is the address of bridge.{seen[address]} too: {address}", key)
            seen[address] = key
        if self.metrics and not _is_local(self.metrics):
            raise _refuse(
                "has no keys and must stay on this PC: tcp://127.0.0.1:9875, and a tunnel from others", "metrics"
            )
        return self


class WebTable(Table):
    """The page in the browser."""

    enabled: bool = Field(default=True, description="Serve it, if the bridge is on.")
    address: WebAddress = Field(default="http://127.0.0.1:8080", description="What to open in the browser.")
    token: Annotated[str, Field(pattern=TOKEN)] | None = Field(
        default=None,
        description="Secret that a page needs, as #token=... at the end of its address. Needed beyond loopback.",
        examples=["a-long-word-that-nobody-guesses"],
    )
    role: Literal["watch", "operate", "admin"] = Field(default="operate", description="What a page may do at most.")
    key: PlainText | None = Field(
        default=None,
        description="Key file of this server (hilnode keys), where bridge.keys asks for one.",
        examples=["keys/web.key.toml"],
    )

    @field_serializer("token", when_used="json")
    def _hide(self, token: str | None) -> str | None:
        """A config is written into every run's files: the secret is not."""
        return token and "kept-secret-elsewhere"

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.token and not _is_local(self.address.replace("http://", "tcp://")):
            raise _refuse("lets other PCs in, which needs web.token: a secret of 16 or more characters", "address")
        return self


class LogTable(Table):
    """What is kept of a run."""

    directory: PlainText = Field(default="runs", description="Folder that gets one folder per run.")
    timing: bool = Field(default=True, description="Write the timing log.")
    record: bool = Field(
        default=False,
        description="Record every row and event to rows.mcap (hilnode run --record): up to 2 MB/s, so only when asked.",
    )
    record_chunk_s: float = Field(
        default=1.0, ge=0.05, le=60, description="Written to the disc this often: what a crash of the PC may cost."
    )
    record_min_free_mb: float = Field(
        default=200.0, ge=0, le=1e9, description="Recording stops when less is free: the other logs need room too."
    )
    ring_seconds: float = Field(default=10.0, ge=1, le=120, description="History that the shared ring holds.")
    blackbox_seconds: float = Field(
        default=2.0, ge=0, le=120, description="History in a black box; at most ring_seconds."
    )
    blackbox_first: int = Field(
        default=8, ge=0, le=10_000, description="Black boxes written at most: the first ones of a run."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.blackbox_seconds > self.ring_seconds:
            if "blackbox_seconds" in self.model_fields_set:
                raise _refuse(f"must be at most ring_seconds = {number(self.ring_seconds)}", "blackbox_seconds")
            raise _refuse(f"must be at least blackbox_seconds = {number(self.blackbox_seconds)}", "ring_seconds")
        if self.record and self.record_chunk_s > self.ring_seconds / 2:
            raise _refuse(f"must be at least twice record_chunk_s = {number(self.record_chunk_s)}", "ring_seconds")
        return self


class Config(Table):
    """A whole configuration. Every table may be left out."""

    node: NodeTable = NodeTable()
    plant: PlantTable = PlantTable()
    drivers: dict[DriverName, DriverTable] = {}
    signals: SignalsTable = SignalsTable()
    safety: SafetyTable = SafetyTable()
    bridge: BridgeTable = BridgeTable()
    web: WebTable = WebTable()
    log: LogTable = LogTable()

    _source: Source = PrivateAttr(default_factory=Source)

    @property
    def source(self) -> Source:
        """The file it came from: its name, its folder, the line of every key."""
        return self._source


def _validated(document: Mapping[str, Any], source: Source) -> Config:
    try:
        config = Config.model_validate(document)
    except ValidationError as error:
        raise explain(error, Config, source.problem) from error
    config._source = source
    return config


def check_stimulus(table: dict[str, Any]) -> Stimulus:
    """One table of [[signals.stimulus]] by itself; ConfigError says what is wrong with it."""
    return _validated({"signals": {"stimulus": [table]}}, Source()).signals.stimulus[0]


def check_fault(table: dict[str, Any]) -> Fault:
    """One table of [[signals.faults]] by itself; ConfigError says what is wrong with it."""
    return _validated({"signals": {"faults": [table]}}, Source()).signals.faults[0]


def load(path: str | os.PathLike[str]) -> Config:
    """The configuration in a file; whatever is wrong with it, a ConfigError that lists all problems."""
    text = read_text(path, FILE_LIMIT)
    file = printable(os.fsdecode(path))
    document = parse_toml(text, file)
    source = Source(file, Path(path).parent, text, document)
    return _validated(_with_parameter_file(document, source.folder), source)


def _with_parameter_file(document: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
    """The same with the table itself where `plant.options.parameters` names a file that holds it.

    So the configuration says all that a run depends on, and a recording of it too.
    """
    plant = document.get("plant")
    options = plant.get("options") if isinstance(plant, Mapping) else None
    name = options.get("parameters") if isinstance(options, Mapping) else None
    if not isinstance(plant, Mapping) or not isinstance(options, Mapping) or not isinstance(name, str):
        return document
    table = FileTable(name, parse_toml(read_text(folder / name, FILE_LIMIT), printable(name)))
    return {**document, "plant": {**plant, "options": {**options, "parameters": table}}}


PLAIN_TABLES = ("node", "plant", "safety", "bridge", "log")
"""Tables that appear once; no key stands in two of them, so that an override needs only the key."""

NAMED_TABLES = ("web",)
"""Tables that appear once, whose keys stand in others too: an override names table and key."""


def _override_keys() -> dict[str, tuple[str, str]]:
    found = [(t, k) for t in PLAIN_TABLES for k in keys(type(getattr(Config(), t)))]
    named = [(t, k) for t in NAMED_TABLES for k in keys(type(getattr(Config(), t)))]
    return {k: (t, k) for t, k in found} | {f"{t}.{k}": (t, k) for t, k in (*found, *named)}


def overlay(config: Config, **changes: Any) -> Config:
    """The configuration with some keys changed, such as `rate_hz=500` or `**{"log.directory": "runs"}`.

    What the command line did not give is None and changes nothing.
    """
    known = _override_keys()
    tables: dict[str, Any] = {name: getattr(config, name) for name in Config.model_fields}
    overrides = dict(config.source.overrides)
    problems = []
    for name, value in changes.items():
        if value is None:
            continue
        if name not in known:
            alike = [k for k in known if ("." in k) == ("." in name)]
            hint = sentence(nearest(name[:80], alike))
            problems.append(Problem("override", printable(name), None, "is not a key", hint))
            continue
        table, key = known[name]
        if isinstance(tables[table], Table):
            old = tables[table]
            tables[table] = {name: getattr(old, name) for name in old.model_fields_set}
        tables[table][key] = os.fspath(value) if isinstance(value, os.PathLike) else value
        overrides[table, key] = tables[table][key]
    if problems:
        raise ConfigError(problems)
    return _validated(tables, replace(config.source, overrides=overrides))


class _Schema(GenerateJsonSchema):
    """TOML has no null: an optional key is left out."""

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        made = super().default_schema(schema)
        return {k: v for k, v in made.items() if k != "default" or v is not None}

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def schema() -> str:
    """The JSON schema that lets an editor complete and check a configuration."""
    made = Config.model_json_schema(by_alias=True, schema_generator=_Schema)
    return json.dumps({"$schema": _Schema.schema_dialect, **made}, indent=2) + "\n"


def main(arguments: Sequence[str]) -> int:
    """Write the schema to the file named, else into `configs/` of this checkout."""
    beside = Path(__file__).resolve().parent.parent / "configs" / "hilnode.schema.json"
    path = Path(arguments[0]) if arguments else beside
    try:
        path.write_text(schema(), encoding="utf-8")
    except OSError as error:
        print(
            f"{path}: cannot be written ({error.strerror}). Name a file: python -m hilnode.config FILE", file=sys.stderr
        )
        return 1
    print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
