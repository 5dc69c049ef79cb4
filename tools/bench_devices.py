"""The devices of the drivers' benchmark, each group in a process of its own; the end of standard input ends one.

serve NAME...      one device for each name (`serial`, `udp`, `modbus`, `daq`); prints where each of them is
gauge COUNT        numbered frames on a terminal at any phase of the tick; prints when each was written
plug FOLDER TIMES  a terminal that is pulled out and put back again and again; prints when
cards              NI's gRPC device server; prints where it is
sleeper            sleeps a millisecond at a time as a driver would; prints how even that was

A real device needs no CPU of the PC. So these stay off the tick's, come before the drivers on those that are left, and
those that only send do it from one compiled thread: Python's lock would make one device wait for another. The NI server
is the exception: it takes a quarter of a CPU, which no other PC's server would take from the drivers, so it comes
behind them. What that makes it wait is in the period of its own driver.
"""

from __future__ import annotations

import atexit
import ctypes
import json
import os
import random
import socket
import struct
import subprocess
import sys
import threading
import time
import tty
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
from bench_node import CPU, TOOLS

from hilnode.shared.clock import now_ns, sleep_until
from hilnode.shared.health import BUCKETS, bucket
from hilnode.shared.realtime import keep_off, make_thread_hard

START = b"\xaa\x55"
AWAY = 0.7  # [s] the plug is out
PERIOD_NS = 1_000_000
NUMBERS = 1000  # messages that a sender says, over and over
LONGEST = 16  # [bytes] of a message
DRIVER_PRIORITY = 20  # as node.driver_priority has it by default
DEVICE_PRIORITY = 30  # a device's clock does not wait for a driver
SERVER_PRIORITY = 10  # a server that belongs on another PC holds no driver up

_write = ctypes.CDLL(None).write
_write.argtypes, _write.restype = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t], ctypes.c_ssize_t


def stand_aside(priority: int) -> None:
    """Keep this process, and what it starts, off the tick's CPU, with such a priority on the others."""
    keep_off(CPU)
    for line in make_thread_hard(-1, priority):
        print(line, file=sys.stderr)


def framed(value: float) -> bytes:
    body = START + struct.pack("<d", value)
    return body + bytes([sum(body) & 255])


def terminal() -> tuple[int, int]:
    """The device's end, which never blocks, and the other."""
    device, cable = os.openpty()
    tty.setraw(cable)
    os.set_blocking(device, False)
    return device, cable


def put(device: int, data: bytes) -> None:
    """What nobody reads is lost, as on a wire."""
    try:
        os.write(device, data)
    except BlockingIOError:
        return


# -- devices that send every millisecond ------------------------------------------------------------------------------


class Senders:
    """Devices that say something every millisecond, evenly spread over it."""

    def __init__(self) -> None:
        self.handles: list[int] = []
        self._messages: list[list[bytes]] = []

    def add(self, handle: int, message: Callable[[float], bytes]) -> None:
        self.handles.append(handle)
        self._messages.append([message(n * 1e-3) for n in range(1, NUMBERS + 1)])

    def start(self) -> None:
        if self.handles:
            sizes = np.array([len(m[0]) for m in self._messages])
            texts = np.zeros((len(sizes), NUMBERS, LONGEST), np.uint8)
            for k, messages in enumerate(self._messages):
                texts[k, :, : sizes[k]] = np.array([list(m) for m in messages])
            given = np.array(self.handles), texts, texts.ctypes.data, sizes
            send_for_ever.compile(tuple(map(numba.typeof, given)))  # before the thread: it holds Python's lock
            threading.Thread(target=send_for_ever, args=given, daemon=True).start()


