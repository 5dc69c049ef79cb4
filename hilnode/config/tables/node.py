"""[node]: rate, pace, overruns, and what the tick asks of the operating system."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from hilnode.config.tables.common import Cpu, Milliseconds, NodeName, Table, refuse

SLOWEST_S = 1000.0
"""The longest period: a slower node is a typing error, and its nanoseconds would not fit everywhere."""


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
            raise refuse(f"is slower than one tick in {SLOWEST_S:.0f} s", "rate_hz")
        period_us = self.period_ns / 1000 / self.speed
        if self.spin_us >= period_us:
            raise refuse(f"must be shorter than the period of {period_us:g} µs", "spin_us")
        return self
