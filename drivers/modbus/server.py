"""modbus-server: a PLC or a SCADA reads the plant's signals and writes commands. The node is the server (slave).

`outputs` are what the other side reads, `inputs` are what it writes (and may read back). A value of 32 bits can only be
written whole, so that no half of a number ever becomes a command. The server runs in a thread of its own; values are
turned into registers when somebody asks, not at every write of the node.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from drivers.base import Driver, DriverError, OptionError
from drivers.modbus.options import LINE_KEYS, ModbusOptions, Rtu, load
from drivers.modbus.registers import TABLES, WRITABLE, Point

if TYPE_CHECKING:
    from drivers.modbus.service import Service

WAIT = 0.05  # [s] for a command, in one read
ANY_UNIT = 0


class ModbusServer(Driver):
    """Options: see docs/connect-a-plc.md."""

    kind = "modbus-server"
    external = False  # it ends with the node, and the other side sees the connection end

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        super().__init__(name, options)
        known = ("listen", *LINE_KEYS, "unit_id", "inputs", "outputs", "words", "bytes")
        given = ModbusOptions(name, options, known)
        self._line = given.line("listen")
        rtu = isinstance(self._line, Rtu)
        self._unit = given.whole("unit_id", 1, 1, 247) if rtu else given.whole("unit_id", ANY_UNIT, 0, 255)
        self.inputs, commands = given.channels("inputs", WRITABLE)
        self.outputs, shown = given.channels("outputs", TABLES)
        if not commands and not shown:
            raise OptionError(f"drivers.{name}: needs inputs, outputs or both")
        given.refuse_overlap("inputs and outputs", (*commands, *shown))
        self.map = RegisterMap(commands, shown)
        self.map.show(np.array([s.safe for s in self.outputs]))
        self.map.preset(np.array([s.default for s in self.inputs]))
        self._service: Service | None = None

    def open(self) -> None:
        self.close()
        self._service = load("drivers.modbus.service").Service(self._line.found(), self._unit, self.map)

    def close(self) -> None:
        service, self._service = self._service, None
        if service is not None:
            service.close()

    def read(self, values: NDArray[np.float64], stamps: NDArray[np.int64]) -> int:
        self._serving()
        return self.map.take(values, stamps, WAIT)

    def write(self, values: NDArray[np.float64]) -> None:
        self._serving()
        self.map.show(values)

    def _serving(self) -> None:
        service = self._service
        if service is None:
            raise DriverError("not open")
        if not service.alive:
            raise DriverError(f"the Modbus server on {self._line} has ended")


class RegisterMap:
    """The registers that the other side sees. It is asked by the server's thread and filled by the driver's.

    `read` and `write` answer None for what is not there: Modbus's illegal address.
    """

    def __init__(self, commands: Sequence[Point], shown: Sequence[Point]) -> None:
        self._commands = tuple(enumerate(commands))
        self._shown = tuple(enumerate(shown))
        self._values = np.zeros(len(shown))
        self._cells: dict[str, list[int]] = {}
        self._first: dict[str, int] = {}
        self._writable: set[tuple[str, int]] = {
            (p.table, address) for p in commands for address in range(p.address, p.end)
        }
        for table in TABLES:
            of_table = [p for p in (*commands, *shown) if p.table == table]
            if of_table:
                self._first[table] = min(p.address for p in of_table)
                self._cells[table] = [0] * (max(p.end for p in of_table) - self._first[table])
        self._news = threading.Condition()
        self._latest = np.zeros(len(commands))
        self._stamps = np.zeros(len(commands), np.int64)
        self._fresh = 0  # commands that nobody has taken yet

    def show(self, values: NDArray[np.float64]) -> None:
        """From now on the other side reads these; a new array each time, so that it never sees half of a change."""
        self._values = values.copy()

    def preset(self, values: NDArray[np.float64]) -> None:
        """What commands read as until the first one has come."""
        for number, point in self._commands:
            point.encode(float(values[number]), self._cells[point.table], point.address - self._first[point.table])

    def take(self, values: NDArray[np.float64], stamps: NDArray[np.int64], wait: float) -> int:
        """The commands that came, and how many, waiting for one if there is none."""
        with self._news:
            self._news.wait_for(lambda: self._fresh > 0, wait)
            count, self._fresh = self._fresh, 0
            came = self._stamps > 0
            values[came] = self._latest[came]
            stamps[came] = self._stamps[came]
            return count

    def read(self, table: str, address: int, count: int) -> list[int] | None:
        """Cells between the first and the last channel of a table; gaps are 0."""
        cells, first = self._cells.get(table, []), self._first.get(table, 0)
        if address < first or address + count > first + len(cells):
            return None
        values = self._values
        for number, point in self._shown:
            if point.table == table and point.address < address + count and address < point.end:
                point.encode(float(values[number]), cells, point.address - first)
        return cells[address - first : address - first + count]

    def write(self, table: str, address: int, given: Sequence[int]) -> bool:
        """Take commands; False, and nothing taken, if a place is no command's or a command would be cut."""
        now, end = time.monotonic_ns(), address + len(given)
        if any((table, place) not in self._writable for place in range(address, end)):
            return False
        touched = [(n, p) for n, p in self._commands if p.table == table and p.address < end and address < p.end]
        if any(p.address < address or p.end > end for _, p in touched):
            return False
        cells, first = self._cells[table], self._first[table]
        cells[address - first : end - first] = [int(g) for g in given]
        with self._news:
            for number, point in touched:
                self._latest[number] = point.decode(cells, point.address - first)
                self._stamps[number] = now
            self._fresh += 1
            self._news.notify()
        return True
