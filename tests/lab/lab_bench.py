"""What the lab's tests of drivers share: a driver that runs, and an ECU on the CAN bus."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import can
import cantools
import numpy as np
from support import wait_for

from drivers import registry
from drivers.runner import Runner
from hilnode.shared.health import HEALTH_WORDS, H, Health
from hilnode.shared.lockfree.mailbox import Mailbox

DBC = Path(__file__).with_name("lab.dbc")


class Bench:
    """A driver with its two threads, as in a node, and a look into its mailboxes."""

    def __init__(self, kind: str, options: Mapping[str, Any]) -> None:
        self.driver = registry.create(kind, "device", options)
        channels = len(self.driver.outputs)
        self.inbox = Mailbox.create(f"lab{os.getpid()}.in", channels=max(1, len(self.driver.inputs)))
        self.outbox = Mailbox.create(f"lab{os.getpid()}.out", channels=max(1, channels))
        self.health = np.zeros(HEALTH_WORDS, np.int64)
        self.live = False
        self.runner = Runner(
            self.driver,
            inbox=self.inbox if self.driver.inputs else None,
            outbox=self.outbox,
            used=np.arange(channels),
            safe=np.array([s.safe for s in self.driver.outputs], float),
            health=self.health,
            live=lambda: self.live,
            period=0.005,
        )
        self.runner.start()

    @property
    def state(self) -> Health:
        return Health(int(self.health[H.STATE]))

    def value(self, name: str) -> float:
        return float(self.inbox.take()[1][[s.name for s in self.driver.inputs].index(name)])

    def await_state(self, state: Health) -> None:
        wait_for(lambda: self.state == state, f"{state.name}, it says: {self.runner.trouble}")

    def await_value(self, name: str, value: float, within: float = 1e-9) -> None:
        wait_for(lambda: abs(self.value(name) - value) <= within, f"{name} = {value}")

    def command(self, *values: float) -> None:
        """Let live values out."""
        self.outbox.put(np.array(values), np.zeros(len(values), np.int64))
        self.live = True

    def close(self) -> None:
        self.runner.ask_stop()
        stopped = self.runner.stop(time.monotonic() + 60.0)
        self.inbox.close()
        self.outbox.close()
        assert stopped, "the driver's threads did not end"


@contextlib.contextmanager
def bench(kind: str, **options: Any) -> Iterator[Bench]:
    """A driver that runs until the end of the block."""
    made = Bench(kind, options)
    try:
        yield made
    finally:
        made.close()


class Ecu:
    """The other end of the bus, by python-can and cantools: sends `Pedal` in its cycle, listens to all others."""

    def __init__(self, channel: str, *, fd: bool = False) -> None:
        self.force = 0.0
        self.talks = True
        self.got: dict[str, dict[str, Any]] = {}
        self.frames = 0
        self._database = cantools.database.load_file(DBC)
        self._bus = can.Bus(interface="socketcan", channel=channel, fd=fd, ignore_config=True)
        self._ending = threading.Event()
        self._threads = [threading.Thread(target=work) for work in (self._talk, self._listen)]
        for thread in self._threads:
            thread.start()

    def send(self, name: str, **values: float) -> None:
        """One message, now."""
        m = self._database.get_message_by_name(name)
        data = m.encode(values)
        self._bus.send(can.Message(arbitration_id=m.frame_id, data=data, is_extended_id=False, is_fd=m.is_fd))

    def await_signal(self, message: str, signal: str, value: float, within: float = 1e-6) -> None:
        """Wait until the newest frame says this."""
        wait_for(
            lambda: abs(float(self.got.get(message, {}).get(signal, np.inf)) - value) <= within,
            f"{message}.{signal} = {value}; the last one was {self.got.get(message)}",
        )

    def close(self) -> None:
        self._ending.set()
        for thread in self._threads:
            thread.join()
        self._bus.shutdown()

    def _talk(self) -> None:
        counter = 0
        while not self._ending.wait(0.02):
            if self.talks:
                with contextlib.suppress(can.CanError):  # while the interface is down
                    self.send("Pedal", Force=self.force, Counter=counter % 256)
                counter += 1

    def _listen(self) -> None:
        while not self._ending.is_set():
            with contextlib.suppress(can.CanError):
                if (frame := self._bus.recv(0.05)) is not None:
                    m = self._database.get_message_by_frame_id(frame.arbitration_id)
                    self.got[m.name] = dict(m.decode(frame.data))
                    self.frames += 1


@contextlib.contextmanager
def ecu(channel: str, **more: Any) -> Iterator[Ecu]:
    """An ECU until the end of the block."""
    made = Ecu(channel, **more)
    try:
        yield made
    finally:
        made.close()
