"""modbus: reads and writes a PLC, a drive or remote I/O over Modbus TCP or RTU. The node is the client (master).

Neighbouring registers travel in one request. Each input is polled at its own period; outputs are written when their
registers change, all of them after connecting and every `refresh_ms`, for a PLC that restarted or watches for silence.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from drivers.base import Driver, DriverError, OptionError
from drivers.modbus.options import LINE_KEYS, ModbusOptions, Refused, Rtu, load
from drivers.modbus.registers import TABLES, WRITABLE, Block, blocks_of

if TYPE_CHECKING:
    from drivers.modbus.link import Link

SAFE_TIMEOUT = 0.1  # [s] of the watchdog on the network: other devices wait for their turn behind one that is gone
LONGEST_WAIT = 0.05  # [s] a read returns at least this often, so that a stop is prompt
READ_REGISTERS, READ_BITS = 125, 2000  # most that one request may carry, by the standard
WRITE_REGISTERS, WRITE_BITS = 123, 1968
KEYS = (
    *("connect", *LINE_KEYS, "unit_id", "timeout_ms", "inputs", "outputs", "words", "bytes"),
    *("poll_ms", "gap", "max_registers", "writes", "refresh_ms"),
)


class Modbus(Driver):
    """Options: see docs/connect-a-plc.md."""

    kind = "modbus"

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        super().__init__(name, options)
        given = ModbusOptions(name, options, KEYS)
        self._line = given.line("connect")
        rtu = isinstance(self._line, Rtu)
        self._unit = given.whole("unit_id", 1, 1 if rtu else 0, 247 if rtu else 255)
        self._timeout = given.number("timeout_ms", 500.0, 1.0, 60_000.0) * 1e-3
        self._refresh = given.number("refresh_ms", 1000.0, 0.0, 3_600_000.0) * 1e-3
        self._writes = given.choice("writes", "auto", {way: way for way in ("auto", "single", "multiple")})
        most = given.whole("max_registers", READ_REGISTERS, 2, READ_REGISTERS)
        self.inputs, points = given.channels("inputs", TABLES, "poll_ms")
        self._polls = _polls(given, list(enumerate(points)), most)
        self.outputs, points = given.channels("outputs", WRITABLE)
        if self._writes == "single" and (long := [p for p in points if p.size > 1]):
            raise OptionError(
                f"drivers.{name}.outputs: {long[0].name}: a {long[0].type} takes two registers, which must be written "
                "together; writes = 'single' cannot do that"
            )
        limits = {"registers": min(most, WRITE_REGISTERS), "bits": WRITE_BITS}
        self._targets = [_Target(b) for b in blocks_of(enumerate(points), gap=0, **limits)]
        self._link: Link | None = None
        self._all_due = 0.0

    def open(self) -> None:
        self._open(self._timeout, share=False)

    def _open(self, timeout: float, *, share: bool) -> None:
        self.close()
        self._link = load("drivers.modbus.link").Link(self._line.found(), self._unit, timeout, share=share)
        for target in self._targets:
            target.known = None
        for poll in self._polls:
            poll.trouble = ""
        self.trouble = ""

    def _open_safe(self) -> None:
        """For the watchdog: beside the node, and with less patience where the line is quick."""
        rtu = isinstance(self._line, Rtu)
        self._open(self._timeout if rtu else min(self._timeout, SAFE_TIMEOUT), share=True)

    def close(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            link.close()

    def read(self, values: NDArray[np.float64], stamps: NDArray[np.int64]) -> int:
        """Poll the block that is due next. One that is refused while others come is a trouble, for as long as it is."""
        poll = min(self._polls, key=lambda p: p.due)
        wait = poll.due - time.monotonic()
        if wait > 0:
            time.sleep(min(wait, LONGEST_WAIT))
            if wait > LONGEST_WAIT:
                return 0
        poll.plan_next(time.monotonic())
        block, link = poll.block, self._connected()
        try:
            cells = link.read(block.table, block.first, block.count)
        except Refused as error:
            is_news = not poll.trouble
            poll.trouble = self.trouble = str(error)
            if is_news or all(p.trouble for p in self._polls):
                raise
            self.refused += 1
            return 0
        now = time.monotonic_ns()
        poll.cells, poll.trouble = cells, ""
        self.trouble = next((p.trouble for p in self._polls if p.trouble), "")
        for number, point in block.members:
            values[number] = point.decode(cells, point.address - block.first)
            stamps[number] = now
        return 1

    def raw(self) -> Mapping[str, str]:
        """The registers or bits behind each channel."""
        return {
            p.name: " ".join(f"{c:04x}" for c in poll.cells[p.address - poll.block.first : p.end - poll.block.first])
            for poll in self._polls
            for _, p in poll.block.members
        }

    def write(self, values: NDArray[np.float64]) -> None:
        """Write what has changed. A block that is refused does not keep the others from being written."""
        link = self._connected()
        if self._refresh and time.monotonic() >= self._all_due:
            self._all_due = time.monotonic() + self._refresh
            for target in self._targets:
                target.known = None
        failed: Exception | None = None
        for target in self._targets:
            try:
                target.write(values, link, self._writes)
            except DriverError:
                raise
            except Exception as error:  # refused, or not a number
                failed = failed or error
        if failed is not None:
            raise failed

    def prepare_safe(self) -> None:
        """Load the library, and connect only when it matters: many a PLC has few connections to give."""
        load("drivers.modbus.link")

    def write_safe(self, values: NDArray[np.float64]) -> None:
        """Everything, changed or not; on a new connection if the old one no longer works."""
        fresh = self._link is None
        if fresh:
            self._open_safe()
        try:
            self._write_all(values)
        except Exception:
            if fresh:
                raise
            self._open_safe()
            self._write_all(values)

    def _write_all(self, values: NDArray[np.float64]) -> None:
        for target in self._targets:
            target.known = None
        try:
            self.write(values)
        except DriverError:
            self.close()
            raise

    def _connected(self) -> Link:
        link = self._link
        if link is None:
            raise DriverError("not open")
        return link


class _Poll:
    """A block that is read every `period` [s]."""

    def __init__(self, block: Block, period: float) -> None:
        self.block, self.period, self.due = block, period, 0.0
        self.cells: Sequence[int] = ()  # as they came last
        self.trouble = ""  # why they did not come

    def plan_next(self, now: float) -> None:
        """On the beat; from now on if a turn was missed, for a slow device is asked less often, not in bursts."""
        late = now - self.due
        self.due = self.due + self.period if late < self.period else now + self.period


class _Target:
    """A block that is written, and what the device is known to have in it."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.known: list[int] | None = None

    def write(self, values: NDArray[np.float64], link: Link, how: str) -> None:
        """Send what differs from what the device has; `known` is only what it confirmed."""
        block = self.block
        cells = [0] * block.count
        for number, point in block.members:
            point.encode(float(values[number]), cells, point.address - block.first)
        if cells == self.known:
            return
        start, end = self._changed(cells)
        self.known = None
        if how == "single" or (how == "auto" and end - start == 1):
            for at in range(start, end):
                link.write(block.table, block.first + at, cells[at : at + 1], single=True)
        else:
            link.write(block.table, block.first + start, cells[start:end], single=False)
        self.known = cells

    def _changed(self, cells: list[int]) -> tuple[int, int]:
        """The part of the block that differs, in whole channels: half a number must never travel alone."""
        if self.known is None:
            return 0, len(cells)
        first = self.block.first
        spans = [(p.address - first, p.end - first) for _, p in self.block.members]
        moved = [(a, b) for a, b in spans if cells[a:b] != self.known[a:b]]
        return moved[0][0], moved[-1][1]


def _polls(given: ModbusOptions, points: list[tuple[int, Any]], most: int) -> list[_Poll]:
    """Blocks of inputs, channels of one period together."""
    usual = given.number("poll_ms", 10.0, 1.0, 3_600_000.0)
    gap = given.whole("gap", 0, 0, READ_REGISTERS)
    groups: dict[float, list[tuple[int, Any]]] = {}
    for number, point in points:
        item = given.given["inputs"][number]
        where = ModbusOptions(f"{given.name}.inputs.{point.name}", item)
        groups.setdefault(where.number("poll_ms", usual, 1.0, 3_600_000.0), []).append((number, point))
    return [
        _Poll(block, period * 1e-3)
        for period, members in sorted(groups.items())
        for block in blocks_of(members, gap=gap, registers=most, bits=READ_BITS)
    ]
