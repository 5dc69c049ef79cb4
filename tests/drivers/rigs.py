"""The table of test devices, which `test_conformance.py` walks: for each kind of driver one that works, one missing.

A new kind is one entry in `RIGS`:

    "mine": Entry(working=mine, missing=lambda folder: {...options of a device that is not there...}),

`working` is a context manager over a folder: it sets a far end up (a kernel terminal, a socket, somebody else's server)
and yields a `Rig`. Fields that do not apply stay away: a driver without outputs has no `hear`, one whose device
cannot be lost has no `lose`. `missing = None` is for kinds with nothing behind them that could be missing.
Numbers said and heard are whole and from -100 to 100, so that any kind of channel can hold them.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from modbus_peers import foreign_server
from pyModbusTCP.client import ModbusClient
from support import free_port
from test_serial_port import Plug

from drivers.base import Driver


@dataclass
class Rig:
    """A device that works, as the test sees it from the other side."""

    options: Mapping[str, Any]
    say: Callable[[Driver, Sequence[float]], None] | None = None
    """Make the device deliver these values, one per input, once; called again until they come. None: it always does."""
    hear: Callable[[], list[float] | None] | None = None
    """What the device was told last, one per output; None if nothing yet."""
    lose: Callable[[], None] | None = None
    """Take the device away: unplug it, stop the server."""
    find: Callable[[], None] | None = None
    """Bring it back."""


@dataclass(frozen=True)
class Entry:
    """How devices of one kind are made."""

    working: Callable[[Path], AbstractContextManager[Rig]]
    missing: Callable[[Path], Mapping[str, Any]] | None


PAIR_IN, PAIR_OUT = ["a", "c"], [{"name": "c", "safe": -1.0}, {"name": "d", "safe": -2.0}]


@contextlib.contextmanager
def loopback(folder: Path) -> Iterator[Rig]:
    yield Rig({"channels": 2}, say=lambda driver, values: driver.write(np.array(values)))


@contextlib.contextmanager
def operator(folder: Path) -> Iterator[Rig]:
    yield Rig({"points": [{"t": 0.0, "x": 0.0}, {"t": 9.0, "x": 1.0}], "loop": True})


@contextlib.contextmanager
def udp(folder: Path) -> Iterator[Rig]:
    to_driver, numbers = free_port(socket.SOCK_DGRAM), struct.Struct("<2d")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
        peer.bind(("127.0.0.1", 0))
        peer.setblocking(False)
        last: list[list[float] | None] = [None]

        def hear() -> list[float] | None:
            with contextlib.suppress(BlockingIOError):
                while True:
                    last[0] = list(numbers.unpack(peer.recv(64)))
            return last[0]

        yield Rig(
            {
                "listen": f"127.0.0.1:{to_driver}",
                "send": f"127.0.0.1:{peer.getsockname()[1]}",
                "inputs": PAIR_IN,
                "outputs": PAIR_OUT,
            },
            say=lambda _, values: void(peer.sendto(numbers.pack(*values), ("127.0.0.1", to_driver))),
            hear=hear,
        )


def taken_udp(folder: Path) -> Mapping[str, Any]:
    """An address that no machine has: it is kept for documentation."""
    return {"listen": "192.0.2.1:5000", "inputs": PAIR_IN}


@contextlib.contextmanager
def serial(folder: Path) -> Iterator[Rig]:
    plug = Plug(folder / f"tty{os.getpid()}")
    heard = bytearray()

    def hear() -> list[float] | None:
        while select.select([plug.device], [], [], 0)[0]:
            heard.extend(os.read(plug.device, 65536))
        lines = bytes(heard).split(b"\n")[:-1]
        return [float(x) for x in lines[-1].lstrip(b":").split(b",")] if lines else None

    line = {"format": "csv", "start": ":"}
    options = {
        "port": str(plug.path),
        "receive": {**line, "fields": PAIR_IN},
        "send": {**line, "fields": PAIR_OUT},
    }
    try:
        yield Rig(
            options,
            say=lambda _, values: plug.say(b":%d,%d\n" % tuple(int(v) for v in values)),
            hear=hear,
            lose=plug.unplug,
            find=plug.plug_in,
        )
    finally:
        plug.unplug()


REGISTERS_IN = [{"name": n, "holding": k, "type": "int16"} for k, n in enumerate(PAIR_IN)]
REGISTERS_OUT = [{**c, "holding": 10 + k, "type": "int16"} for k, c in enumerate(PAIR_OUT)]


def signed(words: Sequence[int]) -> list[float]:
    return [float(w - 65536 if w > 32767 else w) for w in words]


def unsigned(values: Sequence[float]) -> list[int]:
    return [int(v) % 65536 for v in values]


@contextlib.contextmanager
def modbus(folder: Path) -> Iterator[Rig]:
    with contextlib.ExitStack() as servers:
        port, bank = servers.enter_context(foreign_server())
        banks = [bank]

        def find() -> None:
            banks.append(servers.enter_context(foreign_server(port))[1])

        yield Rig(
            {"connect": f"127.0.0.1:{port}", "poll_ms": 1, "inputs": REGISTERS_IN, "outputs": REGISTERS_OUT},
            say=lambda _, values: void(banks[-1].set_holding_registers(0, unsigned(values))),
            hear=lambda: signed(banks[-1].get_holding_registers(10, 2)),
            lose=servers.close,
            find=find,
        )


@contextlib.contextmanager
def modbus_server(folder: Path) -> Iterator[Rig]:
    port = free_port()
    client = ModbusClient("127.0.0.1", port, timeout=5, auto_open=True)

    def hear() -> list[float] | None:
        words = client.read_input_registers(0, 2)
        return signed(words) if words else None

    shown = [{**c, "input": k, "type": "int16"} for k, c in enumerate(PAIR_OUT)]
    try:
        yield Rig(
            {"listen": f"127.0.0.1:{port}", "inputs": REGISTERS_IN, "outputs": shown},
            say=lambda _, values: void(client.write_multiple_registers(0, unsigned(values))),
            hear=hear,
        )
    finally:
        client.close()


def void(_: object) -> None:
    """For what is done for its effect."""


RIGS: dict[str, Entry] = {
    "loopback": Entry(loopback, missing=None),
    "modbus": Entry(
        modbus, missing=lambda _: {"connect": f"127.0.0.1:{free_port()}", "inputs": REGISTERS_IN, "timeout_ms": 200}
    ),
    "modbus-server": Entry(modbus_server, missing=lambda _: {"listen": "192.0.2.1:502", "inputs": REGISTERS_IN}),
    "operator": Entry(operator, missing=None),
    "serial": Entry(
        serial,
        missing=lambda folder: {"port": str(folder / "none"), "receive": {"format": "csv", "fields": PAIR_IN}},
    ),
    "udp": Entry(udp, missing=taken_udp),
}
