"""The table of test devices, which `test_conformance.py` walks: for each kind of driver one that works, one missing.

A new kind is one entry in `RIGS`:

    "mine": Entry(working=mine, missing=lambda folder: {...options of a device that is not there...}),

`working` is a context manager over a folder: it sets a far end up (a kernel terminal, a socket, somebody else's server)
and yields a `Rig`. Fields that do not apply stay away: a driver without outputs has no `hear`, one whose device
cannot be lost has no `lose`. `missing = None` is for kinds with nothing behind them that could be missing.
Numbers said and heard are whole and from -100 to 100, so that any kind of channel can hold them.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import functools
import os
import select
import socket
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import can as python_can
import hid_bus
import numpy as np
import pytest
from asyncua import Client
from modbus_peers import foreign_server
from ni_server import served
from pyModbusTCP.client import ModbusClient
from support import free_port
from test_can_bus import udp_bus
from test_opcua_client import Peer, channel
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
    frames: int = 0
    """How many frames one call of `say` makes; 0: nobody can tell, because the driver asks."""
    spoil: Callable[[], None] | None = None
    """Make the device deliver one frame that is bad and must be refused."""
    pushed: bool = False
    """It delivers by itself: a value may have come, and been stamped, before it was read."""
    only_here: bool = False
    """It lives in the test's own process: another one cannot reach it."""


@dataclass(frozen=True)
class Entry:
    """How devices of one kind are made."""

    working: Callable[[Path], AbstractContextManager[Rig]]
    missing: Callable[[Path], Mapping[str, Any]] | None
    only_twin: bool = False
    """Its values do not pass through the driver, so only its twin has to keep the contract."""


PAIR_IN, PAIR_OUT = ["a", "c"], [{"name": "c", "safe": -1.0}, {"name": "d", "safe": -2.0}]


@contextlib.contextmanager
def loopback(folder: Path) -> Iterator[Rig]:
    yield Rig({"channels": 2}, say=lambda driver, values: driver.write(np.array(values)))  # the runner writes too


@contextlib.contextmanager
def ecu(folder: Path) -> Iterator[Rig]:
    """Nothing but its options; the lane has a suite of its own, tests/bridge/ecu/test_ecu_lane.py."""
    yield Rig({"inputs": PAIR_IN, "outputs": PAIR_OUT})


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
            frames=1,
            spoil=lambda: void(peer.sendto(b"abc", ("127.0.0.1", to_driver))),
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

    def say(_: Driver, values: Sequence[float]) -> None:
        body = b":%d,%d" % tuple(int(v) for v in values)
        plug.say(b"%s*%02X\n" % (body, sum(body) & 0xFF))

    options = {
        "port": str(plug.path),
        "receive": {**line, "fields": PAIR_IN, "checksum": {"kind": "sum8", "mark": "*"}},
        "send": {**line, "fields": PAIR_OUT},
    }
    try:
        yield Rig(
            options,
            say=say,
            hear=hear,
            lose=plug.unplug,
            find=plug.plug_in,
            frames=1,
            spoil=lambda: plug.say(b":1,2*00\n"),
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
            {
                "connect": f"127.0.0.1:{port}",
                "poll_ms": 1,
                "timeout_ms": 5000,
                "inputs": REGISTERS_IN,
                "outputs": REGISTERS_OUT,
            },
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
            frames=1,
        )
    finally:
        client.close()


STICK = bytes.fromhex("0501 0904 a101 1581 257f 7508 9502 0930 0931 8102 c0")
"""A joystick with two signed bytes, x and y (HID 1.11, appendix E.10, made absolute)."""


@contextlib.contextmanager
def hid(folder: Path) -> Iterator[Rig]:
    with pytest.MonkeyPatch.context() as patch:
        bus = hid_bus.install(patch)
        sticks = [bus.plug(STICK)]
        byte = {"scale": 1.0, "offset": 100.0, "low": -100.0, "high": 100.0}

        def hear() -> list[float] | None:
            written = sticks[-1].written
            return [b - 100.0 for b in written[-1][1:]] if written else None

        yield Rig(
            {
                "vendor": 0x046D,
                "channels": {name: {"usage": axis, "as": "raw"} for name, axis in zip(PAIR_IN, "xy", strict=True)},
                "templates": [[0, *({**c, **byte} for c in PAIR_OUT)]],
            },
            say=lambda _, values: sticks[-1].say(bytes(int(v) % 256 for v in values)),
            hear=hear,
            lose=lambda: bus.unplug(sticks[-1]),
            find=lambda: sticks.append(bus.plug(STICK)),
            frames=1,
            spoil=lambda: sticks[-1].say(b"\x01"),
            only_here=True,
        )
        assert (bus.closed_under_use, bus.overlaps) == (0, 0)


