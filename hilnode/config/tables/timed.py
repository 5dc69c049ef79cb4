"""What stimuli and faults share: a signal and a span of simulated time."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from hilnode.config.tables.common import Seconds, SignalName, Table, refuse
from hilnode.core.problems import number


class TimedTable(Table):
    """Something that happens to a signal during a span of simulated time."""

    signal: SignalName = Field(description="The signal's name.", examples=["pendulum.shoulder.torque"])
    from_s: Seconds = Field(default=0.0, description="When it begins.")
    to_s: Seconds | None = Field(default=None, description="When it ends. Default: never.", examples=[10.0])

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.to_s is not None and self.to_s <= self.from_s:
            raise refuse(f"must be later than from_s = {number(self.from_s)}", "to_s")
        return self
