"""Responses to Modbus read requests, decoded more strictly than pymodbus does.

pymodbus takes words from an answer whose byte count is odd, and values from one that is longer than its byte count
says. Modbus TCP has no checksum: the counts are all that a mangled answer can be told by.
"""

from __future__ import annotations

from typing import Any

from pymodbus.exceptions import ModbusIOException
from pymodbus.pdu import ModbusPDU
from pymodbus.pdu.bit_message import ReadCoilsResponse, ReadDiscreteInputsResponse
from pymodbus.pdu.register_message import ReadHoldingRegistersResponse, ReadInputRegistersResponse


def _strict(kind: type[ModbusPDU], cell: int) -> type[ModbusPDU]:
    """The same answer, in whole cells of so many bytes and with nothing after them."""

    def decode(self: ModbusPDU, data: bytes) -> None:
        if not data or data[0] != len(data) - 1 or data[0] % cell:
            raise ModbusIOException(f"an answer of {len(data)} bytes whose count is {data[:1].hex()}")
        kind.decode(self, data)

    return type(f"Strict{kind.__name__}", (kind,), {"decode": decode})


ANSWERS = (
    _strict(ReadCoilsResponse, 1),
    _strict(ReadDiscreteInputsResponse, 1),
    _strict(ReadHoldingRegistersResponse, 2),
    _strict(ReadInputRegistersResponse, 2),
)


def be_strict(decoder: Any) -> None:
    """Have pymodbus's decoder of answers take only those that are whole."""
    for answer in ANSWERS:
        decoder.register(answer)