VOLT = 16.0  # units of a channel; with 16 V for 65536 steps, whole numbers lie on steps of the converter
TERMINALS_IN = [{"name": n, "channel": f"ai{k}", "slope": VOLT, "volts": [-8, 8]} for k, n in enumerate(PAIR_IN)]
TERMINALS_OUT = [{**c, "channel": f"ao{k}", "slope": VOLT} for k, c in enumerate(PAIR_OUT)]


@contextlib.contextmanager
def daq(folder: Path) -> Iterator[Rig]:
    with served() as server:
        card = server.card

        def say(_: Driver, values: Sequence[float]) -> None:
            card.outside |= {f"ai{k}": lambda t, volts=v / VOLT: volts for k, v in enumerate(values)}

        yield Rig(
            {"device": "Dev1", "server": server.address, "inputs": TERMINALS_IN, "outputs": TERMINALS_OUT},
            say=say,
            hear=lambda: [VOLT * card.output(f"ao{k}") for k in (0, 1)] if card.written else None,
            lose=server.stop,
            find=server.start,
        )


DBC = """
VERSION "1"
BU_: NODE ECU
BO_ 256 Report: 4 ECU
 SG_ A : 0|16@1- (1,0) [-32768|32767] "" NODE
 SG_ C : 16|16@1- (1,0) [-32768|32767] "" NODE
BO_ 257 Order: 4 NODE
 SG_ C : 0|16@1- (1,0) [-32768|32767] "" ECU
 SG_ D : 16|16@1- (1,0) [-32768|32767] "" ECU
"""


@contextlib.contextmanager
def can(folder: Path) -> Iterator[Rig]:
    path, port, numbers = folder / "rig.dbc", free_port(socket.SOCK_DGRAM), struct.Struct("<2h")
    path.write_text(DBC)
    with udp_bus(port) as ecu:
        last: list[list[float] | None] = [None]

        def say(_: Driver, values: Sequence[float]) -> None:
            data = numbers.pack(*map(int, values))
            ecu.send(python_can.Message(arbitration_id=256, is_extended_id=False, data=data))

        def hear() -> list[float] | None:
            while frame := ecu.recv(0):
                if frame.arbitration_id == 257:
                    last[0] = [float(n) for n in numbers.unpack(frame.data)]
            return last[0]

        yield Rig(
            {
                "dbc": str(path),
                "interface": "udp_multicast",
                "channel": "239.74.163.2",
                "settings": {"port": port},
                "receive": ["Report"],
                "send": {"Order": {"period_ms": 0.1}},
                "channels": {
                    "c": {"signal": "Order.C", "safe": -1.0},
                    "d": {"signal": "Order.D", "safe": -2.0},
                },
            },
            say=say,
            hear=hear,
            frames=1,
            spoil=lambda: ecu.send(python_can.Message(arbitration_id=256, is_extended_id=False, data=b"ab")),
        )


def absent_bus(folder: Path) -> Mapping[str, Any]:
    path = folder / "absent.dbc"
    path.write_text(DBC)
    return {"dbc": str(path), "interface": "socketcan", "channel": "none0", "receive": ["Report"]}


@functools.cache
def plcs() -> list[Peer]:
    """OPC UA servers, the last of them alive: one for all tests, since it takes seconds to come up."""
    made = [Peer(free_port())]
    atexit.register(lambda: made[-1].close())
    return made


