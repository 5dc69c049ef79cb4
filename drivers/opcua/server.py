"""opcua-server: a SCADA, a historian or a PLC reads the plant's signals and writes commands. The node is the server.

`outputs` are variables that others read, `inputs` are variables that they write (and may read back). Their identifiers
are `nsu=urn:hilnode;s=driver.channel`. The server has a thread of its own; it looks at the outputs every `publish_ms`
and changes the variables that moved, however often the node writes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from drivers.base import Driver, DriverError, OptionError
from drivers.opcua.options import FILES, OpcuaOptions, load
from hilnode.core.signals import Signal

if TYPE_CHECKING:
    from drivers.opcua.service import Service

WAIT = 0.05  # [s] for a command, in one read
KEYS = (
    *("listen", "inputs", "outputs", "publish_ms"),
    *("user", "password_file", "certificate", "private_key", "client_certificate"),
)


class OpcuaServer(Driver):
    """Options: see docs/connect-over-opcua.md."""

    kind = "opcua-server"
    external = False  # it ends with the node, and the other side sees the connection end
    files = FILES

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        super().__init__(name, options)
        given = OpcuaOptions(name, options, KEYS)
        self._address = given.address("listen", "127.0.0.1")
        self._who = given.credentials("client_certificate")
        self._publish = given.number("publish_ms", 50.0, 1.0, 60_000.0) * 1e-3
        self.inputs, items = given.channels("inputs", ("type",))
        commands = [given.type("inputs", s, item) for s, item in zip(self.inputs, items, strict=True)]
        self.outputs, items = given.channels("outputs", ("type",))
        shown = [given.type("outputs", s, item) for s, item in zip(self.outputs, items, strict=True)]
        if not commands and not shown:
            raise OptionError(f"drivers.{name}: needs inputs, outputs or both")
        both = {s.name for s in self.inputs} & {s.name for s in self.outputs}
        if both:
            raise OptionError(
                f"drivers.{name}: {min(both)} stands in inputs and outputs: others see one variable a name"
            )
        self.table = Table(
            name, list(zip(self.inputs, commands, strict=True)), list(zip(self.outputs, shown, strict=True))
        )
        self._service: Service | None = None

    def open(self) -> None:
        self.close()
        module = load("drivers.opcua.service")
        self._service = module.Service(self._address, self._who, self.table, self._publish)

    def close(self) -> None:
        service, self._service = self._service, None
        if service is not None:
            service.close()

    def read(self, values: NDArray[np.float64], stamps: NDArray[np.int64]) -> int:
        self._serving()
        return self.table.take(values, stamps, WAIT)

    def write(self, values: NDArray[np.float64]) -> None:
        self._serving()
        self.table.values = values.tolist()  # a new list each time: the server never sees half of a change

    def _serving(self) -> None:
        service = self._service
        if service is None:
            raise DriverError("not open")
        if not service.alive:
            raise DriverError(f"the OPC UA server at {self._address} has ended")


class Table:
    """What the server shows and takes. It is asked by the server's thread and filled by the driver's."""

    def __init__(self, name: str, commands: list[tuple[Signal, str]], shown: list[tuple[Signal, str]]) -> None:
        self.name, self.commands, self.shown = name, commands, shown
        self.values: list[float] = [s.safe for s, _ in shown]
        self._news = threading.Condition()
        self._latest = np.array([s.default for s, _ in commands])
        self._stamps = np.zeros(len(commands), np.int64)
        self._fresh = 0  # commands that nobody has taken yet

    def command(self, number: int, value: float) -> None:
        """Somebody wrote; also the same value again."""
        with self._news:
            self._latest[number] = value
            self._stamps[number] = time.monotonic_ns()
            self._fresh += 1
            self._news.notify()

    def take(self, values: NDArray[np.float64], stamps: NDArray[np.int64], wait: float) -> int:
        """The commands that came, and how many, waiting for one if there is none."""
        with self._news:
            self._news.wait_for(lambda: self._fresh > 0, wait)
            count, self._fresh = self._fresh, 0
            came = self._stamps > 0
            values[came] = self._latest[came]
            stamps[came] = self._stamps[came]
            return count
