"""[plant]: which machine is simulated, and its parameters."""

from __future__ import annotations

from pydantic import Field

from hilnode.config.tables.common import FreeTable, KindName, Number, SignalName, Table


class PlantTable(Table):
    """The simulated machine."""

    kind: KindName = Field(default="double_pendulum", description="Which plant: a known kind, or module:attribute.")
    options: FreeTable = Field(
        default={}, description="Handed to the plant kind as it stands; parameters may name a TOML file."
    )
    parameters: dict[SignalName, Number] = Field(default={}, description="Initial values of plant parameters, by name.")
