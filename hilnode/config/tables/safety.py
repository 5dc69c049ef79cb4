"""[safety]: watchdog, trips, and alarms on signals that leave their limits."""

from __future__ import annotations

import math
from typing import Literal, Self

from pydantic import Field, model_validator

from hilnode.config.tables.common import ChannelName, Milliseconds, Number, PlainText, Range, SignalName, Table, refuse
from hilnode.core.problems import number


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
            raise refuse("needs exactly one of above, below and outside")
        if self.action == "set" and (self.target is None or self.value is None):
            raise refuse('action = "set" needs the keys set (a driver.channel) and value')
        if self.action != "set" and (self.target is not None or self.value is not None):
            raise refuse(f'the keys set and value need action = "set", not "{self.action}"')
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