@numba.njit(nogil=True)  # type: ignore[untyped-decorator]
def send_for_ever(handles, texts, address, sizes):
    """Message n of sender k at n milliseconds and k parts of one; what nobody takes is lost."""
    count = handles.size
    began, n = now_ns(), 0
    while True:
        for k in range(count):
            sleep_until(began + n * PERIOD_NS + k * PERIOD_NS // count)
            _write(handles[k], address + (k * NUMBERS + n % NUMBERS) * LONGEST, sizes[k])
        n += 1


def serial_device(senders: Senders) -> str:
    device, cable = terminal()
    senders.add(device, framed)
    return os.ttyname(cable)


def udp_device(senders: Senders) -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    out.connect(("127.0.0.1", port))
    senders.add(out.detach(), lambda value: struct.pack("<d", value))
    return port


# -- devices that answer ----------------------------------------------------------------------------------------------


def modbus_device(_senders: Senders) -> int:
    from pyModbusTCP.server import ModbusServer

    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
    ModbusServer("127.0.0.1", port, no_block=True).start()
    return port


def daq_device(_senders: Senders) -> int:
    """NI's gRPC device server with a make-believe card, in a process of its own: it is busier than a driver."""
    made = subprocess.Popen(
        [sys.executable, str(TOOLS / "bench_devices.py"), "cards"], stdout=subprocess.PIPE, text=True
    )
    atexit.register(made.kill)
    assert made.stdout is not None
    return int(made.stdout.readline().rpartition(":")[2])


DEVICES: dict[str, Callable[[Senders], Any]] = {
    "serial": serial_device,
    "udp": udp_device,
    "modbus": modbus_device,
    "daq": daq_device,
}


# -- the programs -----------------------------------------------------------------------------------------------------


def serve(*names: str) -> None:
    """Print the address of each device, then simulate them all until standard input ends."""
    stand_aside(DEVICE_PRIORITY)
    senders = Senders()
    places = [DEVICES[n](senders) for n in names]
    senders.start()
    print(json.dumps(places), flush=True)
    sys.stdin.read()


def cards() -> None:
    """NI's server, behind the drivers; it ends with whoever started it."""
    stand_aside(SERVER_PRIORITY)
    os.execv(sys.executable, [sys.executable, str(TOOLS / "ni_server.py"), "--port", "0"])


def gauge(count: str) -> None:
    """Numbered frames at any phase of the tick; after them, when each was written."""
    stand_aside(DEVICE_PRIORITY)
    device, cable = terminal()
    print(json.dumps(os.ttyname(cable)), flush=True)
    sys.stdin.readline()
    dice, times = random.Random(1), []
    for n in range(1, int(count) + 1):
        time.sleep(0.0015 + 0.002 * dice.random())
        frame = framed(n * 1e-3)
        times.append(time.monotonic_ns())
        put(device, frame)
    print(json.dumps(times), flush=True)
    sys.stdin.read()


def plug(folder: str, times: str) -> None:
    """A device that sends at 1 kHz and is pulled out and put back again and again; after that, when [ns]."""
    stand_aside(DEVICE_PRIORITY)
    path, pulled, put_in = Path(folder) / "port", [], []

    def plug_in() -> tuple[int, int]:
        ends = terminal()
        path.symlink_to(os.ttyname(ends[1]))
        return ends

    def say(device: int, seconds: float) -> None:
        end = due = time.monotonic()
        while due < end + seconds:
            due += 0.001
            time.sleep(max(0.0, due - time.monotonic()))
            put(device, framed(1.0))

    device, cable = plug_in()
    print(json.dumps(str(path)), flush=True)
    sys.stdin.readline()
    for _ in range(int(times)):
        say(device, 0.5)
        path.unlink()
        os.close(cable)
        os.close(device)
        pulled.append(time.monotonic_ns())
        time.sleep(AWAY)
        put_in.append(time.monotonic_ns())
        device, cable = plug_in()
        say(device, 1.0)
    print(json.dumps([pulled, put_in]), flush=True)
    sys.stdin.read()


def sleeper() -> None:
    """Sleep on a grid of milliseconds until the end of standard input; then the periods' histogram."""
    stand_aside(DRIVER_PRIORITY)
    ended, counts, last = threading.Event(), [0] * BUCKETS, time.monotonic_ns()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    due = time.monotonic()
    while not ended.is_set():
        due = max(due + 0.001, time.monotonic())
        time.sleep(max(0.0, due - time.monotonic()))
        now = time.monotonic_ns()
        counts[bucket(now - last)] += 1
        last = now
    print(json.dumps(counts), flush=True)


PROGRAMS: dict[str, Callable[..., None]] = {f.__name__: f for f in (serve, cards, gauge, plug, sleeper)}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](*sys.argv[2:])
