"""[[signals.stimulus]]: test signals that replace a plant input: constant, ramp, step, sine, chirp, noise, CSV."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from hilnode.config.tables.common import Hertz, Number, PlainText, Seconds, Seed, required
from hilnode.config.tables.timed import TimedTable


class ConstantStimulus(TimedTable):
    """One value."""

    kind: Literal["constant"]
    value: Number = required("The value.", 1.0)


class RampStimulus(TimedTable):
    """A straight line."""

    kind: Literal["ramp"]
    start: Number = Field(default=0.0, description="Value at from_s.")
    slope: Number = required("Change per second.", 1.0)
    stop: Number | None = Field(default=None, description="Value at which it stays. Default: none.", examples=[1.0])


class StepStimulus(TimedTable):
    """A jump."""

    kind: Literal["step"]
    before: Number = Field(default=0.0, description="Value before at_s.")
    after: Number = required("Value from at_s on.", 1.0)
    at_s: Seconds = required("When it jumps.", 1.0)


class SineStimulus(TimedTable):
    """offset + amplitude * sin(2 pi frequency t + phase)."""

    kind: Literal["sine"]
    amplitude: Number = required("Half of peak to peak.", 1.0)
    frequency_hz: Hertz = required("Below rate_hz / 2.", 1.0)
    offset: Number = Field(default=0.0, description="Mean value.")
    phase_rad: Number = Field(default=0.0, description="Phase at from_s.")


class SquareStimulus(TimedTable):
    """offset + amplitude during the first part of each period, offset - amplitude during the rest."""

    kind: Literal["square"]
    amplitude: Number = required("Half of peak to peak.", 1.0)
    frequency_hz: Hertz = required("Below rate_hz / 2.", 1.0)
    offset: Number = Field(default=0.0, description="Middle between high and low.")
    duty: float = Field(default=0.5, gt=0, lt=1, description="High part of a period.")


class ChirpStimulus(TimedTable):
    """A sine whose frequency moves evenly from f0_hz to f1_hz."""

    kind: Literal["chirp"]
    amplitude: Number = required("Half of peak to peak.", 1.0)
    f0_hz: Hertz = required("Frequency at from_s, below rate_hz / 2.", 0.1)
    f1_hz: Hertz = required("Frequency after `seconds`, below rate_hz / 2.", 10.0)
    seconds: float = required("Duration of the sweep.", 60.0, gt=0, le=1e9)
    offset: Number = Field(default=0.0, description="Mean value.")


class NoiseStimulus(TimedTable):
    """White Gaussian noise, the same in every run."""

    kind: Literal["noise"]
    sigma: float = required("Standard deviation.", 0.1, ge=0, le=1e100)
    mean: Number = Field(default=0.0, description="Mean value.")
    seed: Seed = Field(default=0, description="Another seed, another noise.")


class CsvStimulus(TimedTable):
    """A recorded signal: a CSV file with a heading, times in seconds, straight lines between its points."""

    kind: Literal["csv"]
    file: PlainText = Field(description="Path, relative to the configuration's folder.", examples=["torque.csv"])
    time_column: PlainText = Field(default="time", description="Heading of the times, in seconds and rising.")
    value_column: PlainText = Field(default="value", description="Heading of the values.")
    repeat: bool = Field(default=False, description="Begin again at the end; else the last value stays.")


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
