"""[log]: which files a run leaves: timing log, recording, black boxes."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from hilnode.config.tables.common import PlainText, Table, refuse
from hilnode.core.problems import number


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
                raise refuse(f"must be at most ring_seconds = {number(self.ring_seconds)}", "blackbox_seconds")
            raise refuse(f"must be at least blackbox_seconds = {number(self.blackbox_seconds)}", "ring_seconds")
        if self.record and self.record_chunk_s > self.ring_seconds / 2:
            raise refuse(f"must be at least twice record_chunk_s = {number(self.record_chunk_s)}", "ring_seconds")
        return self