@contextlib.contextmanager
def opcua(folder: Path) -> Iterator[Rig]:
    ins, outs = ("Int16", "Double"), ("Int32", "Float")
    servers = plcs()

    def say(_: Driver, values: Sequence[float]) -> None:
        for name, value in zip(ins, values, strict=True):
            servers[-1](f"set {name} {int(value)}" + ".0" * (name == "Double"))

    try:
        yield Rig(
            {
                "connect": f"opc.tcp://127.0.0.1:{servers[-1].port}/plc",
                "publish_ms": 10,
                "inputs": [{**channel(node), "name": name} for node, name in zip(ins, PAIR_IN, strict=True)],
                "outputs": [{**channel(node), **c} for node, c in zip(outs, PAIR_OUT, strict=True)],
            },
            say=say,
            hear=lambda: [float(servers[-1](f"get {name}")) for name in outs],
            lose=servers[-1].close,
            find=lambda: servers.append(Peer(servers[-1].port)),
            pushed=True,
        )
    finally:
        if servers[-1].process.poll() is not None:
            servers.append(Peer(servers[-1].port))


class Scada:
    """A client of asyncua's own, in this thread; it connects when it is asked for something, and again if need be."""

    def __init__(self, port: int) -> None:
        self._address = f"opc.tcp://127.0.0.1:{port}"
        self._loop = asyncio.new_event_loop()
        self._client: Client | None = None

    async def _node(self, name: str) -> Any:
        if self._client is None:
            client = Client(self._address, timeout=20)
            await client.connect()
            self._client = client
        space = await self._client.get_namespace_index("urn:hilnode")
        return self._client.get_node(f"ns={space};s=dut.{name}")

    def get(self, name: str) -> float:
        async def ask() -> float:
            return float(await (await self._node(name)).read_value())

        return self._loop.run_until_complete(ask())

    def put(self, name: str, value: float) -> None:
        async def tell() -> None:
            await (await self._node(name)).write_value(float(value))

        self._loop.run_until_complete(tell())

    def close(self) -> None:
        async def leave() -> None:
            if self._client is not None:
                with contextlib.suppress(Exception):
                    await self._client.disconnect()

        self._loop.run_until_complete(leave())
        self._loop.close()


@contextlib.contextmanager
def opcua_server(folder: Path) -> Iterator[Rig]:
    port = free_port()
    scada = Scada(port)

    def say(_: Driver, values: Sequence[float]) -> None:
        with contextlib.suppress(ConnectionRefusedError):  # not up yet: it is said again
            for name, value in zip(PAIR_IN, values, strict=True):
                scada.put(name, value)

    try:
        yield Rig(
            {
                "listen": f"127.0.0.1:{port}",
                "publish_ms": 10,
                "inputs": PAIR_IN,
                "outputs": [{"name": "e", "safe": -1.0}, {"name": "f", "safe": -2.0}],
            },
            say=say,
            hear=lambda: [scada.get(name) for name in ("e", "f")],
            frames=2,
            pushed=True,
        )
    finally:
        scada.close()


def void(_: object) -> None:
    """For what is done for its effect."""


RIGS: dict[str, Entry] = {
    "can": Entry(can, missing=absent_bus),
    "daq": Entry(
        daq, missing=lambda _: {"device": "Dev1", "server": f"127.0.0.1:{free_port()}", "inputs": TERMINALS_IN}
    ),
    "ecu": Entry(ecu, missing=None, only_twin=True),
    "hid": Entry(hid, missing=lambda _: {"path": "/dev/hidraw-none", "channels": {"a": "x"}}),
    "loopback": Entry(loopback, missing=None),
    "modbus": Entry(
        modbus, missing=lambda _: {"connect": f"127.0.0.1:{free_port()}", "inputs": REGISTERS_IN, "timeout_ms": 200}
    ),
    "modbus-server": Entry(modbus_server, missing=lambda _: {"listen": "192.0.2.1:502", "inputs": REGISTERS_IN}),
    "opcua": Entry(
        opcua, missing=lambda _: {"connect": f"opc.tcp://127.0.0.1:{free_port()}", "inputs": [channel("Double")]}
    ),
    "opcua-server": Entry(opcua_server, missing=lambda _: {"listen": "192.0.2.1:4840", "inputs": PAIR_IN}),
    "operator": Entry(operator, missing=None),
    "serial": Entry(
        serial,
        missing=lambda folder: {"port": str(folder / "none"), "receive": {"format": "csv", "fields": PAIR_IN}},
    ),
    "udp": Entry(udp, missing=taken_udp),
}
