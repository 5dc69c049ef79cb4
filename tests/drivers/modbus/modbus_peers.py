"""Far ends for the Modbus tests: peers whose every byte the test decides, other implementations, a serial cable."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyModbusTCP.server import DataBank, ModbusServer
from support import free_port, wait_for

Answer = Callable[[bytes], bytes | None]
"""From the PDU of a request to the PDU of the answer, or to nothing."""


def registers(words: list[int]) -> bytes:
    """The end of an answer to functions 3 and 4."""
    return struct.pack(f">B{len(words)}H", 2 * len(words), *words)


class Scripted:
    """A Modbus TCP server made of plain sockets. `answer` may be exchanged at any time; `wire` has the last word."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.wire: Callable[[bytes], bytes] = lambda frame: frame
        self.requests: list[bytes] = []
        self.units: list[int] = []
        self.connections = 0
        self._ends: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept, name="scripted peer")]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                end, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._ends.append(end)
            self._threads.append(threading.Thread(target=self._talk, args=(end,), name="scripted talk"))
            self._threads[-1].start()

    def _talk(self, end: socket.socket) -> None:
        with contextlib.suppress(OSError), end:
            while len(head := end.recv(7, socket.MSG_WAITALL)) == 7:
                number, _, length, unit = struct.unpack(">HHHB", head)
                request = end.recv(length - 1, socket.MSG_WAITALL)
                self.requests.append(request)
                self.units.append(unit)
                if (pdu := self.answer(request)) is not None:
                    end.sendall(self.wire(struct.pack(">HHHB", number, 0, len(pdu) + 1, unit) + pdu))

    def hang_up(self) -> None:
        """End all connections, as a PLC does that restarts."""
        for end in self._ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.hang_up()
        for thread in self._threads:
            thread.join(5)


@contextlib.contextmanager
def scripted(answer: Answer) -> Iterator[Scripted]:
    peer = Scripted(answer)
    try:
        yield peer
    finally:
        peer.close()


@contextlib.contextmanager
def foreign_server(port: int = 0) -> Iterator[tuple[int, DataBank]]:
    """A server of pyModbusTCP, which shares no code with pymodbus; all addresses exist."""
    port = port or free_port()
    server = ModbusServer("127.0.0.1", port, no_block=True, data_bank=DataBank())
    server.start()
    try:
        yield port, server.data_bank
    finally:
        server.stop()


def mbpoll(*arguments: object) -> subprocess.CompletedProcess[str]:
    """One request by mbpoll (libmodbus), with addresses from 0."""
    if shutil.which("mbpoll") is None:
        pytest.skip("mbpoll is not installed (apt-get install mbpoll)")
    return subprocess.run(["mbpoll", "-1", "-0", *map(str, arguments)], capture_output=True, text=True, timeout=10)


def crc(data: bytes) -> int:
    """CRC-16/MODBUS, bit by bit as the standard's flow chart has it."""
    value = 0xFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0xA001 if value & 1 else 0)
    return value


@contextlib.contextmanager
def serial_cable(folder: Path) -> Iterator[tuple[str, str]]:
    """Two ends of a null-modem cable: kernel terminals, joined by socat."""
    if shutil.which("socat") is None:
        pytest.skip("socat is not installed (apt-get install socat)")
    ends = [str(folder / f"tty{os.getpid()}{x}") for x in "ab"]
    socat = subprocess.Popen(["socat", *(f"pty,raw,echo=0,link={end}" for end in ends)])
    try:
        wait_for(lambda: all(os.path.exists(end) for end in ends), "socat's terminals")
        yield ends[0], ends[1]
    finally:
        socat.terminate()
        socat.wait(5)


class RtuSlave:
    """A device on a serial line, made of plain file reads; requests of functions 1 to 6 take 8 bytes."""

    def __init__(self, path: str, answer: Answer, unit: int = 1) -> None:
        self.answer, self.unit = answer, unit
        self.wire: Callable[[bytes], bytes] = lambda frame: frame
        self.delay = 0.0
        self.requests: list[tuple[float, bytes]] = []
        self._file = os.open(path, os.O_RDWR | os.O_NOCTTY)
        self._ending = False
        self._thread = threading.Thread(target=self._run, name="rtu slave")
        self._thread.start()

    def _run(self) -> None:
        frame = b""
        while not self._ending:
            if not select.select([self._file], [], [], 0.02)[0]:
                frame = b""
                continue
            frame += os.read(self._file, 256)
            if len(frame) == (9 + frame[6] if len(frame) > 6 and frame[1] in (15, 16) else 8):
                self._take(frame)
                frame = b""

    def _take(self, frame: bytes) -> None:
        assert crc(frame[:-2]) == int.from_bytes(frame[-2:], "little")
        if frame[0] != self.unit:
            return
        self.requests.append((time.monotonic(), frame[1:-2]))
        pdu = self.answer(frame[1:-2])
        if pdu is not None:
            time.sleep(self.delay)
            whole = bytes([self.unit]) + pdu
            os.write(self._file, self.wire(whole + crc(whole).to_bytes(2, "little")))

    def close(self) -> None:
        self._ending = True
        self._thread.join(5)
        os.close(self._file)
