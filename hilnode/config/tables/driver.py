"""[drivers.NAME]: one device, or the twin that stands in for it."""

from __future__ import annotations

from typing import Any, Self

from pydantic import ConfigDict, Field, model_validator

from hilnode.config.tables.common import KindName, Table, TwinSpec, check_free


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
        check_free(self.options)
        return self
