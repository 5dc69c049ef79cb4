"""[[signals.faults]]: fault injection on any signal: stuck, off, bias, noise, delay, dropout, quantisation."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from hilnode.config.tables.common import Milliseconds, Number, Seed, required
from hilnode.config.tables.timed import TimedTable
from hilnode.core.limits import HISTORY


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
    value: Number = required("Added to the signal.", 0.1)


class NoiseFault(TimedTable):
    """Gaussian noise is added."""

    kind: Literal["noise"]
    sigma: float = required("Standard deviation.", 0.1, ge=0, le=1e100)
    seed: Seed = Field(default=0, description="Another seed, another noise.")


class DelayFault(TimedTable):
    """The signal arrives late."""

    kind: Literal["delay"]
    ms: Milliseconds = required(f"How late; at most {HISTORY - 1} ticks.", 20.0)


class DropFault(TimedTable):
    """Single ticks keep the value before them."""

    kind: Literal["drop"]
    probability: float = required("Share of ticks dropped.", 0.1, ge=0, le=1)
    seed: Seed = Field(default=0, description="Another seed, other ticks.")


class QuantiseFault(TimedTable):
    """The signal moves in steps."""

    kind: Literal["quantise"]
    step: float = required("Size of a step.", 0.01, gt=0, le=1e100)


Fault = Annotated[
    StuckFault | OffFault | BiasFault | NoiseFault | DelayFault | DropFault | QuantiseFault,
    Field(discriminator="kind"),
]
