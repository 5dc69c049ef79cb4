"""[signals]: which device channel drives which plant input, and which signal drives which device channel."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from hilnode.config.tables.common import ChannelName, Hertz, Milliseconds, Number, Range, SignalName, Table, Unit
from hilnode.config.tables.fault import Fault
from hilnode.config.tables.stimulus import Stimulus


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


class SignalsTable(Table):
    """How devices, made-up signals and faults meet the plant."""

    inputs: dict[SignalName, InputTable] = Field(default={}, description="Plant inputs, by signal name.")
    outputs: dict[ChannelName, OutputTable] = Field(default={}, description="Device channels, by driver.channel.")
    stimulus: tuple[Stimulus, ...] = Field(
        default=(), strict=False, description="Signals made up here, on plant inputs."
    )
    faults: tuple[Fault, ...] = Field(default=(), strict=False, description="Faults on any input, output or command.")
