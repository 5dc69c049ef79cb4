"""daq: cards of National Instruments, through nidaqmx: analogue and digital in and out, encoders, frequencies.

Inputs and outputs are tasks of their own, read and written by the runner's two threads. Of the inputs only the
analogue ones wait, for the sample clock or for the beat of `rate`; lines and counters are then looked at without
waiting, so that nothing holds up anything else: an encoder that stands still or a clock that never comes costs the
others nothing, and all channels of a read belong together.
"""

from __future__ import annotations

import importlib
import math
import re
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from drivers.base import Driver, DriverError, OptionError
from drivers.daq.errors import OVERRUN, RESERVED, TIMED_OUT, code_of, explain
from drivers.daq.options import DaqOptions

if TYPE_CHECKING:
    from drivers.daq.link import Link
    from drivers.daq.tasks import Input, Output

KEYS = ("device", "serial", "server", "mode", "rate", "clock", "inputs", "outputs")
LONGEST_WAIT = 0.05  # [s] a read returns at least this often, so that a stop is prompt
PATIENCE = 2.0  # [s] a gRPC server gets for an answer
SAFE_PATIENCE = 0.5  # [s] the same for the watchdog: other devices wait for their turn
SILENCE = 1.0  # [s] without a sample are worth a word, and words come this far apart
SAME_INCIDENT = 1.0  # [s] the watchdog repeats itself much more often than this


