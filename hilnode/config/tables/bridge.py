"""[bridge]: the addresses at which subscribers, clients and ECUs connect, and who is let in."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from hilnode.config.tables.common import Address, PlainText, Table, is_local, refuse


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
            if not self.keys and not is_local(address):
                raise refuse("lets other PCs in, which needs bridge.keys: make them with hilnode keys new NAME", key)
            if address in seen:
                raise refuse(f"is the address of bridge.{seen[address]} too: {address}", key)
            seen[address] = key
        if self.metrics and not is_local(self.metrics):
            raise refuse(
                "has no keys and must stay on this PC: tcp://127.0.0.1:9875, and a tunnel from others", "metrics"
            )
        return self