class Daq(Driver):
    """Options: see docs/connect-a-daq-card.md."""

    kind = "daq"

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        super().__init__(name, options)
        given = DaqOptions(name, options, KEYS)
        if given.has("device") == given.has("serial"):
            raise OptionError(f'drivers.{name}: give either device = "Dev1" or serial = "01A2B3C4" (hilnode devices)')
        self._device, self._serial = given.text("device", ""), _serial(given) if given.has("serial") else 0
        self._server = _server(given) if given.has("server") else ""
        self._sampled = given.choice("mode", "on-demand", {"on-demand": False, "buffered": True})
        self._rate = given.number("rate", 1000.0, 0.1, 2_000_000.0 if self._sampled else 10_000.0)
        self._clock = given.text("clock", "").strip("/")
        if self._clock and not self._sampled:
            raise given.wrong("clock", 'goes with mode = "buffered": on demand there is no sample clock')
        self.inputs, self._ins = given.channels("inputs", ("ai", "line", "counter"))
        self.outputs, self._outs = given.channels("outputs", ("ao", "line"))
        if not self.inputs and not self.outputs:
            raise OptionError(f"drivers.{name}: give inputs, outputs or both")
        given.refuse_shared((*self._ins, *self._outs))
        if not any(p.sort == "ai" for p in self._ins) and self._sampled:
            raise given.wrong("mode", "needs an analogue input: nothing else is sampled by the card's clock")
        self._link: Link | None = None
        self._reading, self._writing = threading.Lock(), threading.Lock()  # held while tasks are used or closed
        self._readers: list[Input] = []
        self._writers: list[Output] = []
        self._due = self._fresh_at = self._quiet_until = self._safe_at = 0.0
        self._owed = ""

    def open(self) -> None:
        self.close()
        link = self._reach(PATIENCE)
        tasks = _load("drivers.daq.tasks")
        try:
            link.open()
            with self._reading:
                self._readers = tasks.inputs_of(link, self._ins, self._rate, self._clock, sampled=self._sampled)
            with self._writing:
                self._writers = tasks.outputs_of(link, self._outs)
        except _failed() as error:
            why = link.why(error)
            self.close()
            raise why from error
        self._due = self._fresh_at = time.monotonic()

    def close(self) -> None:
        """Whoever reads or writes just now ends that first, and finds nothing the next time.

        Otherwise a thread that reads over and over would have the lock again before this one.
        """
        readers, self._readers = self._readers, []
        writers, self._writers = self._writers, []
        with self._reading:
            for job in readers:
                job.close()
        with self._writing:
            for out in writers:
                out.close()
        if self._link is not None:
            self._link.close()

    # -- reading --------------------------------------------------------------------------------------------------

    def read(self, values: NDArray[np.float64], stamps: NDArray[np.int64]) -> int:
        if self._owed:
            owed, self._owed = self._owed, ""
            raise ValueError(owed)
        if not self._sampled and not self._wait_for_beat():
            return 0
        with self._reading:
            if not self._readers:
                raise DriverError("not open")
            fresh = [self._read_one(job, values, stamps) for job in self._readers]
        if fresh[0]:
            self._fresh_at = time.monotonic()
        elif time.monotonic() - self._fresh_at > max(SILENCE, 3.0 / self._rate):
            self._owe(self._no_samples())
        return int(any(fresh))

    def _wait_for_beat(self) -> bool:
        """Sleep until the next reading is due; from now on if a turn was missed, not in bursts."""
        wait = self._due - time.monotonic()
        if wait > 0:
            time.sleep(min(wait, LONGEST_WAIT))
            if wait > LONGEST_WAIT:
                return False
        self._due = max(self._due, time.monotonic() - 1.0 / self._rate) + 1.0 / self._rate
        return True

    def _read_one(self, job: Input, values: NDArray[np.float64], stamps: NDArray[np.int64]) -> bool:
        """Read one task. If it stopped by itself, restart it and raise its error in the next read: the others go on."""
        link = self._linked()
        try:
            return job.read(values, stamps)
        except _failed() as error:
            code = code_of(error)
            if code == TIMED_OUT:
                return False
            if code not in OVERRUN:
                raise link.why(error) from error
            if not self._owe(explain(error, link.device, self._server)):
                self.refused += 1  # each overrun counts, but it is told once in a while
        try:
            job.restart()
        except _failed() as error:
            raise link.why(error) from error
        return False

    def _owe(self, what: str) -> bool:
        """Raise it in the next read, behind the values of this one; False if something was said a moment ago."""
        now = time.monotonic()
        if now < self._quiet_until:
            return False
        self._quiet_until = now + SILENCE
        self._owed = what
        return True

    def raw(self) -> Mapping[str, str]:
        """What the card measured: volts, levels, counts."""
        return {
            self.inputs[place].name: f"{raw:.6g}{' V' if point.sort == 'ai' else ''}"
            for job in self._readers
            for point, place, raw in job.measured()
        }

    def _no_samples(self) -> str:
        source = f"does the clock at {self._clock} run?" if self._clock else "is the card busy with something else?"
        return f"no sample from {self._linked().device} for more than {SILENCE:g} s: {source}"

    # -- writing --------------------------------------------------------------------------------------------------

    def write(self, values: NDArray[np.float64]) -> None:
        if not np.isfinite(values).all():
            wrong = next(s.name for s, x in zip(self.outputs, values, strict=True) if not math.isfinite(x))
            raise ValueError(f"output {wrong} is not a number: nothing is sent")
        with self._writing:
            if not self._writers:
                raise DriverError("not open")
            try:
                for job in self._writers:
                    job.write(values)
            except _failed() as error:
                if code_of(error) == TIMED_OUT:
                    raise ValueError(explain(error, self._linked().device, self._server)) from error
                raise self._linked().why(error) from error

    def prepare_safe(self) -> None:
        """Load what takes long to load; the card is taken only when it matters, for it serves one program at a time."""
        _load("drivers.daq.tasks")
        link = self._reach(SAFE_PATIENCE)
        link.open()
        link.cards()

    def write_safe(self, values: NDArray[np.float64]) -> None:
        """Take the card, write, let go of it again: it holds the values, and a node that wakes up needs it.

        A node that is frozen still has its tasks, and so has one that died at the far end of a gRPC server. Then the
        card is reset, which aborts them. If the card is taken again soon after, it is by the node, which has come
        back to life and writes nothing but safe values since the watchdog has fired.
        """
        again = time.monotonic() - self._safe_at < SAME_INCIDENT
        self._safe_at = time.monotonic()
        link = self._reach(SAFE_PATIENCE)
        try:
            link.open()
            try:
                self._write_once(link, values)
            except _failed() as error:
                if code_of(error) not in RESERVED:
                    raise
                if not again:
                    link.reset()
                    self._write_once(link, values)
        except _failed() as error:
            why = link.why(error)
            link.close()
            raise why from error

    def _write_once(self, link: Link, values: NDArray[np.float64]) -> None:
        jobs = _load("drivers.daq.tasks").outputs_of(link, self._outs)
        try:
            for job in jobs:
                job.write(values)
        finally:
            for job in jobs:
                job.close()

    # -- the card -------------------------------------------------------------------------------------------------

    def _reach(self, patience: float) -> Link:
        if self._link is None:
            self._link = _load("drivers.daq.link").Link(self._device, self._serial, self._server, patience)
        return self._link

    def _linked(self) -> Link:
        if self._link is None:
            raise DriverError("not open")
        return self._link


def _load(module: str) -> Any:
    """A module that needs nidaqmx, or a DriverError with the command that installs it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        missing = (error.name or str(error)).partition(".")[0]
        raise DriverError(f'the library {missing} is not installed: pip install "hilnode[daq]"') from error


def _failed() -> Any:
    return _load("drivers.daq.link").Failed


def _serial(given: DaqOptions) -> int:
    """As NI prints it on the card: hex digits."""
    text = given.text("serial", "").strip()
    if not re.fullmatch(r"(0[xX])?[0-9A-Fa-f]{1,8}", text) or not int(text, 16):
        raise given.wrong("serial", "must be up to eight hex digits as printed on the card, such as '01A2B3C4'")
    return int(text, 16)


def _server(given: DaqOptions) -> str:
    text = given.text("server", "")
    host, _, port = text.rpartition(":")
    if not host or not (port.isascii() and port.isdigit()) or not 0 < int(port) < 65536:
        raise given.wrong("server", "must be host:port of an NI gRPC device server, such as '192.168.0.10:31763'")
    return text
